#include "tests/hostile/wire_proxy.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tests/hostile/wire_proxy_inside.h"
#include "tests/support/check.h"
#include "tests/support/door.h"

#define WIRE_TURN_SECONDS 0.001
#define WIRE_QUEUED_LIMIT 64u // of a direction; then nothing is read

static void wire_batch(wire_call *call, grpc_call *of, const grpc_op *ops, size_t count,
                       wire_tag *tag) {
    const grpc_call_error error = grpc_call_start_batch(of, ops, count, tag, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
    call->pending += 1;
}

// ---- one direction

static void wire_read_next(wire_call *call, unsigned way) {
    wire_way *w = &call->ways[way];
    if (w->is_reading || w->has_ended || w->queued > WIRE_QUEUED_LIMIT) return;
    const grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &w->incoming};
    w->is_reading = true;
    wire_batch(call, w->from, &op, 1, &call->read[way]);
}

static void wire_was_read(wire_call *call, unsigned way, bool success) {
    wire_way *w = &call->ways[way];
    w->is_reading = false;
    if (!success || w->incoming == NULL) {
        w->has_ended = true;
        return;
    }
    grpc_byte_buffer_reader reader;
    PEN_ASSERT(grpc_byte_buffer_reader_init(&reader, w->incoming) == 1);
    const grpc_slice bytes = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(w->incoming);
    w->incoming = NULL;
    wire_pass(call, way, bytes);
}

static void wire_was_written(wire_call *call, unsigned way, bool success) {
    wire_way *w = &call->ways[way];
    (void)success; // when it failed, the status says why
    grpc_byte_buffer_destroy(w->sending);
    w->sending = NULL;
}

static void wire_drop_queue(wire_way *w) {
    while (w->queue != NULL) {
        wire_item *item = w->queue;
        w->queue = item->next;
        grpc_slice_unref(item->bytes);
        pen_memory_free(item);
    }
    w->queued = 0;
}

static void wire_write_next(wire_call *call, unsigned way) {
    wire_way *w = &call->ways[way];
    const bool is_over = way == 0 ? call->is_closed || call->has_status : call->has_finished;
    if (is_over) wire_drop_queue(w);
    wire_item *item = w->queue;
    if (w->sending != NULL || item == NULL || item->due > pen_clock_seconds()) return;
    w->queue = item->next;
    w->queued -= 1;
    w->sending = grpc_raw_byte_buffer_create(&item->bytes, 1);
    grpc_slice_unref(item->bytes);
    pen_memory_free(item);
    const grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = w->sending};
    wire_batch(call, w->to, &op, 1, &call->written[way]);
}

static bool wire_is_empty(const wire_way *w) {
    return w->queue == NULL && w->sending == NULL && !w->is_reading;
}

// ---- a stream

static void wire_nothing(wire_call *call, unsigned way, bool success) {
    (void)call;
    (void)way;
    (void)success;
}

static void wire_status_came(wire_call *call, unsigned way, bool success) {
    (void)way;
    (void)success;
    call->has_status = true;
    wire_drop_queue(&call->ways[0]); // nobody takes it any more
}

static void wire_caller_left(wire_call *call, unsigned way, bool success) {
    (void)way;
    (void)success;
    if (call->was_cancelled != 0) (void)grpc_call_cancel(call->ways[0].to, NULL);
}

// What is left to be done after anything happened, and when something is due.
static void wire_go_on(wire_call *call) {
    for (unsigned way = 0; way < 2; way++) {
        wire_write_next(call, way);
        wire_read_next(call, way);
    }
    if (call->ways[0].has_ended && wire_is_empty(&call->ways[0]) && !call->is_closed &&
        !call->has_status) {
        const grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
        call->is_closed = true;
        wire_batch(call, call->ways[0].to, &op, 1, &call->half_closed);
    }
    if (call->has_status && wire_is_empty(&call->ways[1]) && !call->has_finished) {
        const grpc_op op = {
            .op = GRPC_OP_SEND_STATUS_FROM_SERVER,
            .data.send_status_from_server = {.trailing_metadata_count = call->trailer.count,
                                             .trailing_metadata = call->trailer.metadata,
                                             .status = call->status,
                                             .status_details = &call->details}};
        call->has_finished = true;
        wire_batch(call, call->ways[0].from, &op, 1, &call->finished);
    }
}

static void wire_call_destroy(wire_call *call) {
    wire_drop_queue(&call->ways[0]);
    wire_drop_queue(&call->ways[1]);
    grpc_call_unref(call->ways[0].from);
    grpc_call_unref(call->ways[0].to);
    grpc_channel_destroy(call->channel);
    grpc_metadata_array_destroy(&call->head);
    grpc_metadata_array_destroy(&call->trailer);
    if (call->token_count != 0) grpc_slice_unref(call->token.value);
    grpc_slice_unref(call->details);
    pen_memory_free(call);
}

