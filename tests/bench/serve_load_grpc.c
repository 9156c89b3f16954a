// Calls over gRPC's C core, all over one connection.
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>

#include "tests/bench/serve_load.h"

typedef struct door_call {
    grpc_call *call;
    grpc_byte_buffer *message; // gRPC empties it
    grpc_metadata_array head;
    grpc_metadata_array tail;
    grpc_byte_buffer *answer;
    grpc_status_code status;
    grpc_slice details;
} door_call;

static grpc_channel *door_channel;
static grpc_completion_queue *door_queue;
static grpc_slice door_message;
static door_call door_calls[LOAD_CALLS_LIMIT];

static void door_open(const load_request *request) {
    static grpc_arg settings[] = {{.type = GRPC_ARG_INTEGER,
                                   .key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
                                   .value.integer = -1}};
    static const grpc_channel_args list = {sizeof settings / sizeof *settings, settings};
    char address[64];
    grpc_init();
    snprintf(address, sizeof address, "ipv4:127.0.0.1:%d", request->port);
    door_queue = grpc_completion_queue_create_for_next(NULL);
    door_channel = grpc_channel_create(address, grpc_insecure_credentials_create(), &list);
    door_message = grpc_slice_from_static_buffer(request->bytes, request->length);
}

// One batch of operations is the whole call.
static void door_send(uint32_t number) {
    door_call *c = &door_calls[number];
    *c =
        (door_call){.call = grpc_channel_create_call(
                        door_channel, NULL, GRPC_PROPAGATE_DEFAULTS, door_queue,
                        grpc_slice_from_static_string("/inference.GRPCInferenceService/ModelInfer"),
                        NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)};
    grpc_op ops[6] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},  {.op = GRPC_OP_SEND_MESSAGE},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, {.op = GRPC_OP_RECV_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_MESSAGE},           {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};
    grpc_metadata_array_init(&c->head);
    grpc_metadata_array_init(&c->tail);
    c->message = grpc_raw_byte_buffer_create(&door_message, 1);
    ops[1].data.send_message.send_message = c->message;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &c->head;
    ops[4].data.recv_message.recv_message = &c->answer;
    ops[5].data.recv_status_on_client.trailing_metadata = &c->tail;
    ops[5].data.recv_status_on_client.status = &c->status;
    ops[5].data.recv_status_on_client.status_details = &c->details;
    if (grpc_call_start_batch(c->call, ops, 6, c, NULL) != GRPC_CALL_OK) {
        load_fail("gRPC refuses a batch");
    }
}

static load_outcome door_outcome(const door_call *c) {
    switch (c->status) {
    case GRPC_STATUS_OK:
        return c->answer == NULL ? LOAD_OTHER : LOAD_OK;
    case GRPC_STATUS_RESOURCE_EXHAUSTED:
        return LOAD_SHED;
    case GRPC_STATUS_DEADLINE_EXCEEDED:
        return LOAD_LATE;
    case GRPC_STATUS_UNAVAILABLE:
        return LOAD_REFUSED;
    default:
        return LOAD_OTHER;
    }
}

static void door_end(door_call *c) {
    grpc_byte_buffer_destroy(c->message);
    grpc_byte_buffer_destroy(c->answer);
    grpc_slice_unref(c->details);
    grpc_metadata_array_destroy(&c->head);
    grpc_metadata_array_destroy(&c->tail);
    grpc_call_unref(c->call);
}

// Waits for the first alone; those that are there already come with it.
static uint32_t door_await(double seconds, load_end *ends, uint32_t limit) {
    uint32_t count = 0;
    gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                      gpr_time_from_nanos((int64_t)(seconds * 1e9), GPR_TIMESPAN));
    while (count < limit) {
        const grpc_event event = grpc_completion_queue_next(door_queue, until, NULL);
        if (event.type != GRPC_OP_COMPLETE) break;
        door_call *c = event.tag;
        ends[count++] = (load_end){(uint32_t)(c - door_calls), door_outcome(c)};
        door_end(c);
        until = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    }
    return count;
}

const load_door load_grpc = {"grpc", door_open, door_send, door_await};
