// What losses take of labels: which classes may be there, and what the targets of some examples
// weigh together.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/data/dataset_format.h"

#define TARGET_CHUNK 256 // examples whose labels are read at a time
#define TARGET_NAMES_BYTES 256

// "'logits', 'boxes'"; what there is no room for is left out.
static const char *target_list_names(const pen_dataset_info *info, char text[TARGET_NAMES_BYTES]) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < info->label_count && length < TARGET_NAMES_BYTES; i++) {
        const int count = snprintf(text + length, TARGET_NAMES_BYTES - length, "%s'%s'",
                                   i == 0 ? "" : ", ", info->labels[i].name);
        length += count > 0 ? (size_t)count : 0;
    }
    return text;
}

// Only labels need no name; of several, none is taken for another.
pen_status pen_dataset_find_labels(const pen_dataset_info *info, const char *name,
                                   uint32_t *out_labels) {
    char names[TARGET_NAMES_BYTES];
    for (uint32_t i = 0; i < info->label_count; i++) {
        const bool is_only = name == NULL && info->label_count == 1;
        if (!is_only && (name == NULL || strcmp(info->labels[i].name, name) != 0)) continue;
        *out_labels = i;
        return PEN_OK;
    }
    if (info->label_count == 0) {
        return pen_error(PEN_INVALID_INPUT, "the data has no labels, which the loss needs");
    }
    if (name == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "the data has the labels %s, and a loss says not which of them it takes",
                         target_list_names(info, names));
    }
    return pen_error(PEN_INVALID_INPUT,
                     "the data has no labels called '%s'; it has %s. The formats npy and arrays "
                     "give names, as `labels: {%s: FILE.npy}`; the only labels of others need none",
                     name, target_list_names(info, names), name);
}

static pen_status target_open(pen_dataset *dataset, const pen_dataset_target *rule,
                              pen_dataset_known_target *target) {
    float *weights;
    *target = (pen_dataset_known_target){.rule = *rule, .labels = PEN_DATASET_NO_LABELS};
    if (dataset->info.labels == NULL || !rule->has_classes) return PEN_OK;
    uint32_t labels;
    PEN_TRY(pen_dataset_find_labels(&dataset->info, rule->labels, &labels));
    if (dataset->info.labels[labels].element != PEN_DATASET_INT64) return PEN_OK;
    target->labels = labels;
    if (rule->weights == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(dataset->arena, rule->weight_count, &weights));
    memcpy(weights, rule->weights, rule->weight_count * sizeof *weights);
    target->rule.weights = weights;
    return PEN_OK;
}

// Without targets, the first labels are looked at as they are.
pen_status pen_dataset_open_targets(pen_dataset *dataset, const pen_dataset_options *options) {
    pen_dataset_info *info = &dataset->info;
    const pen_dataset_target first = {.labels = info->labels == NULL ? NULL : info->labels[0].name,
                                      .has_classes = true};
    const bool has_none = options->target_count == 0;
    const uint32_t count = has_none ? 1 : options->target_count;
    PEN_ASSERT(count <= PEN_DATASET_LABEL_COUNT_LIMIT);
    PEN_TRY(PEN_NEW(dataset->arena, count, &dataset->targets));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(
            target_open(dataset, has_none ? &first : &options->targets[i], &dataset->targets[i]));
    }
    info->target_count = count;
    return PEN_OK;
}

static bool target_is_ignored(const pen_dataset_target *rule, int64_t label) {
    return rule->ignores && label == rule->ignore_index;
}

// ---- labels that are no classes

// Tokens and classes have words of their own; what may be there besides is said, too.
static pen_status target_refuse(const pen_dataset *dataset, const pen_dataset_known_target *target,
                                uint64_t example, int64_t label) {
    const char *source = dataset->label_sources[target->labels];
    if (dataset->format->token_hint != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': example %" PRIu64 " has the token %" PRId64
                         ", but the model's vocabulary is 0 to %" PRIu32 "%s",
                         source, example, label, target->class_limit - 1,
                         dataset->format->token_hint);
    }
    if (target->rule.ignores) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': example %" PRIu64 " has the class %" PRId64
                         ", expected 0 to %" PRIu32 ", or %" PRId64 ", which is ignored",
                         source, example, label, target->class_limit - 1,
                         target->rule.ignore_index);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "'%s': example %" PRIu64 " has the class %" PRId64 ", expected 0 to %" PRIu32,
                     source, example, label, target->class_limit - 1);
}

