// The line between two hosts of this machine, which are network namespaces joined by a veth pair.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/transport_bench.h"

#define LINE_DEVICE "eth0"

// Two hosts share no core. Without this the scheduler puts both ends on one core now and then.
static void line_take_cores(int side) {
    cpu_set_t there, taken;
    int found = 0;
    CPU_ZERO(&taken);
    if (sched_getaffinity(0, sizeof there, &there) != 0) bench_fail("no cores");
    const int half = CPU_COUNT(&there) / 2;
    for (size_t core = 0; core < CPU_SETSIZE && half != 0; core++) {
        if (!CPU_ISSET(core, &there)) continue;
        if ((found++ < half) == (side == 0)) CPU_SET(core, &taken);
    }
    if (half != 0 && sched_setaffinity(0, sizeof taken, &taken) != 0) bench_fail("no cores");
}

void bench_line_enter(const char *host, int side) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", host);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || setns(descriptor, CLONE_NEWNET) != 0) {
        bench_fail("cannot enter a network namespace: that takes root");
    }
    close(descriptor);
    line_take_cores(side);
}

// What a connection to `address` uses, which a route may say: as one that is refused has it.
static void line_find_congestion(const char *address, char *out, socklen_t size) {
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = inet_addr(address)};
    const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    (void)connect(descriptor, (const struct sockaddr *)&to, sizeof to);
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, out, &size) != 0) {
        bench_fail("a socket has no congestion control");
    }
    close(descriptor);
}

// The first line of a file.
static void line_read(const char *path, char *out, size_t size) {
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(out, (int)size, file) == NULL) snprintf(out, size, "?");
    if (file != NULL) fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

static bool line_has(int descriptor, uint32_t question) {
    struct ethtool_value value = {.cmd = question};
    struct ifreq request = {.ifr_name = LINE_DEVICE};
    request.ifr_data = (char *)&value;
    return ioctl(descriptor, SIOCETHTOOL, &request) == 0 && value.data != 0;
}

// What decides over a throughput, as the kernel says it of the host that this process is on.
void bench_line_describe(const char *address, char *out, uint64_t size) {
    char congestion[32] = "";
    const int descriptor = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = LINE_DEVICE};
    if (descriptor < 0 || ioctl(descriptor, SIOCGIFMTU, &request) != 0) {
        bench_fail("a host has no device " LINE_DEVICE);
    }
    line_find_congestion(address, congestion, sizeof congestion - 1);
    snprintf(out, size, "%s, MTU %d,%s%s%s%s", congestion, request.ifr_mtu,
             line_has(descriptor, ETHTOOL_GTXCSUM) ? " tx-checksum" : "",
             line_has(descriptor, ETHTOOL_GTSO) ? " tso" : "",
             line_has(descriptor, ETHTOOL_GGSO) ? " gso" : "",
             line_has(descriptor, ETHTOOL_GGRO) ? " gro" : "");
    close(descriptor);
}

double bench_line_kernel_seconds(void) {
    double seconds = 0;
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    if (folder == NULL) bench_fail("no /proc");
    while ((entry = readdir(folder)) != NULL) {
        char path[300], text[128];
        unsigned long long nanoseconds;
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        line_read(path, text, sizeof text);
        if (strncmp(text, "ksoftirqd/", 10) != 0) continue;
        snprintf(path, sizeof path, "/proc/%s/schedstat", entry->d_name);
        line_read(path, text, sizeof text);
        if (sscanf(text, "%llu", &nanoseconds) == 1) seconds += (double)nanoseconds * 1e-9;
    }
    closedir(folder);
    return seconds;
}
