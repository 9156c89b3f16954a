#include "scheduler/metric/metric_choose.h"

bool pen_metric_is_decision(pen_loss_kind kind) {
    return kind == PEN_LOSS_BINARY_CROSS_ENTROPY ||
           kind == PEN_LOSS_BINARY_CROSS_ENTROPY_WITH_LOGITS;
}

static bool choose_is_of_classes(pen_loss_kind kind) {
    return pen_loss_is_over_classes(kind) || pen_metric_is_decision(kind);
}

bool pen_metric_is_of_numbers(pen_loss_kind kind) {
    return kind == PEN_LOSS_MEAN_SQUARED_ERROR || kind == PEN_LOSS_L1 ||
           kind == PEN_LOSS_SMOOTH_L1 || kind == PEN_LOSS_HUBER;
}

pen_metric_loss pen_metric_loss_of(const pen_loss_spec *spec, uint32_t class_count,
                                   bool has_penalty) {
    return (pen_metric_loss){
        .kind = spec->kind,
        .class_count = class_count,
        .is_plain = pen_loss_takes_indices(spec) && spec->label_smoothing == 0 &&
                    spec->class_weights == NULL && !spec->weighs_examples && !has_penalty};
}

// What is looked for among the losses of each source, and how it is called.
typedef struct choose_source {
    bool (*is_of)(pen_loss_kind kind);
    const char *lack;
} choose_source;

static const choose_source choose_sources[] = {
    [PEN_METRIC_FROM_CLASSES] = {choose_is_of_classes, "the loss is over no classes"},
    [PEN_METRIC_FROM_SCORES] = {choose_is_of_classes, "the loss is over no classes"},
    [PEN_METRIC_FROM_ENTROPY] = {pen_loss_is_over_classes, "the loss is over no classes"},
    [PEN_METRIC_FROM_NUMBERS] = {pen_metric_is_of_numbers, "no loss compares numbers with numbers"},
};

bool pen_metric_is_of(pen_metric_source source, pen_loss_kind kind) {
    return choose_sources[source].is_of != NULL && choose_sources[source].is_of(kind);
}

static uint32_t choose_find(const pen_metric_loss *losses, uint32_t count,
                            const choose_source *source) {
    for (uint32_t i = 0; i < count; i++) {
        if (source->is_of(losses[i].kind)) return i;
    }
    return PEN_METRIC_NO_LOSS;
}

// Every class is among the best of as many as there are.
static pen_status choose_count(const pen_metric_kind *kind, const pen_metric_loss *loss,
                               pen_metric_choice *choice) {
    const bool is_top = kind->value == pen_metric_kinds[PEN_METRIC_ACCURACY].value;
    const uint32_t top = is_top ? (uint32_t)kind->number : 1;
    if (top > 1 && top >= loss->class_count) {
        return pen_error(PEN_INVALID_INPUT, "evaluation: found %s, but there are %u classes",
                         kind->name, loss->class_count);
    }
    if (pen_metric_is_decision(loss->kind)) {
        choice->takes_scores = true;
    } else if (choice->top < top) {
        choice->top = top;
    }
    return PEN_OK;
}

// One metric: its loss, and what it needs.
static pen_status choose_add(const pen_metric_loss *losses, uint32_t loss_count, pen_metric metric,
                             pen_metric_choice *choice) {
    const pen_metric_kind *kind = &pen_metric_kinds[metric];
    const choose_source *source = &choose_sources[kind->source];
    const uint32_t index = choose_find(losses, loss_count, source);
    if (index == PEN_METRIC_NO_LOSS) {
        return pen_error(PEN_INVALID_INPUT, "evaluation: found %s, but %s", kind->name,
                         source->lack);
    }
    const pen_metric_loss *loss = &losses[index];
    switch (kind->source) {
    case PEN_METRIC_FROM_LOSS:
        break;
    case PEN_METRIC_FROM_CLASSES:
        choice->classes_loss = index;
        return choose_count(kind, loss, choice);
    case PEN_METRIC_FROM_SCORES:
        choice->classes_loss = index;
        choice->takes_scores = true;
        break;
    case PEN_METRIC_FROM_ENTROPY:
        choice->entropy_loss = index;
        if (loss->is_plain) break;
        return pen_error(
            PEN_INVALID_INPUT,
            "evaluation: found %s, but the loss is no plain cross-entropy: it has weights of "
            "classes or examples, label smoothing, probabilities or a model's penalty",
            kind->name);
    case PEN_METRIC_FROM_NUMBERS:
        choice->numbers_loss = index;
        break;
    }
    return PEN_OK;
}

pen_status pen_metric_choose(const pen_metric_loss *losses, uint32_t loss_count, bool counts_right,
                             pen_metric_set metrics, pen_metric_choice *out_choice) {
    pen_metric_choice choice = {.classes_loss = PEN_METRIC_NO_LOSS,
                                .entropy_loss = PEN_METRIC_NO_LOSS,
                                .numbers_loss = PEN_METRIC_NO_LOSS};
    choice.metrics = metrics & ~PEN_METRIC_BIT(PEN_METRIC_LOSS);
    if (counts_right) choice.metrics &= ~PEN_METRIC_BIT(PEN_METRIC_ACCURACY);
    for (pen_metric metric = 0; metric < PEN_METRIC_COUNT; metric++) {
        if (!pen_metric_is_in(metric, choice.metrics)) continue;
        PEN_TRY(choose_add(losses, loss_count, metric, &choice));
    }
    *out_choice = choice;
    return PEN_OK;
}
