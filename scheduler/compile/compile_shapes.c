// Sizes: what the data, the microbatch and the request say of the model's inputs, and the types of
// all that is computed from them.
#include <string.h>

#include "device/reference/reference_evaluate.h"
#include "graph/graph.h"
#include "graph/passes/infer_shapes.h"
#include "scheduler/compile/compile_pass.h"

#define SHAPES_SYMBOLS_LIMIT 64

static const pen_compile_input *shapes_find_input(const pen_compilation *compilation,
                                                  const char *name) {
    for (uint32_t i = 0; i < compilation->request->input_count; i++) {
        const pen_compile_input *input = &compilation->request->inputs[i];
        if (strcmp(input->name, name) == 0) return input;
        const bool is_only =
            input->name[0] == '\0' && pen_graph_input_count(compilation->graph) == 1;
        if (is_only) return input;
    }
    return NULL;
}

// Makes the first dimension of an input the microbatch, whatever the exporter wrote there, but for
// models that compute with what is written there.
static pen_status shapes_bind_batch(pen_compilation *compilation, pen_value_id input) {
    const uint64_t size = compilation->request->microbatch_size;
    const char *recipe = compilation->model->batch_recipe;
    pen_tensor_type type = *pen_value_type(compilation->graph, input);
    if (size == 0 || type.shape.rank == 0 || type.shape.dims[0] < 0) return PEN_OK;
    if (recipe != NULL && type.shape.dims[0] != (int64_t)size) {
        return pen_error(PEN_UNSUPPORTED,
                         "input '%s' was exported for %lld examples at once, and is given %llu: "
                         "train with that many in a microbatch, or export the model with %s",
                         pen_value_name(compilation->graph, input), (long long)type.shape.dims[0],
                         (unsigned long long)size, recipe);
    }
    type.shape.dims[0] = (int64_t)size;
    pen_graph_set_type(compilation->graph, input, &type);
    return PEN_OK;
}

// The file may say between which sizes a symbol is.
static pen_status shapes_check_range(const pen_model *model, const pen_symbol_binding *binding) {
    for (uint32_t i = 0; i < model->range_count; i++) {
        const pen_model_range *range = &model->ranges[i];
        if (strcmp(range->symbol, binding->symbol) != 0) continue;
        if (binding->size >= range->least && binding->size <= range->most) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT,
                         "the model's dimension '%s' is %lld here, and was exported for %s %lld",
                         binding->symbol, (long long)binding->size,
                         binding->size < range->least ? "no less than" : "no more than",
                         (long long)(binding->size < range->least ? range->least : range->most));
    }
    return PEN_OK;
}

// The size that the data gives to dimension `axis` of an input; 0: none.
static int64_t shapes_data_size(const pen_compilation *compilation, pen_value_id input,
                                uint32_t axis) {
    if (axis == 0) return (int64_t)compilation->request->microbatch_size;
    const pen_compile_input *data =
        shapes_find_input(compilation, pen_value_name(compilation->graph, input));
    if (data == NULL || data->rank + 1 != pen_value_type(compilation->graph, input)->shape.rank)
        return 0;
    return data->dims[axis - 1];
}

// Adds a binding; one symbol has one size.
static pen_status shapes_bind_symbol(const char *symbol, int64_t size, pen_symbol_binding *bindings,
                                     uint32_t *count) {
    for (uint32_t b = 0; b < *count; b++) {
        if (strcmp(bindings[b].symbol, symbol) != 0) continue;
        if (bindings[b].size == size) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT,
                         "the model's dimension '%s' is %lld here and %lld there", symbol,
                         (long long)bindings[b].size, (long long)size);
    }
    if (*count == SHAPES_SYMBOLS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "the model's inputs have more than %d unknown sizes",
                         SHAPES_SYMBOLS_LIMIT);
    }
    bindings[(*count)++] = (pen_symbol_binding){symbol, size};
    return PEN_OK;
}

// Gathers a size for each symbol of the inputs: from the request, the microbatch, or the data.
static pen_status shapes_bind(pen_compilation *compilation, pen_symbol_binding *bindings,
                              uint32_t *out_count) {
    const pen_compile_request *request = compilation->request;
    uint32_t count = 0;
    for (uint32_t i = 0; i < request->size_count; i++) {
        PEN_TRY(
            shapes_bind_symbol(request->sizes[i].symbol, request->sizes[i].size, bindings, &count));
    }
    for (uint32_t i = 0; i < pen_graph_input_count(compilation->graph); i++) {
        const pen_value_id input = pen_graph_input(compilation->graph, i);
        PEN_TRY(shapes_bind_batch(compilation, input));
        const pen_shape shape = pen_value_type(compilation->graph, input)->shape;
        for (uint32_t d = 0; d < shape.rank; d++) {
            const char *symbol = pen_graph_symbol_name(compilation->graph, shape.dims[d]);
            const int64_t size = shapes_data_size(compilation, input, d);
            if (symbol == NULL || size == 0) continue;
            PEN_TRY(shapes_bind_symbol(symbol, size, bindings, &count));
        }
    }
    for (uint32_t b = 0; b < count; b++) {
        PEN_TRY(shapes_check_range(compilation->model, &bindings[b]));
    }
    *out_count = count;
    return PEN_OK;
}