static void wire_tags(wire_call *call) {
    for (unsigned way = 0; way < 2; way++) {
        call->opened[way] = (wire_tag){wire_nothing, call, way};
        call->read[way] = (wire_tag){wire_was_read, call, way};
        call->written[way] = (wire_tag){wire_was_written, call, way};
    }
    call->half_closed = (wire_tag){wire_nothing, call, 0};
    call->status_came = (wire_tag){wire_status_came, call, 1};
    call->caller_left = (wire_tag){wire_caller_left, call, 0};
    call->finished = (wire_tag){wire_nothing, call, 1};
}

// What shows that the caller is of this user.
static void wire_take_token(wire_call *call, const grpc_metadata_array *metadata) {
    for (size_t i = 0; i < metadata->count; i++) {
        if (grpc_slice_str_cmp(metadata->metadata[i].key, "penstock-token") != 0) continue;
        call->token.key = grpc_slice_from_static_string("penstock-token");
        call->token.value = grpc_slice_ref(metadata->metadata[i].value);
        call->token_count = 1;
        return;
    }
}

// A stream that came, and another one to whom it is for.
static void wire_open(wire_proxy *proxy, wire_port *port) {
    wire_call *call = pen_memory_allocate(1, sizeof *call);
    char target[WIRE_TARGET_BYTES];
    PEN_ASSERT(call != NULL);
    pen_mutex_lock(&proxy->lock);
    memcpy(target, port->target, sizeof target);
    pen_mutex_unlock(&proxy->lock);
    grpc_arg args[] = {
        {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)GRPC_ARG_ENABLE_HTTP_PROXY},
        {.type = GRPC_ARG_INTEGER,
         .key = (char *)(uintptr_t)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
         .value.integer = 1}};
    const grpc_channel_args list = {sizeof args / sizeof *args, args};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    call->proxy = proxy;
    call->channel = grpc_channel_create(target, credentials, &list);
    grpc_channel_credentials_release(credentials);
    grpc_call *out = grpc_channel_create_call(call->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                              proxy->queue, port->details.method, NULL,
                                              gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    call->ways[0] = (wire_way){.from = port->call, .to = out};
    call->ways[1] = (wire_way){.from = out, .to = port->call};
    grpc_metadata_array_init(&call->head);
    grpc_metadata_array_init(&call->trailer);
    call->details = grpc_empty_slice();
    wire_take_token(call, &port->metadata);
    wire_tags(call);
    call->next = proxy->calls;
    proxy->calls = call;

    const grpc_op open = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    wire_batch(call, port->call, &open, 1, &call->opened[0]);
    const grpc_op left = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                          .data.recv_close_on_server.cancelled = &call->was_cancelled};
    wire_batch(call, port->call, &left, 1, &call->caller_left);
    const grpc_op both[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA,
         .data.send_initial_metadata = {.count = call->token_count, .metadata = &call->token}},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &call->head}};
    wire_batch(call, out, both, 2, &call->opened[1]);
    const grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                         .data.recv_status_on_client = {.trailing_metadata = &call->trailer,
                                                        .status = &call->status,
                                                        .status_details = &call->details}};
    wire_batch(call, out, &end, 1, &call->status_came);
    wire_go_on(call);
}

static void wire_request(wire_proxy *proxy, wire_port *port) {
    grpc_call_details_init(&port->details);
    grpc_metadata_array_init(&port->metadata);
    port->call = NULL;
    const grpc_call_error error =
        grpc_server_request_call(port->server, &port->call, &port->details, &port->metadata,
                                 proxy->queue, proxy->queue, port);
    PEN_ASSERT(error == GRPC_CALL_OK);
}

// ---- the thread

static bool wire_is_stopping(wire_proxy *proxy) {
    pen_mutex_lock(&proxy->lock);
    const bool is_stopping = proxy->is_stopping;
    pen_mutex_unlock(&proxy->lock);
    return is_stopping;
}

static wire_port *wire_port_of(wire_proxy *proxy, void *tag) {
    for (unsigned i = 0; i < WIRE_PROXY_PORTS; i++) {
        if (tag == &proxy->ports[i]) return &proxy->ports[i];
    }
    return NULL;
}

