// Who may open a link within a host: processes of one user, and those with one token file.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "scheduler/transport/ring/ring_door.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/station.h"

#define OTHER_USER 65534

static pen_transport_options options_of(uint32_t peer, const char *token_file) {
    return (pen_transport_options){.self = {.job = "test", .peer = peer, .incarnation = 77 + peer},
                                   .token_file = token_file};
}

static void open_station(station *s, uint32_t peer, const char *address, const char *token_file) {
    const pen_transport_options options = options_of(peer, token_file);
    CHECK_OK(station_open(s, "grpc", &options, address, 64));
}

static void call(station *s, uint16_t port, double seconds) {
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    CHECK_OK(s->kind->connect(s->transport, 1, address, seconds));
}

static const char *token_file(const char *name, const char *content) {
    const char *path = scratch_file(name, content, strlen(content));
    assert_int_equal(chmod(path, 0600), 0);
    return path;
}

static void find_door(const char *host, uint16_t port, char out_path[PEN_RING_DOOR_LIMIT]) {
    pen_ring_meeting meeting;
    CHECK_OK(pen_ring_meeting_find(&meeting));
    assert_true(pen_ring_door_path(meeting.folder, host, port, out_path));
}

// As if there was no folder in common: in containers, or for another user. One that is missing, or
// leads to nothing, would be made again.
static void hide_door(const char *host, uint16_t port) {
    char path[PEN_RING_DOOR_LIMIT], other[PEN_RING_DOOR_LIMIT + 8];
    find_door(host, port, path);
    snprintf(other, sizeof other, "%s.other", path);
    assert_int_equal(symlink(".", other), 0);
    assert_int_equal(rename(other, path), 0);
}

static void remove_door(const char *host, uint16_t port) {
    char path[PEN_RING_DOOR_LIMIT];
    find_door(host, port, path);
    assert_int_equal(unlink(path), 0);
}

// ---- one user

static void one_user_needs_nothing(void **state) {
    (void)state;
    static const char *const listens[] = {"127.0.0.1:0", "localhost:0", "[::1]:0"};
    static const char *const calls[] = {"127.0.0.1:%u", "localhost:%u", "[::1]:%u"};
    for (size_t i = 0; i < 3; i++) {
        station zero, one;
        char address[64];
        open_station(&one, 1, listens[i], NULL);
        open_station(&zero, 0, NULL, NULL);
        // a name may stand for either address
        snprintf(address, sizeof address, calls[i], one.port);
        CHECK_OK(zero.kind->connect(zero.transport, 1, address, 10));
        CHECK(station_wait_up(&zero, 1, 1), "%s: %s", address, zero.down_text);
        station_close(&zero);
        station_close(&one);
    }
}

static void a_name_leads_to_whom_we_know(void **state) {
    (void)state;
    station zero, one;
    char address[64];
    open_station(&one, 1, "127.0.0.1:0", NULL);
    open_station(&zero, 0, NULL, NULL);
    snprintf(address, sizeof address, "localhost:%u", one.port);
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 10));
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    station_close(&zero);
    station_close(&one);
}

// All addresses of the host, called at loopback and at another one, as --insecure allows.
static void insecure_is_no_way_in(void **state) {
    (void)state;
    station zero, one;
    pen_transport_options options = options_of(1, NULL);
    options.is_insecure = true;
    CHECK_OK(station_open(&one, "grpc", &options, "0.0.0.0:0", 64));
    open_station(&zero, 0, NULL, NULL);
    call(&zero, one.port, 10);
    assert_true(station_wait_up(&zero, 1, 1));
    station_close(&zero);
    hide_door("0.0.0.0", one.port);
    open_station(&zero, 0, NULL, NULL);
    call(&zero, one.port, 0.5);
    assert_true(station_wait_down(&zero, 1, 1));
    CHECK(strstr(zero.down_text, "it shows no token") != NULL, "%s", zero.down_text);
    CHECK(strstr(zero.down_text, "--token-file FILE") != NULL, "%s", zero.down_text);
    assert_int_equal(one.up_count[0], 1);
    station_close(&zero);
    station_close(&one);
    remove_door("0.0.0.0", one.port);
}

