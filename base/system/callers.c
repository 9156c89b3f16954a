#include "base/system/callers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system/stream_count.h"

#define CALLERS_PORTS 64u
#define CALLERS_PLACES 9216u
#define CALLERS_SHORT_PARTS 64u // pieces that a read is cut to
#define CALLERS_TRIM_COUNT 64u  // strangers that are gone
#define CALLERS_TRIM_SECONDS 5.0
#define CALLERS_MOMENT_SECONDS 1.0 // within which a caller says who it is, as a rule
#define CALLERS_LEFT_MASK UINT64_C(0xffffffff)

typedef struct callers_port {
    uint16_t port; // 0: free
    pen_callers_limits limits;
    uint32_t count, stranger_count;
    uint32_t oldest, newest; // places of its callers, as they came
    uint32_t gone_count;     // strangers, since memory was given back
    double trimmed_at;
} callers_port;

// A connection. Places are used again, never freed: who reads from a descriptor looks without lock.
typedef struct caller_place {
    _Atomic uint64_t state; // serial << 32 | bytes that may come yet
    _Atomic uint32_t stream_count;
    // who reads from the descriptor
    pen_stream_count streams;
    // guarded by the lock; written before the place is found by its descriptor
    int descriptor;
    bool is_stranger;
    uint32_t port_index;
    uint32_t previous, next; // of the same port, or free; 0: none
    uint64_t cookie;         // of the socket: whether the descriptor still is that one
    double came_at;
    uint8_t address[16];
    char text[PEN_CALLER_TEXT_LIMIT];
} caller_place;

static struct {
    pthread_mutex_t lock;
    callers_port ports[CALLERS_PORTS]; // guarded by lock, as the rest
    uint32_t port_count;               // those ever used
    uint32_t used, free;               // places
    caller_place places[CALLERS_PLACES + 1];
    _Atomic uint32_t place_of[PEN_CALLERS_DESCRIPTORS]; // of descriptors; 0: not counted
} callers = {.lock = PTHREAD_MUTEX_INITIALIZER};

// ---- addresses

// Addresses of IPv4 that came over a socket of IPv6 are written as what they are, as gRPC does.
bool pen_caller_write(const struct sockaddr_storage *address, char *out_text, size_t size,
                      uint16_t *out_port) {
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    char host[INET6_ADDRSTRLEN];
    if (address->ss_family == AF_INET) {
        memcpy(&four, address, sizeof four);
    } else if (address->ss_family == AF_INET6) {
        memcpy(&six, address, sizeof six);
        if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
            inet_ntop(AF_INET6, &six.sin6_addr, host, sizeof host);
            *out_port = ntohs(six.sin6_port);
            snprintf(out_text, size, "[%s]:%u", host, *out_port);
            return true;
        }
        four.sin_port = six.sin6_port;
        memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
    } else {
        return false;
    }
    inet_ntop(AF_INET, &four.sin_addr, host, sizeof host);
    *out_port = ntohs(four.sin_port);
    snprintf(out_text, size, "%s:%u", host, *out_port);
    return true;
}

static void callers_get_address(const struct sockaddr_storage *address, uint8_t out[16]) {
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    memset(out, 0, 16);
    if (address->ss_family == AF_INET) {
        memcpy(&four, address, sizeof four);
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &four.sin_addr, 4);
    } else {
        memcpy(&six, address, sizeof six);
        memcpy(out, &six.sin6_addr, 16);
    }
}

// ---- places, with the lock held

static uint64_t callers_get_cookie(int descriptor) {
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return 0;
    return cookie;
}

static bool caller_is_there(const caller_place *place) {
    return callers_get_cookie(place->descriptor) == place->cookie;
}

static uint32_t caller_index(const caller_place *place) {
    return (uint32_t)(place - callers.places);
}

static void caller_link(callers_port *port, caller_place *place) {
    place->previous = port->newest;
    place->next = 0;
    if (port->newest != 0) callers.places[port->newest].next = caller_index(place);
    if (port->oldest == 0) port->oldest = caller_index(place);
    port->newest = caller_index(place);
}

static void caller_unlink(callers_port *port, const caller_place *place) {
    if (place->previous != 0) callers.places[place->previous].next = place->next;
    if (place->next != 0) callers.places[place->next].previous = place->previous;
    if (port->oldest == caller_index(place)) port->oldest = place->next;
    if (port->newest == caller_index(place)) port->newest = place->previous;
}

