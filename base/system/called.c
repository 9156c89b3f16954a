#include "base/system/called.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/callers_inside.h"

#define CALLED_LIMIT 4096u // that are counted; more are not

static _Atomic bool called_is_watched;

// Only for want of room: then it is not counted.
static void called_refused(void *context, const char *address, const char *reason) {
    (void)context;
    (void)address;
    (void)reason;
}

// Whoever reads looks at the limits without the lock, but for stranger_bytes: those are set once.
void pen_called_watch(uint32_t stranger_bytes) {
    callers_port *port = &pen_callers_all.ports[CALLERS_CALLED];
    pthread_mutex_lock(&pen_callers_all.lock);
    if (!atomic_load(&called_is_watched)) {
        port->limits = (pen_callers_limits){.callers = CALLED_LIMIT,
                                            .callers_of_one = CALLED_LIMIT,
                                            .strangers = CALLED_LIMIT,
                                            .strangers_of_one = CALLED_LIMIT,
                                            .is_encrypted = true, // streams are not counted
                                            .message_bytes = 1,   // what is too much waits
                                            .refused = called_refused};
    }
    port->limits.stranger_bytes = stranger_bytes;
    atomic_store(&called_is_watched, true);
    pthread_mutex_unlock(&pen_callers_all.lock);
}

void pen_called_is_known(const char *address) {
    char text[PEN_CALLER_TEXT_LIMIT];
    const callers_port *port = &pen_callers_all.ports[CALLERS_CALLED];
    pen_caller_trim_scope(address, text);
    pthread_mutex_lock(&pen_callers_all.lock);
    for (uint32_t at = port->oldest, next; at != 0; at = next) {
        caller_place *place = &pen_callers_all.places[at];
        next = place->next;
        if (strcmp(place->text, text) != 0) continue;
        pen_caller_let_all(place); // who reads may be about to wait
        pen_caller_leave(place);
    }
    pthread_mutex_unlock(&pen_callers_all.lock);
}

static void called_enter(int descriptor, const struct sockaddr *address, socklen_t size) {
    struct sockaddr_storage there = {0};
    int type = 0;
    socklen_t type_size = sizeof type;
    const int mode = fcntl(descriptor, F_GETFL);
    if (descriptor >= (int)PEN_CALLERS_DESCRIPTORS || size > sizeof there) return;
    if (mode < 0 || (mode & O_NONBLOCK) == 0) return;
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0) return;
    if (type != SOCK_STREAM) return;
    memcpy(&there, address, size);
    pthread_mutex_lock(&pen_callers_all.lock);
    (void)pen_callers_enter(&pen_callers_all.ports[CALLERS_CALLED], descriptor, &there);
    pthread_mutex_unlock(&pen_callers_all.lock);
}

// Its name as the linker sees it: headers declare connect with a type of their own for `address`.
int called_connect(int descriptor, const void *address, socklen_t size) __asm__("connect");

int called_connect(int descriptor, const void *address, socklen_t size) {
    const int result = (int)syscall(SYS_connect, descriptor, address, size);
    const int error = errno;
    if ((result == 0 || error == EINPROGRESS) && atomic_load(&called_is_watched)) {
        called_enter(descriptor, address, size);
    }
    errno = error;
    return result;
}
