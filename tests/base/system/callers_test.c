// Callers of a socket that listens: how many are taken, what a stranger may send, and that what is
// counted belongs to a connection, not to a descriptor.
#include "base/system/callers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/called.h"
#include "base/system/descriptors.h"
#include "base/system/stream_count.h"
#include "tests/support/check.h"

// Its name as the linker sees it: headers declare accept4 with another type for `address`.
int accept_next(int listener, void *address, void *size, int flags) __asm__("accept4");

// The thread sanitizer has an accept4 of its own, with which a linker is content that looks for
// ours in a library. Whatever uses that file has ours, as the program does.
static void use_our_accept(void) {
    pen_descriptors_prepare();
}

typedef struct heard {
    int count;
    char address[PEN_CALLER_TEXT_LIMIT], reason[200];
} heard;

static void hear(void *context, const char *address, const char *reason) {
    heard *to = context;
    to->count += 1;
    snprintf(to->address, sizeof to->address, "%s", address);
    snprintf(to->reason, sizeof to->reason, "%s", reason);
}

static int listen_at(uint16_t *out_port) {
    use_our_accept();
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t size = sizeof here;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, size), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    *out_port = ntohs(here.sin_port);
    return listener;
}

static int call_from(uint16_t port, const char *address) {
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int caller = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, address, &from.sin_addr);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(caller, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(caller, (struct sockaddr *)&to, sizeof to), 0);
    return caller;
}

static int take(int listener) {
    struct sockaddr_storage there;
    socklen_t size = sizeof there;
    return accept_next(listener, &there, &size, 0);
}

// What is read at once, or -1.
static ssize_t receive(int descriptor) {
    char bytes[3][4000];
    struct iovec parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = (struct iovec){bytes[i], sizeof bytes[i]};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    return recvmsg(descriptor, &message, MSG_DONTWAIT);
}

static void send_bytes(int descriptor, size_t count) {
    char bytes[4000] = {0};
    for (size_t i = 0; i < count; i += sizeof bytes) {
        const size_t here = count - i < sizeof bytes ? count - i : sizeof bytes;
        assert_int_equal(send(descriptor, bytes, here, MSG_NOSIGNAL), here);
    }
}

static pen_callers_limits limits_of(heard *to) {
    return (pen_callers_limits){.callers = 6,
                                .callers_of_one = 5,
                                .strangers = 4,
                                .strangers_of_one = 3,
                                .stranger_bytes = 5000,
                                .known_bytes = 9000,
                                .streams = 2,
                                .stranger_seconds = 60,
                                .is_encrypted = true,
                                .refused = hear,
                                .context = to};
}

static pen_caller find(uint16_t port, int caller) {
    struct sockaddr_storage here;
    socklen_t size = sizeof here;
    char text[PEN_CALLER_TEXT_LIMIT];
    uint16_t from;
    assert_int_equal(getsockname(caller, (struct sockaddr *)&here, &size), 0);
    assert_true(pen_caller_write(&here, text, sizeof text, &from));
    return pen_callers_find(port, text);
}

