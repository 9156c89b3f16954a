#include "scheduler/metric/metric_tally.h"

#include <math.h>

#include "base/arena.h"
#include "base/memory.h"
#include "scheduler/metric/metric_order.h"

struct pen_metric_tally {
    pen_metric_setup setup;
    pen_arena *arena;
    pen_metric_sums sums;
    uint64_t target_limit; // targets of classes, of all examples
    uint32_t columns;      // scores that are kept of each
    double *scores;        // [target_limit][columns]; NULL: none are kept
    int32_t *labels;       // [target_limit]
    uint64_t kept;         // targets whose scores are
};

// ---- how outputs lie

// Targets of an output: `outer` times `inner` of them, with `classes` scores between.
typedef struct tally_layout {
    uint64_t outer, classes, inner;
} tally_layout;

static tally_layout tally_get_layout(const pen_metric_output *output, uint64_t example_count) {
    const pen_shape *shape = &output->type.shape;
    const bool has_classes = pen_loss_is_over_classes(output->spec.kind);
    const uint32_t axis = has_classes ? output->class_axis : shape->rank;
    const uint64_t outer = (uint64_t)pen_shape_count(shape, 0, axis) / output->example_count;
    if (!has_classes)
        return (tally_layout){.outer = outer * example_count, .classes = 1, .inner = 1};
    return (tally_layout){.outer = outer * example_count,
                          .classes = (uint64_t)shape->dims[axis],
                          .inner = (uint64_t)pen_shape_count(shape, axis + 1, shape->rank)};
}

// A mask has one element for the same number of neighbours, of all examples.
static bool tally_counts(const pen_metric_output *output, const void *mask, uint64_t target,
                         uint64_t target_count, uint64_t example_count) {
    if (mask == NULL) return true;
    const uint64_t masks = output->mask_count / output->example_count * example_count;
    return ((const uint8_t *)mask)[target / (target_count / masks)] != 0;
}

// ---- making

static uint32_t tally_get_class_count(const pen_metric_output *output) {
    if (pen_metric_is_decision(output->spec.kind)) return 2;
    return (uint32_t)output->type.shape.dims[output->class_axis];
}

// Of two classes one score tells which it is.
static uint32_t tally_count_columns(uint32_t class_count) {
    return class_count == 2 ? 1 : class_count;
}

pen_status pen_metric_check_scores(uint64_t target_count, uint32_t class_count) {
    if (target_count <= PEN_METRIC_SCORES_LIMIT / tally_count_columns(class_count)) return PEN_OK;
    return pen_error(PEN_DOES_NOT_FIT,
                     "auc keeps the scores of all examples, at most %llu, and there are %llu "
                     "targets of %u classes",
                     (unsigned long long)PEN_METRIC_SCORES_LIMIT, (unsigned long long)target_count,
                     class_count);
}

static pen_status tally_prepare_classes(pen_metric_tally *t) {
    const pen_metric_output *output = &t->setup.classes;
    const tally_layout layout = tally_get_layout(output, t->setup.example_count);
    const uint32_t class_count = tally_get_class_count(output);
    t->target_limit = layout.outer * layout.inner;
    t->sums.class_count = class_count;
    t->columns = tally_count_columns(class_count);
    PEN_TRY(PEN_NEW(t->arena, class_count, &t->sums.right));
    PEN_TRY(PEN_NEW(t->arena, class_count, &t->sums.answered));
    PEN_TRY(PEN_NEW(t->arena, class_count, &t->sums.actual));
    const bool keeps = pen_metric_is_in(PEN_METRIC_AUC, t->setup.choice.metrics);
    if (!keeps) return PEN_OK;
    PEN_TRY(pen_metric_check_scores(t->target_limit, class_count));
    t->scores = pen_memory_allocate_lazily(t->target_limit * t->columns, sizeof *t->scores);
    t->labels = pen_memory_allocate_lazily(t->target_limit, sizeof *t->labels);
    return t->scores == NULL || t->labels == NULL ? pen_error_out_of_memory() : PEN_OK;
}

pen_status pen_metric_tally_create(const pen_metric_setup *setup, pen_metric_tally **out_tally) {
    pen_metric_tally *tally = pen_memory_allocate(1, sizeof *tally);
    if (tally == NULL) return pen_error_out_of_memory();
    tally->setup = *setup;
    pen_status status = pen_arena_create(&tally->arena);
    if (status == PEN_OK && setup->choice.classes_loss != PEN_METRIC_NO_LOSS) {
        status = tally_prepare_classes(tally);
    }
    if (status != PEN_OK) {
        pen_metric_tally_destroy(tally);
        return status;
    }
    *out_tally = tally;
    return PEN_OK;
}

