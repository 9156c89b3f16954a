#include "partition/costs/gpu_models.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <strings.h>

#include "base/status.h"

// From NVIDIA's data sheets, without tensor cores. Of two that fit a name, the first counts.
static const pen_gpu_model gpu_models[] = {
    {"H200 NVL", 60e12, 4.8e12},     {"H200", 67e12, 4.8e12},
    {"H100 NVL", 60e12, 3.9e12},     {"H100 PCIe", 51e12, 2.0e12},
    {"H100", 67e12, 3.35e12},        {"A100 80GB", 19.5e12, 2e12},
    {"A100", 19.5e12, 1.555e12},     {"L40S", 91.6e12, 864e9},
    {"L4", 30.3e12, 300e9},          {"A40", 37.4e12, 696e9},
    {"A30", 10.3e12, 933e9},         {"A10", 31.2e12, 600e9},
    {"V100 PCIE", 14e12, 900e9},     {"V100", 15.7e12, 900e9},
    {"T4", 8.1e12, 320e9},           {"RTX 4090 D", 73.5e12, 1.008e12},
    {"RTX 4090", 82.6e12, 1.008e12}, {"RTX 3090 Ti", 40e12, 1.008e12},
    {"RTX 3090", 35.6e12, 936e9},
};

// A GPU whose name has one of these is slower than its model: a part of it, or one for a laptop.
static const char *const gpu_parts[] = {"MIG", "Laptop", "Max"};

uint32_t pen_gpu_model_count(void) {
    return sizeof gpu_models / sizeof *gpu_models;
}

const pen_gpu_model *pen_gpu_model_at(uint32_t index) {
    PEN_ASSERT(index < pen_gpu_model_count());
    return &gpu_models[index];
}

static size_t gpu_word_length(const char *text) {
    size_t length = 0;
    while (isalnum((unsigned char)text[length]))
        length++;
    return length;
}

static bool gpu_has_word(const char *name, const char *word, size_t length) {
    while (*name != '\0') {
        const size_t found = gpu_word_length(name);
        if (found == length && strncasecmp(name, word, length) == 0) return true;
        name += found > 0 ? found : 1;
    }
    return false;
}

static bool gpu_has_words(const char *name, const char *words) {
    while (*words != '\0') {
        const size_t length = gpu_word_length(words);
        if (length > 0 && !gpu_has_word(name, words, length)) return false;
        words += length > 0 ? length : 1;
    }
    return true;
}

const pen_gpu_model *pen_gpu_model_find(const char *name) {
    for (size_t i = 0; i < sizeof gpu_parts / sizeof *gpu_parts; i++) {
        if (gpu_has_words(name, gpu_parts[i])) return NULL;
    }
    for (uint32_t i = 0; i < pen_gpu_model_count(); i++) {
        if (gpu_has_words(name, gpu_models[i].words)) return &gpu_models[i];
    }
    return NULL;
}
