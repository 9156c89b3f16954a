// Which addresses are this host's, and whose processes are behind them.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/transport/admit/local_host.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static void loopback_and_own_addresses_are_local(void **state) {
    (void)state;
    char name[256] = "";
    assert_true(pen_local_host_is("127.0.0.1"));
    assert_true(pen_local_host_is("127.1.2.3"));
    assert_true(pen_local_host_is("::1"));
    assert_true(pen_local_host_is("::ffff:127.0.0.1"));
    assert_true(pen_local_host_is("localhost"));
    assert_true(pen_local_host_is("0.0.0.0"));
    assert_true(pen_local_host_is("::"));
    assert_int_equal(gethostname(name, sizeof name - 1), 0);
    assert_true(pen_local_host_is(name));
    // addresses for documentation, which nobody has (RFC 5737, RFC 3849)
    assert_false(pen_local_host_is("192.0.2.1"));
    assert_false(pen_local_host_is("2001:db8::1"));
    assert_false(pen_local_host_is("elsewhere.example"));
    assert_false(pen_local_host_is(""));
    struct ifaddrs *all;
    assert_int_equal(getifaddrs(&all), 0);
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        char text[64];
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET) continue;
        struct sockaddr_in four;
        memcpy(&four, at->ifa_addr, sizeof four);
        inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
        assert_true(pen_local_host_is(text));
    }
    freeifaddrs(all);
}

// Sites that have a node of the same name are different sites.
static void names_are_of_a_domain(void **state) {
    (void)state;
    assert_true(pen_local_host_is_name("node1.site-a", "node1.site-a"));
    assert_true(pen_local_host_is_name("NODE1.Site-A", "node1.site-a"));
    assert_true(pen_local_host_is_name("node1", "node1.site-a"));
    assert_true(pen_local_host_is_name("node1", "node1"));
    assert_false(pen_local_host_is_name("node1.site-b", "node1.site-a"));
    assert_true(pen_local_host_is_name("node1.site-a", "node1"));
    assert_false(pen_local_host_is_name("node", "node1.site-a"));
    assert_false(pen_local_host_is_name("", ""));
}

// A route can make a whole network this host's: who calls from there is on it.
static void routes_make_addresses_local(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNET) != 0) _exit(77);
        if (system("ip link set lo up && ip route add local 198.51.100.0/24 dev lo") != 0) {
            _exit(77);
        }
        _exit(pen_local_host_is("198.51.100.7") && !pen_local_host_is("192.0.2.1") ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip(); // no network of its own can be made here
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void addresses_have_one_form(void **state) {
    (void)state;
    static const char *const forms[][2] = {
        {"127.0.0.1", "127.0.0.1"}, {"::ffff:127.0.0.1", "127.0.0.1"},
        {"0:0:0:0:0:0:0:1", "::1"}, {"2001:DB8::0A", "2001:db8::a"},
        {"localhost", "localhost"}, {"::", "::"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[PEN_LOCAL_HOST_BYTES];
        pen_local_host_write(forms[i][0], text);
        assert_string_equal(text, forms[i][1]);
    }
}

static void other_names_stand_in_a_list(void **state) {
    (void)state;
    static const char list[] = "# a list\n127.0.0.1 localhost\n\n192.0.2.1 far.example far\n"
                               "127.0.1.1\tnode1.site-a  node1 # near\n::1 six\nwrong here\n";
    const char *file = scratch_file("hosts", list, sizeof list - 1);
    char found[PEN_LOCAL_HOST_BYTES];
    assert_true(pen_local_host_find_in(file, "NODE1", found));
    assert_string_equal(found, "127.0.1.1");
    assert_true(pen_local_host_find_in(file, "six", found));
    assert_string_equal(found, "::1");
    assert_false(pen_local_host_find_in(file, "far", found));
    assert_false(pen_local_host_find_in(file, "near", found));
    assert_false(pen_local_host_find_in(file, "here", found));
    assert_false(pen_local_host_find_in(file, "127.0.1.1", found));
    assert_false(pen_local_host_find_in(scratch_path("none"), "node1", found));
}

static bool has_way(const char *host, const char *listens, const char *calls) {
    pen_local_way ways[PEN_LOCAL_HOST_LIMIT];
    const size_t count = pen_local_host_ways(host, ways);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ways[i].listens, listens) == 0 && strcmp(ways[i].calls, calls) == 0) return true;
    }
    return false;
}