// Binds the sizes and infers all types. Where the model fixes its batch, a failure most likely
// comes from a shape within it that repeats the old size, which the user is told.
pen_status pen_compile_infer_shapes(pen_compilation *compilation) {
    pen_symbol_binding bindings[SHAPES_SYMBOLS_LIMIT];
    uint32_t count;
    PEN_TRY(shapes_bind(compilation, bindings, &count));
    const pen_infer_options options = {
        .bindings = bindings, .binding_count = count, .evaluate = pen_reference_evaluate};
    const pen_status status = pen_infer_shapes(compilation->graph, &options);
    const bool is_batch_fixed = compilation->model->batch_symbol == NULL;
    if (status == PEN_OK || !is_batch_fixed || compilation->request->microbatch_size == 0) {
        return status;
    }
    return pen_status_add_context(
        status,
        "the model was exported with a fixed batch size, not %llu: export "
        "it with a dynamic one (in PyTorch, with dynamic_axes)",
        (unsigned long long)compilation->request->microbatch_size);
}

// The dimensions from `first` on that are not 1.
static pen_shape shapes_squeeze(uint32_t first, uint32_t rank, const int64_t *dims) {
    pen_shape shape = {0};
    for (uint32_t d = first; d < rank; d++) {
        if (dims[d] != 1) shape.dims[shape.rank++] = dims[d];
    }
    return shape;
}

// An example may be flat where the input is not, or the other way round; it is never transposed.
static bool shapes_example_fits(const pen_compile_input *data, const pen_shape *input) {
    const pen_shape found = shapes_squeeze(0, data->rank, data->dims);
    const pen_shape expected = shapes_squeeze(1, input->rank, input->dims);
    if (found.rank > 1 && expected.rank > 1) return pen_shape_equal(&found, &expected);
    return pen_shape_element_count(&found) == pen_shape_element_count(&expected);
}

// What helps where channels stand at the other end. Of pictures in files the job says where they
// come, arrays are written anew.
static const char *shapes_advise(const pen_shape *found, const pen_shape *wanted) {
    if (found->rank != 3 || wanted->rank != 3) return "";
    const int64_t *f = found->dims, *w = wanted->dims;
    if (f[0] == w[1] && f[1] == w[2] && f[2] == w[0]) {
        return ": channels come last and are wanted first, as numpy.transpose(x, (0, 3, 1, 2)) or "
               "data_format: channels_first of pictures gives them";
    }
    if (f[0] == w[2] && f[1] == w[0] && f[2] == w[1]) {
        return ": channels come first and are wanted last, as numpy.transpose(x, (0, 2, 3, 1)) or "
               "data_format: channels_last of pictures gives them";
    }
    return "";
}

// One input: that the data has it, and that its examples have as many numbers as the input takes.
static pen_status shapes_check_input(const pen_compilation *compilation, pen_value_id input) {
    const char *name = pen_value_name(compilation->graph, input);
    const pen_compile_input *data = shapes_find_input(compilation, name);
    if (data == NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "the data has nothing for the model's input '%s'; it has '%s'", name,
                         compilation->request->inputs[0].name);
    }
    const pen_shape *expected = &pen_value_type(compilation->graph, input)->shape;
    if (shapes_example_fits(data, expected)) return PEN_OK;
    pen_shape found = {.rank = data->rank};
    memcpy(found.dims, data->dims, data->rank * sizeof *data->dims);
    pen_shape one = {.rank = expected->rank == 0 ? 0 : expected->rank - 1};
    memcpy(one.dims, expected->dims + 1, one.rank * sizeof *one.dims);
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT,
                     "an example of the data has the shape %s, but the model's input '%s' takes "
                     "examples of %s%s",
                     pen_shape_format(&found, texts[0]), name, pen_shape_format(&one, texts[1]),
                     shapes_advise(&found, &one));
}

// The model must have each input that the data names.
pen_status pen_compile_check_input_names(pen_compilation *compilation) {
    const uint32_t input_count = pen_graph_input_count(compilation->graph);
    for (uint32_t i = 0; i < compilation->request->input_count; i++) {
        const char *name = compilation->request->inputs[i].name;
        bool found = name[0] == '\0' && input_count == 1;
        for (uint32_t j = 0; j < input_count && !found; j++) {
            const pen_value_id input = pen_graph_input(compilation->graph, j);
            found = strcmp(name, pen_value_name(compilation->graph, input)) == 0;
        }
        if (found || input_count == 0) continue;
        const char *other =
            pen_value_name(compilation->graph, pen_graph_input(compilation->graph, 0));
        if (name[0] == '\0') {
            return pen_error(PEN_INVALID_INPUT,
                             "the data does not say which of the model's %u inputs it is for; "
                             "one is called '%s'",
                             input_count, other);
        }
        return pen_error(PEN_INVALID_INPUT,
                         "the data is for '%s', but the model has no such input; one is called "
                         "'%s'",
                         name, other);
    }
    return PEN_OK;
}

// The data's examples must be what the model's inputs take.
pen_status pen_compile_check_examples(pen_compilation *compilation) {
    if (compilation->request->input_count == 0) return PEN_OK;
    for (uint32_t i = 0; i < pen_graph_input_count(compilation->graph); i++) {
        PEN_TRY(shapes_check_input(compilation, pen_graph_input(compilation->graph, i)));
    }
    return PEN_OK;
}
