#include "scheduler/serve/infer_json.h"

#include <math.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/format/json_writer.h"
#include "base/memory.h"
#include "scheduler/serve/infer_texts.h"

typedef struct json_reading {
    pen_infer_request *request;
    const char *binary; // what is left of it
    size_t binary_length;
    bool is_binary_default; // outputs in binary, unless they say otherwise
    bool is_filled[PEN_SERVED_TENSORS_LIMIT];
} json_reading;

// The text of a key; "" where there is none.
static const char *json_get_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static const json_t *json_get_parameter(const json_t *object, const char *key) {
    return json_object_get(json_object_get(object, "parameters"), key);
}

// ---- numbers

typedef struct json_numbers {
    const pen_served_tensor *tensor;
    char *to;
    uint64_t limit; // elements
    uint64_t count;
} json_numbers;

// A number of the type that the model takes: for integers no fractions are cut off.
static pen_status json_take_number(json_numbers *numbers, const json_t *value) {
    const bool is_float = numbers->tensor->row.element == PEN_FLOAT32;
    if (!(is_float ? json_is_number(value) : json_is_integer(value)) ||
        numbers->count == numbers->limit) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': found %s in its data, expected %llu %s",
                         numbers->tensor->name,
                         numbers->count == numbers->limit ? "more numbers" : "something else",
                         (unsigned long long)numbers->limit, is_float ? "numbers" : "integers");
    }
    if (is_float) {
        const float single = (float)json_number_value(value);
        if (!isfinite(single)) {
            return pen_error(PEN_INVALID_INPUT, "input '%.100s': found %g, which is no float32",
                             numbers->tensor->name, json_number_value(value));
        }
        memcpy(numbers->to + numbers->count * sizeof single, &single, sizeof single);
    } else {
        const int64_t integer = json_integer_value(value);
        memcpy(numbers->to + numbers->count * sizeof integer, &integer, sizeof integer);
    }
    numbers->count += 1;
    return PEN_OK;
}

// Lists in lists, however they are nested: the shape is what `shape` says. The reader bounds the
// depth.
static pen_status json_take_list(json_numbers *numbers, const json_t *list) {
    const json_t *at[PEN_NESTING_LIMIT + 1];
    size_t next[PEN_NESTING_LIMIT + 1] = {0};
    uint32_t depth = 0;
    at[0] = list;
    for (;;) {
        if (next[depth] == json_array_size(at[depth])) {
            if (depth == 0) return PEN_OK;
            depth -= 1;
            continue;
        }
        const json_t *value = json_array_get(at[depth], next[depth]++);
        if (!json_is_array(value)) {
            PEN_TRY(json_take_number(numbers, value));
            continue;
        }
        PEN_ASSERT(depth < PEN_NESTING_LIMIT);
        at[++depth] = value;
        next[depth] = 0;
    }
}

static uint64_t json_count(const json_t *list) {
    uint64_t count = 0;
    size_t index;
    const json_t *value;
    json_array_foreach(list, index, value) {
        count += json_is_array(value) ? 0 : 1;
    }
    return count;
}

// ---- inputs

static pen_status json_take_binary(json_reading *r, uint32_t index, uint64_t bytes,
                                   const json_t *size) {
    const pen_served_tensor *tensor = &r->request->model->inputs[index];
    if (!json_is_integer(size) || json_integer_value(size) < 0 ||
        (uint64_t)json_integer_value(size) != bytes || r->binary_length < bytes) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': its shape asks for %llu bytes; binary_data_size, or what "
                         "came behind the JSON, is something else",
                         tensor->name, (unsigned long long)bytes);
    }
    r->request->inputs[index] = pen_memory_allocate(bytes, 1);
    if (r->request->inputs[index] == NULL) return pen_error_out_of_memory();
    memcpy(r->request->inputs[index], r->binary, bytes);
    r->binary += bytes;
    r->binary_length -= bytes;
    return PEN_OK;
}

// Each number takes a byte of JSON at least, which has come; so what it takes here is bounded.
static pen_status json_take_data(json_reading *r, uint32_t index, uint64_t bytes,
                                 const json_t *data, size_t json_length) {
    const pen_served_tensor *tensor = &r->request->model->inputs[index];
    const uint64_t size = pen_element_bytes(tensor->row.element);
    json_numbers numbers = {.tensor = tensor, .limit = bytes / size};
    if (!json_is_array(data) || numbers.limit > json_length) {
        return pen_error(PEN_INVALID_INPUT, "input '%.100s': data is no list of %llu numbers",
                         tensor->name, (unsigned long long)numbers.limit);
    }
    r->request->inputs[index] = pen_memory_allocate(bytes, 1);
    if (r->request->inputs[index] == NULL) return pen_error_out_of_memory();
    numbers.to = r->request->inputs[index];
    PEN_TRY(json_take_list(&numbers, data));
    if (numbers.count == numbers.limit) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "input '%.100s': found %llu numbers, expected %llu",
                     tensor->name, (unsigned long long)numbers.count,
                     (unsigned long long)numbers.limit);
}

