#include "scheduler/serve/grpc_front.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "scheduler/serve/door_callers.h"
#include "scheduler/serve/infer_proto.h"
#include "scheduler/serve/infer_texts.h"
#include "scheduler/transport/grpc/address.h"
#include "scheduler/transport/grpc/grpc_server.h"
#include "scheduler/transport/grpc/grpc_tls.h"

#define FRONT_SERVICE "/inference.GRPCInferenceService/"
#define FRONT_UNAUTHENTICATED 16
#define FRONT_LOOK_SECONDS 0.2                 // between two looks at calls that are late
#define FRONT_QUOTA_BYTES ((uint64_t)64 << 20) // beside what calls may send
#define FRONT_SLOW "the call has sent no message for too long"
#define FRONT_LONG "the message is too long"
// Half-open connections, and peers that are gone without a word.
#define FRONT_HANDSHAKE_SECONDS 5
#define FRONT_KEEPALIVE_SECONDS 60
#define FRONT_KEEPALIVE_TIMEOUT_SECONDS 20

// What a call waits for.
typedef enum front_state {
    FRONT_NEW,     // to come
    FRONT_READING, // its message
    FRONT_RUNNING, // the batcher
    FRONT_ENDING,  // to be sent
} front_state;

// A call goes from thread to thread: who sets its state has written the rest of it before.
typedef struct front_call {
    pen_grpc_front *front;
    _Atomic front_state state;
    grpc_call *call;
    pen_caller caller;
    bool is_taken; // counted among those that may be open
    grpc_call_details details;
    grpc_metadata_array metadata;
    grpc_byte_buffer *message;
    int cancelled;
    grpc_byte_buffer *answer;
    grpc_slice text;
    double began; // its state, where that may take too long
    // of the front's thread
    struct front_call *next, *previous;
} front_call;

struct pen_grpc_front {
    pen_front_options options;
    pen_grpc_credentials credentials;
    grpc_resource_quota *quota;
    grpc_completion_queue *queue;
    grpc_server *server;
    pen_thread *thread;
    atomic_uint open_count;  // calls
    atomic_uint taken_count; // of these, that were not refused at once
    pen_door_callers callers;
    // the thread's own
    front_call *calls;
    double look_at;
    bool is_asking;  // for the next call
    bool is_closing; // no call is asked for any more
};

// ---- answering

static void call_destroy(front_call *call) {
    if (call->is_taken) atomic_fetch_sub(&call->front->taken_count, 1);
    if (call->state != FRONT_NEW) {
        pen_caller_has_ended(call->caller);
        atomic_fetch_sub(&call->front->open_count, 1);
    }
    grpc_byte_buffer_destroy(call->message);
    grpc_byte_buffer_destroy(call->answer);
    grpc_slice_unref(call->text);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    if (call->call != NULL) grpc_call_unref(call->call);
    pen_memory_free(call);
}