static void the_door_goes_with_its_process(void **state) {
    (void)state;
    station one;
    uint8_t token[PEN_RING_TOKEN_BYTES];
    bool is_busy;
    pen_ring_answer answer = PEN_RING_ANSWER_NONE;
    open_station(&one, 1, "127.0.0.1:0", NULL);
    const uint16_t port = one.port;
    assert_int_equal(pen_ring_door_ask("127.0.0.2", port, &is_busy), -1);
    const int caller = pen_ring_door_ask("127.0.0.1", port, &is_busy);
    assert_true(caller >= 0);
    for (uint32_t i = 0; answer == PEN_RING_ANSWER_NONE && i < 10000; i++) {
        answer = pen_ring_door_hear(caller, token);
        usleep(1000);
    }
    assert_int_equal(answer, PEN_RING_ANSWER_TOKEN);
    close(caller);
    station_close(&one);
    assert_int_equal(pen_ring_door_ask("127.0.0.1", port, &is_busy), -1);
    assert_false(is_busy);
}

// As when a user logs out whose worker goes on.
static void the_door_is_made_again(void **state) {
    (void)state;
    const char *folder = scratch_path("runtime"), *away = scratch_path("runtime.away");
    station zero, one;
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    open_station(&one, 1, "127.0.0.1:0", NULL);
    assert_int_equal(rename(folder, away), 0);
    open_station(&zero, 0, NULL, NULL); // it meets elsewhere
    call(&zero, one.port, 10);
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    station_close(&zero);
    // a door alone
    remove_door("127.0.0.1", one.port);
    open_station(&zero, 0, NULL, NULL);
    call(&zero, one.port, 10);
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    station_close(&zero);
    station_close(&one);
    unsetenv("XDG_RUNTIME_DIR");
}

// One has $XDG_RUNTIME_DIR and the other has not: a service of the system, and a shell.
static void surroundings_may_differ(void **state) {
    (void)state;
    char folder[PEN_RING_FOLDER_LIMIT], expected[PEN_RING_FOLDER_LIMIT];
    station zero, one;
    unsetenv("XDG_RUNTIME_DIR");
    open_station(&one, 1, "127.0.0.1:0", NULL);
    assert_int_equal(chmod(scratch_path("."), 0700), 0);
    setenv("XDG_RUNTIME_DIR", scratch_path("."), 1);
    snprintf(expected, sizeof expected, "%s/penstock", scratch_path("."));
    assert_true(pen_ring_meeting_folder(0, folder));
    assert_string_equal(folder, expected);
    open_station(&zero, 0, NULL, NULL);
    call(&zero, one.port, 10);
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    station_close(&zero);
    station_close(&one);
    // what others may write to is no place
    assert_int_equal(chmod(scratch_path("."), 0777), 0);
    assert_false(pen_ring_meeting_folder(0, folder));
    assert_int_equal(chmod(scratch_path("."), 0700), 0);
    unsetenv("XDG_RUNTIME_DIR");
}

