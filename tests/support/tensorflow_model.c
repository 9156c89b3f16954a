#include "tests/support/tensorflow_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/format/npy.h"
#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

pen_model *tensorflow_open(const char *path, const pen_import_options *options) {
    pen_model *model = NULL;
    CHECK_OK(pen_model_open(path, options, &model));
    return model;
}

// ---- arrays

typedef struct array {
    pen_mapping mapping;
    pen_npy_header header;
    const uint8_t *data;
} array;

static array array_open(const char *name, const char *kind, uint32_t index) {
    char path[256];
    array opened = {0};
    snprintf(path, sizeof path, TENSORFLOW_MODELS "%s.%s_%u.npy", name, kind, index);
    CHECK_OK(pen_mapping_open(path, &opened.mapping));
    CHECK_OK(
        pen_npy_read_header(opened.mapping.bytes, opened.mapping.length, path, &opened.header));
    opened.data = opened.mapping.bytes + opened.header.data_offset;
    return opened;
}

static double array_at(const array *a, uint64_t i) {
    if (a->header.element == PEN_NPY_FLOAT32) {
        float single;
        memcpy(&single, a->data + i * sizeof single, sizeof single);
        return (double)single;
    }
    if (a->header.element == PEN_NPY_INT32) {
        int32_t narrow;
        memcpy(&narrow, a->data + i * sizeof narrow, sizeof narrow);
        return narrow;
    }
    int64_t integer;
    CHECK(a->header.element == PEN_NPY_INT64, "an array of another type");
    memcpy(&integer, a->data + i * sizeof integer, sizeof integer);
    return (double)integer;
}

// ---- running

void tensorflow_bind(const pen_model *model, int64_t batch) {
    const pen_symbol_binding binding = {"batch", batch};
    CHECK_OK(
        pen_infer_shapes(model->graph, &(pen_infer_options){.bindings = &binding,
                                                            .binding_count = 1,
                                                            .evaluate = pen_reference_evaluate}));
}

static void feed(run_graph *run, const char *name) {
    for (uint32_t i = 0; i < pen_graph_input_count(run->graph); i++) {
        array input = array_open(name, "input", i);
        pen_tensor *tensor = &run->tensors[pen_graph_input(run->graph, i).index];
        CHECK((uint64_t)pen_tensor_count(tensor) == input.header.element_count, "input %u", i);
        for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
            pen_tensor_set(tensor, k, array_at(&input, (uint64_t)k));
        }
        pen_mapping_close(&input.mapping);
    }
}

static void check_output(const run_graph *run, const char *name, uint32_t index) {
    array output = array_open(name, "output", index);
    const pen_tensor *tensor = &run->tensors[pen_graph_output(run->graph, index).index];
    assert_int_equal(tensor->type.shape.rank, output.header.rank);
    for (uint32_t d = 0; d < output.header.rank; d++) {
        assert_int_equal(tensor->type.shape.dims[d], output.header.shape[d]);
    }
    double largest = 1e-30, difference = 0;
    for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
        const double expected = array_at(&output, (uint64_t)k);
        largest = fmax(largest, fabs(expected));
        difference = fmax(difference, fabs(expected - pen_tensor_get(tensor, k)));
    }
    CHECK(difference <= 1e-5 * largest, "%s: output %u differs by %g of %g", name, index,
          difference, largest);
    pen_mapping_close(&output.mapping);
}

void tensorflow_check(pen_model *model, const char *name, int64_t batch) {
    run_graph run;
    pen_arena *arena = check_arena();
    if (batch > 0) tensorflow_bind(model, batch);
    CHECK_OK(run_graph_init(&run, model->graph, arena));
    feed(&run, name);
    CHECK_OK(run_graph_all(&run));
    for (uint32_t i = 0; i < pen_graph_output_count(model->graph); i++) {
        check_output(&run, name, i);
    }
    pen_arena_destroy(arena);
    pen_model_destroy(model);
}
