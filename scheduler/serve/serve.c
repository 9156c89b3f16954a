#include "scheduler/serve/serve.h"

#include <string.h>
#include <sys/stat.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/file.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/job/job_links.h"
#include "scheduler/job/job_runner.h"
#include "scheduler/serve/http_front.h"
#include "scheduler/transport/grpc/address.h"

#define SERVE_TOKEN_BYTES 4096
#define SERVE_CALLS_BESIDE 64 // open ones, besides those that may wait

struct pen_serve {
    pen_serve_options options;
    pen_arena *arena;
    pen_dataset_info info;
    pen_served_model model;
    const char *token;
    uint64_t batch;
    uint64_t small_batch; // 0: none
    pen_inference *inference;
    pen_batcher *batcher;
    pen_grpc_front *grpc;
    pen_http_front *http;
    uint16_t grpc_port;
    uint16_t http_port;
};

// ---- the model

// "models/net.pt2": "net"
static pen_status serve_name_model(pen_serve *serve) {
    const pen_job *job = serve->options.job;
    serve->model.name = job->serve.name;
    if (serve->model.name != NULL) return PEN_OK;
    const char *file = job->model.file == NULL ? "model" : pen_path_name(job->model.file);
    const char *dot = strrchr(file, '.');
    const size_t length = dot == NULL || dot == file ? strlen(file) : (size_t)(dot - file);
    return pen_arena_copy_text(serve->arena, file, length, &serve->model.name);
}

// Only what has a row for each example: rows of requests are put together and taken apart.
static pen_status serve_describe_tensor(const pen_serve *serve, const pen_program *program,
                                        pen_value_id value, pen_served_tensor *out_tensor) {
    const pen_tensor_type *type = pen_value_type(program->graph, value);
    const char *name = pen_value_name(program->graph, value);
    pen_served_tensor tensor = {.row = *type};
    char text[PEN_SHAPE_TEXT_BYTES];
    if (type->shape.rank == 0 || (uint64_t)type->shape.dims[0] != serve->batch) {
        return pen_error(PEN_UNSUPPORTED, "'%s' is %s for %llu examples, expected a row for each",
                         name, pen_tensor_type_format(type, text),
                         (unsigned long long)serve->batch);
    }
    tensor.row.shape.rank -= 1;
    for (uint32_t d = 0; d < tensor.row.shape.rank; d++) {
        tensor.row.shape.dims[d] = type->shape.dims[d + 1];
    }
    tensor.row_bytes = pen_tensor_type_bytes(type) / serve->batch;
    PEN_TRY(pen_arena_copy_text(serve->arena, name, strlen(name), &tensor.name));
    *out_tensor = tensor;
    return PEN_OK;
}

static pen_status serve_refuse_element(const pen_served_tensor *tensor, const char *expected) {
    return pen_error(PEN_UNSUPPORTED, "'%s' is of %s, expected %s to serve it", tensor->name,
                     pen_element_name(tensor->row.element), expected);
}

// The value that a node reads, before views of it.
static pen_value_id serve_find_viewed(const pen_graph *graph, pen_value_id value) {
    for (;;) {
        const pen_node_id producer = pen_graph_value(graph, value)->producer;
        if (!pen_node_is(producer) || !pen_graph_node(graph, producer)->op->is_view) return value;
        value = pen_graph_node(graph, producer)->inputs[0];
    }
}

// Where nodes read an input as indices as it is, the smallest table is known before anything runs:
// over several devices a wrong index would end what all of them run.
static pen_status serve_limit_indices(const pen_serve *serve, const pen_program *program,
                                      uint32_t index, pen_served_tensor *input) {
    const pen_graph *graph = program->graph;
    for (uint32_t i = 0; i < program->order_count; i++) {
        const pen_node *node = pen_graph_node(graph, program->order[i]);
        if (node->op->picks_along == NULL) continue;
        const pen_value_id value = serve_find_viewed(graph, node->inputs[1]);
        if (value.index != program->inputs[index].index) continue;
        const pen_shape *data = &pen_value_type(graph, node->inputs[0])->shape;
        const int64_t axis = pen_node_int(node, node->op->picks_along);
        const int64_t limit = data->dims[axis < 0 ? axis + data->rank : axis];
        if (input->index_limit > 0 && input->index_limit <= limit) continue;
        input->index_limit = limit;
        PEN_TRY(pen_arena_format(serve->arena, &input->index_node, "%s '%s'", node->op->name,
                                 node->name));
    }
    return PEN_OK;
}