static void call_batch(front_call *call, const grpc_op *ops, size_t count) {
    const grpc_call_error error = grpc_call_start_batch(call->call, ops, count, call, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
}

// The last of a call: with a message, or why there is none. Any thread.
static void call_end(front_call *call, int code, const char *text) {
    grpc_op ops[4] = {{.op = GRPC_OP_RECV_CLOSE_ON_SERVER},
                      {.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                      {.op = GRPC_OP_SEND_MESSAGE}};
    call->text = grpc_slice_from_copied_string(text);
    ops[0].data.recv_close_on_server.cancelled = &call->cancelled;
    ops[2].data.send_status_from_server.status = (grpc_status_code)code;
    ops[2].data.send_status_from_server.status_details = &call->text;
    ops[3].data.send_message.send_message = call->answer;
    const size_t count = call->answer == NULL ? 3 : 4;
    call->began = pen_clock_seconds();
    call->state = FRONT_ENDING;
    call_batch(call, ops, count);
}

static void call_fail(front_call *call, pen_status take_status) {
    call_end(call, pen_infer_codes_of(pen_status_get_code(take_status)).grpc,
             pen_status_message(take_status));
    pen_status_ignore(take_status, "the caller was told");
}

static void call_reply(front_call *call, const pen_infer_reply *reply) {
    const size_t length = pen_infer_proto_write(reply, NULL, 0);
    grpc_slice slice = grpc_slice_malloc(length);
    (void)pen_infer_proto_write(reply, GRPC_SLICE_START_PTR(slice), length);
    call->answer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    call_end(call, 0, "");
}

static void call_inferred(void *context, pen_infer_request *request, pen_status take_status) {
    front_call *call = context;
    if (take_status != PEN_OK) {
        call_fail(call, take_status);
    } else {
        call_reply(call, &(pen_infer_reply){.kind = PEN_INFER_ANSWER_INFERRED, .request = request});
    }
    pen_infer_request_destroy(request);
}

// ---- requests

static double call_deadline(const front_call *call) {
    const gpr_timespec deadline = call->details.deadline;
    const double most = pen_clock_seconds() + call->front->options.timeout_seconds;
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return most;
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    return fmin(most, pen_clock_seconds() + (double)left.tv_sec + (double)left.tv_nsec * 1e-9);
}

static void call_infer(front_call *call, const void *bytes, size_t length) {
    const pen_front_options *options = &call->front->options;
    pen_infer_request *request;
    const pen_status status = pen_infer_proto_read(options->model, bytes, length, &request);
    if (status != PEN_OK) {
        pen_batcher_count(options->batcher, pen_status_get_code(status));
        call_fail(call, status);
        return;
    }
    request->deadline = call_deadline(call);
    request->done = call_inferred;
    request->context = call;
    call->state = FRONT_RUNNING;
    pen_batcher_submit(options->batcher, request);
}

// Whether two texts are alike: a method's name is no C string.
static bool call_is_method(const front_call *call, const char *name) {
    const size_t prefix = strlen(FRONT_SERVICE), length = strlen(name);
    const grpc_slice *method = &call->details.method;
    return GRPC_SLICE_LENGTH(*method) == prefix + length &&
           memcmp(GRPC_SLICE_START_PTR(*method), FRONT_SERVICE, prefix) == 0 &&
           memcmp(GRPC_SLICE_START_PTR(*method) + prefix, name, length) == 0;
}

// A model that is not here is not ready, and has no metadata.
static void call_answer_model(front_call *call, const void *bytes, size_t length) {
    const pen_front_options *options = &call->front->options;
    const bool asks_ready = call_is_method(call, "ModelReady");
    pen_infer_reply reply = {.kind = asks_ready ? PEN_INFER_ANSWER_LIVE : PEN_INFER_ANSWER_MODEL,
                             .truth = pen_batcher_is_ready(options->batcher),
                             .model = options->model};
    const pen_status status = pen_infer_proto_check_name(options->model, bytes, length);
    if (asks_ready && pen_status_get_code(status) == PEN_NOT_FOUND) {
        reply.truth = false;
        pen_status_ignore(status, "said by the answer");
    } else if (status != PEN_OK) {
        call_fail(call, status);
        return;
    }
    call_reply(call, &reply);
}

// The message is here.
static void call_dispatch(front_call *call, const void *bytes, size_t length) {
    const pen_front_options *options = &call->front->options;
    pen_infer_reply reply = {.kind = PEN_INFER_ANSWER_LIVE, .truth = true};
    if (call_is_method(call, "ModelInfer")) {
        call_infer(call, bytes, length);
    } else if (call_is_method(call, "ModelReady") || call_is_method(call, "ModelMetadata")) {
        call_answer_model(call, bytes, length);
    } else if (call_is_method(call, "ServerLive")) {
        call_reply(call, &reply);
    } else if (call_is_method(call, "ServerReady")) {
        reply.truth = pen_batcher_is_ready(options->batcher);
        call_reply(call, &reply);
    } else if (call_is_method(call, "ServerMetadata")) {
        reply.kind = PEN_INFER_ANSWER_SERVER;
        call_reply(call, &reply);
    } else {
        call_fail(call, pen_error(PEN_UNSUPPORTED, "there is no such method here"));
    }
}

static void call_read(front_call *call) {
    grpc_byte_buffer_reader reader;
    if (call->message == NULL || !grpc_byte_buffer_reader_init(&reader, call->message)) {
        pen_caller_has_sent(call->caller, 0);
        call_fail(call, pen_error(PEN_INVALID_INPUT, "the call has no message"));
        return;
    }
    grpc_slice whole = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    pen_caller_has_sent(call->caller, GRPC_SLICE_LENGTH(whole));
    call_dispatch(call, GRPC_SLICE_START_PTR(whole), GRPC_SLICE_LENGTH(whole));
    grpc_slice_unref(whole);
}

static bool call_is_allowed(const front_call *call) {
    const char *token = call->front->options.token;
    if (token == NULL) return true;
    for (size_t i = 0; i < call->metadata.count; i++) {
        const grpc_metadata *entry = &call->metadata.metadata[i];
        if (grpc_slice_str_cmp(entry->key, "authorization") != 0) continue;
        return pen_infer_is_allowed(token, (const char *)GRPC_SLICE_START_PTR(entry->value),
                                    GRPC_SLICE_LENGTH(entry->value));
    }
    return false;
}

// ---- calls

static void front_ask(pen_grpc_front *front) {
    front_call *call = pen_memory_allocate(1, sizeof *call);
    if (call == NULL) return; // tried again soon
    call->front = front;
    call->text = grpc_empty_slice();
    grpc_call_details_init(&call->details);
    grpc_metadata_array_init(&call->metadata);
    const grpc_call_error error =
        grpc_server_request_call(front->server, &call->call, &call->details, &call->metadata,
                                 front->queue, front->queue, call);
    front->is_asking = error == GRPC_CALL_OK;
    if (error != GRPC_CALL_OK) call_destroy(call);
}

static void front_link(pen_grpc_front *front, front_call *call) {
    call->next = front->calls;
    if (call->next != NULL) call->next->previous = call;
    front->calls = call;
}

static void front_unlink(pen_grpc_front *front, const front_call *call) {
    if (call->next != NULL) call->next->previous = call->previous;
    if (call->previous != NULL) call->previous->next = call->next;
    if (front->calls == call) front->calls = call->next;
}

// Whether the call may be: decided before its message is read. False: it is refused.
static bool call_judge(front_call *call) {
    pen_grpc_front *front = call->front;
    const pen_front_options *options = &front->options;
    if (!call_is_allowed(call)) {
        call_end(call, FRONT_UNAUTHENTICATED, "the call has no token, or another");
        return false;
    }
    const pen_status status = pen_grpc_tls_check_revoked(&front->credentials, call->call);
    if (status != PEN_OK) {
        call_end(call, FRONT_UNAUTHENTICATED, pen_status_message(status));
        pen_status_ignore(status, "the caller was told");
        return false;
    }
    pen_caller_is_known(call->caller);
    call->is_taken = true;
    if (atomic_fetch_add(&front->taken_count, 1) < options->calls_limit) return true;
    pen_batcher_count(options->batcher, PEN_DOES_NOT_FIT);
    call_fail(call, pen_error(PEN_DOES_NOT_FIT, "%u calls are open already: try again later",
                              options->calls_limit));
    return false;
}

static void call_begin(front_call *call) {
    char address[PEN_CALLER_TEXT_LIMIT];
    pen_grpc_front *front = call->front;
    pen_grpc_server_get_address(call->call, address, sizeof address);
    call->caller = pen_callers_find(front->callers.port, address);
    pen_caller_has_called(call->caller);
    call->began = pen_clock_seconds();
    call->state = FRONT_READING;
    atomic_fetch_add(&front->open_count, 1);
    front_link(front, call);
    if (!call_judge(call)) return;
    grpc_op batch = {.op = GRPC_OP_RECV_MESSAGE};
    batch.data.recv_message.recv_message = &call->message;
    pen_caller_may_send(call->caller);
    call_batch(call, &batch, 1);
}

// What gRPC has done for a call.
static void front_take(pen_grpc_front *front, front_call *call, bool is_done) {
    const front_state state = call->state;
    switch (state) {
    case FRONT_NEW:
        front->is_asking = false;
        if (!is_done) { // the server ends
            front->is_closing = true;
            call_destroy(call);
            return;
        }
        call_begin(call);
        return;
    case FRONT_READING:
        call_read(call);
        return;
    case FRONT_RUNNING: // nothing of gRPC is under way then
        return;
    case FRONT_ENDING:
        front_unlink(front, call);
        call_destroy(call);
        return;
    }
}

static bool front_is_oldest(const front_call *call) {
    for (const front_call *older = call->next; older != NULL; older = older->next) {
        if (older->state == FRONT_READING && older->caller.place == call->caller.place)
            return false;
    }
    return true;
}

// Why a call is to be ended: NULL, it is not. Of one who has sent more than all its calls may it is
// the oldest, which has most likely the message that is too long.
static const char *call_judge_time(const front_call *call, double now) {
    const front_state state = call->state;
    if (state != FRONT_READING && state != FRONT_ENDING) return NULL;
    if (now - call->began > call->front->options.timeout_seconds) return FRONT_SLOW;
    if (state == FRONT_ENDING || !pen_caller_is_stuck(call->caller)) return NULL;
    return front_is_oldest(call) ? FRONT_LONG : NULL;
}

// Ends calls that send nothing, or take no answer, so that they cannot keep others out; what gRPC
// was to do for them comes to an end, and each that was read is answered then.
static void front_look(pen_grpc_front *front) {
    const double now = pen_clock_seconds();
    if (now < front->look_at) return;
    front->look_at = now + FRONT_LOOK_SECONDS;
    for (const front_call *call = front->calls; call != NULL; call = call->next) {
        const char *why = call_judge_time(call, now);
        if (why == NULL) continue;
        const bool is_long = strcmp(why, FRONT_LONG) == 0;
        (void)grpc_call_cancel_with_status(
            call->call, is_long ? GRPC_STATUS_RESOURCE_EXHAUSTED : GRPC_STATUS_DEADLINE_EXCEEDED,
            why, NULL);
    }
}

// Waits for what gRPC has done; a moment at most where calls are open, or none could be asked for.
static grpc_event front_wait(const pen_grpc_front *front) {
    gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (!front->is_asking || front->calls != NULL) {
        until =
            gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                         gpr_time_from_millis((int64_t)(FRONT_LOOK_SECONDS * 1e3), GPR_TIMESPAN));
    }
    return grpc_completion_queue_next(front->queue, until, NULL);
}

// Until the queue is shut down and empty. The next call is asked for as soon as one has come. The
// tag of the server's own end is the front.
static void front_run(void *context) {
    pen_grpc_front *front = context;
    for (;;) {
        if (!front->is_asking && !front->is_closing) front_ask(front);
        const grpc_event event = front_wait(front);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return;
        front_look(front);
        if (event.type != GRPC_OP_COMPLETE) continue;
        if (event.tag == front) { // no call is open any more
            front->is_closing = true;
            grpc_completion_queue_shutdown(front->queue);
            continue;
        }
        front_take(front, event.tag, event.success != 0);
    }
}

// ---- life

static grpc_arg front_number(const char *key, int value) {
    // gRPC does not write to keys, but takes them as char *
    return (grpc_arg){
        .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)key, .value.integer = value};
}