void pen_metric_tally_destroy(pen_metric_tally *tally) {
    if (tally == NULL) return;
    pen_memory_free(tally->scores);
    pen_memory_free(tally->labels);
    pen_arena_destroy(tally->arena);
    pen_memory_free(tally);
}

// ---- targets of classes

// A target as it is counted: its label, and where its scores and best classes lie.
typedef struct tally_target {
    int64_t label;
    uint64_t outer, inner;
} tally_target;

// Of probabilities the largest is the label, the first of equal ones. Negative: it is ignored.
static pen_status tally_find_label(const pen_metric_tally *t, const pen_metric_batch *batch,
                                   const tally_layout *layout, tally_target *target) {
    const pen_loss_spec *spec = &t->setup.classes.spec;
    const uint64_t first = target->outer * layout->classes * layout->inner + target->inner;
    const uint64_t index = target->outer * layout->inner + target->inner;
    target->label = 0;
    if (!pen_loss_takes_indices(spec)) {
        const float *labels = batch->class_labels;
        if (pen_metric_is_decision(spec->kind)) {
            target->label = labels[first] > 0.5F;
            return PEN_OK;
        }
        for (uint64_t c = 1; c < layout->classes; c++) {
            const uint64_t best = first + (uint64_t)target->label * layout->inner;
            if (labels[first + c * layout->inner] > labels[best]) target->label = (int64_t)c;
        }
        return PEN_OK;
    }
    target->label = ((const int64_t *)batch->class_labels)[index];
    if (spec->ignores && target->label == spec->ignore_index) {
        target->label = -1;
    } else if (target->label < 0 || target->label >= (int64_t)layout->classes) {
        return pen_error(PEN_INVALID_INPUT, "label %lld, expected 0 to %llu",
                         (long long)target->label, (unsigned long long)layout->classes - 1);
    }
    return PEN_OK;
}

// One answer, at a place from the best on. Only the best is one that counts for its class.
static void tally_add_answer(pen_metric_tally *t, const tally_target *target, int64_t answer,
                             uint32_t place) {
    pen_metric_sums *sums = &t->sums;
    const bool is_right = answer == target->label;
    sums->at_place[place] += is_right;
    if (place > 0) return;
    sums->judged += 1;
    sums->right[answer] += is_right;
    sums->answered[answer] += 1;
    sums->actual[target->label] += 1;
}

static double tally_read_score(const pen_metric_tally *t, const pen_metric_batch *batch,
                               uint64_t index) {
    return pen_element_read(t->setup.classes.type.element, batch->seen[PEN_METRIC_SEEN_SCORES],
                            (int64_t)index);
}

// What makes scores of different targets comparable, as their softmax does: the logarithm of it is
// in the same order.
static double tally_find_level(const pen_metric_tally *t, const pen_metric_batch *batch,
                               const tally_layout *layout, uint64_t first) {
    double largest = -INFINITY, sum = 0;
    if (t->setup.classes.is_probabilities) return 0;
    for (uint64_t c = 0; c < layout->classes; c++) {
        largest = fmax(largest, tally_read_score(t, batch, first + c * layout->inner));
    }
    for (uint64_t c = 0; c < layout->classes; c++) {
        sum += exp(tally_read_score(t, batch, first + c * layout->inner) - largest);
    }
    return largest + log(sum);
}

static void tally_keep_scores(pen_metric_tally *t, const pen_metric_batch *batch,
                              const tally_layout *layout, const tally_target *target) {
    const uint64_t first = target->outer * layout->classes * layout->inner + target->inner;
    if (t->scores == NULL || t->kept == t->target_limit) return;
    double *scores = t->scores + t->kept * t->columns;
    t->labels[t->kept++] = (int32_t)target->label;
    if (layout->classes == 1) {
        scores[0] = tally_read_score(t, batch, first);
    } else if (layout->classes == 2) {
        scores[0] =
            tally_read_score(t, batch, first + layout->inner) - tally_read_score(t, batch, first);
    } else {
        const double level = tally_find_level(t, batch, layout, first);
        for (uint64_t c = 0; c < layout->classes; c++) {
            scores[c] = tally_read_score(t, batch, first + c * layout->inner) - level;
        }
    }
}

