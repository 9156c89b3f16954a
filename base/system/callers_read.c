#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system/callers_inside.h"

#define CALLERS_SHORT_PARTS 64u // pieces that a read is cut to
// What is read at once of a client, whose streams are counted only then: a few dozen heads of one
// that is not known, some thousands of another.
#define CALLERS_STRANGER_PIECE_BYTES 2048u
#define CALLERS_KNOWN_PIECE_BYTES 65536u
// What a call sends beside its message: heads, and before it is taken what HTTP/2 grants each
// stream from the start, 65,535 bytes.
#define CALLERS_CALL_BYTES 81920u
#define CALLERS_LENT_PIECE_BYTES (UINT64_C(1) << 20)
#define CALLERS_STUCK_SECONDS 0.1
#define CALLERS_SECOND_BYTES 4096u

static const pen_callers_limits *caller_limits(const caller_place *place) {
    return &pen_callers_all.ports[place->port_index].limits;
}

// ---- what may come

static void caller_add(caller_place *place, uint64_t bytes, uint64_t most) {
    uint64_t state = atomic_load(&place->state), changed;
    do {
        const uint64_t left = state & CALLERS_LEFT_MASK;
        const uint64_t sum = left + bytes < most ? left + bytes : most;
        changed = (state & ~CALLERS_LEFT_MASK) | (left < sum ? sum : left);
    } while (!atomic_compare_exchange_weak(&place->state, &state, changed));
}

// Takes away `bytes`, and what is above `most`.
static void caller_subtract(caller_place *place, uint64_t bytes, uint64_t most) {
    uint64_t state = atomic_load(&place->state), changed;
    do {
        uint64_t left = state & CALLERS_LEFT_MASK;
        left = left > bytes ? left - bytes : 0;
        changed = (state & ~CALLERS_LEFT_MASK) | (left < most ? left : most);
    } while (!atomic_compare_exchange_weak(&place->state, &state, changed));
}