// An input says its shape; then its numbers are where it says.
static pen_status json_read_input(json_reading *r, const json_t *input, size_t json_length) {
    const json_t *shape = json_object_get(input, "shape");
    int64_t dims[PEN_RANK_LIMIT];
    const size_t rank = json_array_size(shape);
    uint32_t index;
    uint64_t bytes;
    if (!json_is_array(shape) || rank > PEN_RANK_LIMIT || json_count(shape) != rank) {
        return pen_error(PEN_INVALID_INPUT,
                         "input '%.100s': it lacks a shape, a list of at most %d integers",
                         json_get_text(input, "name"), PEN_RANK_LIMIT);
    }
    for (size_t d = 0; d < rank; d++) {
        const json_t *dim = json_array_get(shape, d);
        dims[d] = json_is_integer(dim) ? json_integer_value(dim) : -1;
    }
    const pen_infer_claim claim = {json_get_text(input, "name"), json_get_text(input, "datatype"),
                                   (uint32_t)rank, dims};
    PEN_TRY(pen_infer_request_find_input(r->request, &claim, &index, &bytes));
    if (r->is_filled[index]) {
        return pen_error(PEN_INVALID_INPUT, "input '%.100s': found twice",
                         r->request->model->inputs[index].name);
    }
    r->is_filled[index] = true;
    const json_t *size = json_get_parameter(input, "binary_data_size");
    if (size != NULL) return json_take_binary(r, index, bytes, size);
    return json_take_data(r, index, bytes, json_object_get(input, "data"), json_length);
}

static pen_status json_read_outputs(json_reading *r, const json_t *outputs) {
    bool is_first = true;
    size_t i;
    const json_t *output;
    json_array_foreach(outputs, i, output) {
        const json_t *binary = json_get_parameter(output, "binary_data");
        uint32_t index;
        PEN_TRY(
            pen_infer_request_ask(r->request, json_get_text(output, "name"), &is_first, &index));
        if (binary != NULL) r->request->is_in_binary[index] = json_is_true(binary);
    }
    return PEN_OK;
}

// Inputs in the order in which they stand: that is the order of what lies behind the JSON.
static pen_status json_read_root(json_reading *r, const json_t *root, size_t json_length) {
    const json_t *inputs = json_object_get(root, "inputs");
    const char *id = json_get_text(root, "id");
    size_t i;
    const json_t *input;
    if (!json_is_object(root) || !json_is_array(inputs)) {
        return pen_error(PEN_INVALID_INPUT, "the body is no object with a list 'inputs'");
    }
    if (strlen(id) >= sizeof r->request->id) {
        return pen_error(PEN_INVALID_INPUT, "id: found more than %zu bytes",
                         sizeof r->request->id - 1);
    }
    memcpy(r->request->id, id, strlen(id) + 1);
    const bool is_binary = json_is_true(json_get_parameter(root, "binary_data_output"));
    for (uint32_t o = 0; o < r->request->model->output_count; o++) {
        r->request->is_in_binary[o] = is_binary;
    }
    json_array_foreach(inputs, i, input) {
        PEN_TRY(json_read_input(r, input, json_length));
    }
    PEN_TRY(json_read_outputs(r, json_object_get(root, "outputs")));
    PEN_TRY(pen_infer_check_filled(r->request->model, r->is_filled));
    if (r->binary_length == 0) return pen_infer_request_allocate(r->request);
    return pen_error(PEN_INVALID_INPUT, "%zu bytes behind the JSON are of no input",
                     r->binary_length);
}

pen_status pen_infer_json_read(const pen_served_model *model, const char *body, size_t length,
                               size_t json_length, pen_infer_request **out_request) {
    json_reading r = {.binary = body + json_length, .binary_length = length - json_length};
    json_t *root = NULL;
    PEN_ASSERT(json_length <= length);
    PEN_TRY(pen_json_load_numbers("the request", body, json_length, PEN_INVALID_INPUT, &root));
    pen_status status = pen_infer_request_create(model, &r.request);
    if (status == PEN_OK) status = json_read_root(&r, root, json_length);
    json_decref(root);
    if (status != PEN_OK) {
        pen_infer_request_destroy(r.request);
        return status;
    }
    *out_request = r.request;
    return PEN_OK;
}

// ---- writing