// Also as a data set would describe them: the engine is fed from fields of examples.
static pen_status serve_describe_inputs(pen_serve *serve, const pen_program *program) {
    pen_served_tensor *inputs;
    pen_dataset_field *fields;
    PEN_TRY(PEN_NEW(serve->arena, program->input_count, &inputs));
    PEN_TRY(PEN_NEW(serve->arena, program->input_count, &fields));
    for (uint32_t i = 0; i < program->input_count; i++) {
        PEN_TRY(serve_describe_tensor(serve, program, program->inputs[i], &inputs[i]));
        const pen_tensor_type *row = &inputs[i].row;
        if (row->element != PEN_FLOAT32 && row->element != PEN_INT64) {
            return serve_refuse_element(&inputs[i], "float32 or int64");
        }
        if (row->element == PEN_INT64) {
            PEN_TRY(serve_limit_indices(serve, program, i, &inputs[i]));
        }
        fields[i] = (pen_dataset_field){
            .name = inputs[i].name,
            .element = row->element == PEN_INT64 ? PEN_DATASET_INT64 : PEN_DATASET_FLOAT32,
            .rank = row->shape.rank,
            .element_count = inputs[i].row_bytes / pen_element_bytes(row->element),
            .bytes = inputs[i].row_bytes};
        memcpy(fields[i].shape, row->shape.dims, row->shape.rank * sizeof *fields[i].shape);
    }
    serve->model.inputs = inputs;
    serve->model.input_count = program->input_count;
    serve->info = (pen_dataset_info){.format = "requests",
                                     .example_count = serve->batch,
                                     .input_count = program->input_count,
                                     .inputs = fields};
    return PEN_OK;
}

static pen_status serve_describe_outputs(pen_serve *serve, const pen_program *program) {
    pen_served_tensor *outputs;
    PEN_TRY(PEN_NEW(serve->arena, program->output_count, &outputs));
    for (uint32_t i = 0; i < program->output_count; i++) {
        PEN_TRY(serve_describe_tensor(serve, program, program->outputs[i], &outputs[i]));
        const pen_element_type element = outputs[i].row.element;
        if (element != PEN_FLOAT32 && element != PEN_FLOAT64 && element != PEN_INT64) {
            return serve_refuse_element(&outputs[i], "float32, float64 or int64");
        }
    }
    serve->model.outputs = outputs;
    serve->model.output_count = program->output_count;
    return PEN_OK;
}

static pen_status serve_describe(pen_serve *serve, const pen_program *program) {
    if (program->input_count == 0 || program->input_count > PEN_SERVED_TENSORS_LIMIT ||
        program->output_count == 0 || program->output_count > PEN_SERVED_TENSORS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "a model of %u inputs and %u outputs, expected 1 to %d",
                         program->input_count, program->output_count, PEN_SERVED_TENSORS_LIMIT);
    }
    PEN_TRY(serve_name_model(serve));
    PEN_TRY(serve_describe_inputs(serve, program));
    return serve_describe_outputs(serve, program);
}

// Shapes that the model leaves open are those of the job's data, where that is here.
static pen_status serve_find_data(const pen_serve *serve, pen_dataset_part *out_part,
                                  pen_dataset **out_dataset) {
    const pen_job *job = serve->options.job;
    *out_part =
        pen_job_data_can_evaluate(&job->data) ? PEN_DATASET_PART_EVAL : PEN_DATASET_PART_TRAIN;
    const pen_status status = pen_job_open_dataset(job, *out_part, serve->arena, out_dataset);
    if (pen_status_get_code(status) != PEN_NOT_FOUND) return status;
    pen_log(PEN_LOG_NOTE, "%s; serving with the model's own input shapes",
            pen_status_message(status));
    pen_status_ignore(status, "serving needs no data");
    *out_dataset = NULL;
    return PEN_OK;
}

// Compiles once to learn what the model takes and gives.
static pen_status serve_look(pen_serve *serve, pen_dataset_part *out_part) {
    const pen_dataset_info none = {.format = "none"};
    pen_compile_request request;
    pen_dataset *dataset = NULL;
    const pen_program *program = NULL;
    PEN_TRY(serve_find_data(serve, out_part, &dataset));
    pen_status status = pen_job_compile_request(
        serve->options.job, *out_part, dataset == NULL ? &none : pen_dataset_get_info(dataset),
        serve->arena, &request);
    request.mode = PEN_COMPILE_PREDICT;
    request.microbatch_size = serve->batch;
    request.accumulate = false;
    if (status == PEN_OK) status = pen_compile(&request, &program);
    if (status == PEN_OK) status = serve_describe(serve, program);
    pen_program_destroy(program);
    pen_dataset_close(dataset);
    return status;
}