static pen_status target_check(const pen_dataset *dataset, const pen_dataset_known_target *target,
                               const uint64_t *indices, uint64_t count, const int64_t *classes) {
    const uint64_t each = dataset->info.labels[target->labels].element_count;
    for (uint64_t i = 0; i < count * each; i++) {
        if (classes[i] >= 0 && classes[i] < (int64_t)target->class_limit) continue;
        if (target_is_ignored(&target->rule, classes[i])) continue;
        return target_refuse(dataset, target, indices[i / each], classes[i]);
    }
    return PEN_OK;
}

pen_status pen_dataset_check_targets(const pen_dataset *dataset, const uint64_t *indices,
                                     uint64_t count, void *const *labels) {
    for (uint32_t i = 0; dataset->targets != NULL && i < dataset->info.target_count; i++) {
        const pen_dataset_known_target *target = &dataset->targets[i];
        if (target->class_limit == 0 || target->labels == PEN_DATASET_NO_LABELS) continue;
        if (labels[target->labels] == NULL) continue;
        PEN_TRY(target_check(dataset, target, indices, count, labels[target->labels]));
    }
    return PEN_OK;
}

// ---- classes that become probabilities

// Formats keep their field of the labels: what they read is spread behind them.
pen_status pen_dataset_open_spread(pen_dataset *dataset, const pen_dataset_options *options) {
    pen_dataset_info *info = &dataset->info;
    const uint32_t said = options->mix.class_count;
    const uint32_t count = said > 0 ? said : info->class_count;
    pen_dataset_field *labels;
    if (!pen_mix_is_wished(&options->mix) || info->labels == NULL) return PEN_OK;
    if (info->label_count > 1) {
        return pen_error(PEN_INVALID_INPUT, "mix: found several labels, expected one");
    }
    if (info->labels->element != PEN_DATASET_INT64) {
        if (said == 0) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT, "mix: found classes, but labels that are numbers "
                                            "already, expected class indices");
    }
    if (info->labels->element_count != 1 || dataset->format->token_hint != NULL) {
        return pen_error(PEN_INVALID_INPUT, "mix: found several labels an example, expected one");
    }
    if (count < 2) {
        return pen_error(PEN_INVALID_INPUT,
                         "mix: the labels are class indices, expected `classes: N` beside mixup "
                         "or cutmix, how many there are");
    }
    PEN_TRY(PEN_NEW(dataset->arena, 1, &labels));
    *labels = *info->labels;
    labels->element = PEN_DATASET_FLOAT32;
    labels->rank = 1;
    labels->shape[0] = count;
    PEN_TRY(pen_dataset_field_measure(labels, "mix: the probabilities of classes"));
    info->labels = labels;
    info->class_count = count;
    dataset->spread_count = count;
    return PEN_OK;
}

// In place, from the last to the first: two probabilities or more take as much room as an index.
pen_status pen_dataset_spread(const pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                              void *const *labels) {
    const uint32_t class_count = dataset->spread_count;
    if (class_count == 0 || labels[0] == NULL) return PEN_OK;
    for (uint64_t i = count; i > 0; i--) {
        int64_t label;
        memcpy(&label, (const char *)labels[0] + (i - 1) * sizeof label, sizeof label);
        if (label < 0 || label >= class_count) {
            return pen_error(PEN_INVALID_INPUT,
                             "'%s': example %" PRIu64 " has the class %" PRId64
                             ", expected 0 to %" PRIu32,
                             dataset->label_sources[0], indices[i - 1], label, class_count - 1);
        }
        float *row = (float *)labels[0] + (i - 1) * class_count;
        memset(row, 0, class_count * sizeof *row);
        row[label] = 1;
    }
    return PEN_OK;
}

// ---- what targets weigh

// The targets of one example, without its own weight. A label that is no class weighs nothing: it
// is refused elsewhere.
static pen_target_sum target_weigh(const pen_dataset_target *rule, const int64_t *classes,
                                   uint64_t count) {
    pen_target_sum sum = {0};
    for (uint64_t i = 0; i < count; i++) {
        if (target_is_ignored(rule, classes[i])) continue;
        sum.count += 1;
        if (rule->weights == NULL || classes[i] < 0 || classes[i] >= rule->weight_count) continue;
        sum.weight += (double)rule->weights[classes[i]];
    }
    if (rule->weights == NULL) sum.weight = (double)sum.count;
    return sum;
}