static double json_number_at(const void *memory, pen_element_type element, uint64_t index) {
    float single;
    double number;
    switch (element) {
    case PEN_FLOAT32:
        memcpy(&single, (const char *)memory + index * sizeof single, sizeof single);
        return (double)single;
    case PEN_FLOAT64:
        memcpy(&number, (const char *)memory + index * sizeof number, sizeof number);
        return number;
    default:
        return NAN;
    }
}

static void json_write_data(pen_json_writer *json, const pen_served_tensor *tensor,
                            const void *memory, uint64_t rows) {
    const pen_element_type element = tensor->row.element;
    const uint64_t count = rows * tensor->row_bytes / pen_element_bytes(element);
    pen_json_key_array(json, "data");
    for (uint64_t i = 0; i < count; i++) {
        if (element == PEN_INT64) {
            int64_t integer;
            memcpy(&integer, (const char *)memory + i * sizeof integer, sizeof integer);
            pen_json_integer(json, integer);
        } else {
            pen_json_number(json, json_number_at(memory, element, i));
        }
    }
    pen_json_end_array(json);
}

static void json_write_tensor(pen_json_writer *json, const pen_served_tensor *tensor,
                              int64_t rows) {
    pen_json_key_text(json, "name", tensor->name);
    pen_json_key_text(json, "datatype", pen_served_datatype(tensor->row.element));
    pen_json_key_array(json, "shape");
    pen_json_integer(json, rows);
    for (uint32_t d = 0; d < tensor->row.shape.rank; d++) {
        pen_json_integer(json, tensor->row.shape.dims[d]);
    }
    pen_json_end_array(json);
}

static void json_write_output(pen_json_writer *json, const pen_infer_request *request,
                              uint32_t index) {
    const pen_served_tensor *tensor = &request->model->outputs[index];
    pen_json_begin_object(json);
    json_write_tensor(json, tensor, (int64_t)request->rows);
    if (request->is_in_binary[index]) {
        pen_json_key_object(json, "parameters");
        pen_json_key_unsigned(json, "binary_data_size", request->rows * tensor->row_bytes);
        pen_json_end_object(json);
    } else {
        json_write_data(json, tensor, request->outputs[index], request->rows);
    }
    pen_json_end_object(json);
}

// The writer keeps what goes wrong with the text, whose owner sees it when it finishes.
static void json_finish(pen_json_writer *json) {
    pen_json_end_object(json);
    pen_status_ignore(pen_json_finish(json), "the text has the same error");
}

void pen_infer_json_write(const pen_infer_request *request, pen_text *text) {
    pen_json_writer json;
    pen_json_init_text(&json, text, 0);
    pen_json_begin_object(&json);
    pen_json_key_text(&json, "model_name", request->model->name);
    pen_json_key_text(&json, "model_version", PEN_INFER_VERSION);
    if (request->id[0] != '\0') pen_json_key_text(&json, "id", request->id);
    pen_json_key_array(&json, "outputs");
    for (uint32_t i = 0; i < request->model->output_count; i++) {
        if (request->is_asked[i]) json_write_output(&json, request, i);
    }
    pen_json_end_array(&json);
    json_finish(&json);
}

void pen_infer_json_write_server(pen_text *text) {
    pen_json_writer json;
    pen_json_init_text(&json, text, 0);
    pen_json_begin_object(&json);
    pen_json_key_text(&json, "name", PEN_INFER_SERVER);
    pen_json_key_text(&json, "version", PEN_VERSION);
    pen_json_key_array(&json, "extensions");
    pen_json_text(&json, "binary_tensor_data");
    pen_json_end_array(&json);
    json_finish(&json);
}

static void json_write_tensors(pen_json_writer *json, const char *key,
                               const pen_served_tensor *tensors, uint32_t count) {
    pen_json_key_array(json, key);
    for (uint32_t i = 0; i < count; i++) {
        pen_json_begin_object(json);
        json_write_tensor(json, &tensors[i], -1);
        pen_json_end_object(json);
    }
    pen_json_end_array(json);
}

void pen_infer_json_write_model(const pen_served_model *model, pen_text *text) {
    pen_json_writer json;
    pen_json_init_text(&json, text, 0);
    pen_json_begin_object(&json);
    pen_json_key_text(&json, "name", model->name);
    pen_json_key_array(&json, "versions");
    pen_json_text(&json, PEN_INFER_VERSION);
    pen_json_end_array(&json);
    pen_json_key_text(&json, "platform", PEN_INFER_PLATFORM);
    json_write_tensors(&json, "inputs", model->inputs, model->input_count);
    json_write_tensors(&json, "outputs", model->outputs, model->output_count);
    json_finish(&json);
}

void pen_infer_json_write_error(const char *message, pen_text *text) {
    pen_json_writer json;
    pen_json_init_text(&json, text, 0);
    pen_json_begin_object(&json);
    pen_json_key_text(&json, "error", message);
    json_finish(&json);
}