// Three strangers of one address, four in all; who is known makes room for a stranger, and so does
// who is gone. A word says who was turned away, and for which limit.
static void test_so_many(void **state) {
    (void)state;
    heard told = {0};
    const pen_callers_limits limits = limits_of(&told);
    int calls[12], count = 0, taken[12];
    uint16_t port;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    for (; count < 3; count++) {
        calls[count] = call_from(port, "127.0.0.1");
        taken[count] = take(listener);
        assert_true(taken[count] >= 0);
    }
    calls[count++] = call_from(port, "127.0.0.1");
    assert_int_equal(take(listener), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(told.count, 1);
    assert_int_equal(strncmp(told.address, "127.0.0.1:", 10), 0);
    assert_non_null(strstr(told.reason, "its address has 3 connections that have not said"));
    calls[count++] = call_from(port, "127.0.0.2");
    taken[3] = take(listener);
    assert_true(taken[3] >= 0);
    calls[count++] = call_from(port, "127.0.0.3");
    assert_int_equal(take(listener), -1);
    assert_non_null(strstr(told.reason, "there are 4 connections that have not said"));

    pen_caller_is_known(find(port, calls[0]));
    calls[count++] = call_from(port, "127.0.0.1");
    taken[4] = take(listener);
    assert_true(taken[4] >= 0);
    (void)close(taken[1]);
    calls[count++] = call_from(port, "127.0.0.1");
    taken[1] = take(listener);
    assert_true(taken[1] >= 0);
    assert_int_equal(told.count, 2);
    pen_callers_forget(port);
    for (int i = 0; i < count; i++)
        (void)close(calls[i]);
    for (int i = 0; i < 5; i++)
        (void)close(taken[i]);
    (void)close(listener);
}

// A stranger's bytes end; those of one who is known begin anew when it is understood. The limit is
// that of the connection: a socket that gets the same descriptor is not counted.
static void test_so_much(void **state) {
    (void)state;
    heard told = {0};
    const pen_callers_limits limits = limits_of(&told);
    uint16_t port;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    const int stranger = call_from(port, "127.0.0.1"), at = take(listener);
    send_bytes(stranger, 9000);
    assert_int_equal(receive(at), 5000);
    assert_int_equal(receive(at), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_non_null(strstr(told.reason, "it sent 4 KiB without saying who it is"));
    (void)close(at);
    (void)close(stranger);

    const int known = call_from(port, "127.0.0.1"), there = take(listener);
    const pen_caller caller = find(port, known);
    assert_int_equal(there, at);
    pen_caller_is_known(caller);
    send_bytes(known, 8000);
    assert_int_equal(receive(there), 8000);
    pen_caller_was_heard(caller);
    send_bytes(known, 12000);
    assert_int_equal(receive(there), 9000);
    assert_int_equal(receive(there), -1);
    assert_int_equal(told.count, 2);
    (void)close(there);
    (void)close(known);

    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(pair[0] == at || pair[1] == at);
    const int reads = pair[0] == at ? 0 : 1;
    for (int i = 0; i < 5; i++) {
        send_bytes(pair[1 - reads], 12000);
        assert_int_equal(receive(pair[reads]), 12000);
    }
    pen_caller_was_heard(caller); // who is gone
    assert_int_equal(told.count, 2);
    pen_callers_forget(port);
    (void)close(pair[0]);
    (void)close(pair[1]);
    (void)close(listener);
}

// Frames of HTTP/2, in any pieces: the third HEADERS is one too many.
static void test_streams(void **state) {
    (void)state;
    static const uint8_t frames[] = {0, 0, 3, 1, 4, 0, 0, 0, 1, 7, 7, 7,    // HEADERS
                                     0, 0, 1, 0, 0, 0, 0, 0, 1, 1,          // DATA
                                     0, 0, 0, 1, 4, 0, 0, 0, 3,             // HEADERS
                                     0, 0, 4, 3, 0, 0, 0, 0, 3, 1, 1, 1, 1, // RST_STREAM
                                     0, 0, 0, 1, 4, 0, 0, 0, 5};
    for (size_t piece = 1; piece < 80; piece++) {
        uint8_t bytes[24 + sizeof frames] = {0};
        pen_stream_count streams = pen_stream_count_begin();
        uint32_t opened = 0;
        memcpy(bytes + 24, frames, sizeof frames);
        for (size_t i = 0; i < sizeof bytes; i += piece) {
            const size_t here = sizeof bytes - i < piece ? sizeof bytes - i : piece;
            opened += pen_stream_count_add(&streams, bytes + i, here);
        }
        assert_int_equal(opened, 3);
    }
    heard told = {0};
    pen_callers_limits limits = limits_of(&told);
    uint16_t port;
    const int listener = listen_at(&port);
    limits.is_encrypted = false;
    assert_true(pen_callers_watch(port, &limits));
    const int caller = call_from(port, "127.0.0.1"), at = take(listener);
    send_bytes(caller, 24);
    assert_int_equal(send(caller, frames, sizeof frames - 9, 0), sizeof frames - 9);
    assert_int_equal(receive(at), 24 + sizeof frames - 9);
    assert_int_equal(send(caller, frames, 12, 0), 12);
    assert_int_equal(receive(at), -1);
    assert_non_null(strstr(told.reason, "it opened more than 2 streams"));
    pen_callers_forget(port);
    (void)close(at);
    (void)close(caller);
    (void)close(listener);
}

// All that may be read now.
static size_t receive_all(int descriptor) {
    size_t sum = 0;
    for (ssize_t count = 0; (count = receive(descriptor)) > 0;)
        sum += (size_t)count;
    assert_int_equal(errno, EAGAIN);
    return sum;
}

// Whether something watches a socket for edges, as gRPC does, and is told of it.
static bool is_told(int watch) {
    struct epoll_event event;
    return epoll_wait(watch, &event, 1, 0) == 1;
}

static int watch_edges(int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    const int watch = epoll_create1(0);
    assert_true(watch >= 0);
    assert_int_equal(epoll_ctl(watch, EPOLL_CTL_ADD, descriptor, &event), 0);
    return watch;
}

static pen_callers_limits limits_of_clients(heard *to) {
    pen_callers_limits limits = limits_of(to);
    limits.message_bytes = 10000;
    limits.known_streams = 4;
    return limits;
}

// What a client may not send yet stays unread, and is told of when it may: with each call that is
// taken. What a call did not send is no other's.
static void test_clients(void **state) {
    (void)state;
    heard told = {0};
    const pen_callers_limits limits = limits_of_clients(&told);
    uint16_t port;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    const int client = call_from(port, "127.0.0.1"), at = take(listener);
    const int watch = watch_edges(at);
    const pen_caller caller = find(port, client);
    send_bytes(client, 40000);
    assert_true(is_told(watch));
    assert_int_equal(receive_all(at), 5000);
    assert_false(is_told(watch));
    pen_caller_is_known(caller);
    pen_caller_may_send(caller);
    assert_true(is_told(watch));
    assert_int_equal(receive_all(at), 10000);
    assert_false(pen_caller_is_stuck(caller)); // not at once
    usleep(150000);
    assert_true(pen_caller_is_stuck(caller));
    pen_caller_has_sent(caller, 4000); // as much as any stranger again
    assert_true(is_told(watch));
    assert_false(pen_caller_is_stuck(caller));
    assert_int_equal(receive_all(at), 5000);
    pen_caller_has_ended(caller); // what a call has beside its message, but not more than that
    assert_int_equal(receive_all(at), 5000);
    assert_int_equal(told.count, 0);
    pen_callers_forget(port);
    close(watch);
    close(at);
    close(client);
    close(listener);
}

// What is too long by little is lent, and given back when no call is open.
static void test_lent(void **state) {
    (void)state;
    heard told = {0};
    pen_callers_limits limits = limits_of_clients(&told);
    int clients[2], at[2];
    pen_caller callers[2];
    uint16_t port;
    limits.lent_bytes = 1 << 20;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    for (int i = 0; i < 2; i++) {
        clients[i] = call_from(port, "127.0.0.1");
        at[i] = take(listener);
        callers[i] = find(port, clients[i]);
        pen_caller_is_known(callers[i]);
        pen_caller_may_send(callers[i]);
        send_bytes(clients[i], 20000);
        assert_int_equal(receive_all(at[i]), i == 0 ? 20000 : 15000);
    }
    pen_caller_has_sent(callers[0], 20000);
    pen_callers_tick(port);
    assert_int_equal(receive_all(at[1]), 5000);
    pen_callers_forget(port);
    for (int i = 0; i < 2; i++) {
        close(at[i]);
        close(clients[i]);
    }
    close(listener);
}

// Streams of a client wait, too, and those that never became calls are forgotten. Who is known and
// silent is hung up on when another wants its place.
static void test_clients_end(void **state) {
    (void)state;
    heard told = {0};
    static const uint8_t head[] = {0, 0, 0, 1, 4, 0, 0, 0, 1};
    pen_callers_limits limits = limits_of_clients(&told);
    char bytes[24 + 3 * sizeof head] = {0};
    uint16_t port;
    limits.is_encrypted = false;
    limits.idle_seconds = 1e-9;
    limits.callers_of_one = 2;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    const int client = call_from(port, "127.0.0.1"), at = take(listener);
    const pen_caller caller = find(port, client);
    for (size_t i = 0; i < 3; i++)
        memcpy(bytes + 24 + i * sizeof head, head, sizeof head);
    assert_int_equal(send(client, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(receive_all(at), sizeof bytes);
    assert_int_equal(send(client, head, sizeof head, 0), sizeof head);
    assert_int_equal(receive_all(at), 0); // three are open
    pen_caller_has_ended(caller);
    assert_int_equal(receive_all(at), sizeof head);
    assert_int_equal(send(client, head, sizeof head, 0), sizeof head);
    assert_int_equal(receive_all(at), 0);
    pen_caller_is_known(caller); // more of one who is known
    assert_int_equal(receive_all(at), sizeof head);
    assert_int_equal(send(client, head, sizeof head, 0), sizeof head);
    assert_int_equal(receive_all(at), sizeof head); // five, one too many
    assert_int_equal(receive_all(at), 0);
    assert_int_equal(send(client, head, sizeof head, 0), sizeof head);
    assert_int_equal(receive_all(at), 0);
    pen_caller_has_called(caller); // one is a call
    pen_callers_tick(port);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(receive_all(at), sizeof head);
        assert_int_equal(send(client, head, sizeof head, 0), sizeof head);
    }
    assert_int_equal(receive_all(at), 0);
    assert_int_equal(told.count, 0);
    close(at);
    close(client);

    int idle[2], taken[2];
    for (int i = 0; i < 2; i++) {
        idle[i] = call_from(port, "127.0.0.1");
        taken[i] = take(listener);
        pen_caller_is_known(find(port, idle[i]));
    }
    pen_caller_may_send(find(port, idle[0]));
    const int next = call_from(port, "127.0.0.1");
    assert_int_equal(take(listener), -1);
    assert_int_equal(recv(idle[1], bytes, 1, 0), 0); // the one that has no call
    close(taken[1]);
    const int after = call_from(port, "127.0.0.1"), place = take(listener);
    assert_true(place >= 0);
    pen_callers_forget(port);
    const int all[] = {idle[0], idle[1], taken[0], next, after, place, listener};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
}

// So is what comes from who was called, until it is known; then it is not counted.
static void test_called(void **state) {
    (void)state;
    struct sockaddr_in to = {.sin_family = AF_INET};
    char address[32];
    uint16_t port;
    const int listener = listen_at(&port);
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    pen_called_watch(5000);
    for (int known = 0; known < 2; known++) {
        const int caller = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        const int result = connect(caller, (struct sockaddr *)&to, sizeof to);
        assert_true(result == 0 || errno == EINPROGRESS);
        const int called = take(listener), watch = watch_edges(caller);
        assert_true(called >= 0);
        send_bytes(called, 40000);
        assert_true(is_told(watch));
        assert_int_equal(receive_all(caller), 5000); // also of the second connection
        assert_false(is_told(watch));
        pen_called_is_known("127.0.0.1:1"); // another
        assert_int_equal(receive_all(caller), 0);
        pen_called_is_known(address);
        assert_true(is_told(watch));
        assert_int_equal(receive_all(caller), 35000);
        send_bytes(called, 40000);
        assert_int_equal(receive_all(caller), 40000);
        close(watch);
        close(called);
        close(caller);
    }
    close(listener);
}

// Where no descriptor is left who calls is turned away; the oldest stranger makes room for the
// next.
static void test_no_descriptor(void **state) {
    (void)state;
    heard told = {0};
    const pen_callers_limits limits = limits_of(&told);
    struct rlimit before, few;
    char byte;
    uint16_t port;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    const int silent = call_from(port, "127.0.0.1"), taken = take(listener);
    const int late = call_from(port, "127.0.0.1"), free = dup(late);
    usleep(1100000);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)free, before.rlim_max};
    assert_int_equal(close(free), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(take(listener), -1);
    assert_int_equal(recv(late, &byte, 1, 0), 0);
    assert_int_equal(recv(silent, &byte, 1, MSG_DONTWAIT), 0);
    close(late);
    const int next = call_from(port, "127.0.0.1"); // has its number
    close(taken);
    const int place = take(listener);
    assert_true(place >= 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    pen_callers_forget(port);
    close(silent);
    close(next);
    close(place);
    close(listener);
}

// Addresses with a scope are found, too: gRPC writes it, the system's structure does not show it.
static void test_addresses(void **state) {
    (void)state;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(7070)};
    struct sockaddr_storage address = {0};
    char text[PEN_CALLER_TEXT_LIMIT];
    uint16_t port;
    inet_pton(AF_INET6, "::ffff:10.0.0.7", &six.sin6_addr);
    memcpy(&address, &six, sizeof six);
    assert_true(pen_caller_write(&address, text, sizeof text, &port));
    assert_string_equal(text, "10.0.0.7:7070");
    assert_int_equal(port, 7070);
    inet_pton(AF_INET6, "fe80::1", &six.sin6_addr);
    memcpy(&address, &six, sizeof six);
    assert_true(pen_caller_write(&address, text, sizeof text, &port));
    assert_string_equal(text, "[fe80::1]:7070");
    address.ss_family = AF_UNIX;
    assert_false(pen_caller_write(&address, text, sizeof text, &port));
    assert_int_equal(pen_callers_find(7070, "[fe80::1%25eth0]:7070").place, 0);
    pen_callers_forget(7070);
    pen_callers_tick(7070);
}

// ---- a number that is used again

// After so many looks at who a socket is, `number` becomes the number of `other`.
static struct { int looks, number, other; } reuse;

// The linker takes it for the C library's, also where callers_enter.c looks.
int getsockopt(int descriptor, int level, int name, void *value, socklen_t *size) {
    const long result = syscall(SYS_getsockopt, descriptor, level, name, value, size);
    if (name == SO_COOKIE && reuse.looks > 0 && --reuse.looks == 0) {
        assert_int_equal(dup2(reuse.other, reuse.number), reuse.number);
    }
    return (int)result;
}

// Whoever reads from a caller closes it when it was found to be there, and is about to be hung up
// on: the number is another socket's then, which goes on.
static void test_reuse(void **state) {
    (void)state;
    heard told = {0};
    pen_callers_limits limits = limits_of(&told);
    int others[2];
    char byte = 'a';
    uint16_t port;
    limits.stranger_seconds = 0;
    const int listener = listen_at(&port);
    assert_true(pen_callers_watch(port, &limits));
    const int caller = call_from(port, "127.0.0.1"), taken = take(listener);
    assert_true(taken >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, others), 0);
    // whether it is gone, and again before it is hung up on
    reuse.number = taken;
    reuse.other = others[0];
    reuse.looks = 2;
    pen_callers_tick(port);
    assert_int_equal(reuse.looks, 0);
    assert_int_equal(send(taken, &byte, 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(others[1], &byte, 1, 0), 1);
    assert_int_equal(recv(caller, &byte, 1, 0), 0); // the right one has ended
    pen_callers_forget(port);
    close(taken);
    close(caller);
    close(others[0]);
    close(others[1]);
    close(listener);
}

PEN_TEST_MAIN(cmocka_unit_test(test_so_many), cmocka_unit_test(test_so_much),
              cmocka_unit_test(test_streams), cmocka_unit_test(test_clients),
              cmocka_unit_test(test_lent), cmocka_unit_test(test_called),
              cmocka_unit_test(test_no_descriptor), cmocka_unit_test(test_clients_end),
              cmocka_unit_test(test_addresses), cmocka_unit_test(test_reuse))
