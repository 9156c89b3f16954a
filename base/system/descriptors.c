#include "base/system/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/system/callers.h"

// More than one: while a caller is turned away, another thread may take what was set free.
#define DESCRIPTORS_SPARE_COUNT 4u

static struct {
    pthread_mutex_t lock;
    int spare[DESCRIPTORS_SPARE_COUNT]; // guarded by lock, as the rest
    uint32_t spare_count;
    uint64_t turned_away;
} descriptors = {.lock = PTHREAD_MUTEX_INITIALIZER};

// With the lock held.
static void descriptors_set_aside(void) {
    while (descriptors.spare_count < DESCRIPTORS_SPARE_COUNT) {
        const int spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (spare < 0) return;
        descriptors.spare[descriptors.spare_count++] = spare;
    }
}

void pen_descriptors_prepare(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < PEN_CALLERS_DESCRIPTORS) {
        limit.rlim_cur =
            limit.rlim_max < PEN_CALLERS_DESCRIPTORS ? limit.rlim_max : PEN_CALLERS_DESCRIPTORS;
        (void)setrlimit(RLIMIT_NOFILE, &limit); // else the limit stays what it is
    }
    pthread_mutex_lock(&descriptors.lock);
    descriptors_set_aside();
    pthread_mutex_unlock(&descriptors.lock);
}

static bool descriptors_is_want(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Takes a caller with a descriptor that was set aside, and hangs up. With the lock held. False:
// there is no such descriptor, or another thread took its place for a file of its own.
static bool descriptors_turn_away(int listener) {
    if (descriptors.spare_count == 0) return false;
    (void)close(descriptors.spare[--descriptors.spare_count]);
    const long caller = syscall(SYS_accept4, listener, NULL, NULL, O_CLOEXEC);
    if (caller < 0) return false;
    (void)close((int)caller);
    descriptors.turned_away += 1;
    pen_callers_make_room();
    return true;
}

static bool descriptors_is_somebody_waiting(int listener) {
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    return poll(&waiting, 1, 0) == 1;
}

// A caller's socket, or -1 and `errno`. Who waits is turned away until nobody does: a socket that
// is watched for edges (gRPC's are) tells of nobody who was there before. Where there is nothing to
// turn them away with, that is awaited for a tenth of a second; then the next caller wakes us.
// Callers that are one too many are closed, and the next one is taken.
static int descriptors_take(int listener, void *address, void *size, int flags) {
    const socklen_t room = size != NULL ? *(socklen_t *)size : 0;
    for (uint32_t tried = 0; tried < 100; tried++) {
        if (size != NULL) *(socklen_t *)size = room;
        const long caller = syscall(SYS_accept4, listener, address, size, flags);
        const int error = errno;
        if (caller >= 0 && !pen_callers_may_enter(listener, (int)caller)) {
            (void)close((int)caller);
            tried -= 1; // not for want of a descriptor
            continue;
        }
        if (caller >= 0 || !descriptors_is_want(error)) {
            descriptors_set_aside();
            errno = error;
            return (int)caller;
        }
        while (descriptors_is_somebody_waiting(listener) && descriptors_turn_away(listener)) {
            descriptors_set_aside();
        }
        descriptors_set_aside();
        if (!descriptors_is_somebody_waiting(listener)) break;
        pen_clock_pause(0.001);
    }
    errno = EAGAIN;
    return -1;
}

// Its name as the linker sees it: headers declare accept4 with a type of their own for `address`.
int descriptors_accept(int listener, void *address, void *size, int flags) __asm__("accept4");

static int descriptors_digits(uint64_t count) {
    int digits = 0;
    for (; count > 0; count /= 2)
        digits++;
    return digits;
}

// As accept4, one at a time: what is set free to turn a caller away is not for another caller.
// Sockets on which accept4 waits are left to the system.
int descriptors_accept(int listener, void *address, void *size, int flags) {
    const int mode = fcntl(listener, F_GETFL);
    if (mode < 0 || (mode & O_NONBLOCK) == 0) {
        return (int)syscall(SYS_accept4, listener, address, size, flags);
    }
    pthread_mutex_lock(&descriptors.lock);
    const uint64_t before = descriptors.turned_away;
    const int caller = descriptors_take(listener, address, size, flags);
    const int error = errno;
    const uint64_t count = descriptors.turned_away;
    pthread_mutex_unlock(&descriptors.lock);
    if (descriptors_digits(count) > descriptors_digits(before)) { // a flood is told in a few lines
        pen_log(PEN_LOG_WARNING,
                "no file descriptor is left: callers were turned away (%" PRIu64 " so far)", count);
    }
    errno = error;
    return caller;
}
