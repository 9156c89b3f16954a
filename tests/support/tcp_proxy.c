#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "tests/support/check.h"
#include "tests/support/door.h"

static struct sockaddr_in proxy_address(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

// With a reset, as a middlebox does that has forgotten the connection.
static void proxy_reset(tcp_proxy_connection *connection) {
    const struct linger at_once = {.l_onoff = 1};
    for (uint32_t i = 0; i < 2; i++) {
        if (connection->ends[i] < 0) continue;
        (void)setsockopt(connection->ends[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(connection->ends[i]);
        connection->ends[i] = -1;
    }
}

static void proxy_accept(tcp_proxy *proxy) {
    const struct sockaddr_in to = proxy_address((uint16_t)proxy->target);
    const pen_random_key key = {proxy->seed, pen_random_stream("tcp proxy", 0, 0)};
    const int from = accept(proxy->listener, NULL, NULL);
    if (from < 0) return;
    proxy->connection_count += 1;
    for (uint32_t i = 0; i < TCP_PROXY_LIMIT; i++) {
        tcp_proxy_connection *connection = &proxy->connections[i];
        if (connection->ends[0] >= 0) continue;
        *connection = (tcp_proxy_connection){.ends = {from, socket(AF_INET, SOCK_STREAM, 0)},
                                             .left = UINT64_MAX};
        const uint64_t most = proxy->cut_most, least = proxy->cut_least;
        if (most != 0) {
            connection->left = least + pen_random_below(key, proxy->drawn++, most - least + 1);
        }
        if (connect(connection->ends[1], (const struct sockaddr *)&to, sizeof to) != 0) {
            proxy_reset(connection);
        }
        return;
    }
    close(from);
}

// Forwards what has come at one end. Ends that close take the connection with them.
static void proxy_forward(tcp_proxy *proxy, tcp_proxy_connection *connection, uint32_t from) {
    static uint8_t bytes[1 << 16];
    size_t limit = sizeof bytes;
    if (connection->left < limit) limit = (size_t)connection->left;
    const ssize_t count = recv(connection->ends[from], bytes, limit, 0);
    for (ssize_t sent = 0; sent < count;) {
        const ssize_t more =
            send(connection->ends[1 - from], bytes + sent, (size_t)(count - sent), MSG_NOSIGNAL);
        if (more <= 0 || proxy->is_closing) {
            proxy_reset(connection);
            return;
        }
        sent += more;
    }
    if (count <= 0) {
        proxy_reset(connection);
        return;
    }
    connection->byte_count += (uint64_t)count;
    if (connection->left == UINT64_MAX) return;
    connection->left -= (uint64_t)count;
    if (connection->left == 0) {
        proxy->cut_count += 1;
        proxy_reset(connection);
    }
}

static void proxy_step(tcp_proxy *proxy) {
    struct pollfd polled[1 + 2 * TCP_PROXY_LIMIT];
    for (uint32_t i = 0; i < TCP_PROXY_LIMIT; i++) {
        for (uint32_t side = 0; side < 2; side++) {
            polled[1 + 2 * i + side] =
                (struct pollfd){.fd = proxy->connections[i].ends[side], .events = POLLIN};
        }
    }
    polled[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    if (proxy->is_held) {
        usleep(1000);
        return;
    }
    if (poll(polled, 1 + 2 * TCP_PROXY_LIMIT, 5) <= 0) return;
    for (uint32_t i = 0; i < 2 * TCP_PROXY_LIMIT; i++) {
        tcp_proxy_connection *connection = &proxy->connections[i / 2];
        if (polled[1 + i].revents != 0 && connection->ends[i % 2] == polled[1 + i].fd) {
            proxy_forward(proxy, connection, i % 2);
        }
    }
    if (polled[0].revents != 0) proxy_accept(proxy);
}

static void proxy_run(void *context) {
    tcp_proxy *proxy = context;
    while (!proxy->is_closing) {
        if (proxy->is_cut) {
            for (uint32_t i = 0; i < TCP_PROXY_LIMIT; i++)
                proxy_reset(&proxy->connections[i]);
            proxy->is_cut = false;
        }
        proxy_step(proxy);
    }
    for (uint32_t i = 0; i < TCP_PROXY_LIMIT; i++)
        proxy_reset(&proxy->connections[i]);
}

void tcp_proxy_lead(tcp_proxy *proxy, uint16_t target) {
    door_lead(proxy->port, target);
    proxy->target = target;
}

void tcp_proxy_open(tcp_proxy *proxy, uint16_t target, uint64_t seed) {
    *proxy = (tcp_proxy){.seed = seed, .target = target};
    for (uint32_t i = 0; i < TCP_PROXY_LIMIT; i++)
        proxy->connections[i].ends[0] = proxy->connections[i].ends[1] = -1;
    struct sockaddr_in here = proxy_address(0);
    socklen_t size = sizeof here;
    proxy->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(proxy->listener, (const struct sockaddr *)&here, sizeof here) == 0, "bind");
    CHECK(listen(proxy->listener, TCP_PROXY_LIMIT) == 0, "listen");
    CHECK(getsockname(proxy->listener, (struct sockaddr *)&here, &size) == 0, "getsockname");
    proxy->port = ntohs(here.sin_port);
    tcp_proxy_lead(proxy, target);
    CHECK_OK(pen_thread_create("proxy", proxy_run, proxy, &proxy->thread));
}

void tcp_proxy_cut(tcp_proxy *proxy) {
    proxy->is_cut = true;
    while (proxy->is_cut)
        usleep(500);
}

void tcp_proxy_close(tcp_proxy *proxy) {
    proxy->is_closing = true;
    pen_thread_join(proxy->thread);
    close(proxy->listener);
    door_close(proxy->port);
}