static void wire_happened(wire_proxy *proxy, const grpc_event *event) {
    wire_port *port = wire_port_of(proxy, event->tag);
    if (port != NULL) {
        if (event->success != 0) wire_open(proxy, port);
        grpc_call_details_destroy(&port->details);
        grpc_metadata_array_destroy(&port->metadata);
        if (event->success != 0) wire_request(proxy, port);
        return;
    }
    if (event->tag == proxy) return; // a server is shut down
    const wire_tag *tag = event->tag;
    tag->call->pending -= 1;
    tag->done(tag->call, tag->way, event->success != 0);
    if (tag->call->pending > 0 || !tag->call->has_finished) wire_go_on(tag->call);
}

static void wire_turn(wire_proxy *proxy) {
    for (wire_call **at = &proxy->calls; *at != NULL;) {
        wire_call *call = *at;
        if (!call->has_finished || call->pending > 0) wire_go_on(call);
        if (call->has_finished && call->pending == 0) {
            *at = call->next;
            wire_call_destroy(call);
        } else {
            at = &call->next;
        }
    }
}

static void wire_run(void *context) {
    wire_proxy *proxy = context;
    bool is_down = false;
    while (true) {
        const gpr_timespec turn =
            gpr_time_add(gpr_now(GPR_CLOCK_REALTIME),
                         gpr_time_from_micros((int64_t)(WIRE_TURN_SECONDS * 1e6), GPR_TIMESPAN));
        const grpc_event event = grpc_completion_queue_next(proxy->queue, turn, NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) break;
        if (event.type == GRPC_OP_COMPLETE) wire_happened(proxy, &event);
        wire_turn(proxy);
        if (!wire_is_stopping(proxy)) continue;
        if (!is_down) {
            for (unsigned i = 0; i < WIRE_PROXY_PORTS; i++) {
                grpc_server_shutdown_and_notify(proxy->ports[i].server, proxy->queue, proxy);
                grpc_server_cancel_all_calls(proxy->ports[i].server);
            }
            is_down = true;
        }
        if (proxy->calls == NULL) grpc_completion_queue_shutdown(proxy->queue);
    }
}

// ---- for others

wire_proxy *wire_proxy_create(void) {
    wire_proxy *proxy = pen_memory_allocate(1, sizeof *proxy);
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)GRPC_ARG_ALLOW_REUSEPORT};
    const grpc_channel_args list = {1, &arg};
    PEN_ASSERT(proxy != NULL);
    grpc_init();
    pen_mutex_init(&proxy->lock);
    proxy->chance.state = 1;
    proxy->queue = grpc_completion_queue_create_for_next(NULL);
    for (unsigned i = 0; i < WIRE_KEPT; i++) {
        proxy->kept[i] = grpc_empty_slice();
    }
    for (unsigned i = 0; i < WIRE_PROXY_PORTS; i++) {
        wire_port *port = &proxy->ports[i];
        grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
        port->server = grpc_server_create(&list, NULL);
        grpc_server_register_completion_queue(port->server, proxy->queue, NULL);
        const int found = grpc_server_add_http2_port(port->server, "127.0.0.1:0", credentials);
        CHECK(found > 0, "no port");
        port->port = (uint16_t)found;
        grpc_server_credentials_release(credentials);
        grpc_server_start(port->server);
        wire_request(proxy, port);
    }
    CHECK_OK(pen_thread_create("wire proxy", wire_run, proxy, &proxy->thread));
    return proxy;
}

void wire_proxy_destroy(wire_proxy *proxy) {
    if (proxy == NULL) return;
    pen_mutex_lock(&proxy->lock);
    proxy->is_stopping = true;
    pen_mutex_unlock(&proxy->lock);
    pen_thread_join(proxy->thread);
    for (unsigned i = 0; i < WIRE_PROXY_PORTS; i++) {
        door_close(proxy->ports[i].port);
        grpc_server_destroy(proxy->ports[i].server);
    }
    for (unsigned i = 0; i < WIRE_KEPT; i++) {
        grpc_slice_unref(proxy->kept[i]);
    }
    grpc_completion_queue_destroy(proxy->queue);
    pen_mutex_deinit(&proxy->lock);
    pen_memory_free(proxy);
    grpc_shutdown_blocking();
}

uint16_t wire_proxy_port(const wire_proxy *proxy, unsigned index) {
    return proxy->ports[index].port;
}

// Who calls the proxy asks the process behind it for tokens.
void wire_proxy_aim(wire_proxy *proxy, unsigned index, const char *address) {
    const char *colon = strrchr(address, ':');
    PEN_ASSERT(colon != NULL);
    door_lead(proxy->ports[index].port, (uint16_t)strtoul(colon + 1, NULL, 10));
    pen_mutex_lock(&proxy->lock);
    snprintf(proxy->ports[index].target, WIRE_TARGET_BYTES, "%s", address);
    pen_mutex_unlock(&proxy->lock);
}
