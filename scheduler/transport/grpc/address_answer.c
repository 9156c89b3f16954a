#include "scheduler/transport/grpc/address_answer.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "scheduler/transport/grpc/address.h"

// TLS's word that nothing is wanted after all (alert user_canceled). A server of TLS ends the
// connection and counts it as no refusal (grpc_log.c); one without TLS does not understand it, and
// ends it, too: the process behind the socket, and not only its system, is there then.
static const uint8_t answer_greeting[] = {0x15, 3, 1, 0, 2, 2, 90};

static bool answer_wait(int fd, short events, double seconds) {
    struct pollfd wait = {.fd = fd, .events = events};
    return poll(&wait, 1, (int)(seconds * 1e3)) == 1;
}

static pen_address_answer answer_try(const struct addrinfo *target, double seconds) {
    const int fd = socket(target->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return PEN_ADDRESS_SILENT;
    (void)connect(fd, target->ai_addr, target->ai_addrlen); // the outcome is asked for below
    int error = ETIMEDOUT;
    socklen_t size = sizeof error;
    bool is_there = answer_wait(fd, POLLOUT, seconds) &&
                    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    is_there = is_there && send(fd, answer_greeting, sizeof answer_greeting, MSG_NOSIGNAL) > 0 &&
               answer_wait(fd, POLLIN, seconds);
    close(fd);
    if (is_there) return PEN_ADDRESS_ANSWERS;
    if (error == EHOSTUNREACH || error == ENETUNREACH) return PEN_ADDRESS_AWAY;
    return error == ECONNREFUSED ? PEN_ADDRESS_REFUSES : PEN_ADDRESS_SILENT;
}

const char *pen_address_answer_words(pen_address_answer answer) {
    switch (answer) {
    case PEN_ADDRESS_ANSWERS:
        return "it answers";
    case PEN_ADDRESS_REFUSES:
        return "connection refused: no worker runs there, or it listens at another port";
    case PEN_ADDRESS_SILENT:
        return "nothing comes back: the machine is off, a firewall is between, or what listens "
               "there stands still";
    case PEN_ADDRESS_AWAY:
        return "no route to the host: the address is wrong, or the machine is off";
    case PEN_ADDRESS_UNKNOWN:
        return "the host's name cannot be looked up";
    case PEN_ADDRESS_WRONG:
        return "expected HOST:PORT, as in 10.0.0.2:7070";
    }
    return "";
}

// A name may stand for several addresses: one that answers is enough. What cannot be read as an
// address is nobody's.
pen_address_answer pen_address_ask(const char *text, double seconds) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    pen_address address;
    char port[16];
    const pen_status status = pen_address_read(text, &address);
    if (status != PEN_OK) {
        pen_status_ignore(status, "nobody listens there");
        return PEN_ADDRESS_WRONG;
    }
    snprintf(port, sizeof port, "%u", address.port);
    if (getaddrinfo(address.host, port, &hints, &found) != 0) return PEN_ADDRESS_UNKNOWN;
    pen_address_answer answer = PEN_ADDRESS_SILENT;
    for (const struct addrinfo *one = found; one != NULL && answer != PEN_ADDRESS_ANSWERS;
         one = one->ai_next) {
        answer = answer_try(one, seconds);
    }
    freeaddrinfo(found);
    return answer;
}

bool pen_address_answers(const char *text, double seconds) {
    return pen_address_ask(text, seconds) == PEN_ADDRESS_ANSWERS;
}
