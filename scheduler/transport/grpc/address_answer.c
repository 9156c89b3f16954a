#include "scheduler/transport/grpc/address_answer.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "scheduler/transport/grpc/address.h"

// The beginning of HTTP/2, which a server answers, or, where it expects TLS, refuses: the process
// behind the socket, and not only its system, is there then.
static const char answer_greeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

static bool answer_wait(int fd, short events, double seconds) {
    struct pollfd wait = {.fd = fd, .events = events};
    return poll(&wait, 1, (int)(seconds * 1e3)) == 1;
}

static bool answer_try(const struct addrinfo *target, double seconds) {
    const int fd = socket(target->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    (void)connect(fd, target->ai_addr, target->ai_addrlen); // the outcome is asked for below
    int error = 1;
    socklen_t size = sizeof error;
    bool is_there = answer_wait(fd, POLLOUT, seconds) &&
                    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    is_there = is_there && send(fd, answer_greeting, sizeof answer_greeting, MSG_NOSIGNAL) > 0 &&
               answer_wait(fd, POLLIN, seconds);
    close(fd);
    return is_there;
}

bool pen_address_answers(const char *text, double seconds) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    pen_address address;
    char port[16];
    const pen_status status = pen_address_read(text, &address);
    if (status != PEN_OK) {
        pen_status_ignore(status, "nobody listens there");
        return false;
    }
    snprintf(port, sizeof port, "%u", address.port);
    if (getaddrinfo(address.host, port, &hints, &found) != 0) return false;
    bool answers = false;
    for (const struct addrinfo *one = found; one != NULL && !answers; one = one->ai_next) {
        answers = answer_try(one, seconds);
    }
    freeaddrinfo(found);
    return answers;
}