// Has what waits read. gRPC looks at a socket again when the system tells of it; setting the least
// number of bytes to tell of, which is 1 already, has it told anew.
static void caller_wake(caller_place *place) {
    const int least = 1;
    if (atomic_exchange(&place->waits_from, 0.0) == 0.0) return;
    (void)setsockopt(place->descriptor, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

static bool caller_may_come(const caller_place *place) {
    if ((atomic_load(&place->state) & CALLERS_LEFT_MASK) == 0) return false;
    return atomic_load(&place->stream_count) <= atomic_load(&place->streams_most);
}

// With the lock held. NULL: it is gone, or no client.
static caller_place *caller_find_client(pen_caller caller) {
    caller_place *place = &pen_callers_all.places[caller.place];
    if (caller.place == 0 || pen_caller_serial(place) != caller.serial) return NULL;
    return caller_limits(place)->message_bytes > 0 ? place : NULL;
}

// What may come at most, with the calls that are open.
static uint64_t caller_most(const caller_place *place) {
    const pen_callers_limits *limits = caller_limits(place);
    const uint64_t most =
        limits->stranger_bytes + place->lent_bytes + place->open_count * limits->message_bytes;
    return most < CALLERS_LEFT_MASK ? most : CALLERS_LEFT_MASK;
}

void pen_caller_give_back(caller_place *place) {
    pen_callers_all.ports[place->port_index].lent_bytes -= place->lent_bytes;
    place->lent_bytes = 0;
}

void pen_caller_let_all(caller_place *place) {
    caller_add(place, CALLERS_LEFT_MASK, CALLERS_LEFT_MASK);
    caller_wake(place);
}

static bool callers_have_to_lend(const callers_port *port) {
    return port->lent_bytes + CALLERS_LENT_PIECE_BYTES <= port->limits.lent_bytes;
}

// Streams that gRPC refused, or that were reset before they became calls, never end here; and pings
// are of no call.
void pen_caller_refresh(caller_place *place) {
    atomic_store(&place->stream_count, place->call_count);
    if (!place->is_stranger) caller_add(place, CALLERS_SECOND_BYTES, caller_most(place));
    if (atomic_load(&place->waits_from) != 0 && caller_may_come(place)) caller_wake(place);
}

// What a message has above its limit is lent to one who is known, as long as there is some: then
// gRPC has it whole, and refuses it by its name. So is what is under way of a call that was ended.
static bool caller_borrow(caller_place *place) {
    callers_port *port = &pen_callers_all.ports[place->port_index];
    pthread_mutex_lock(&pen_callers_all.lock);
    const bool may = !place->is_stranger && callers_have_to_lend(port) &&
                     (atomic_load(&place->state) & CALLERS_LEFT_MASK) == 0;
    if (may) {
        port->lent_bytes += CALLERS_LENT_PIECE_BYTES;
        place->lent_bytes += CALLERS_LENT_PIECE_BYTES;
        caller_add(place, CALLERS_LENT_PIECE_BYTES, caller_most(place));
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
    return may;
}

bool pen_caller_is_stuck(pen_caller caller) {
    pthread_mutex_lock(&pen_callers_all.lock);
    const caller_place *place = caller_find_client(caller);
    const double from = place == NULL ? 0 : atomic_load(&place->waits_from);
    const bool is_stuck = from != 0 && place->open_count > 0 &&
                          (atomic_load(&place->state) & CALLERS_LEFT_MASK) == 0 &&
                          pen_clock_seconds() - from > CALLERS_STUCK_SECONDS;
    pthread_mutex_unlock(&pen_callers_all.lock);
    return is_stuck;
}

void pen_caller_has_called(pen_caller caller) {
    pthread_mutex_lock(&pen_callers_all.lock);
    caller_place *place = caller_find_client(caller);
    if (place != NULL) place->call_count += 1;
    pthread_mutex_unlock(&pen_callers_all.lock);
}

void pen_caller_may_send(pen_caller caller) {
    pthread_mutex_lock(&pen_callers_all.lock);
    caller_place *place = caller_find_client(caller);
    if (place != NULL) {
        if (place->open_count++ == 0) pen_caller_give_back(place);
        caller_add(place, caller_limits(place)->message_bytes, caller_most(place));
        caller_wake(place);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
}

// Frames and records are a hundredth of a message at most. Once no call is open, all was understood
// that came.
void pen_caller_has_sent(pen_caller caller, uint64_t bytes) {
    pthread_mutex_lock(&pen_callers_all.lock);
    caller_place *place = caller_find_client(caller);
    if (place != NULL && place->open_count > 0) {
        const uint64_t most = caller_limits(place)->message_bytes;
        const uint64_t spent = bytes + bytes / 64;
        place->open_count -= 1;
        if (place->open_count == 0) pen_caller_give_back(place);
        caller_subtract(place, spent < most ? most - spent : 0, caller_most(place));
        if (place->open_count == 0) caller_add(place, caller_most(place), caller_most(place));
        caller_wake(place);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
}

// Gives it all that one who is known may send, if it is still there.
void pen_caller_was_heard(pen_caller caller) {
    if (caller.place == 0) return;
    caller_place *place = &pen_callers_all.places[caller.place];
    uint64_t state = atomic_load_explicit(&place->state, memory_order_relaxed);
    const uint64_t full = (uint64_t)caller.serial << CALLERS_LEFT_BITS | caller.known_bytes;
    do {
        if (state >> CALLERS_LEFT_BITS != caller.serial) return;
    } while (!atomic_compare_exchange_weak(&place->state, &state, full));
    atomic_store_explicit(&place->stream_count, 0, memory_order_relaxed);
}

void pen_caller_has_ended(pen_caller caller) {
    if (caller.place == 0) return;
    caller_place *place = &pen_callers_all.places[caller.place];
    if (pen_caller_serial(place) != caller.serial) return;
    uint32_t count = atomic_load(&place->stream_count);
    while (count > 0 && !atomic_compare_exchange_weak(&place->stream_count, &count, count - 1)) {
    }
    if (caller_limits(place)->message_bytes == 0) return;
    pthread_mutex_lock(&pen_callers_all.lock);
    place = caller_find_client(caller);
    if (place != NULL) {
        if (place->call_count > 0) place->call_count -= 1;
        caller_add(place, CALLERS_CALL_BYTES, caller_most(place));
        caller_wake(place);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
}

// ---- who sends too much

// Whether the descriptor has become another socket's, which is not counted.
static bool caller_has_become_other(caller_place *place, int descriptor) {
    uint32_t index = pen_caller_index(place);
    if (pen_caller_cookie(descriptor) == place->cookie) return false;
    (void)atomic_compare_exchange_strong(&pen_callers_all.place_of[descriptor], &index, 0);
    return true;
}

// Hangs up on one who has sent too much, unless the descriptor has become another's. True: it has.
static bool caller_is_other(caller_place *place, int descriptor, bool has_streams) {
    if (caller_has_become_other(place, descriptor)) return true;
    pthread_mutex_lock(&pen_callers_all.lock);
    if (pen_callers_all.ports[place->port_index].port != 0) { // not forgotten meanwhile
        const pen_callers_limits *limits = caller_limits(place);
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
        pen_callers_all.ports[place->port_index].gone_count += CALLERS_TRIM_COUNT;
        pen_caller_hang_up(place);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
    return false;
}

// Whether nothing is read of a client now. It is woken when that changes: what has changed since it
// said that it waits is looked at here.
static bool caller_must_wait(caller_place *place) {
    double never = 0;
    if (caller_may_come(place) || caller_borrow(place)) return false;
    (void)atomic_compare_exchange_strong(&place->waits_from, &never, pen_clock_seconds());
    if (!caller_may_come(place)) return true;
    atomic_store(&place->waits_from, 0.0);
    return false;
}

// ---- reading

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

// Reads no more than `most`, and counts it.
static ssize_t caller_receive_some(caller_place *place, int descriptor, struct msghdr *message,
                                   int flags, uint64_t most, uint32_t *out_opened) {
    struct iovec parts[CALLERS_SHORT_PARTS];
    struct msghdr shorter = *message;
    *out_opened = 0;
    if (callers_room(message) > most) callers_shorten(&shorter, most, parts);
    const ssize_t count = syscall(SYS_recvmsg, descriptor, &shorter, flags);
    message->msg_namelen = shorter.msg_namelen;
    message->msg_controllen = shorter.msg_controllen;
    message->msg_flags = shorter.msg_flags;
    if (count <= 0) return count;
    caller_subtract(place, (uint64_t)count, CALLERS_LEFT_MASK);
    if (caller_limits(place)->is_encrypted) return count;
    *out_opened = caller_count_streams(place, &shorter, (size_t)count);
    return count;
}

// What may not come yet is left to the system, as if nothing had come.
static ssize_t caller_receive_client(caller_place *place, int descriptor, struct msghdr *message,
                                     int flags) {
    const pen_callers_limits *limits = caller_limits(place);
    uint32_t opened;
    if (atomic_load(&place->is_over) || !caller_may_come(place)) {
        if (caller_has_become_other(place, descriptor)) {
            return syscall(SYS_recvmsg, descriptor, message, flags);
        }
        const bool is_over = atomic_load(&place->is_over);
        if (is_over || caller_must_wait(place)) {
            errno = is_over ? ECONNRESET : EAGAIN;
            return -1;
        }
    }
    const bool is_known = atomic_load(&place->streams_most) != limits->streams;
    const uint64_t piece = is_known ? CALLERS_KNOWN_PIECE_BYTES : CALLERS_STRANGER_PIECE_BYTES;
    uint64_t most = atomic_load(&place->state) & CALLERS_LEFT_MASK;
    if (!limits->is_encrypted && piece < most) most = piece;
    const ssize_t count = caller_receive_some(place, descriptor, message, flags, most, &opened);
    if (opened > 0) atomic_fetch_add(&place->stream_count, opened);
    return count;
}

// Never reads more than may come. What was read of too many streams is not shown to the reader.
static ssize_t caller_receive(caller_place *place, int descriptor, struct msghdr *message,
                              int flags) {
    const pen_callers_limits *limits = caller_limits(place);
    uint32_t opened;
    if (limits->message_bytes > 0) {
        return caller_receive_client(place, descriptor, message, flags);
    }
    const uint64_t left = atomic_load(&place->state) & CALLERS_LEFT_MASK;
    if (left == 0) {
        if (caller_is_other(place, descriptor, false)) {
            return syscall(SYS_recvmsg, descriptor, message, flags);
        }
        errno = ECONNRESET;
        return -1;
    }
    const ssize_t count = caller_receive_some(place, descriptor, message, flags, left, &opened);
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
            atomic_load_explicit(&pen_callers_all.place_of[descriptor], memory_order_acquire);
        if (place != 0) {
            return caller_receive(&pen_callers_all.places[place], descriptor, message, flags);
        }
    }
    return syscall(SYS_recvmsg, descriptor, message, flags);
}
