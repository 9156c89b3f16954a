#include "scheduler/serve/infer_proto.h"

#include <stdio.h>
#include <string.h>

#include "base/format/protobuf_reader.h"
#include "base/format/protobuf_writer.h"
#include "base/memory.h"
#include "scheduler/serve/infer_texts.h"

#define PROTO_TEXT_BYTES 512 // of names

// Numbers of fields.
enum {
    REQUEST_MODEL = 1,
    REQUEST_VERSION = 2,
    REQUEST_ID = 3,
    REQUEST_INPUT = 5,
    REQUEST_OUTPUT = 6,
    REQUEST_RAW = 7,
    TENSOR_NAME = 1,
    TENSOR_DATATYPE = 2,
    TENSOR_SHAPE = 3,
    TENSOR_CONTENTS = 5,
    CONTENTS_INT64 = 3,
    CONTENTS_FP32 = 6,
};

typedef struct proto_input {
    char name[PROTO_TEXT_BYTES];
    char datatype[32];
    uint32_t rank;
    int64_t dims[PEN_RANK_LIMIT];
    bool has_contents;
    pen_protobuf_field contents;
} proto_input;

typedef struct proto_reading {
    pen_infer_request *request;
    uint32_t order[PEN_SERVED_TENSORS_LIMIT]; // inputs, as they came
    bool is_filled[PEN_SERVED_TENSORS_LIMIT];
    uint32_t input_count;
    uint32_t raw_count;
    bool is_first_output;
} proto_reading;

static pen_status proto_text(const pen_protobuf_field *field, char *out_text, size_t size) {
    if (field->wire != PEN_PROTOBUF_BYTES || field->length >= size ||
        (field->length > 0 && memchr(field->bytes, 0, field->length) != NULL)) {
        return pen_error(PEN_INVALID_INPUT, "a name is longer than %zu bytes, or has a 0 in it",
                         size - 1);
    }
    if (field->length > 0) memcpy(out_text, field->bytes, field->length);
    out_text[field->length] = '\0';
    return PEN_OK;
}

// ---- inputs

static pen_status proto_read_shape(const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field, proto_input *input) {
    pen_protobuf_scalars scalars;
    PEN_TRY(pen_protobuf_scalars_open(reader, field, PEN_PROTOBUF_VARINT, &scalars));
    for (;;) {
        uint64_t bits;
        bool has_more;
        PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &has_more));
        if (!has_more) return PEN_OK;
        if (input->rank == PEN_RANK_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "a shape has more than %d dimensions",
                             PEN_RANK_LIMIT);
        }
        input->dims[input->rank++] = (int64_t)bits;
    }
}

// Contents are read when the shape is known, which may come behind them.
static pen_status proto_read_tensor(pen_protobuf_reader *reader, proto_input *input) {
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(reader, &field));
        switch (field.number) {
        case 0:
            return PEN_OK;
        case TENSOR_NAME:
            PEN_TRY(proto_text(&field, input->name, sizeof input->name));
            break;
        case TENSOR_DATATYPE:
            PEN_TRY(proto_text(&field, input->datatype, sizeof input->datatype));
            break;
        case TENSOR_SHAPE:
            PEN_TRY(proto_read_shape(reader, &field, input));
            break;
        case TENSOR_CONTENTS:
            input->contents = field;
            input->has_contents = true;
            break;
        default:
            break;
        }
    }
}

static pen_status proto_refuse_count(const proto_input *input, uint64_t bytes) {
    return pen_error(PEN_INVALID_INPUT,
                     "input '%.100s': its contents are not the %llu bytes that its shape asks for",
                     input->name, (unsigned long long)bytes);
}

// Numbers of one field, packed or not, behind those before: *filled bytes are there.
static pen_status proto_take_numbers(const pen_protobuf_reader *contents,
                                     const pen_protobuf_field *field, const proto_input *input,
                                     char *to, uint64_t bytes, uint64_t *filled) {
    const bool is_float = field->number == CONTENTS_FP32;
    const size_t size = is_float ? sizeof(float) : sizeof(int64_t);
    pen_protobuf_scalars scalars;
    PEN_TRY(pen_protobuf_scalars_open(
        contents, field, is_float ? PEN_PROTOBUF_FIXED32 : PEN_PROTOBUF_VARINT, &scalars));
    for (;;) {
        uint64_t bits;
        bool has_more;
        PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &has_more));
        if (!has_more) return PEN_OK;
        if (*filled + size > bytes) return proto_refuse_count(input, bytes);
        const uint32_t single = (uint32_t)bits;
        memcpy(to + *filled, is_float ? (const void *)&single : (const void *)&bits, size);
        *filled += size;
    }
}

