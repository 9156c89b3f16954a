#include "base/system/callers.h"
#include "base/system/callers_inside.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define CALLERS_TRIM_SECONDS 5.0
#define CALLERS_MOMENT_SECONDS 1.0 // within which a caller says who it is, as a rule

struct pen_callers_all pen_callers_all = {.lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

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

uint64_t pen_caller_cookie(int descriptor) {
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return 0;
    return cookie;
}

static bool caller_is_there(const caller_place *place) {
    return pen_caller_cookie(place->descriptor) == place->cookie;
}

uint32_t pen_caller_index(const caller_place *place) {
    return (uint32_t)(place - pen_callers_all.places);
}

uint32_t pen_caller_serial(const caller_place *place) {
    return (uint32_t)(atomic_load(&place->state) >> CALLERS_LEFT_BITS);
}

static void caller_link(callers_port *port, caller_place *place) {
    place->previous = port->newest;
    place->next = 0;
    if (port->newest != 0) pen_callers_all.places[port->newest].next = pen_caller_index(place);
    if (port->oldest == 0) port->oldest = pen_caller_index(place);
    port->newest = pen_caller_index(place);
}

static void caller_unlink(callers_port *port, const caller_place *place) {
    if (place->previous != 0) pen_callers_all.places[place->previous].next = place->next;
    if (place->next != 0) pen_callers_all.places[place->next].previous = place->previous;
    if (port->oldest == pen_caller_index(place)) port->oldest = place->next;
    if (port->newest == pen_caller_index(place)) port->newest = place->previous;
}

// Frees the place of one that is gone. What is read from its descriptor is another's.
void pen_caller_leave(caller_place *place) {
    callers_port *port = &pen_callers_all.ports[place->port_index];
    uint32_t index = pen_caller_index(place);
    (void)atomic_compare_exchange_strong(&pen_callers_all.place_of[place->descriptor], &index, 0);
    atomic_fetch_add(&place->state, CALLERS_SERIAL_ONE); // those who name it mean another
    pen_caller_give_back(place);
    caller_unlink(port, place);
    port->count -= 1;
    if (place->is_stranger) {
        port->stranger_count -= 1;
        port->gone_count += 1;
    }
    place->next = pen_callers_all.free;
    pen_callers_all.free = pen_caller_index(place);
}

static void callers_sweep(callers_port *port, bool is_for_strangers) {
    for (uint32_t at = port->oldest, next; at != 0; at = next) {
        caller_place *place = &pen_callers_all.places[at];
        next = place->next;
        if (is_for_strangers && !place->is_stranger) continue;
        if (!caller_is_there(place)) pen_caller_leave(place);
    }
}

// The socket ends, and whoever reads from it learns that; it is theirs to close. They may do so
// just now, and its number may be another socket's at once: so one of our own is looked at, and
// ended. Where there is no number left, the moment between both is the risk.
void pen_caller_hang_up(caller_place *place) {
    atomic_store(&place->is_over, true);
    const int own = fcntl(place->descriptor, F_DUPFD_CLOEXEC, 0);
    const int descriptor = own >= 0 ? own : place->descriptor;
    if (pen_caller_cookie(descriptor) == place->cookie) (void)shutdown(descriptor, SHUT_RDWR);
    if (own >= 0) (void)syscall(SYS_close, own);
}

// ---- who may enter

typedef struct callers_tally {
    uint32_t count, stranger_count; // of one address
    caller_place *oldest;           // stranger of it
    caller_place *oldest_of_all;
    caller_place *idlest; // known client of it
    caller_place *idlest_of_all;
} callers_tally;

// With a call that may send it is not idle.
static void caller_compare_idle(caller_place *place, caller_place **idlest) {
    if (place->open_count > 0) return;
    if (*idlest == NULL || place->heard_at < (*idlest)->heard_at) *idlest = place;
}

static callers_tally callers_count(const callers_port *port, const uint8_t address[16]) {
    callers_tally tally = {0};
    for (uint32_t at = port->oldest; at != 0; at = pen_callers_all.places[at].next) {
        caller_place *place = &pen_callers_all.places[at];
        const bool is_alike = memcmp(place->address, address, 16) == 0;
        if (is_alike) tally.count += 1;
        if (!place->is_stranger) {
            if (is_alike) caller_compare_idle(place, &tally.idlest);
            caller_compare_idle(place, &tally.idlest_of_all);
            continue;
        }
        if (tally.oldest_of_all == NULL) tally.oldest_of_all = place;
        if (!is_alike) continue;
        tally.stranger_count += 1;
        if (tally.oldest == NULL) tally.oldest = place;
    }
    return tally;
}

// Who is to make room: the one that has been there for longest of strangers, or the one that has
// been silent for longest of known clients. One who has only just come may be about to speak.
static caller_place *callers_choose(const callers_port *port, caller_place *oldest,
                                    caller_place *idlest) {
    const double now = pen_clock_seconds(), idle_seconds = port->limits.idle_seconds;
    if (oldest != NULL && now - oldest->came_at > CALLERS_MOMENT_SECONDS) return oldest;
    if (idlest == NULL || idle_seconds == 0) return NULL;
    return now - idlest->heard_at > idle_seconds ? idlest : NULL;
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
    if (tally.count >= limits->callers_of_one) {
        *out_leaving = callers_choose(port, tally.oldest, tally.idlest);
        snprintf(out_reason, size, "its address has %u connections, the most for one", tally.count);
    } else if (tally.stranger_count >= limits->strangers_of_one) {
        *out_leaving = callers_choose(port, tally.oldest, NULL);
        snprintf(out_reason, size,
                 "its address has %u connections that have not said who they are, the most for one",
                 tally.stranger_count);
    } else if (port->stranger_count >= limits->strangers) {
        *out_leaving = callers_choose(port, tally.oldest_of_all, NULL);
        snprintf(out_reason, size,
                 "there are %u connections that have not said who they are, the most in all",
                 port->stranger_count);
    } else if (port->count >= limits->callers) {
        *out_leaving = callers_choose(port, tally.oldest_of_all, tally.idlest_of_all);
        snprintf(out_reason, size, "there are %u connections, the most in all", port->count);
    } else {
        return false;
    }
    return true;
}

// Those who are gone make room; and so does one of those who are silent, for who comes next: they
// cannot keep others out.
static bool callers_has_room(callers_port *port, const uint8_t address[16], char *out_reason,
                             size_t size) {
    caller_place *leaving = NULL;
    if (!callers_is_full(port, address, out_reason, size, &leaving)) return true;
    callers_sweep(port, false);
    if (!callers_is_full(port, address, out_reason, size, &leaving)) return true;
    if (leaving != NULL) pen_caller_hang_up(leaving);
    return false;
}

static caller_place *callers_take_place(void) {
    if (pen_callers_all.free != 0) {
        caller_place *place = &pen_callers_all.places[pen_callers_all.free];
        pen_callers_all.free = place->next;
        return place;
    }
    if (pen_callers_all.used == CALLERS_PLACES) return NULL;
    return &pen_callers_all.places[++pen_callers_all.used];
}

// A place for a new caller, unless there are too many; then whoever listens is told. The descriptor
// may have been another caller's, who is gone.
bool pen_callers_enter(callers_port *port, int descriptor, const struct sockaddr_storage *address) {
    char text[PEN_CALLER_TEXT_LIMIT], reason[200];
    uint16_t from;
    uint8_t bytes[16];
    if (!pen_caller_write(address, text, sizeof text, &from)) return true;
    callers_get_address(address, bytes);
    const uint32_t before = atomic_load(&pen_callers_all.place_of[descriptor]);
    if (before != 0) pen_caller_leave(&pen_callers_all.places[before]);
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
    atomic_store(&place->port_index, (uint32_t)(port - pen_callers_all.ports));
    place->cookie = pen_caller_cookie(descriptor);
    place->came_at = pen_clock_seconds();
    memcpy(place->address, bytes, sizeof bytes);
    memcpy(place->text, text, sizeof text);
    place->streams = pen_stream_count_begin();
    place->call_count = place->open_count = 0;
    atomic_store(&place->stream_count, 0);
    atomic_store(&place->streams_most, port->limits.streams);
    atomic_store(&place->is_over, false);
    atomic_store(&place->waits_from, 0.0);
    const uint64_t serial = atomic_load(&place->state) & ~CALLERS_LEFT_MASK;
    atomic_store(&place->state, (serial + CALLERS_SERIAL_ONE) | port->limits.stranger_bytes);
    caller_link(port, place);
    port->count += 1;
    port->stranger_count += 1;
    atomic_store(&pen_callers_all.place_of[descriptor], pen_caller_index(place));
    return true;
}

static callers_port *callers_find_port(uint16_t port) {
    for (uint32_t i = 0; port != 0 && i < pen_callers_all.port_count; i++) {
        if (pen_callers_all.ports[i].port == port) return &pen_callers_all.ports[i];
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
    pthread_mutex_lock(&pen_callers_all.lock);
    callers_port *known = callers_find_port(port);
    if (known != NULL && getpeername(descriptor, (struct sockaddr *)&there, &there_size) == 0) {
        may = pen_callers_enter(known, descriptor, &there);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
    return may;
}

// The first stranger of a port that was not hung up on; NULL: there is none.
static caller_place *callers_find_oldest(const callers_port *port) {
    for (uint32_t at = port->oldest; at != 0; at = pen_callers_all.places[at].next) {
        caller_place *place = &pen_callers_all.places[at];
        if (place->is_stranger && !atomic_load(&place->is_over)) return place;
    }
    return NULL;
}

void pen_callers_make_room(void) {
    caller_place *oldest = NULL;
    pthread_mutex_lock(&pen_callers_all.lock);
    for (uint32_t i = 0; i < pen_callers_all.port_count; i++) {
        if (pen_callers_all.ports[i].port == 0) continue;
        caller_place *place = callers_find_oldest(&pen_callers_all.ports[i]);
        if (place == NULL) continue;
        if (oldest == NULL || place->came_at < oldest->came_at) oldest = place;
    }
    if (oldest != NULL && pen_clock_seconds() - oldest->came_at > CALLERS_MOMENT_SECONDS) {
        pen_caller_hang_up(oldest);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
}

// Its name as the linker sees it, which replaces the C library's.
int callers_close(int descriptor) __asm__("close");

// Whoever is gone leaves before its number can be another socket's, from which another thread reads
// at once. Under the lock, where somebody is refused, nobody's socket is closed.
int callers_close(int descriptor) {
    if (descriptor >= 0 && descriptor < (int)PEN_CALLERS_DESCRIPTORS &&
        atomic_load(&pen_callers_all.place_of[descriptor]) != 0 &&
        pthread_mutex_lock(&pen_callers_all.lock) == 0) {
        const uint32_t place = atomic_load(&pen_callers_all.place_of[descriptor]);
        if (place != 0) pen_caller_leave(&pen_callers_all.places[place]);
        pthread_mutex_unlock(&pen_callers_all.lock);
    }
    return (int)syscall(SYS_close, descriptor);
}

// ---- ports

bool pen_callers_watch(uint16_t port, const pen_callers_limits *limits) {
    pthread_mutex_lock(&pen_callers_all.lock);
    uint32_t index = 0;
    while (index < pen_callers_all.port_count && pen_callers_all.ports[index].port != 0)
        index += 1;
    const bool has_room = index < CALLERS_PORTS;
    if (has_room) {
        pen_callers_all.ports[index] = (callers_port){.port = port, .limits = *limits};
        if (index == pen_callers_all.port_count) pen_callers_all.port_count += 1;
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
    return has_room;
}

void pen_callers_forget(uint16_t port) {
    pthread_mutex_lock(&pen_callers_all.lock);
    callers_port *known = callers_find_port(port);
    while (known != NULL && known->oldest != 0)
        pen_caller_leave(&pen_callers_all.places[known->oldest]);
    if (known != NULL) known->port = 0;
    pthread_mutex_unlock(&pen_callers_all.lock);
}

// Hangs up on strangers who are late; those who came last are not looked at.
static void callers_end_late(callers_port *port, double now) {
    for (uint32_t at = port->oldest; at != 0; at = pen_callers_all.places[at].next) {
        caller_place *place = &pen_callers_all.places[at];
        if (!place->is_stranger) continue;
        if (now - place->came_at < port->limits.stranger_seconds) return;
        if (!atomic_load(&place->is_over)) pen_caller_hang_up(place);
    }
}

static void callers_refresh(callers_port *port) {
    for (uint32_t at = port->oldest; at != 0; at = pen_callers_all.places[at].next)
        pen_caller_refresh(&pen_callers_all.places[at]);
}

// A stranger may stay silent for as long as limits say, though nobody waits for its place. What
// gRPC took for strangers lies in the heap, which keeps what is freed (process_heap.c): it goes
// back to the system when many are gone.
void pen_callers_tick(uint16_t port) {
    const double now = pen_clock_seconds();
    bool is_due = false;
    pthread_mutex_lock(&pen_callers_all.lock);
    callers_port *known = callers_find_port(port);
    const bool has_clients = known != NULL && known->limits.message_bytes > 0;
    if (known != NULL && (known->stranger_count + known->gone_count > 0 || has_clients)) {
        callers_sweep(known, !has_clients);
        callers_end_late(known, now);
        if (has_clients) callers_refresh(known);
        is_due = known->gone_count >= CALLERS_TRIM_COUNT &&
                 now - known->trimmed_at > CALLERS_TRIM_SECONDS;
        if (is_due) {
            known->gone_count = 0;
            known->trimmed_at = now;
        }
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
    if (is_due) pen_memory_trim();
}

// ---- callers

void pen_caller_trim_scope(const char *address, char out_text[PEN_CALLER_TEXT_LIMIT]) {
    const char *end = strchr(address, '%') != NULL ? strchr(address, ']') : NULL;
    snprintf(out_text, PEN_CALLER_TEXT_LIMIT, "%.*s%s", (int)strcspn(address, "%"), address,
             end != NULL ? end : "");
}

pen_caller pen_callers_find(uint16_t port, const char *address) {
    pen_caller found = {0};
    char text[PEN_CALLER_TEXT_LIMIT];
    pen_caller_trim_scope(address, text);
    pthread_mutex_lock(&pen_callers_all.lock);
    const callers_port *known = callers_find_port(port);
    for (uint32_t at = known != NULL ? known->newest : 0; at != 0;
         at = pen_callers_all.places[at].previous) {
        const caller_place *place = &pen_callers_all.places[at];
        if (strcmp(place->text, text) != 0) continue;
        found = (pen_caller){at, pen_caller_serial(place), known->limits.known_bytes};
        break;
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
    return found;
}

void pen_caller_is_known(pen_caller caller) {
    if (caller.place == 0) return;
    pthread_mutex_lock(&pen_callers_all.lock);
    caller_place *place = &pen_callers_all.places[caller.place];
    callers_port *port = &pen_callers_all.ports[place->port_index];
    if (pen_caller_serial(place) == caller.serial && place->is_stranger) {
        place->is_stranger = false;
        port->stranger_count -= 1;
        atomic_store(&place->streams_most, port->limits.known_streams);
    }
    if (pen_caller_serial(place) == caller.serial) place->heard_at = pen_clock_seconds();
    const bool is_client = port->limits.message_bytes > 0;
    pthread_mutex_unlock(&pen_callers_all.lock);
    if (!is_client) pen_caller_was_heard(caller);
}