// Longer messages than the limit gRPC refuses by itself, but only when they are whole in memory:
// so much of one is not read (door_callers.h). Of those that are compressed a megabyte may be of a
// gigabyte. Two servers must not share a port.
static pen_status front_listen(pen_grpc_front *front, uint16_t *out_port) {
    const pen_front_options *options = &front->options;
    const int limit = options->bytes_limit > INT32_MAX ? INT32_MAX : (int)options->bytes_limit;
    const uint64_t quota = FRONT_QUOTA_BYTES + (uint64_t)options->calls_limit * (uint64_t)limit;
    front->quota = grpc_resource_quota_create("serve");
    grpc_resource_quota_resize(front->quota, quota);
    grpc_arg args[] = {
        {.type = GRPC_ARG_POINTER,
         .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
         .value.pointer = {.p = front->quota, .vtable = grpc_resource_quota_arg_vtable()}},
        front_number(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, limit),
        front_number(GRPC_ARG_ALLOW_REUSEPORT, 0),
        front_number(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE),
        front_number(GRPC_ARG_MAX_CONCURRENT_STREAMS, (int)pen_door_streams(options)),
        front_number(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, FRONT_HANDSHAKE_SECONDS * 1000),
        front_number(GRPC_ARG_KEEPALIVE_TIME_MS, FRONT_KEEPALIVE_SECONDS * 1000),
        front_number(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, FRONT_KEEPALIVE_TIMEOUT_SECONDS * 1000),
        front_number(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        front_number(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0), // as many as it takes
    };
    const grpc_channel_args list = {sizeof args / sizeof *args, args};
    PEN_TRY(pen_grpc_credentials_create(&options->tls, &front->credentials));
    front->queue = grpc_completion_queue_create_for_next(NULL);
    front->server = grpc_server_create(&list, NULL);
    grpc_server_register_completion_queue(front->server, front->queue, NULL);
    const int port =
        grpc_server_add_http2_port(front->server, options->address, front->credentials.of_servers);
    if (port == 0) {
        pen_address where;
        PEN_TRY(pen_address_read(options->address, &where));
        return pen_address_explain(&where, "gRPC does not say why");
    }
    *out_port = (uint16_t)port;
    pen_door_callers_watch(&front->callers, "gRPC", options,
                           pen_grpc_tls_is_used(&options->tls) ? PEN_DOOR_GRPC_TLS : PEN_DOOR_GRPC,
                           *out_port);
    grpc_server_start(front->server);
    return pen_thread_create("grpc", front_run, front, &front->thread);
}

pen_status pen_grpc_front_create(const pen_front_options *options, pen_grpc_front **out_front,
                                 uint16_t *out_port) {
    pen_grpc_front *front = pen_memory_allocate(1, sizeof *front);
    if (front == NULL) return pen_error_out_of_memory();
    front->options = *options;
    grpc_init();
    const pen_status status = front_listen(front, out_port);
    if (status != PEN_OK) {
        pen_grpc_front_destroy(front);
        return status;
    }
    *out_front = front;
    return PEN_OK;
}

void pen_grpc_front_end_late(pen_grpc_front *front) {
    pen_door_callers_tick(&front->callers);
}

// A server that was never started ends at once; its queue is emptied here where there is no thread.
void pen_grpc_front_destroy(pen_grpc_front *front) {
    if (front == NULL) return;
    if (front->server != NULL) {
        grpc_server_shutdown_and_notify(front->server, front->queue, front);
        pen_front_await_answers(&front->open_count);
        grpc_server_cancel_all_calls(front->server);
        if (front->thread == NULL) front_run(front);
        pen_thread_join(front->thread);
        grpc_server_destroy(front->server);
    }
    pen_door_callers_forget(&front->callers);
    if (front->queue != NULL) grpc_completion_queue_destroy(front->queue);
    if (front->quota != NULL) grpc_resource_quota_unref(front->quota);
    pen_grpc_credentials_destroy(&front->credentials);
    pen_memory_free(front);
    grpc_shutdown_blocking();
}