// A decision is an answer of two classes; else the best classes are.
static pen_status tally_add_target(pen_metric_tally *t, const pen_metric_batch *batch,
                                   const tally_layout *layout, const tally_target *target) {
    const int64_t *best = batch->seen[PEN_METRIC_SEEN_BEST];
    const uint32_t top = t->setup.choice.top;
    if (pen_metric_is_decision(t->setup.classes.spec.kind)) {
        const bool is_probability = t->setup.classes.spec.kind == PEN_LOSS_BINARY_CROSS_ENTROPY;
        const double score = tally_read_score(t, batch, target->outer);
        tally_add_answer(t, target, score > (is_probability ? 0.5 : 0), 0);
    }
    for (uint32_t place = 0; place < top; place++) {
        const uint64_t at = (target->outer * top + place) * layout->inner + target->inner;
        if (best[at] < 0 || best[at] >= (int64_t)layout->classes) {
            return pen_error(PEN_CORRUPT, "class %lld of %llu was the answer", (long long)best[at],
                             (unsigned long long)layout->classes);
        }
        tally_add_answer(t, target, best[at], place);
    }
    tally_keep_scores(t, batch, layout, target);
    return PEN_OK;
}

static pen_status tally_add_classes(pen_metric_tally *t, const pen_metric_batch *batch) {
    const pen_metric_output *output = &t->setup.classes;
    const tally_layout layout = tally_get_layout(output, batch->example_count);
    const uint64_t count = layout.outer * layout.inner;
    for (uint64_t i = 0; i < count; i++) {
        tally_target target = {.outer = i / layout.inner, .inner = i % layout.inner};
        if (!tally_counts(output, batch->seen[PEN_METRIC_SEEN_MASK], i, count,
                          batch->example_count)) {
            continue;
        }
        PEN_TRY(tally_find_label(t, batch, &layout, &target));
        if (target.label >= 0) PEN_TRY(tally_add_target(t, batch, &layout, &target));
    }
    return PEN_OK;
}

// ---- numbers

// One after the other, whatever the batches, so that the sum is the same.
static void tally_add_numbers(pen_metric_tally *t, const pen_metric_batch *batch) {
    const pen_metric_output *output = &t->setup.numbers;
    const tally_layout layout = tally_get_layout(output, batch->example_count);
    const void *numbers = batch->seen[PEN_METRIC_SEEN_NUMBERS];
    const float *labels = batch->number_labels;
    for (uint64_t i = 0; i < layout.outer; i++) {
        if (!tally_counts(output, batch->seen[PEN_METRIC_SEEN_NUMBERS_MASK], i, layout.outer,
                          batch->example_count)) {
            continue;
        }
        const double difference =
            pen_element_read(output->type.element, numbers, (int64_t)i) - (double)labels[i];
        t->sums.absolute += fabs(difference);
        t->sums.square += difference * difference;
        t->sums.number_count += 1;
    }
}

pen_status pen_metric_tally_add(pen_metric_tally *tally, const pen_metric_batch *batch) {
    const pen_metric_choice *choice = &tally->setup.choice;
    if (choice->numbers_loss != PEN_METRIC_NO_LOSS) tally_add_numbers(tally, batch);
    if (choice->classes_loss == PEN_METRIC_NO_LOSS) return PEN_OK;
    return tally_add_classes(tally, batch);
}

// ---- at the end

// The mean over the classes of which there is an example and one that is none.
static double tally_find_area(const pen_metric_tally *t, pen_metric_scored *items) {
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t column = 0; column < t->columns; column++) {
        const int32_t class = t->columns == 1 ? 1 : (int32_t)column;
        for (uint64_t i = 0; i < t->kept; i++) {
            items[i] =
                (pen_metric_scored){t->scores[i * t->columns + column], t->labels[i] == class};
        }
        const double area = pen_metric_area(items, t->kept);
        if (isnan(area)) continue;
        sum += area;
        count += 1;
    }
    return count == 0 ? NAN : sum / count;
}

pen_status pen_metric_tally_finish(pen_metric_tally *tally, pen_metric_sums **out_sums) {
    *out_sums = &tally->sums;
    if (tally->scores == NULL) return PEN_OK;
    pen_metric_scored *items = pen_memory_allocate(tally->kept + 1, sizeof *items);
    if (items == NULL) return pen_error_out_of_memory();
    tally->sums.area = tally_find_area(tally, items);
    pen_memory_free(items);
    return PEN_OK;
}
