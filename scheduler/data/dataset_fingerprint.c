#include "base/checksum.h"
#include "base/memory.h"
#include "scheduler/data/dataset_format.h"

#define FINGERPRINT_SAMPLES 8 // examples, the first and the last among them

static uint64_t fingerprint_mix(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 32;
}

static uint64_t fingerprint_field(uint64_t digest, const pen_dataset_field *field) {
    digest = fingerprint_mix(digest, (uint64_t)field->element);
    for (uint32_t i = 0; i < field->rank; i++) {
        digest = fingerprint_mix(digest, (uint64_t)field->shape[i]);
    }
    return fingerprint_mix(digest, field->rank);
}

static pen_status fingerprint_samples(pen_dataset *dataset, void *const *inputs,
                                      void *const *labels, uint64_t *digest) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    for (uint64_t i = 0; i < FINGERPRINT_SAMPLES; i++) {
        const uint64_t index = (info->example_count - 1) / (FINGERPRINT_SAMPLES - 1) * i;
        const bool is_last = i + 1 == FINGERPRINT_SAMPLES;
        const uint64_t example = is_last ? info->example_count - 1 : index;
        PEN_TRY(pen_dataset_read(dataset, &example, 1, inputs, labels));
        for (uint32_t f = 0; f < info->input_count; f++) {
            *digest =
                fingerprint_mix(*digest, pen_checksum_whole(inputs[f], info->inputs[f].bytes));
        }
        for (uint32_t f = 0; info->labels != NULL && f < info->label_count; f++) {
            *digest =
                fingerprint_mix(*digest, pen_checksum_whole(labels[f], info->labels[f].bytes));
        }
    }
    return PEN_OK;
}

static pen_status fingerprint_allocate(const pen_dataset_info *info, void **inputs, void **labels) {
    for (uint32_t i = 0; i < info->input_count; i++) {
        inputs[i] = pen_memory_allocate(1, info->inputs[i].bytes);
        if (inputs[i] == NULL) return pen_error_out_of_memory();
    }
    for (uint32_t i = 0; info->labels != NULL && i < info->label_count; i++) {
        labels[i] = pen_memory_allocate(1, info->labels[i].bytes);
        if (labels[i] == NULL) return pen_error_out_of_memory();
    }
    return PEN_OK;
}

// Memory for one example is taken here, and given back whatever happens.
pen_status pen_dataset_fingerprint(pen_dataset *dataset, uint64_t *out_fingerprint) {
    const pen_dataset_info *info = pen_dataset_get_info(dataset);
    void *inputs[PEN_DATASET_INPUT_COUNT_LIMIT] = {NULL};
    void *labels[PEN_DATASET_LABEL_COUNT_LIMIT] = {NULL};
    uint64_t digest = fingerprint_mix(0, info->example_count);
    for (uint32_t i = 0; i < info->input_count; i++) {
        digest = fingerprint_field(digest, &info->inputs[i]);
    }
    for (uint32_t i = 0; info->labels != NULL && i < info->label_count; i++) {
        digest = fingerprint_field(digest, &info->labels[i]);
    }
    if (dataset->format->digest != NULL) {
        digest = fingerprint_mix(digest, dataset->format->digest(dataset));
    }
    pen_status status = fingerprint_allocate(info, inputs, labels);
    if (status == PEN_OK) status = fingerprint_samples(dataset, inputs, labels, &digest);
    for (uint32_t i = 0; i < PEN_DATASET_INPUT_COUNT_LIMIT; i++) {
        pen_memory_free(inputs[i]);
    }
    for (uint32_t i = 0; i < PEN_DATASET_LABEL_COUNT_LIMIT; i++) {
        pen_memory_free(labels[i]);
    }
    *out_fingerprint = digest;
    return status;
}