static uint64_t serve_row_bytes(const pen_served_tensor *tensors, uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += tensors[i].row_bytes;
    return pen_max_u64(bytes, 1);
}

// As many rows as fit a request, and no more than its answer may take, which can be much longer
// than the request; but always those of a batch, for which there is memory anyway.
static pen_status serve_limit_rows(pen_serve *serve) {
    const pen_job *job = serve->options.job;
    pen_served_model *model = &serve->model;
    const uint64_t limit = job->serve.max_bytes;
    const uint64_t asked = serve_row_bytes(model->inputs, model->input_count);
    const uint64_t answered = serve_row_bytes(model->outputs, model->output_count);
    model->rows_limit = pen_min_u64(limit / asked, pen_max_u64(limit / answered, serve->batch));
    if (model->rows_limit > 0) return PEN_OK;
    return pen_job_blame(
        job, &job->serve.max_bytes,
        pen_error(
            PEN_INVALID_INPUT,
            "serve.max_bytes: found %llu, expected %llu at least: a row of the model's inputs "
            "has as many",
            (unsigned long long)limit, (unsigned long long)asked));
}

// ---- places in a batch

// Any row, in all places of a batch: numbers that are no round ones, or tokens of number 0.
static pen_status serve_make_alike(const pen_serve *serve, pen_arena *arena, pen_batch *out_batch) {
    uint64_t *indices, state = 1;
    void **inputs;
    PEN_TRY(PEN_NEW(arena, serve->batch, &indices));
    PEN_TRY(PEN_NEW(arena, serve->model.input_count, &inputs));
    for (uint32_t i = 0; i < serve->model.input_count; i++) {
        const pen_served_tensor *input = &serve->model.inputs[i];
        char *rows;
        PEN_TRY(PEN_NEW(arena, serve->batch * input->row_bytes, &rows));
        for (uint64_t at = 0; at < input->row_bytes && input->row.element == PEN_FLOAT32; at += 4) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const float number = (float)(state >> 40) / (float)(1 << 24);
            memcpy(rows + at, &number, sizeof number);
        }
        for (uint64_t r = 1; r < serve->batch; r++) {
            memcpy(rows + r * input->row_bytes, rows, input->row_bytes);
        }
        inputs[i] = rows;
    }
    *out_batch = (pen_batch){.count = serve->batch, .indices = indices, .inputs = inputs};
    return PEN_OK;
}

// One row, in all places of batches.
typedef struct serve_places {
    pen_batch batch;
    char *first[PEN_SERVED_TENSORS_LIMIT]; // its outputs, of the first batch
    bool is_known;
} serve_places;

static pen_status serve_make_places(const pen_serve *serve, serve_places *out_places) {
    *out_places = (serve_places){.is_known = false};
    for (uint32_t i = 0; i < serve->model.output_count; i++) {
        PEN_TRY(PEN_NEW(serve->arena, serve->model.outputs[i].row_bytes, &out_places->first[i]));
    }
    return serve_make_alike(serve, serve->arena, &out_places->batch);
}

// Runs a batch of that row. Whether all of its outputs are those of the first.
static pen_status serve_try_places(const pen_serve *serve, serve_places *places, uint64_t count,
                                   bool *out_is_alike) {
    pen_engine *engine = pen_inference_engine(serve->inference);
    pen_engine_passed passed;
    *out_is_alike = true;
    places->batch.count = count;
    PEN_TRY(engine->kind->begin_pass(engine, &serve->info, &places->batch));
    PEN_TRY(engine->kind->end_pass(engine, &passed));
    for (uint32_t i = 0; i < serve->model.output_count; i++) {
        const uint64_t bytes = serve->model.outputs[i].row_bytes;
        const char *rows = passed.rows[i];
        if (!places->is_known) memcpy(places->first[i], rows, bytes);
        for (uint64_t r = 0; r < count && *out_is_alike; r++) {
            *out_is_alike = memcmp(places->first[i], rows + r * bytes, bytes) == 0;
        }
    }
    places->is_known = true;
    return PEN_OK;
}

