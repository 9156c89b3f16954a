#include "scheduler/serve/door_callers.h"

#include <inttypes.h>
#include <math.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"

#define DOOR_STRANGER_BYTES (128u << 10) // two first windows of HTTP/2: no call waits for another
#define DOOR_STRANGER_SECONDS 5.0 // at least: for a handshake from far away, and the first call
#define DOOR_STRANGER_STREAMS 16u
#define DOOR_END_SECONDS 1.0
#define DOOR_PAUSE_SECONDS 0.005
#define DOOR_STREAMS_BESIDE 32u
#define DOOR_LENT_BYTES (UINT64_C(32) << 20)
#define DOOR_TICK_SECONDS 1.0
#define DOOR_IDLE_SECONDS 60.0 // besides the time that a request may take to come, and to wait

// Of one who is refused there is a line for its first, tenth, hundredth … connection.
static void door_refused(void *context, const char *address, const char *reason) {
    pen_door_callers *callers = context;
    uint64_t count;
    if (!pen_refusals_add(&callers->refused, address, reason, &count)) return;
    pen_log(PEN_LOG_WARNING, "refused a connection from %s over %s: %s (%" PRIu64 " so far)",
            address, callers->door, reason, count);
}

uint32_t pen_door_streams(const pen_front_options *options) {
    return options->calls_limit + DOOR_STREAMS_BESIDE;
}

// Each call may send its message, and a hundredth more for frames and records.
void pen_door_callers_watch(pen_door_callers *callers, const char *door,
                            const pen_front_options *options, pen_door_kind kind, uint16_t port) {
    const uint32_t most = options->connections_limit;
    const uint32_t streams = pen_door_streams(options);
    const pen_callers_limits limits = {
        .callers = most,
        .callers_of_one = most - most / 4,
        .strangers = most / 2,
        .strangers_of_one = most / 2 - most / 8,
        .stranger_bytes = kind == PEN_DOOR_HTTP ? UINT32_MAX : DOOR_STRANGER_BYTES,
        .streams = DOOR_STRANGER_STREAMS,
        .stranger_seconds = fmax(options->timeout_seconds, DOOR_STRANGER_SECONDS),
        .is_encrypted = kind != PEN_DOOR_GRPC,
        .message_bytes = options->bytes_limit + options->bytes_limit / 64,
        .lent_bytes = DOOR_LENT_BYTES,
        .known_streams = streams,
        .idle_seconds = DOOR_IDLE_SECONDS + 2 * options->timeout_seconds,
        .refused = door_refused,
        .context = callers,
    };
    callers->door = door;
    if (pen_callers_watch(port, &limits)) callers->port = port;
}

void pen_door_callers_know(const pen_door_callers *callers, int descriptor) {
    struct sockaddr_storage there = {0};
    socklen_t size = sizeof there;
    char address[PEN_CALLER_TEXT_LIMIT];
    uint16_t port;
    if (getpeername(descriptor, (struct sockaddr *)&there, &size) != 0) return;
    if (!pen_caller_write(&there, address, sizeof address, &port)) return;
    pen_caller_is_known(pen_callers_find(callers->port, address));
}

void pen_door_callers_tick(pen_door_callers *callers) {
    const double now = pen_clock_seconds();
    if (now < callers->tick_at) return;
    callers->tick_at = now + DOOR_TICK_SECONDS;
    pen_callers_tick(callers->port);
}

void pen_door_callers_forget(pen_door_callers *callers) {
    pen_callers_forget(callers->port);
    callers->port = 0;
}

void pen_front_await_answers(const atomic_uint *open_count) {
    const double end = pen_clock_seconds() + DOOR_END_SECONDS;
    while (atomic_load(open_count) > 0 && pen_clock_seconds() < end) {
        pen_clock_pause(DOOR_PAUSE_SECONDS);
    }
}
