#include "scheduler/serve/served_model.h"

#include <string.h>

#include "base/memory.h"

static const char *const served_datatypes[PEN_ELEMENT_TYPE_COUNT] = {
    [PEN_FLOAT32] = "FP32",  [PEN_FLOAT64] = "FP64",  [PEN_FLOAT16] = "FP16",
    [PEN_BFLOAT16] = "BF16", [PEN_INT8] = "INT8",     [PEN_INT16] = "INT16",
    [PEN_INT32] = "INT32",   [PEN_INT64] = "INT64",   [PEN_UINT8] = "UINT8",
    [PEN_UINT16] = "UINT16", [PEN_UINT32] = "UINT32", [PEN_UINT64] = "UINT64",
    [PEN_BOOL] = "BOOL",
};

const char *pen_served_datatype(pen_element_type element) {
    return served_datatypes[element];
}

pen_status pen_infer_request_create(const pen_served_model *model,
                                    pen_infer_request **out_request) {
    pen_infer_request *request = pen_memory_allocate(1, sizeof *request);
    if (request == NULL) return pen_error_out_of_memory();
    request->model = model;
    for (uint32_t i = 0; i < model->output_count; i++) {
        request->is_asked[i] = true;
    }
    *out_request = request;
    return PEN_OK;
}

void pen_infer_request_destroy(pen_infer_request *request) {
    if (request == NULL) return;
    for (uint32_t i = 0; i < PEN_SERVED_TENSORS_LIMIT; i++) {
        pen_memory_free(request->inputs[i]);
        pen_memory_free(request->outputs[i]);
    }
    pen_memory_free(request);
}

static pen_status request_allocate(const pen_infer_request *request,
                                   const pen_served_tensor *tensor, char **memory) {
    if (*memory != NULL) return PEN_OK;
    *memory = pen_memory_allocate(request->rows, tensor->row_bytes);
    return *memory == NULL ? pen_error_out_of_memory() : PEN_OK;
}

pen_status pen_infer_request_allocate(pen_infer_request *request) {
    const pen_served_model *model = request->model;
    for (uint32_t i = 0; i < model->input_count; i++) {
        PEN_TRY(request_allocate(request, &model->inputs[i], &request->inputs[i]));
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        PEN_TRY(request_allocate(request, &model->outputs[i], &request->outputs[i]));
    }
    return PEN_OK;
}

static pen_status request_find(const pen_served_tensor *tensors, uint32_t count, const char *what,
                               const char *name, uint32_t *out_index) {
    for (*out_index = 0; *out_index < count; *out_index += 1) {
        if (strcmp(tensors[*out_index].name, name) == 0) return PEN_OK;
    }
    if (name[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT, "an %s lacks a name; the model's first is '%.100s'",
                         what, tensors[0].name);
    }
    return pen_error(PEN_NOT_FOUND, "the model has no %s '%.100s'; its first is '%.100s'", what,
                     name, tensors[0].name);
}

static bool request_has_shape(const pen_tensor_type *row, const pen_infer_claim *claim) {
    if (claim->rank != row->shape.rank + 1) return false;
    for (uint32_t d = 0; d < row->shape.rank; d++) {
        if (claim->dims[d + 1] != row->shape.dims[d]) return false;
    }
    return true;
}

// "found the shape [1,4], expected [N,3]"
static pen_status request_refuse_shape(const pen_served_tensor *tensor,
                                       const pen_infer_claim *claim) {
    char found[PEN_SHAPE_TEXT_BYTES], expected[PEN_SHAPE_TEXT_BYTES];
    pen_shape shape = {.rank = claim->rank};
    memcpy(shape.dims, claim->dims, claim->rank * sizeof *claim->dims);
    pen_shape_format(&tensor->row.shape, expected);
    return pen_error(PEN_INVALID_INPUT,
                     "input '%.100s': found the shape %s, expected [N%s%s with N rows",
                     tensor->name, pen_shape_format(&shape, found),
                     tensor->row.shape.rank == 0 ? "" : ",", expected + 1);
}

static pen_status request_check_type(const pen_served_tensor *tensor,
                                     const pen_infer_claim *claim) {
    const char *expected = pen_served_datatype(tensor->row.element);
    if (claim->datatype[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT, "input '%.100s': it lacks a datatype, expected %s",
                         tensor->name, expected);
    }
    if (strcmp(claim->datatype, expected) != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': found the datatype '%.20s', expected %s", tensor->name,
                         claim->datatype, expected);
    }
    if (request_has_shape(&tensor->row, claim)) return PEN_OK;
    return request_refuse_shape(tensor, claim);
}

// All that a request says of an input is compared with the model before memory is taken for it.
pen_status pen_infer_request_find_input(pen_infer_request *request, const pen_infer_claim *claim,
                                        uint32_t *out_index, uint64_t *out_bytes) {
    const pen_served_model *model = request->model;
    PEN_TRY(request_find(model->inputs, model->input_count, "input", claim->name, out_index));
    const pen_served_tensor *tensor = &model->inputs[*out_index];
    PEN_TRY(request_check_type(tensor, claim));
    const int64_t rows = claim->dims[0];
    if (rows < 1 || (uint64_t)rows > model->rows_limit) {
        return pen_error(PEN_INVALID_INPUT, "input '%.100s': found %lld rows, expected 1 to %llu",
                         tensor->name, (long long)rows, (unsigned long long)model->rows_limit);
    }
    if (request->rows > 0 && request->rows != (uint64_t)rows) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': found %lld rows, and %llu in another input", tensor->name,
                         (long long)rows, (unsigned long long)request->rows);
    }
    request->rows = (uint64_t)rows;
    *out_bytes = request->rows * tensor->row_bytes;
    return PEN_OK;
}

pen_status pen_infer_request_check_indices(const pen_infer_request *request) {
    const pen_served_model *model = request->model;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const pen_served_tensor *input = &model->inputs[i];
        const uint64_t count = request->rows * input->row_bytes / sizeof(int64_t);
        for (uint64_t k = 0; k < count && input->index_limit > 0; k++) {
            int64_t index;
            memcpy(&index, request->inputs[i] + k * sizeof index, sizeof index);
            if (index >= -input->index_limit && index < input->index_limit) continue;
            return pen_error(PEN_INVALID_INPUT,
                             "input '%.100s': index %lld at position %llu is outside of [%lld, "
                             "%lld) of %.200s",
                             input->name, (long long)index, (unsigned long long)k,
                             (long long)-input->index_limit, (long long)input->index_limit,
                             input->index_node);
        }
    }
    return PEN_OK;
}

pen_status pen_infer_request_ask(pen_infer_request *request, const char *name, bool *is_first,
                                 uint32_t *out_index) {
    const pen_served_model *model = request->model;
    PEN_TRY(request_find(model->outputs, model->output_count, "output", name, out_index));
    if (*is_first) memset(request->is_asked, 0, sizeof request->is_asked);
    *is_first = false;
    request->is_asked[*out_index] = true;
    return PEN_OK;
}