// Libraries of matrix products take some rows of a batch otherwise than others, by its size. Then
// the last bits of an answer depend on the requests that share its batch: whoever wants to know is
// told.
static pen_status serve_compare_places(const pen_serve *serve) {
    serve_places places;
    bool is_alike = true, is_small_alike = true;
    pen_status status = serve_make_places(serve, &places);
    if (status == PEN_OK) status = serve_try_places(serve, &places, serve->batch, &is_alike);
    if (status == PEN_OK && serve->small_batch > 0) {
        status = serve_try_places(serve, &places, serve->small_batch, &is_small_alike);
    }
    if (status != PEN_OK && pen_inference_can_recover(serve->inference, status)) {
        return pen_inference_recover(serve->inference, 0, status);
    }
    if (status == PEN_OK && !is_alike) {
        pen_log(PEN_LOG_NOTE,
                "in batches of %llu, the last bits of a row depend on its place; of another "
                "serve.max_batch, such as 16 or 64, they may not",
                (unsigned long long)serve->batch);
    }
    if (status == PEN_OK && !is_small_alike) {
        pen_log(PEN_LOG_NOTE,
                "the last bits of a row are others in batches of %llu than in those of %llu; "
                "without serve.small_batch they are those of %llu",
                (unsigned long long)serve->small_batch, (unsigned long long)serve->batch,
                (unsigned long long)serve->batch);
    }
    return status;
}

// ---- doors

// The first line of the file.
static pen_status serve_read_token(pen_serve *serve) {
    const pen_job *job = serve->options.job;
    const char *text;
    size_t length;
    if (job->serve.token == NULL) return PEN_OK;
    PEN_TRY(pen_job_blame(
        job, &job->serve.token,
        pen_file_read(job->serve.token, SERVE_TOKEN_BYTES, serve->arena, &text, &length)));
    struct stat about;
    if (stat(job->serve.token, &about) == 0 && (about.st_mode & S_IROTH) != 0) {
        pen_log(PEN_LOG_WARNING,
                "serve.token: '%s' can be read by everybody on this machine (mode %04o), expected "
                "its owner alone: chmod 600",
                job->serve.token, (unsigned)(about.st_mode & 07777));
    }
    length = strcspn(text, "\r\n");
    if (length < 16) {
        return pen_job_blame(job, &job->serve.token,
                             pen_error(PEN_INVALID_INPUT,
                                       "serve.token: found a first line of %zu bytes, expected "
                                       "16 at least",
                                       length));
    }
    return pen_arena_copy_text(serve->arena, text, length, &serve->token);
}

// Before anything is read: whether the address may be had, and is free.
static pen_status serve_check_door(const pen_serve_options *options, const char *door,
                                   const char *text, bool has_tls) {
    pen_address address;
    PEN_TRY(pen_status_add_context(pen_address_read(text, &address), "for --%s", door));
    if (pen_address_is_loopback(&address) || options->insecure || has_tls ||
        options->job->serve.token != NULL) {
        return pen_status_add_context(pen_address_check_free(&address), "for --%s", door);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "--%s %s can be reached from other machines: give the job serve: {token: "
                     "FILE}%s, or say --insecure",
                     door, text, strcmp(door, "grpc") == 0 ? " or tls: {ca, cert, key}" : "");
}

pen_status pen_serve_check_doors(const pen_serve_options *options) {
    const bool has_tls = options->job->tls.ca != NULL;
    if (options->grpc != NULL) PEN_TRY(serve_check_door(options, "grpc", options->grpc, has_tls));
    if (options->is_https && !has_tls) {
        return pen_error(PEN_INVALID_INPUT, "--https needs tls: {ca, cert, key} in the job");
    }
    if (options->http != NULL) {
        PEN_TRY(
            serve_check_door(options, options->is_https ? "https" : "http", options->http, false));
    }
    if (options->grpc != NULL || options->http != NULL) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "expected --grpc HOST:PORT, --http HOST:PORT or --https HOST:PORT");
}

