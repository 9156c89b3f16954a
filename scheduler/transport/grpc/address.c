#include "scheduler/transport/grpc/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pen_status address_error(const char *text) {
    return pen_error(PEN_INVALID_INPUT,
                     "address '%.100s': expected host:port, as in 127.0.0.1:4000 or [::1]:4000",
                     text);
}

static pen_status address_read_port(const char *text, const char *digits, uint16_t *out_port) {
    uint32_t port = 0;
    if (*digits == '\0') return address_error(text);
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9') return address_error(text);
        port = port * 10 + (uint32_t)(*digits - '0');
        if (port > UINT16_MAX) {
            return pen_error(PEN_INVALID_INPUT, "address '%.100s': ports go up to 65535", text);
        }
    }
    *out_port = (uint16_t)port;
    return PEN_OK;
}

static bool address_is_host(const char *host) {
    for (; *host != '\0'; host++) {
        if ((unsigned char)*host <= ' ' || *host == '/' || *host == '[' || *host == ']') {
            return false;
        }
    }
    return true;
}

// HOST:PORT, with brackets around addresses that have colons. "*" is all addresses of the machine.
pen_status pen_address_read(const char *text, pen_address *out_address) {
    const char *colon = strrchr(text, ':'), *host = text;
    if (colon == NULL || colon == text) return address_error(text);
    size_t length = (size_t)(colon - text);
    const bool has_brackets = text[0] == '[' && colon[-1] == ']';
    if (has_brackets) {
        host += 1;
        length -= 2;
    }
    if (length == 0 || length >= sizeof out_address->host) return address_error(text);
    memcpy(out_address->host, host, length);
    out_address->host[length] = '\0';
    const bool has_colon = strchr(out_address->host, ':') != NULL;
    if (has_colon != has_brackets || !address_is_host(out_address->host)) {
        return address_error(text);
    }
    PEN_TRY(address_read_port(text, colon + 1, &out_address->port));
    if (strcmp(out_address->host, "*") == 0) {
        memcpy(out_address->host, "::", sizeof "::");
    }
    snprintf(out_address->text, sizeof out_address->text,
             strchr(out_address->host, ':') != NULL ? "[%s]:%u" : "%s:%u", out_address->host,
             out_address->port);
    return PEN_OK;
}

bool pen_address_is_loopback(const pen_address *address) {
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, address->host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, address->host, &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
    return strcmp(address->host, "localhost") == 0;
}

// What binding to the address says; 0: it is free. Of several addresses of a name all are asked,
// up to the first that is taken; those that this machine does not have count only where it has
// none ("localhost" is also ::1 where there is no IPv6).
static int address_bind(const struct addrinfo *found) {
    int error = 0, absent = 0;
    bool is_any = false;
    for (const struct addrinfo *one = found; one != NULL && error == 0; one = one->ai_next) {
        const int on = 1, fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(fd, one->ai_addr, one->ai_addrlen) == 0) {
            is_any = true;
        } else if (errno == EADDRNOTAVAIL) {
            absent = errno;
        } else {
            error = errno;
        }
        close(fd);
    }
    return error != 0 || is_any ? error : absent;
}

static pen_status address_refused(const pen_address *address, const char *why) {
    return pen_error(PEN_IO, "cannot listen at %s: %s", address->text, why);
}

// The socket is bound and closed again, since gRPC does not say why it could not listen.
pen_status pen_address_check_free(const pen_address *address) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[16];
    snprintf(port, sizeof port, "%u", address->port);
    if (getaddrinfo(address->host, port, &hints, &found) != 0) {
        return address_refused(address, "the host's name cannot be looked up");
    }
    const int error = address_bind(found);
    if (found != NULL) freeaddrinfo(found);
    if (error == 0) return PEN_OK;
    if (error == EADDRINUSE) {
        return address_refused(address, "the port is taken; stop what listens there, or choose "
                                        "another port (0: any that is free)");
    }
    if (error == EADDRNOTAVAIL) {
        return address_refused(address, "the address is not this machine's; 0.0.0.0 is all it has");
    }
    if (error == EACCES) return address_refused(address, "ports below 1024 are for root");
    return address_refused(address, strerror(error));
}

pen_status pen_address_explain(const pen_address *address, const char *otherwise) {
    const pen_status status = pen_address_check_free(address);
    return status != PEN_OK ? status : address_refused(address, otherwise);
}