// Whatever callers of this user write to the socket, it goes on.
static void the_socket_takes_anything(void **state) {
    (void)state;
    station one;
    uint8_t bytes[64];
    open_station(&one, 1, "127.0.0.1:0", NULL);
    const pen_random_key key = {1, 2};
    for (uint32_t i = 0; i < 2000; i++) {
        char path[PEN_RING_DOOR_LIMIT];
        pen_ring_meeting meeting;
        int caller;
        CHECK_OK(pen_ring_meeting_find(&meeting));
        assert_true(pen_ring_door_path(meeting.folder, "127.0.0.1", one.port, path));
        CHECK_OK(pen_ring_call_at(path, &caller));
        if (caller < 0) continue; // it is busy
        for (uint64_t n = 0; n < 4; n++)
            pen_random_block(key, 4 * i + n, (uint32_t *)(void *)(bytes + 16 * n));
        if (i % 2 == 0) memcpy(bytes, "tnep\1\0\0\0", 8); // as one who asks begins
        (void)send(caller, bytes, i % 65, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(caller);
    }
    station zero;
    open_station(&zero, 0, NULL, NULL);
    call(&zero, one.port, 10);
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    station_close(&zero);
    station_close(&one);
}

// Callers who say nothing take all the room there is, for a while: who asks waits, and is not taken
// for a stranger.
static void a_busy_socket_is_asked_again(void **state) {
    (void)state;
    station zero, one;
    pen_ring_meeting meeting;
    char path[PEN_RING_DOOR_LIMIT];
    static int callers[1000];
    uint32_t count = 0, failures = 0;
    open_station(&one, 1, "127.0.0.1:0", NULL);
    CHECK_OK(pen_ring_meeting_find(&meeting));
    assert_true(pen_ring_door_path(meeting.folder, "127.0.0.1", one.port, path));
    open_station(&zero, 0, NULL, NULL);
    for (uint32_t i = 0; i < 1000 && failures < 20; i++) {
        CHECK_OK(pen_ring_call_at(path, &callers[count]));
        failures += callers[count] < 0;
        count += callers[count] >= 0;
    }
    call(&zero, one.port, 10);
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    assert_int_equal(one.kind->counters(one.transport).refusals, 0);
    while (count > 0)
        close(callers[--count]);
    station_close(&zero);
    station_close(&one);
}

// ---- token files

static void a_file_admits(void **state) {
    (void)state;
    station zero, one;
    const char *file = token_file("token", "one secret of two processes\n");
    open_station(&one, 1, "127.0.0.1:0", file);
    hide_door("127.0.0.1", one.port);
    open_station(&zero, 0, NULL, file);
    call(&zero, one.port, 10);
    CHECK(station_wait_up(&zero, 1, 1), "%s", zero.down_text);
    station_close(&zero);
    const char *other = token_file("other", "another secret of somebody\n");
    open_station(&zero, 0, NULL, other);
    call(&zero, one.port, 10);
    assert_true(station_wait_down(&zero, 1, 1));
    CHECK(strstr(zero.down_text, "its token file is another one") != NULL, "%s", zero.down_text);
    station_close(&zero);
    assert_int_equal(one.kind->counters(one.transport).refusals, 1);
    station_close(&one);
    remove_door("127.0.0.1", one.port);
    open_station(&one, 1, "127.0.0.1:0", NULL);
    hide_door("127.0.0.1", one.port);
    open_station(&zero, 0, NULL, file);
    call(&zero, one.port, 10);
    assert_true(station_wait_down(&zero, 1, 1));
    CHECK(strstr(zero.down_text, "this process has none") != NULL, "%s", zero.down_text);
    station_close(&zero);
    station_close(&one);
    remove_door("127.0.0.1", one.port);
}

// ---- other users

// A process of another user, which tries to open a link to `port`.
static int call_as_other(uint16_t port, const char *file, const char *expected) {
    station zero;
    if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0) return 2;
    const pen_transport_options options = options_of(0, file);
    const pen_status status = station_open(&zero, "grpc", &options, NULL, 64);
    if (status != PEN_OK) {
        fprintf(stderr, "%s\n", pen_status_message(status));
        return 3;
    }
    call(&zero, port, 10);
    const bool is_up =
        expected == NULL ? station_wait_up(&zero, 1, 1) : !station_wait_down(&zero, 1, 1);
    if (is_up != (expected == NULL)) return 4;
    if (expected != NULL && strstr(zero.down_text, expected) == NULL) {
        fprintf(stderr, "%s\n", zero.down_text);
        return 5;
    }
    station_close(&zero);
    return 0;
}

// gRPC must not have begun in a process that forks: `port` comes over a pipe.
static pid_t fork_other(int *out_pipe, const char *file, const char *expected) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        uint16_t port;
        close(ends[1]);
        _exit(read(ends[0], &port, sizeof port) == sizeof port ? call_as_other(port, file, expected)
                                                               : 6);
    }
    close(ends[0]);
    *out_pipe = ends[1];
    return child;
}

static void finish_other(pid_t child, int pipe, uint16_t port) {
    int status;
    assert_int_equal(write(pipe, &port, sizeof port), sizeof port);
    close(pipe);
    assert_int_equal(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other user: %d", status);
}

static void other_users_are_not_let_in(void **state) {
    (void)state;
    station one;
    int pipes[2];
    char expected[64];
    if (geteuid() != 0) skip(); // only root can pose as another user
    const char *file = token_file("shared", "what root and the other user both know\n");
    assert_int_equal(chown(file, 0, OTHER_USER), 0);
    assert_int_equal(chmod(file, 0640), 0);
    assert_int_equal(chmod(scratch_path("."), 0755), 0);
    snprintf(expected, sizeof expected, "user %u calls, and this process belongs to user 0",
             OTHER_USER);
    const pid_t refused = fork_other(&pipes[0], NULL, expected);
    const pid_t admitted = fork_other(&pipes[1], file, NULL);
    open_station(&one, 1, "127.0.0.1:0", file);
    finish_other(refused, pipes[0], one.port);
    assert_int_equal(one.kind->counters(one.transport).refusals, 1);
    finish_other(admitted, pipes[1], one.port);
    assert_true(station_wait_up(&one, 0, 1));
    assert_int_equal(one.up_count[0], 1);
    station_close(&one);
}

// ---- names of this host

// A process that sees another /etc/hosts. False: the system allows none
static bool see_hosts(const char *file) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(file, "/etc/hosts", NULL, MS_BIND, NULL) == 0;
}

