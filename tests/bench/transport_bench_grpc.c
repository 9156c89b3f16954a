// The least that sends frames over gRPC's C core: one call, one message a frame that is lent, not
// copied, and one copy of what arrives. What a transport over gRPC can reach at most.
//
// One thread at either end, which makes and compares checksums, too, where they are asked for.
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system/process_heap.h"
#include "tests/bench/transport_bench.h"

static grpc_arg settings[] = {
    {.type = GRPC_ARG_INTEGER, .key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .value.integer = -1},
    {.type = GRPC_ARG_INTEGER,
     .key = GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
     .value.integer = 64 << 20},
    {.type = GRPC_ARG_INTEGER,
     .key = GRPC_ARG_HTTP2_MAX_FRAME_SIZE,
     .value.integer = (1 << 24) - 1},
};
static const grpc_channel_args settings_list = {sizeof settings / sizeof *settings, settings};

static void grpc_start(grpc_call *call, const grpc_op *ops, size_t count) {
    if (grpc_call_start_batch(call, ops, count, NULL, NULL) != GRPC_CALL_OK) {
        bench_fail("gRPC refuses a batch");
    }
}

static void grpc_wait(grpc_completion_queue *queue) {
    const grpc_event event =
        grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    if (event.type != GRPC_OP_COMPLETE || !event.success) bench_fail("a batch failed");
}

static void grpc_run(grpc_completion_queue *queue, grpc_call *call, const grpc_op *ops,
                     size_t count) {
    grpc_start(call, ops, count);
    grpc_wait(queue);
}

// The slices of a message, one behind the other.
static uint64_t grpc_copy(const grpc_byte_buffer *buffer, uint8_t *out, uint64_t limit) {
    const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
    uint64_t count = 0;
    for (size_t i = 0; i < slices->count; i++) {
        const size_t here = GRPC_SLICE_LENGTH(slices->slices[i]);
        if (here > limit - count) bench_fail("a message is too long");
        memcpy(out + count, GRPC_SLICE_START_PTR(slices->slices[i]), here);
        count += here;
    }
    return count;
}

// A frame in a message, copied to where it belongs.
static void grpc_receive(const bench_job *j, grpc_completion_queue *queue, grpc_call *call,
                         uint8_t *pool, uint64_t i) {
    uint8_t *at = pool + bench_pool_offset(j, i);
    grpc_byte_buffer *buffer = NULL;
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &buffer;
    grpc_run(queue, call, &op, 1);
    if (buffer == NULL) bench_fail("the stream is over too early");
    if (grpc_copy(buffer, at, j->bytes) != j->bytes) bench_fail("a message is too short");
    if (j->has_sums) bench_compare(j, at, i);
    grpc_byte_buffer_destroy(buffer);
}

void bench_grpc_receiver(const bench_job *j) {
    char address[64];
    pen_process_heap_prepare();
    grpc_init();
    uint8_t *pool = bench_make_pool();
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server *server = grpc_server_create(&settings_list, NULL);
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    snprintf(address, sizeof address, "%s:0", j->address);
    const int port = grpc_server_add_http2_port(server, address, credentials);
    if (port == 0) bench_fail("cannot listen");
    grpc_server_register_completion_queue(server, queue, NULL);
    grpc_server_start(server);
    grpc_call *call;
    grpc_call_details details;
    grpc_metadata_array metadata;
    grpc_call_details_init(&details);
    grpc_metadata_array_init(&metadata);
    if (grpc_server_request_call(server, &call, &details, &metadata, queue, queue, NULL) !=
        GRPC_CALL_OK) {
        bench_fail("gRPC takes no call");
    }
    j->shared->port = port;
    grpc_wait(queue);
    const double cpu = bench_cpu_seconds();
    const grpc_op head = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    grpc_run(queue, call, &head, 1);
    for (uint64_t i = 0; i < j->count; i++)
        grpc_receive(j, queue, call, pool, i);
    int was_cancelled;
    grpc_op end[2] = {{.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                      {.op = GRPC_OP_RECV_CLOSE_ON_SERVER}};
    end[1].data.recv_close_on_server.cancelled = &was_cancelled;
    grpc_run(queue, call, end, 2);
    j->shared->cpu_seconds[1] = bench_cpu_seconds() - cpu;
    usleep(200000); // the status is still to go out
}

static void grpc_send(const bench_job *j, grpc_completion_queue *queue, grpc_call *call,
                      uint8_t *pool, uint64_t i) {
    uint8_t *at = pool + bench_pool_offset(j, i);
    if (j->has_sums) bench_sum(j, at, i);
    grpc_slice slice = grpc_slice_from_static_buffer(at, j->bytes);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
    op.data.send_message.send_message = buffer;
    grpc_run(queue, call, &op, 1);
    grpc_byte_buffer_destroy(buffer);
}

void bench_grpc_sender(const bench_job *j) {
    char address[64];
    while (j->shared->port == 0)
        usleep(1000);
    pen_process_heap_prepare();
    grpc_init();
    uint8_t *pool = bench_make_pool();
    snprintf(address, sizeof address, "ipv4:%s:%d", j->address, (int)j->shared->port);
    grpc_completion_queue *queue = grpc_completion_queue_create_for_next(NULL);
    grpc_channel *channel =
        grpc_channel_create(address, grpc_insecure_credentials_create(), &settings_list);
    grpc_call *call = grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
                                               grpc_slice_from_static_string("/bench/send"), NULL,
                                               gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_metadata_array metadata, trailer;
    grpc_metadata_array_init(&metadata);
    grpc_metadata_array_init(&trailer);
    grpc_op head[2] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                       {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    head[1].data.recv_initial_metadata.recv_initial_metadata = &metadata;
    grpc_run(queue, call, head, 2);
    usleep(200000); // until the other has touched its pool
    const double cpu = bench_cpu_seconds(), start = pen_clock_seconds();
    for (uint64_t i = 0; i < j->count; i++)
        grpc_send(j, queue, call, pool, i);
    grpc_status_code status;
    grpc_slice details;
    grpc_op end[2] = {{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};
    end[1].data.recv_status_on_client.trailing_metadata = &trailer;
    end[1].data.recv_status_on_client.status = &status;
    end[1].data.recv_status_on_client.status_details = &details;
    grpc_run(queue, call, end, 2);
    if (status != GRPC_STATUS_OK) bench_fail("the call failed");
    j->shared->seconds = pen_clock_seconds() - start;
    j->shared->cpu_seconds[0] = bench_cpu_seconds() - cpu;
}
