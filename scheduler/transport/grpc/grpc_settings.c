#include "scheduler/transport/grpc/grpc_settings.h"

#include <string.h>

#include "scheduler/transport/wire_format.h"

typedef enum setting_side { SETTING_BOTH, SETTING_CLIENT, SETTING_SERVER } setting_side;

typedef struct setting {
    setting_side side;
    const char *key;
    int value;
} setting;

// What is not here keeps gRPC's default, on purpose: grpc.http2.bdp_probe=0 costs two thirds of
// the throughput (frames stay at 16 KiB), tcp_tx_zerocopy_enabled a quarter on loopback, and
// write_buffer_size, optimization_target, read chunk sizes and tsi.max_frame_size change nothing.
static const setting settings_table[] = {
    // A peer that froze or lost its network is noticed within twice the time and the timeout. The
    // protocol's own heartbeat is quicker; this catches idle links.
    {SETTING_BOTH, GRPC_ARG_KEEPALIVE_TIME_MS, 2500},
    {SETTING_BOTH, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000},
    {SETTING_BOTH, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
    {SETTING_BOTH, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0}, // as many as it takes
    // The default, 5 minutes, ends idle links with "too many pings".
    {SETTING_SERVER, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000},

    // The default, 4 MiB, would do; larger ones than ours are refused.
    {SETTING_BOTH, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)PEN_WIRE_ENVELOPE_LIMIT},
    {SETTING_BOTH, GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, (int)PEN_WIRE_ENVELOPE_LIMIT},
    {SETTING_BOTH, GRPC_ARG_MAX_METADATA_SIZE, 16 << 10},
    // Must exceed bandwidth times delay: 64 MiB do for 10 Gbit/s and 50 ms.
    {SETTING_BOTH, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 20},
    {SETTING_BOTH, GRPC_ARG_HTTP2_MAX_FRAME_SIZE, (1 << 24) - 1},
    {SETTING_SERVER, GRPC_ARG_MAX_CONCURRENT_STREAMS, 8}, // of a connection; we open one

    // Two servers must not share a port.
    {SETTING_SERVER, GRPC_ARG_ALLOW_REUSEPORT, 0},
    // The default, 2 minutes, lets half-open connections pile up.
    {SETTING_SERVER, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 5000},

    // With http_proxy in the environment, links to 127.0.0.1 would go to the proxy.
    {SETTING_CLIENT, GRPC_ARG_ENABLE_HTTP_PROXY, 0},
    {SETTING_CLIENT, GRPC_ARG_ENABLE_RETRIES, 0}, // would hold copies of what was sent
    {SETTING_CLIENT, GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1}, // no look-ups in DNS for it
    // Links are not shared: each has a connection of its own, which ends with it.
    {SETTING_CLIENT, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
    // The time that one attempt may take, also a slow one with TLS; refusals come at once.
    {SETTING_CLIENT, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000},
    {SETTING_CLIENT, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100}, // gRPC takes no less
    {SETTING_CLIENT, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000},

    {SETTING_BOTH, GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0}, // tensors do not shrink
    // What is compressed is refused: a kilobyte of it may be a megabyte.
    {SETTING_BOTH, GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE},
    {SETTING_BOTH, GRPC_ARG_ENABLE_CHANNELZ, 0},
};

void pen_grpc_settings_fill(pen_grpc_settings *settings, int is_server,
                            grpc_resource_quota *quota) {
    const setting_side side = is_server ? SETTING_SERVER : SETTING_CLIENT;
    size_t count = 0;
    for (size_t i = 0; i < sizeof settings_table / sizeof *settings_table; i++) {
        const setting *entry = &settings_table[i];
        if (entry->side != SETTING_BOTH && entry->side != side) continue;
        // gRPC does not write to keys, but takes them as char *
        settings->args[count++] = (grpc_arg){.type = GRPC_ARG_INTEGER,
                                             .key = (char *)(uintptr_t)entry->key,
                                             .value.integer = entry->value};
    }
    settings->args[count++] =
        (grpc_arg){.type = GRPC_ARG_POINTER,
                   .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
                   .value.pointer = {.p = quota, .vtable = grpc_resource_quota_arg_vtable()}};
    PEN_ASSERT(count <= PEN_GRPC_SETTING_LIMIT);
    settings->list = (grpc_channel_args){.num_args = count, .args = settings->args};
}

void pen_grpc_settings_expect(pen_grpc_settings *settings, const pen_grpc_settings *from,
                              const char *name) {
    const size_t count = from->list.num_args;
    PEN_ASSERT(count <= PEN_GRPC_SETTING_LIMIT);
    memcpy(settings->args, from->args, sizeof settings->args);
    settings->args[count] = (grpc_arg){.type = GRPC_ARG_STRING,
                                       .key = (char *)(uintptr_t)GRPC_SSL_TARGET_NAME_OVERRIDE_ARG,
                                       .value.string = (char *)(uintptr_t)name};
    settings->list = (grpc_channel_args){.num_args = count + 1, .args = settings->args};
}