// Links to a worker that listens at one of this host's names or addresses, called by another.
static bool call_by_alias(const char *listens, const char *calls) {
    station zero, one;
    char address[300];
    pen_transport_options options = options_of(1, NULL);
    options.is_insecure = true; // nobody knows at once that the name is this host's
    CHECK_OK(station_open(&one, "grpc", &options, listens, 64));
    options.self = options_of(0, NULL).self;
    CHECK_OK(station_open(&zero, "grpc", &options, NULL, 64));
    snprintf(address, sizeof address, "%s:%u", calls, one.port);
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 10));
    const bool is_up = station_wait_up(&zero, 1, 1);
    if (!is_up) fprintf(stderr, "%s by %s: %s\n", listens, calls, zero.down_text);
    station_close(&zero);
    station_close(&one);
    return is_up;
}

static int call_by_aliases(const char *hosts, const char *own) {
    if (!see_hosts(hosts)) return 77;
    if (!call_by_alias("127.0.1.1:0", "node1.site-a")) return 4;
    if (!call_by_alias("node1.site-a:0", "127.0.1.1")) return 5;
    return call_by_alias("127.0.1.1:0", own) ? 0 : 6;
}

static void aliases_are_names_of_this_host(void **state) {
    (void)state;
    char hosts[400], own[256] = "";
    assert_int_equal(gethostname(own, sizeof own - 1), 0);
    const int length = snprintf(hosts, sizeof hosts,
                                "127.0.0.1 localhost\n127.0.1.1 node1.site-a node1 %s\n", own);
    const char *file = scratch_file("hosts", hosts, (size_t)length);
    int status;
    const pid_t child = fork();
    if (child == 0) _exit(call_by_aliases(file, own));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip(); // no mounts of one's own here
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "by its alias: %d", status);
}

// Answers each question for an address of version 4 with 127.0.1.1.
static void *serve_names(void *socket) {
    static const uint8_t answer[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 127, 0, 1, 1};
    const int server = *(int *)socket;
    for (;;) {
        uint8_t packet[600];
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        const ssize_t count = recvfrom(server, packet, 512, 0, (struct sockaddr *)&from, &size);
        if (count < 17) return NULL;
        size_t end = 12; // of the name
        while (end + 5 < (size_t)count && packet[end] != 0)
            end += packet[end] + 1u;
        const bool is_four = packet[end + 2] == 1;
        const uint8_t head[] = {0x85, 0x80, 0, 1, 0, is_four, 0, 0, 0, 0};
        memcpy(packet + 2, head, sizeof head);
        memcpy(packet + end + 5, answer, sizeof answer);
        (void)sendto(server, packet, end + 5 + (is_four ? sizeof answer : 0), 0,
                     (struct sockaddr *)&from, size);
    }
}

// A process with a network of its own, and a server of names in it. False: the system allows none
static bool see_names(const char *resolver, int *out_server, pthread_t *out_thread) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) {
        return false;
    }
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *out_server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(resolver, "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0 &&
           ioctl(*out_server, SIOCSIFFLAGS, &loopback) == 0 &&
           bind(*out_server, (struct sockaddr *)&here, sizeof here) == 0 &&
           pthread_create(out_thread, NULL, serve_names, out_server) == 0;
}

// By a name that only the server of names knows: the first attempt takes it for another host's, and
// shows nothing.
static bool call_by_name(const char *file) {
    station zero, one;
    char address[64];
    pen_transport_options options = options_of(0, file);
    options.is_insecure = true;
    open_station(&one, 1, "127.0.1.1:0", file);
    if (file != NULL) hide_door("127.0.1.1", one.port);
    CHECK_OK(station_open(&zero, "grpc", &options, NULL, 64));
    snprintf(address, sizeof address, "node1.names.example:%u", one.port);
    CHECK_OK(zero.kind->connect(zero.transport, 1, address, 20));
    const bool is_up = station_wait_up(&zero, 1, 1);
    if (!is_up) fprintf(stderr, "%s\n", zero.down_text);
    station_close(&zero);
    const uint64_t refusals = one.kind->counters(one.transport).refusals;
    if (refusals != 1) fprintf(stderr, "refused %u times\n", (unsigned)refusals);
    station_close(&one);
    if (file != NULL) remove_door("127.0.1.1", one.port);
    return is_up && refusals == 1;
}