pen_target_sum pen_dataset_weigh(const pen_dataset *dataset, uint32_t target,
                                 const uint64_t *indices, uint64_t count, void *const *labels) {
    const pen_dataset_known_target *known = &dataset->targets[target];
    const bool has_classes = known->labels != PEN_DATASET_NO_LABELS;
    const uint64_t each = has_classes ? dataset->info.labels[known->labels].element_count : 0;
    const int64_t *classes = has_classes ? labels[known->labels] : NULL;
    pen_target_sum sum = {0};
    for (uint64_t i = 0; i < count; i++) {
        const double weight = pen_dataset_weight(dataset, indices[i]);
        const pen_target_sum one = has_classes
                                       ? target_weigh(&known->rule, classes + i * each, each)
                                       : (pen_target_sum){.weight = 1};
        sum.count += one.count;
        sum.weight += weight * one.weight;
    }
    return sum;
}

static pen_status target_read_all(pen_dataset *dataset, uint32_t target, void *const *labels,
                                  pen_target_sum *out_sum) {
    uint64_t indices[TARGET_CHUNK];
    const uint64_t count = dataset->info.example_count;
    *out_sum = (pen_target_sum){0};
    for (uint64_t done = 0; done < count;) {
        const uint64_t now = pen_min_u64(count - done, TARGET_CHUNK);
        for (uint64_t i = 0; i < now; i++)
            indices[i] = done + i;
        if (labels != NULL) PEN_TRY(pen_dataset_read(dataset, indices, now, NULL, labels));
        const pen_target_sum sum = pen_dataset_weigh(dataset, target, indices, now, labels);
        out_sum->count += sum.count;
        out_sum->weight += sum.weight;
        done += now;
    }
    return PEN_OK;
}

pen_status pen_dataset_weigh_all(pen_dataset *dataset, uint32_t target, pen_target_sum *out_sum) {
    pen_dataset_known_target *known = &dataset->targets[target];
    void *labels[PEN_DATASET_LABEL_COUNT_LIMIT] = {NULL};
    if (!known->is_weighed && known->labels == PEN_DATASET_NO_LABELS) {
        PEN_TRY(target_read_all(dataset, target, NULL, &known->sum));
    } else if (!known->is_weighed) {
        const uint64_t bytes = dataset->info.labels[known->labels].bytes;
        void *memory = pen_memory_allocate(TARGET_CHUNK, bytes);
        if (memory == NULL) return pen_error_out_of_memory();
        labels[known->labels] = memory;
        const pen_status status = target_read_all(dataset, target, labels, &known->sum);
        pen_memory_free(memory);
        PEN_TRY(status);
    }
    known->is_weighed = true;
    *out_sum = known->sum;
    return PEN_OK;
}

pen_status pen_dataset_limit_classes(pen_dataset *dataset, uint32_t target, uint32_t class_count) {
    pen_dataset_known_target *known = &dataset->targets[target];
    pen_target_sum sum;
    if (known->labels == PEN_DATASET_NO_LABELS) return PEN_OK;
    known->class_limit = class_count;
    known->is_weighed = false;
    PEN_TRY(pen_dataset_weigh_all(dataset, target, &sum));
    if (sum.weight > 0) return PEN_OK;
    return pen_error(
        PEN_INVALID_INPUT, "'%s': no target counts: %s", dataset->label_sources[known->labels],
        sum.count == 0             ? "all labels are ignore_index"
        : dataset->weights == NULL ? "class_weights are 0 for all classes that are there"
                                   : "the weights of the examples, or of their classes, are all 0");
}

pen_dataset_element pen_dataset_label_element(const pen_dataset_options *options,
                                              const char *name) {
    if (options->label_element != PEN_DATASET_AUTO) return options->label_element;
    if (options->mix.class_count > 0) return PEN_DATASET_INT64;
    for (uint32_t i = 0; i < options->target_count; i++) {
        const pen_dataset_target *target = &options->targets[i];
        if (target->labels == NULL || strcmp(target->labels, name) != 0) continue;
        return target->has_classes ? PEN_DATASET_INT64 : PEN_DATASET_FLOAT32;
    }
    return PEN_DATASET_AUTO;
}