static pen_status serve_open_doors(pen_serve *serve) {
    const pen_job_serve *job = &serve->options.job->serve;
    pen_front_options front = {.batcher = serve->batcher,
                               .model = &serve->model,
                               .token = serve->token,
                               .tls = pen_job_transport_tls(serve->options.job),
                               .bytes_limit = job->max_bytes,
                               .calls_limit = (uint32_t)job->queue + SERVE_CALLS_BESIDE,
                               .connections_limit = (uint32_t)job->connections,
                               .timeout_seconds = job->timeout_seconds};
    if (serve->options.grpc != NULL) {
        front.address = serve->options.grpc;
        PEN_TRY(pen_grpc_front_create(&front, &serve->grpc, &serve->grpc_port));
    }
    if (serve->options.http == NULL) return PEN_OK;
    front.address = serve->options.http;
    front.is_https = serve->options.is_https;
    return pen_http_front_create(&front, &serve->http, &serve->http_port);
}

// ---- life

static pen_status serve_check_batches(const pen_serve *serve) {
    const pen_job *job = serve->options.job;
    if (serve->small_batch < serve->batch) return PEN_OK;
    return pen_job_blame(job, &job->serve.small_batch,
                         pen_error(PEN_INVALID_INPUT,
                                   "serve.small_batch: found %llu, expected less than the %llu "
                                   "rows of a whole batch",
                                   (unsigned long long)serve->small_batch,
                                   (unsigned long long)serve->batch));
}

// What is wrong with the command line is told before the model is read.
static pen_status serve_start(pen_serve *serve) {
    const pen_job *job = serve->options.job;
    pen_dataset_part part;
    serve->batch = (uint64_t)(job->serve.max_batch > 0 ? job->serve.max_batch : job->train.batch);
    serve->small_batch = (uint64_t)job->serve.small_batch;
    PEN_TRY(pen_arena_create(&serve->arena));
    PEN_TRY(serve_check_batches(serve));
    PEN_TRY(serve_read_token(serve));
    PEN_TRY(pen_serve_check_doors(&serve->options));
    PEN_TRY(serve_look(serve, &part));
    PEN_TRY(serve_limit_rows(serve));
    const pen_inference_options inference = {.job = job,
                                             .info = &serve->info,
                                             .part = part,
                                             .mode = PEN_COMPILE_PREDICT,
                                             .batch = serve->batch,
                                             .rest = serve->small_batch,
                                             .parameters = serve->options.parameters,
                                             .insecure = serve->options.insecure};
    PEN_TRY(pen_inference_create(&inference, &serve->inference));
    PEN_TRY(serve_compare_places(serve));
    const pen_batcher_options batcher = {.inference = serve->inference,
                                         .model = &serve->model,
                                         .info = &serve->info,
                                         .batch = serve->batch,
                                         .small_batch = serve->small_batch,
                                         .max_wait_seconds = job->serve.max_wait_seconds,
                                         .queue_limit = (uint64_t)job->serve.queue,
                                         .parameters = serve->options.parameters};
    PEN_TRY(pen_batcher_create(&batcher, &serve->batcher));
    return serve_open_doors(serve);
}

pen_status pen_serve_create(const pen_serve_options *options, pen_serve **out_serve) {
    pen_serve *serve = pen_memory_allocate(1, sizeof *serve);
    if (serve == NULL) return pen_error_out_of_memory();
    serve->options = *options;
    const pen_status status = serve_start(serve);
    if (status != PEN_OK) return pen_status_join(status, pen_serve_destroy(serve));
    *out_serve = serve;
    return PEN_OK;
}

// The batcher first: then no request waits behind a door.
pen_status pen_serve_destroy(pen_serve *serve) {
    pen_status failure;
    if (serve == NULL) return PEN_OK;
    pen_batcher_stop(serve->batcher, &failure);
    pen_grpc_front_destroy(serve->grpc);
    pen_http_front_destroy(serve->http);
    pen_batcher_destroy(serve->batcher);
    pen_inference_destroy(serve->inference);
    pen_arena_destroy(serve->arena);
    pen_memory_free(serve);
    return failure;
}

uint16_t pen_serve_grpc_port(const pen_serve *serve) {
    return serve->grpc_port;
}

uint16_t pen_serve_http_port(const pen_serve *serve) {
    return serve->http_port;
}

const char *pen_serve_model_name(const pen_serve *serve) {
    return serve->model.name;
}

void pen_serve_reload(pen_serve *serve) {
    pen_batcher_reload(serve->batcher);
}

void pen_serve_tend(pen_serve *serve) {
    if (serve->grpc != NULL) pen_grpc_front_end_late(serve->grpc);
    if (serve->http != NULL) pen_http_front_end_late(serve->http);
}

bool pen_serve_is_over(pen_serve *serve) {
    return pen_batcher_is_over(serve->batcher);
}