// What lies in the tensor itself: memory is taken when the numbers are known to be as many as the
// shape says, which is bounded by what came.
static pen_status proto_read_contents(proto_reading *r, const pen_protobuf_reader *message,
                                      const proto_input *input, uint32_t index, uint64_t bytes) {
    const pen_served_tensor *tensor = &r->request->model->inputs[index];
    const uint32_t wanted =
        tensor->row.element == PEN_FLOAT32 ? (uint32_t)CONTENTS_FP32 : (uint32_t)CONTENTS_INT64;
    pen_protobuf_reader contents;
    uint64_t filled = 0;
    // a number takes a byte at least
    if (bytes / sizeof(int64_t) > input->contents.length) return proto_refuse_count(input, bytes);
    r->request->inputs[index] = pen_memory_allocate(bytes, 1);
    if (r->request->inputs[index] == NULL) return pen_error_out_of_memory();
    PEN_TRY(pen_protobuf_open(message, &input->contents, &contents));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&contents, &field));
        if (field.number == 0) break;
        if (field.number != wanted) continue;
        PEN_TRY(proto_take_numbers(&contents, &field, input, r->request->inputs[index], bytes,
                                   &filled));
    }
    if (filled != bytes) return proto_refuse_count(input, bytes);
    r->is_filled[index] = true;
    return PEN_OK;
}

// Raw contents are those of inputs in this order.
static pen_status proto_read_input(proto_reading *r, const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field) {
    proto_input input = {0};
    pen_protobuf_reader message;
    uint32_t index;
    uint64_t bytes;
    if (r->input_count == r->request->model->input_count) {
        return pen_error(PEN_INVALID_INPUT, "found more inputs than the model's %u",
                         r->request->model->input_count);
    }
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(proto_read_tensor(&message, &input));
    const pen_infer_claim claim = {input.name, input.datatype, input.rank, input.dims};
    PEN_TRY(pen_infer_request_find_input(r->request, &claim, &index, &bytes));
    for (uint32_t i = 0; i < r->input_count; i++) {
        if (r->order[i] != index) continue;
        return pen_error(PEN_INVALID_INPUT, "input '%.100s': found twice", input.name);
    }
    r->order[r->input_count++] = index;
    return input.has_contents ? proto_read_contents(r, reader, &input, index, bytes) : PEN_OK;
}

// The next of those whose contents come apart.
static pen_status proto_read_raw(proto_reading *r, const pen_protobuf_field *field) {
    pen_infer_request *request = r->request;
    if (field->wire != PEN_PROTOBUF_BYTES || r->raw_count == r->input_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "found more raw_input_contents than inputs before them");
    }
    const uint32_t index = r->order[r->raw_count++];
    const pen_served_tensor *tensor = &request->model->inputs[index];
    const uint64_t bytes = request->rows * tensor->row_bytes;
    if (r->is_filled[index] || field->length != bytes) {
        return pen_error(
            PEN_INVALID_INPUT,
            "input '%.100s': found %zu raw bytes, expected %llu, and no other contents",
            tensor->name, field->length, (unsigned long long)bytes);
    }
    request->inputs[index] = pen_memory_allocate(bytes, 1);
    if (request->inputs[index] == NULL) return pen_error_out_of_memory();
    memcpy(request->inputs[index], field->bytes, bytes);
    r->is_filled[index] = true;
    return PEN_OK;
}

static pen_status proto_read_output(proto_reading *r, const pen_protobuf_reader *reader,
                                    const pen_protobuf_field *field) {
    proto_input output = {0};
    pen_protobuf_reader message;
    uint32_t index;
    PEN_TRY(pen_protobuf_open(reader, field, &message));
    PEN_TRY(proto_read_tensor(&message, &output));
    return pen_infer_request_ask(r->request, output.name, &r->is_first_output, &index);
}

// A field of a request, as soon as it comes: what is wrong with it is said before more is read.
static pen_status proto_read_field(proto_reading *r, const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field) {
    char name[PROTO_TEXT_BYTES];
    switch (field->number) {
    case REQUEST_MODEL:
        PEN_TRY(proto_text(field, name, sizeof name));
        return pen_infer_check_model(r->request->model, name);
    case REQUEST_VERSION:
        PEN_TRY(proto_text(field, name, sizeof name));
        return pen_infer_check_version(r->request->model, name);
    case REQUEST_ID:
        return proto_text(field, r->request->id, sizeof r->request->id);
    case REQUEST_INPUT:
        return proto_read_input(r, reader, field);
    case REQUEST_OUTPUT:
        return proto_read_output(r, reader, field);
    case REQUEST_RAW:
        return proto_read_raw(r, field);
    default:
        return PEN_OK;
    }
}

static pen_status proto_read(proto_reading *r, const void *bytes, size_t length) {
    pen_protobuf_reader reader;
    pen_protobuf_init(&reader, bytes, length);
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        PEN_TRY(proto_read_field(r, &reader, &field));
    }
    PEN_TRY(pen_infer_check_filled(r->request->model, r->is_filled));
    return pen_infer_request_allocate(r->request);
}