// Frees the place of one that is gone. What is read from its descriptor is another's.
static void caller_leave(caller_place *place) {
    callers_port *port = &callers.ports[place->port_index];
    uint32_t index = caller_index(place);
    (void)atomic_compare_exchange_strong(&callers.place_of[place->descriptor], &index, 0);
    atomic_fetch_add(&place->state, UINT64_C(1) << 32); // those who name it mean another
    caller_unlink(port, place);
    port->count -= 1;
    if (place->is_stranger) {
        port->stranger_count -= 1;
        port->gone_count += 1;
    }
    place->next = callers.free;
    callers.free = caller_index(place);
}

static void callers_sweep(callers_port *port, bool is_for_strangers) {
    for (uint32_t at = port->oldest, next; at != 0; at = next) {
        caller_place *place = &callers.places[at];
        next = place->next;
        if (is_for_strangers && !place->is_stranger) continue;
        if (!caller_is_there(place)) caller_leave(place);
    }
}

// The socket ends, and whoever reads from it learns that; it is theirs to close. They may do so
// just now, and its number may be another socket's at once: so one of our own is looked at, and
// ended. Where there is no number left, the moment between both is the risk.
static void caller_hang_up(const caller_place *place) {
    const int own = fcntl(place->descriptor, F_DUPFD_CLOEXEC, 0);
    const int descriptor = own >= 0 ? own : place->descriptor;
    if (callers_get_cookie(descriptor) == place->cookie) (void)shutdown(descriptor, SHUT_RDWR);
    if (own >= 0) close(own);
}

// ---- who may enter

typedef struct callers_tally {
    uint32_t count, stranger_count; // of one address
    caller_place *oldest;           // stranger of it
    caller_place *oldest_of_all;
} callers_tally;

static callers_tally callers_count(const callers_port *port, const uint8_t address[16]) {
    callers_tally tally = {0};
    for (uint32_t at = port->oldest; at != 0; at = callers.places[at].next) {
        caller_place *place = &callers.places[at];
        const bool is_alike = memcmp(place->address, address, 16) == 0;
        if (is_alike) tally.count += 1;
        if (!place->is_stranger) continue;
        if (tally.oldest_of_all == NULL) tally.oldest_of_all = place;
        if (!is_alike) continue;
        tally.stranger_count += 1;
        if (tally.oldest == NULL) tally.oldest = place;
    }
    return tally;
}

// Writes why there is no room for one more, and who is to make room. False: there is room.
static bool callers_is_full(const callers_port *port, const uint8_t address[16], char *out_reason,
                            size_t size, caller_place **out_leaving) {
    const pen_callers_limits *limits = &port->limits;
    // who is far from all limits is not counted one by one
    if (port->count < limits->callers && port->count < limits->callers_of_one &&
        port->stranger_count < limits->strangers &&
        port->stranger_count < limits->strangers_of_one) {
        return false;
    }
    const callers_tally tally = callers_count(port, address);
    *out_leaving = tally.oldest;
    if (tally.count >= limits->callers_of_one) {
        snprintf(out_reason, size, "its address has %u connections, the most for one", tally.count);
    } else if (tally.stranger_count >= limits->strangers_of_one) {
        snprintf(out_reason, size,
                 "its address has %u connections that have not said who they are, the most for one",
                 tally.stranger_count);
    } else if (port->stranger_count >= limits->strangers) {
        *out_leaving = tally.oldest_of_all;
        snprintf(out_reason, size,
                 "there are %u connections that have not said who they are, the most in all",
                 port->stranger_count);
    } else if (port->count >= limits->callers) {
        *out_leaving = tally.oldest_of_all;
        snprintf(out_reason, size, "there are %u connections, the most in all", port->count);
    } else {
        return false;
    }
    return true;
}

// Those who are gone make room; and so does the oldest stranger, for who comes next: strangers who
// stay silent cannot keep others out. One who has only just come may be about to speak.
static bool callers_has_room(callers_port *port, const uint8_t address[16], char *out_reason,
                             size_t size) {
    caller_place *leaving = NULL;
    if (!callers_is_full(port, address, out_reason, size, &leaving)) return true;
    callers_sweep(port, false);
    if (!callers_is_full(port, address, out_reason, size, &leaving)) return true;
    if (leaving != NULL && pen_clock_seconds() - leaving->came_at > CALLERS_MOMENT_SECONDS) {
        caller_hang_up(leaving);
    }
    return false;
}

