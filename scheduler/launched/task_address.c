#include "scheduler/launched/task_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESS_ANYWHERE "192.0.2.1" // of no host (RFC 5737): only the route to it is asked for
#define ADDRESS_ANYWHERE_6 "2001:db8::1"
#define ADDRESS_PORT 9

typedef union address_socket {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} address_socket;

static bool address_parse(const char *text, address_socket *out, socklen_t *out_size) {
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &out->four.sin_addr) == 1) {
        out->four.sin_family = AF_INET;
        out->four.sin_port = htons(ADDRESS_PORT);
        *out_size = sizeof out->four;
        return true;
    }
    out->six.sin6_family = AF_INET6;
    out->six.sin6_port = htons(ADDRESS_PORT);
    *out_size = sizeof out->six;
    return inet_pton(AF_INET6, text, &out->six.sin6_addr) == 1;
}

// A socket for datagrams that is "connected" has the address that the route to there begins at.
static bool address_towards(const char *target, char out_host[PEN_TASK_HOST_BYTES]) {
    address_socket to, own = {.any = {0}};
    socklen_t size;
    if (target == NULL || !address_parse(target, &to, &size)) return false;
    const int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    socklen_t own_size = sizeof own;
    const bool is_known =
        connect(fd, &to.any, size) == 0 && getsockname(fd, &own.any, &own_size) == 0;
    close(fd);
    if (!is_known) return false;
    const void *bytes =
        own.any.sa_family == AF_INET ? (const void *)&own.four.sin_addr : &own.six.sin6_addr;
    return inet_ntop(own.any.sa_family, bytes, out_host, PEN_TASK_HOST_BYTES) != NULL;
}

// The first way that gives an address counts.
pen_status pen_task_address_find(char out_host[PEN_TASK_HOST_BYTES]) {
    const char *stated = getenv("PENSTOCK_ADDRESS");
    address_socket unused;
    socklen_t size;
    if (stated != NULL && stated[0] != '\0') {
        if (strlen(stated) >= PEN_TASK_HOST_BYTES || !address_parse(stated, &unused, &size)) {
            return pen_error(PEN_INVALID_INPUT,
                             "PENSTOCK_ADDRESS in the environment: found \"%.80s\", expected an "
                             "address of this machine like 10.0.0.2",
                             stated);
        }
        snprintf(out_host, PEN_TASK_HOST_BYTES, "%s", stated);
        return PEN_OK;
    }
    if (address_towards(getenv("SLURM_LAUNCH_NODE_IPADDR"), out_host) ||
        address_towards(ADDRESS_ANYWHERE, out_host) ||
        address_towards(ADDRESS_ANYWHERE_6, out_host)) {
        return PEN_OK;
    }
    snprintf(out_host, PEN_TASK_HOST_BYTES, "127.0.0.1");
    return PEN_OK;
}