static int call_by_names(const char *resolver, const char *file) {
    int server;
    pthread_t thread;
    if (!see_names(resolver, &server, &thread)) return 77;
    if (!call_by_name(NULL)) return 4;
    return call_by_name(file) ? 0 : 5;
}

static void a_connection_tells_where_a_name_leads(void **state) {
    (void)state;
    static const char text[] = "nameserver 127.0.0.1\n";
    const char *resolver = scratch_file("resolv.conf", text, sizeof text - 1);
    const char *file = token_file("names", "known to both of these processes\n");
    int status;
    const pid_t child = fork();
    if (child == 0) _exit(call_by_names(resolver, file));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip(); // no networks of one's own here
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "by its name: %d", status);
}

// ---- who is called

static void try_impostor(const char *file, uint16_t port, const char *expected) {
    station zero;
    open_station(&zero, 0, NULL, file);
    call(&zero, port, 10);
    assert_true(station_wait_down(&zero, 1, 1));
    assert_int_equal(zero.up_count[1], 0);
    CHECK(strstr(zero.down_text, expected) != NULL, "%s", zero.down_text);
    station_close(&zero);
}

// A server of another kind, with a first message of so many bytes; "": a right one. Ends with *in.
static pid_t start_impostor(char *bytes, int *in, uint16_t *out_port) {
    int ins[2], outs[2];
    char digits[16] = "";
    char *const arguments[] = {"python3", "tests/scheduler/transport/grpc/grpc_impostor.py",
                               bytes[0] != '\0' ? bytes : NULL, NULL};
    assert_int_equal(pipe(ins), 0);
    assert_int_equal(pipe(outs), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ins[0], 0);
        dup2(outs[1], 1);
        close(ins[1]);
        execv("/usr/bin/python3", arguments);
        _exit(127);
    }
    close(outs[1]);
    close(ins[0]);
    assert_true(read(outs[0], digits, sizeof digits - 1) > 0);
    close(outs[0]);
    *in = ins[1];
    *out_port = (uint16_t)strtoul(digits, NULL, 10);
    return child;
}

static void impostors_get_no_link(void **state) {
    (void)state;
    int in;
    uint16_t port;
    const pid_t child = start_impostor("", &in, &port);
    try_impostor(NULL, port, "is no process of this user");
    try_impostor(token_file("ours", "a secret that it does not have\n"), port,
                 "does not have our token file");
    close(in);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

// Most memory that this process has had, in KiB.
static long most_memory(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

// Of a first message little is read, whatever its length.
static void impostors_take_no_memory(void **state) {
    (void)state;
    int in;
    uint16_t port;
    char bytes[] = "200000000";
    const pid_t child = start_impostor(bytes, &in, &port);
    station zero;
    open_station(&zero, 0, NULL, NULL);
    const long before = most_memory();
    call(&zero, port, 2);
    assert_true(station_wait_down(&zero, 1, 1));
    assert_int_equal(zero.up_count[1], 0);
    station_close(&zero);
    const long grown = most_memory() - before;
    CHECK(grown < 64 << 10, "a stranger took %ld KiB", grown);
    close(in);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

// The library that gRPC looks names up with keeps some bytes when it has looked for "localhost".
const char *__lsan_default_suppressions(void);  // NOLINT(bugprone-reserved-identifier)
const char *__lsan_default_suppressions(void) { // NOLINT(bugprone-reserved-identifier)
    return "leak:libcares.so\n";
}

PEN_TEST_MAIN(cmocka_unit_test(aliases_are_names_of_this_host),
              cmocka_unit_test(a_connection_tells_where_a_name_leads),
              cmocka_unit_test(other_users_are_not_let_in), cmocka_unit_test(impostors_get_no_link),
              cmocka_unit_test(impostors_take_no_memory), cmocka_unit_test(one_user_needs_nothing),
              cmocka_unit_test(a_name_leads_to_whom_we_know),
              cmocka_unit_test(insecure_is_no_way_in),
              cmocka_unit_test(the_door_goes_with_its_process),
              cmocka_unit_test(the_door_is_made_again), cmocka_unit_test(surroundings_may_differ),
              cmocka_unit_test(the_socket_takes_anything),
              cmocka_unit_test(a_busy_socket_is_asked_again), cmocka_unit_test(a_file_admits))