static caller_place *callers_take_place(void) {
    if (callers.free != 0) {
        caller_place *place = &callers.places[callers.free];
        callers.free = place->next;
        return place;
    }
    if (callers.used == CALLERS_PLACES) return NULL;
    return &callers.places[++callers.used];
}

// A place for a new caller, unless there are too many; then whoever listens is told. The descriptor
// may have been another caller's, who is gone.
static bool callers_enter(callers_port *port, int descriptor, uint64_t cookie,
                          const struct sockaddr_storage *address) {
    char text[PEN_CALLER_TEXT_LIMIT], reason[200];
    uint16_t from;
    uint8_t bytes[16];
    if (!pen_caller_write(address, text, sizeof text, &from)) return true;
    callers_get_address(address, bytes);
    const uint32_t before = atomic_load(&callers.place_of[descriptor]);
    if (before != 0) caller_leave(&callers.places[before]);
    caller_place *place = NULL;
    if (callers_has_room(port, bytes, reason, sizeof reason)) {
        place = callers_take_place();
        if (place == NULL) snprintf(reason, sizeof reason, "there are too many connections");
    }
    if (place == NULL) {
        port->limits.refused(port->limits.context, text, reason);
        return false;
    }
    place->descriptor = descriptor;
    place->is_stranger = true;
    place->port_index = (uint32_t)(port - callers.ports);
    place->cookie = cookie;
    place->came_at = pen_clock_seconds();
    memcpy(place->address, bytes, sizeof bytes);
    memcpy(place->text, text, sizeof text);
    place->streams = pen_stream_count_begin();
    atomic_store(&place->stream_count, 0);
    const uint64_t serial = (atomic_load(&place->state) >> 32) + 1;
    atomic_store(&place->state, serial << 32 | port->limits.stranger_bytes);
    caller_link(port, place);
    port->count += 1;
    port->stranger_count += 1;
    atomic_store(&callers.place_of[descriptor], caller_index(place));
    return true;
}

static callers_port *callers_find_port(uint16_t port) {
    for (uint32_t i = 0; port != 0 && i < callers.port_count; i++) {
        if (callers.ports[i].port == port) return &callers.ports[i];
    }
    return NULL;
}

bool pen_callers_may_enter(int listener, int descriptor) {
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_size = sizeof here, there_size = sizeof there;
    char text[PEN_CALLER_TEXT_LIMIT];
    uint16_t port;
    bool may = true;
    if (descriptor < 0 || descriptor >= (int)PEN_CALLERS_DESCRIPTORS) return true;
    if (getsockname(listener, (struct sockaddr *)&here, &here_size) != 0) return true;
    if (!pen_caller_write(&here, text, sizeof text, &port)) return true;
    pthread_mutex_lock(&callers.lock);
    callers_port *known = callers_find_port(port);
    if (known != NULL && getpeername(descriptor, (struct sockaddr *)&there, &there_size) == 0) {
        may = callers_enter(known, descriptor, callers_get_cookie(descriptor), &there);
    }
    pthread_mutex_unlock(&callers.lock);
    return may;
}

// ---- what they send

// Hangs up on one who has sent too much, unless the descriptor has become another's. True: it has.
static bool caller_is_other(caller_place *place, int descriptor, bool has_streams) {
    const bool is_other = callers_get_cookie(descriptor) != place->cookie;
    pthread_mutex_lock(&callers.lock);
    if (is_other) {
        uint32_t index = caller_index(place);
        (void)atomic_compare_exchange_strong(&callers.place_of[descriptor], &index, 0);
    } else if (callers.ports[place->port_index].port != 0) { // it is not forgotten meanwhile
        const pen_callers_limits *limits = &callers.ports[place->port_index].limits;
        const uint32_t bytes = place->is_stranger ? limits->stranger_bytes : limits->known_bytes;
        char reason[200];
        if (has_streams) {
            snprintf(reason, sizeof reason, "it opened more than %u streams%s", limits->streams,
                     place->is_stranger ? " without saying who it is" : " and said nothing");
        } else {
            snprintf(reason, sizeof reason, "it sent %u KiB %s", bytes >> 10,
                     place->is_stranger ? "without saying who it is" : "that are no message");
        }
        limits->refused(limits->context, place->text, reason);
        callers.ports[place->port_index].gone_count += CALLERS_TRIM_COUNT;
        caller_hang_up(place);
    }
    pthread_mutex_unlock(&callers.lock);
    return is_other;
}

