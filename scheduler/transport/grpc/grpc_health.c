// grpc.health.v1.Health: Check says SERVING for the server ("") and for our service. All other
// RPCs, Health/Watch among them, are answered with UNIMPLEMENTED.
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <string.h>

#include "base/memory.h"
#include "scheduler/transport/grpc/grpc_server.h"
#include "scheduler/transport/grpc/health_format.h"

#define HEALTH_REQUEST_LIMIT 128u

typedef struct health_answer {
    pen_caller caller;
    grpc_call *call;
    pen_grpc_tag tag;
    grpc_byte_buffer *request;
    int was_cancelled;
} health_answer;

static void health_done(void *owner, bool success) {
    health_answer *answer = owner;
    (void)success; // whether or not the caller is still there
    grpc_call_unref(answer->call);
    pen_caller_has_ended(answer->caller);
    pen_memory_free(answer);
}

static void health_batch(health_answer *answer, const grpc_op *ops, size_t count,
                         void (*done)(void *owner, bool success)) {
    answer->tag = (pen_grpc_tag){.done = done, .owner = answer};
    const grpc_call_error error =
        grpc_call_start_batch(answer->call, ops, count, &answer->tag, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
}

// Ends the call with a status; before it goes `reply`, unless that is NULL.
static void health_finish(health_answer *answer, grpc_byte_buffer *reply, grpc_status_code code,
                          const char *text) {
    grpc_slice details = grpc_slice_from_copied_string(text);
    grpc_op ops[4] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
         .data.send_status_from_server = {.status = code, .status_details = &details}},
        {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
         .data.recv_close_on_server.cancelled = &answer->was_cancelled},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = reply},
    };
    health_batch(answer, ops, reply != NULL ? 4 : 3, health_done);
    grpc_slice_unref(details);
}

// The service of a request: at most 127 bytes, so lengths are one byte. False: not understood.
static bool health_read(grpc_byte_buffer *request, char *out_service, size_t size) {
    grpc_byte_buffer_reader reader;
    out_service[0] = '\0';
    if (request == NULL || grpc_byte_buffer_length(request) > HEALTH_REQUEST_LIMIT) return false;
    if (grpc_byte_buffer_reader_init(&reader, request) == 0) return false;
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    const uint8_t *bytes = GRPC_SLICE_START_PTR(slice);
    const size_t count = GRPC_SLICE_LENGTH(slice);
    bool is_good = count == 0;
    if (count >= 2 && bytes[0] == PEN_HEALTH_SERVICE_KEY && bytes[1] == count - 2 &&
        bytes[1] < size) {
        memcpy(out_service, bytes + 2, count - 2);
        out_service[count - 2] = '\0';
        is_good = true;
    }
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    return is_good;
}

static void health_received(void *owner, bool success) {
    health_answer *answer = owner;
    char service[HEALTH_REQUEST_LIMIT];
    const bool is_good = success && health_read(answer->request, service, sizeof service);
    if (answer->request != NULL) grpc_byte_buffer_destroy(answer->request);
    if (!is_good) {
        health_finish(answer, NULL, GRPC_STATUS_INVALID_ARGUMENT, "not a HealthCheckRequest");
    } else if (service[0] != '\0' && strcmp(service, "penstock.Penstock") != 0) {
        health_finish(answer, NULL, GRPC_STATUS_NOT_FOUND, "no such service");
    } else {
        const char bytes[] = {PEN_HEALTH_STATUS_KEY, PEN_HEALTH_SERVING};
        grpc_slice slice = grpc_slice_from_copied_buffer(bytes, sizeof bytes);
        grpc_byte_buffer *reply = grpc_raw_byte_buffer_create(&slice, 1);
        grpc_slice_unref(slice);
        health_finish(answer, reply, GRPC_STATUS_OK, "");
        grpc_byte_buffer_destroy(reply);
    }
}

void pen_grpc_health_answer(pen_caller caller, grpc_call *take_call, grpc_slice method) {
    health_answer *answer = pen_memory_allocate(1, sizeof *answer);
    if (answer == NULL) {
        (void)grpc_call_cancel(take_call, NULL);
        grpc_call_unref(take_call);
        pen_caller_has_ended(caller);
        return;
    }
    answer->caller = caller;
    answer->call = take_call;
    if (grpc_slice_str_cmp(method, PEN_HEALTH_METHOD) == 0) {
        grpc_op batch = {.op = GRPC_OP_RECV_MESSAGE};
        batch.data.recv_message.recv_message = &answer->request;
        health_batch(answer, &batch, 1, health_received);
    } else {
        health_finish(answer, NULL, GRPC_STATUS_UNIMPLEMENTED, "there is no such method");
    }
}