// A process that takes links at one address must not vouch for another address, where somebody else
// may listen.
static void ways_lead_to_who_is_meant(void **state) {
    (void)state;
    assert_true(has_way("127.0.0.1", "127.0.0.1", ""));
    assert_true(has_way("127.0.0.1", "0.0.0.0", ""));
    assert_true(has_way("127.0.0.1", "::", ""));
    assert_false(has_way("127.0.0.1", "127.0.0.2", ""));
    assert_false(has_way("127.0.0.1", "::1", ""));
    assert_true(has_way("0.0.0.0", "127.0.0.1", ""));
    assert_true(has_way("0.0.0.0", "0.0.0.0", ""));
    assert_true(has_way("::", "::", ""));
    assert_true(has_way("::1", "::1", ""));
    assert_false(has_way("::1", "0.0.0.0", ""));
    assert_true(has_way("localhost", "127.0.0.1", "127.0.0.1"));
    assert_true(has_way("localhost", "::1", "::1"));
    assert_true(has_way("localhost", "0.0.0.0", "127.0.0.1"));
    assert_false(has_way("127.0.0.2", "localhost", ""));
}

// A socket that listens at loopback, and its port.
static int listen_here(struct sockaddr_in *out_here) {
    socklen_t size = sizeof *out_here;
    *out_here =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)out_here, sizeof *out_here), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)out_here, &size), 0);
    return listener;
}

// A connection over loopback whose caller is a process of another user.
static void users_are_found(void **state) {
    (void)state;
    struct sockaddr_in here;
    const int listener = listen_here(&here);
    const uint16_t port = ntohs(here.sin_port);
    char bound[4][PEN_LOCAL_HOST_BYTES];
    assert_int_equal(pen_local_host_bound(port, 4, bound), 1);
    assert_string_equal(bound[0], "127.0.0.1");
    const uid_t expected = geteuid() == 0 ? 65534 : geteuid();
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        if (geteuid() == 0 && setuid(expected) != 0) _exit(1);
        const int caller = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(caller, (const struct sockaddr *)&here, sizeof here) != 0) _exit(2);
        _exit(recv(caller, &byte, 1, 0) == 0 ? 0 : 3);
    }
    struct sockaddr_in there;
    char address[64];
    uid_t user;
    socklen_t size = sizeof there;
    const int called = accept(listener, (struct sockaddr *)&there, &size);
    assert_true(called >= 0);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(there.sin_port));
    assert_true(pen_local_host_user(address, port, &user));
    assert_int_equal(user, expected);
    assert_false(pen_local_host_user(address, (uint16_t)(port ^ 1), &user));
    assert_false(pen_local_host_user("[::1]:1", port, &user));
    assert_false(pen_local_host_user("[]:1", port, &user));
    assert_false(pen_local_host_user(":1", port, &user));
    assert_false(pen_local_host_user("nothing", port, &user));
    close(called);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(listener);
}

// Among many connections one is looked up by the system: its list of all of them, which is not to
// be seen here, takes long to read.
static void the_list_of_connections_is_not_read(void **state) {
    (void)state;
    struct sockaddr_in here, there;
    socklen_t size = sizeof there;
    char address[64];
    uid_t user = 1;
    int status;
    const int asks = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
    if (geteuid() != 0 || asks < 0) skip(); // only root hides /proc
    close(asks);
    const int listener = listen_here(&here), caller = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(caller, (const struct sockaddr *)&here, sizeof here), 0);
    const int called = accept(listener, (struct sockaddr *)&there, &size);
    snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(there.sin_port));
    const pid_t child = fork();
    if (child == 0) {
        if (chroot(scratch_path(".")) != 0) _exit(77);
        if (!pen_local_host_user(address, ntohs(here.sin_port), &user)) _exit(1);
        _exit(user == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
    // what its process has closed is nobody's
    close(caller);
    assert_false(pen_local_host_user(address, ntohs(here.sin_port), &user));
    close(called);
    close(listener);
}

PEN_TEST_MAIN(cmocka_unit_test(loopback_and_own_addresses_are_local),
              cmocka_unit_test(names_are_of_a_domain),
              cmocka_unit_test(other_names_stand_in_a_list),
              cmocka_unit_test(routes_make_addresses_local),
              cmocka_unit_test(addresses_have_one_form),
              cmocka_unit_test(ways_lead_to_who_is_meant), cmocka_unit_test(users_are_found),
              cmocka_unit_test(the_list_of_connections_is_not_read))