// Cuts what is to be read to `most` bytes.
static void callers_shorten(struct msghdr *message, size_t most,
                            struct iovec parts[CALLERS_SHORT_PARTS]) {
    size_t sum = 0, count = 0;
    for (; count < message->msg_iovlen && count < CALLERS_SHORT_PARTS && sum < most; count++) {
        parts[count] = message->msg_iov[count];
        if (parts[count].iov_len > most - sum) parts[count].iov_len = most - sum;
        sum += parts[count].iov_len;
    }
    message->msg_iov = parts;
    message->msg_iovlen = count;
}

static size_t callers_room(const struct msghdr *message) {
    size_t sum = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        sum += message->msg_iov[i].iov_len;
    return sum;
}

// How many streams are opened in what was read.
static uint32_t caller_count_streams(caller_place *place, const struct msghdr *message,
                                     size_t count) {
    uint32_t opened = 0;
    for (size_t i = 0; i < message->msg_iovlen && count > 0; i++) {
        const struct iovec *part = &message->msg_iov[i];
        const size_t here = part->iov_len < count ? part->iov_len : count;
        opened += pen_stream_count_add(&place->streams, part->iov_base, here);
        count -= here;
    }
    return opened;
}

// Never reads more than may come. What was read of too many streams is not shown to the reader.
static ssize_t caller_receive(caller_place *place, int descriptor, struct msghdr *message,
                              int flags) {
    struct iovec parts[CALLERS_SHORT_PARTS];
    struct msghdr shorter = *message;
    const pen_callers_limits *limits = &callers.ports[place->port_index].limits;
    uint64_t state = atomic_load(&place->state);
    if ((state & CALLERS_LEFT_MASK) == 0) {
        if (caller_is_other(place, descriptor, false)) {
            return syscall(SYS_recvmsg, descriptor, message, flags);
        }
        errno = ECONNRESET;
        return -1;
    }
    if (callers_room(message) > (state & CALLERS_LEFT_MASK)) {
        callers_shorten(&shorter, state & CALLERS_LEFT_MASK, parts);
    }
    const ssize_t count = syscall(SYS_recvmsg, descriptor, &shorter, flags);
    message->msg_namelen = shorter.msg_namelen;
    message->msg_controllen = shorter.msg_controllen;
    message->msg_flags = shorter.msg_flags;
    if (count <= 0) return count;
    uint64_t spent;
    do {
        const uint64_t left = state & CALLERS_LEFT_MASK;
        spent = state - ((uint64_t)count < left ? (uint64_t)count : left);
    } while (!atomic_compare_exchange_weak(&place->state, &state, spent));
    if (limits->is_encrypted) return count;
    const uint32_t opened = caller_count_streams(place, &shorter, (size_t)count);
    if (opened == 0) return count;
    const uint32_t before = atomic_fetch_add(&place->stream_count, opened);
    if (before + opened <= limits->streams) return count;
    if (caller_is_other(place, descriptor, true)) return count;
    errno = ECONNRESET;
    return -1;
}

// Its name as the linker sees it, which replaces the C library's.
ssize_t callers_receive(int descriptor, struct msghdr *message, int flags) __asm__("recvmsg");

ssize_t callers_receive(int descriptor, struct msghdr *message, int flags) {
    if (descriptor >= 0 && descriptor < (int)PEN_CALLERS_DESCRIPTORS && (flags & MSG_PEEK) == 0) {
        const uint32_t place =
            atomic_load_explicit(&callers.place_of[descriptor], memory_order_acquire);
        if (place != 0) {
            return caller_receive(&callers.places[place], descriptor, message, flags);
        }
    }
    return syscall(SYS_recvmsg, descriptor, message, flags);
}

// ---- ports

