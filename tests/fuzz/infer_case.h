// The model that requests are read for.
#ifndef PEN_TESTS_FUZZ_INFER_CASE_H
#define PEN_TESTS_FUZZ_INFER_CASE_H

#include "scheduler/serve/served_model.h"

static const pen_served_tensor infer_inputs[] = {
    {"x", {.element = PEN_FLOAT32, .shape = {.rank = 1, .dims = {3}}}, 12, 0, NULL},
    {"t", {.element = PEN_INT64, .shape = {.rank = 0}}, 8, 5, "gather"}, // indices from -5 to 4
};
static const pen_served_tensor infer_outputs[] = {
    {"y", {.element = PEN_FLOAT32, .shape = {.rank = 1, .dims = {2}}}, 8, 0, NULL},
};
static const pen_served_model infer_model = {"net", 2, 1, infer_inputs, infer_outputs, 100};

#endif // PEN_TESTS_FUZZ_INFER_CASE_H
