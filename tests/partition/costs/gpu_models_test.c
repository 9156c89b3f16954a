#include "partition/costs/gpu_models.h"

#include "tests/support/check.h"

// Names as drivers say them.
static void names_are_found_by_their_words(void **state) {
    (void)state;
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"NVIDIA H200", "H200"},
        {"NVIDIA H100 80GB HBM3", "H100"},
        {"NVIDIA H100 PCIe", "H100 PCIe"},
        {"NVIDIA A100-SXM4-40GB", "A100"},
        {"NVIDIA A100-SXM4-80GB", "A100 80GB"},
        {"Tesla T4", "T4"},
        {"Tesla V100-SXM2-16GB", "V100"},
        {"nvidia l4", "L4"},
        {"NVIDIA L40S", "L40S"},
        {"NVIDIA GeForce RTX 4090", "RTX 4090"},
        {"NVIDIA H100 NVL", "H100 NVL"},
        {"Tesla V100-PCIE-32GB", "V100 PCIE"},
        {"NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti"},
        {"NVIDIA GeForce RTX 4090 D", "RTX 4090 D"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL},
        {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", NULL},
        {"NVIDIA A1000", NULL}, // not an A100
        {"NVIDIA L40", NULL},
        {"4090", NULL},
        {"emulated GPU", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pen_gpu_model *found = pen_gpu_model_find(cases[i].name);
        if (cases[i].words == NULL) {
            CHECK(found == NULL, "'%s' is known", cases[i].name);
        } else {
            CHECK(found != NULL && strcmp(found->words, cases[i].words) == 0, "'%s'",
                  cases[i].name);
        }
    }
}

// Each is found by its own words, so that none hides another; figures are in the right units.
static void figures_are_plausible(void **state) {
    (void)state;
    for (uint32_t i = 0; i < pen_gpu_model_count(); i++) {
        const pen_gpu_model *model = pen_gpu_model_at(i);
        assert_ptr_equal(pen_gpu_model_find(model->words), model);
        assert_true(model->flops > 5e12 && model->flops < 200e12);
        assert_true(model->memory_bandwidth > 200e9 && model->memory_bandwidth < 10e12);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(names_are_found_by_their_words),
              cmocka_unit_test(figures_are_plausible))