pen_status pen_infer_proto_read(const pen_served_model *model, const void *bytes, size_t length,
                                pen_infer_request **out_request) {
    proto_reading r = {.is_first_output = true};
    PEN_TRY(pen_infer_request_create(model, &r.request));
    const pen_status status = proto_read(&r, bytes, length);
    if (status != PEN_OK) {
        pen_infer_request_destroy(r.request);
        return status;
    }
    *out_request = r.request;
    return PEN_OK;
}

pen_status pen_infer_proto_check_name(const pen_served_model *model, const void *bytes,
                                      size_t length) {
    pen_protobuf_reader reader;
    char name[PROTO_TEXT_BYTES] = "", version[PROTO_TEXT_BYTES] = "";
    pen_protobuf_init(&reader, bytes, length);
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) {
            PEN_TRY(pen_infer_check_model(model, name));
            return pen_infer_check_version(model, version);
        }
        if (field.number == REQUEST_VERSION) {
            PEN_TRY(proto_text(&field, version, sizeof version));
        }
        if (field.number == REQUEST_MODEL) PEN_TRY(proto_text(&field, name, sizeof name));
    }
}

// ---- writing

typedef struct proto_tensor {
    const pen_served_tensor *tensor;
    int64_t rows; // -1: any
} proto_tensor;

static void proto_write_dims(pen_protobuf_writer *writer, const void *context) {
    const proto_tensor *tensor = context;
    const pen_shape *row = &tensor->tensor->row.shape;
    pen_protobuf_write_varint(writer, (uint64_t)tensor->rows);
    for (uint32_t d = 0; d < row->rank; d++) {
        pen_protobuf_write_varint(writer, (uint64_t)row->dims[d]);
    }
}

static void proto_write_tensor(pen_protobuf_writer *writer, const void *context) {
    const proto_tensor *tensor = context;
    pen_protobuf_write_text(writer, TENSOR_NAME, tensor->tensor->name);
    pen_protobuf_write_text(writer, TENSOR_DATATYPE,
                            pen_served_datatype(tensor->tensor->row.element));
    pen_protobuf_write_message(writer, TENSOR_SHAPE, proto_write_dims, tensor);
}

static void proto_write_tensors(pen_protobuf_writer *writer, uint32_t number,
                                const pen_served_tensor *tensors, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const proto_tensor tensor = {&tensors[i], -1};
        pen_protobuf_write_message(writer, number, proto_write_tensor, &tensor);
    }
}

// Shapes of all that was asked for, then their bytes in the same order.
static void proto_write_inferred(pen_protobuf_writer *writer, const pen_infer_request *request) {
    const pen_served_model *model = request->model;
    pen_protobuf_write_text(writer, 1, model->name);
    pen_protobuf_write_text(writer, 2, PEN_INFER_VERSION);
    if (request->id[0] != '\0') pen_protobuf_write_text(writer, 3, request->id);
    for (uint32_t i = 0; i < model->output_count; i++) {
        const proto_tensor tensor = {&model->outputs[i], (int64_t)request->rows};
        if (request->is_asked[i]) {
            pen_protobuf_write_message(writer, 5, proto_write_tensor, &tensor);
        }
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (!request->is_asked[i]) continue;
        pen_protobuf_write_bytes(writer, 6, request->outputs[i],
                                 request->rows * model->outputs[i].row_bytes);
    }
}

// Called twice: to count, and to write.
size_t pen_infer_proto_write(const pen_infer_reply *reply, void *bytes, size_t size) {
    pen_protobuf_writer writer;
    pen_protobuf_writer_init_bytes(&writer, bytes, size);
    switch (reply->kind) {
    case PEN_INFER_ANSWER_LIVE:
        pen_protobuf_write_int(&writer, 1, reply->truth);
        break;
    case PEN_INFER_ANSWER_SERVER:
        pen_protobuf_write_text(&writer, 1, PEN_INFER_SERVER);
        pen_protobuf_write_text(&writer, 2, PEN_VERSION);
        break;
    case PEN_INFER_ANSWER_MODEL:
        pen_protobuf_write_text(&writer, 1, reply->model->name);
        pen_protobuf_write_text(&writer, 2, PEN_INFER_VERSION);
        pen_protobuf_write_text(&writer, 3, PEN_INFER_PLATFORM);
        proto_write_tensors(&writer, 4, reply->model->inputs, reply->model->input_count);
        proto_write_tensors(&writer, 5, reply->model->outputs, reply->model->output_count);
        break;
    case PEN_INFER_ANSWER_INFERRED:
        proto_write_inferred(&writer, reply->request);
        break;
    }
    return (size_t)writer.length;
}