bool pen_callers_watch(uint16_t port, const pen_callers_limits *limits) {
    pthread_mutex_lock(&callers.lock);
    uint32_t index = 0;
    while (index < callers.port_count && callers.ports[index].port != 0)
        index += 1;
    const bool has_room = index < CALLERS_PORTS;
    if (has_room) {
        callers.ports[index] = (callers_port){.port = port, .limits = *limits};
        if (index == callers.port_count) callers.port_count += 1;
    }
    pthread_mutex_unlock(&callers.lock);
    return has_room;
}

void pen_callers_forget(uint16_t port) {
    pthread_mutex_lock(&callers.lock);
    callers_port *known = callers_find_port(port);
    while (known != NULL && known->oldest != 0)
        caller_leave(&callers.places[known->oldest]);
    if (known != NULL) known->port = 0;
    pthread_mutex_unlock(&callers.lock);
}

// A stranger may stay silent for as long as limits say, though nobody waits for its place. What
// gRPC took for strangers lies in the heap, which keeps what is freed (process_heap.c): it goes
// back to the system when many are gone.
void pen_callers_tick(uint16_t port) {
    const double now = pen_clock_seconds();
    bool is_due = false;
    pthread_mutex_lock(&callers.lock);
    callers_port *known = callers_find_port(port);
    if (known != NULL && known->stranger_count + known->gone_count > 0) {
        callers_sweep(known, true);
        for (uint32_t at = known->oldest; at != 0; at = callers.places[at].next) {
            const caller_place *place = &callers.places[at];
            if (!place->is_stranger) continue;
            if (now - place->came_at < known->limits.stranger_seconds) break; // the rest is younger
            caller_hang_up(place);
        }
        is_due = known->gone_count >= CALLERS_TRIM_COUNT &&
                 now - known->trimmed_at > CALLERS_TRIM_SECONDS;
        if (is_due) {
            known->gone_count = 0;
            known->trimmed_at = now;
        }
    }
    pthread_mutex_unlock(&callers.lock);
    if (is_due) pen_memory_trim();
}

// ---- callers

pen_caller pen_callers_find(uint16_t port, const char *address) {
    pen_caller found = {0};
    char text[PEN_CALLER_TEXT_LIMIT];
    const char *end = strchr(address, '%') != NULL ? strchr(address, ']') : NULL;
    snprintf(text, sizeof text, "%.*s%s", (int)strcspn(address, "%"), address,
             end != NULL ? end : "");
    pthread_mutex_lock(&callers.lock);
    const callers_port *known = callers_find_port(port);
    for (uint32_t at = known != NULL ? known->newest : 0; at != 0;
         at = callers.places[at].previous) {
        const caller_place *place = &callers.places[at];
        if (strcmp(place->text, text) != 0) continue;
        found = (pen_caller){at, (uint32_t)(atomic_load(&place->state) >> 32),
                             known->limits.known_bytes};
        break;
    }
    pthread_mutex_unlock(&callers.lock);
    return found;
}

// Gives it all that one who is known may send, if it is still there.
void pen_caller_was_heard(pen_caller caller) {
    if (caller.place == 0) return;
    caller_place *place = &callers.places[caller.place];
    uint64_t state = atomic_load_explicit(&place->state, memory_order_relaxed);
    const uint64_t full = (uint64_t)caller.serial << 32 | caller.known_bytes;
    do {
        if (state >> 32 != caller.serial) return;
    } while (!atomic_compare_exchange_weak(&place->state, &state, full));
    atomic_store_explicit(&place->stream_count, 0, memory_order_relaxed);
}

void pen_caller_has_ended(pen_caller caller) {
    if (caller.place == 0) return;
    caller_place *place = &callers.places[caller.place];
    if (atomic_load(&place->state) >> 32 != caller.serial) return;
    uint32_t count = atomic_load(&place->stream_count);
    while (count > 0 && !atomic_compare_exchange_weak(&place->stream_count, &count, count - 1)) {
    }
}

void pen_caller_is_known(pen_caller caller) {
    if (caller.place == 0) return;
    pthread_mutex_lock(&callers.lock);
    caller_place *place = &callers.places[caller.place];
    if (atomic_load(&place->state) >> 32 == caller.serial && place->is_stranger) {
        place->is_stranger = false;
        callers.ports[place->port_index].stranger_count -= 1;
    }
    pthread_mutex_unlock(&callers.lock);
    pen_caller_was_heard(caller);
}
