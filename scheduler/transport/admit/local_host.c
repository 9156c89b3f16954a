#include "scheduler/transport/admit/local_host.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LOCAL_LINES_LIMIT 65536u // of the system's lists

// Addresses of both kinds as 16 bytes; of version 4 as those of version 6 that stand for them.
typedef struct local_address {
    struct in6_addr bytes;
} local_address;

static bool local_is_four(const local_address *address) {
    return IN6_IS_ADDR_V4MAPPED(&address->bytes);
}

static local_address local_from_four(struct in_addr four) {
    local_address address = {.bytes = {.s6_addr = {[10] = 0xff, [11] = 0xff}}};
    memcpy(&address.bytes.s6_addr[12], &four, sizeof four);
    return address;
}

// "fe80::1%eth0" as well. False: it is a name.
static bool local_read(const char *host, local_address *out_address) {
    char text[PEN_LOCAL_HOST_BYTES];
    struct in_addr four;
    const size_t length = strcspn(host, "%");
    if (length >= sizeof text) return false;
    memcpy(text, host, length);
    text[length] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1) {
        *out_address = local_from_four(four);
        return true;
    }
    return inet_pton(AF_INET6, text, &out_address->bytes) == 1;
}

static void local_write(const local_address *address, char out_text[PEN_LOCAL_HOST_BYTES]) {
    if (local_is_four(address)) {
        inet_ntop(AF_INET, &address->bytes.s6_addr[12], out_text, PEN_LOCAL_HOST_BYTES);
    } else {
        inet_ntop(AF_INET6, &address->bytes, out_text, PEN_LOCAL_HOST_BYTES);
    }
}

void pen_local_host_write(const char *host, char out_text[PEN_LOCAL_HOST_BYTES]) {
    local_address address;
    if (local_read(host, &address)) {
        local_write(&address, out_text);
    } else {
        snprintf(out_text, PEN_LOCAL_HOST_BYTES, "%s", host);
    }
}

bool pen_local_host_is_address(const char *host) {
    local_address address;
    return local_read(host, &address);
}

static bool local_is_loopback(const local_address *address) {
    if (local_is_four(address)) return address->bytes.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&address->bytes);
}

// Calls to all addresses (0.0.0.0, ::) go to loopback.
static bool local_is_any(const local_address *address) {
    static const uint8_t zeros[4];
    if (local_is_four(address)) return memcmp(&address->bytes.s6_addr[12], zeros, 4) == 0;
    return IN6_IS_ADDR_UNSPECIFIED(&address->bytes);
}

// ---- this host

// Its addresses; at most `limit`.
static size_t local_list(local_address *out_list, size_t limit) {
    struct ifaddrs *all;
    size_t count = 0;
    if (getifaddrs(&all) != 0) return 0;
    for (const struct ifaddrs *at = all; at != NULL && count < limit; at = at->ifa_next) {
        if (at->ifa_addr == NULL) continue;
        if (at->ifa_addr->sa_family == AF_INET) {
            struct sockaddr_in four;
            memcpy(&four, at->ifa_addr, sizeof four);
            out_list[count++] = local_from_four(four.sin_addr);
        } else if (at->ifa_addr->sa_family == AF_INET6) {
            struct sockaddr_in6 six;
            memcpy(&six, at->ifa_addr, sizeof six);
            out_list[count++].bytes = six.sin6_addr;
        }
    }
    freeifaddrs(all);
    return count;
}

// Whether the system would reach it without leaving the machine: it then calls from that very
// address. So also for addresses that a route makes local, which no interface has. Nothing is sent.
static bool local_is_routed(const local_address *address) {
    const struct sockaddr_in6 there = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr = address->bytes};
    struct sockaddr_in6 here = {.sin6_family = AF_UNSPEC};
    socklen_t size = sizeof here;
    const int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return false;
    const bool is_local = connect(probe, (const struct sockaddr *)&there, sizeof there) == 0 &&
                          getsockname(probe, (struct sockaddr *)&here, &size) == 0 &&
                          memcmp(&here.sin6_addr, &address->bytes, sizeof here.sin6_addr) == 0;
    close(probe);
    return is_local;
}

// Its name. Where one of the two has no domain, the names before it are compared; the same name in
// another domain is another host's.
bool pen_local_host_is_name(const char *host, const char *own) {
    const size_t length = strcspn(host, "."), own_length = strcspn(own, ".");
    const bool is_whole = host[length] != '\0' && own[own_length] != '\0';
    if (own_length == 0) return false;
    if (is_whole) return strcasecmp(host, own) == 0;
    return length == own_length && strncasecmp(host, own, length) == 0;
}

static bool local_is_name(const char *host) {
    char own[256] = "";
    if (strcasecmp(host, "localhost") == 0) return true;
    return gethostname(own, sizeof own - 1) == 0 && pen_local_host_is_name(host, own);
}

#define LOCAL_ADDRESSES 512u

bool pen_local_host_is(const char *host) {
    local_address address, list[LOCAL_ADDRESSES];
    if (!local_read(host, &address)) return local_is_name(host);
    if (local_is_loopback(&address) || local_is_any(&address)) return true;
    if (local_is_routed(&address)) return true;
    const size_t count = local_list(list, LOCAL_ADDRESSES);
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&list[i], &address, sizeof address) == 0) return true;
    }
    return false;
}

// A line of the list: "127.0.1.1 node1.site-a node1 # a remark". Its address, if it has the name.
static const char *local_find_name(char *line, const char *name) {
    char *rest = line;
    line[strcspn(line, "#\n")] = '\0';
    const char *address = strtok_r(line, " \t", &rest), *word;
    if (address == NULL) return NULL;
    while ((word = strtok_r(NULL, " \t", &rest)) != NULL) {
        if (strcasecmp(word, name) == 0) return address;
    }
    return NULL;
}

bool pen_local_host_find_in(const char *file, const char *name,
                            char out_address[PEN_LOCAL_HOST_BYTES]) {
    char line[1024];
    bool is_found = false;
    FILE *list = fopen(file, "re");
    if (list == NULL) return false;
    for (uint32_t i = 0; i < LOCAL_LINES_LIMIT && !is_found; i++) {
        local_address address;
        if (fgets(line, sizeof line, list) == NULL) break;
        const char *text = local_find_name(line, name);
        is_found = text != NULL && local_read(text, &address) && pen_local_host_is(text);
        if (is_found) local_write(&address, out_address);
    }
    fclose(list);
    return is_found;
}

bool pen_local_host_find(const char *name, char out_address[PEN_LOCAL_HOST_BYTES]) {
    return pen_local_host_find_in("/etc/hosts", name, out_address);
}

// ---- ways

static size_t way_add(pen_local_way *ways, size_t count, const char *listens, const char *calls) {
    if (count == PEN_LOCAL_HOST_LIMIT) return count;
    pen_local_host_write(listens, ways[count].listens);
    snprintf(ways[count].calls, sizeof ways[count].calls, "%s", calls);
    return count + 1;
}

// A name stands for several addresses, at each of which another process may take links: what is
// called is then the very address.
static size_t way_add_own(pen_local_way *ways, size_t count) {
    local_address list[LOCAL_ADDRESSES];
    const size_t own_count = local_list(list, LOCAL_ADDRESSES);
    for (size_t i = 0; i < own_count; i++) {
        char text[PEN_LOCAL_HOST_BYTES];
        local_write(&list[i], text);
        count = way_add(ways, count, text, text);
    }
    return count;
}

// Who listens at all addresses is reached at each, who listens at one only there.
size_t pen_local_host_ways(const char *host, pen_local_way *out_ways) {
    local_address address;
    char listed[PEN_LOCAL_HOST_BYTES];
    size_t count = way_add(out_ways, 0, host, "");
    if (!local_read(host, &address)) {
        const bool is_loopback = strcasecmp(host, "localhost") == 0;
        count = way_add(out_ways, count, "::", "");
        if (is_loopback) {
            count = way_add(out_ways, count, "127.0.0.1", "127.0.0.1");
            count = way_add(out_ways, count, "::1", "::1");
            return way_add(out_ways, count, "0.0.0.0", "127.0.0.1");
        }
        count = way_add(out_ways, count, "0.0.0.0", "127.0.0.1");
        if (pen_local_host_find(host, listed)) count = way_add(out_ways, count, listed, listed);
        return way_add_own(out_ways, count);
    }
    if (local_is_any(&address)) {
        return pen_local_host_ways(local_is_four(&address) ? "127.0.0.1" : "::1", out_ways);
    }
    count = way_add(out_ways, count, "::", "");
    return local_is_four(&address) ? way_add(out_ways, count, "0.0.0.0", "") : count;
}

// ---- where this process listens

// What of a socket's address is the host. False: it listens not, or not over IP, or elsewhere.
static bool local_read_socket(int socket, uint16_t port, local_address *out_address) {
    struct sockaddr_storage bound = {0};
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return false;
    size = sizeof bound;
    if (listens == 0 || getsockname(socket, (struct sockaddr *)&bound, &size) != 0) return false;
    if (bound.ss_family == AF_INET) {
        memcpy(&four, &bound, sizeof four);
        *out_address = local_from_four(four.sin_addr);
        return ntohs(four.sin_port) == port;
    }
    if (bound.ss_family != AF_INET6) return false;
    memcpy(&six, &bound, sizeof six);
    out_address->bytes = six.sin6_addr;
    return ntohs(six.sin6_port) == port;
}

size_t pen_local_host_bound(uint16_t port, size_t limit, char (*out_hosts)[PEN_LOCAL_HOST_BYTES]) {
    size_t count = 0;
    DIR *list = opendir("/proc/self/fd");
    if (list == NULL) return 0;
    for (const struct dirent *at = readdir(list); at != NULL && count < limit; at = readdir(list)) {
        local_address address;
        char *end;
        const long descriptor = strtol(at->d_name, &end, 10);
        if (end == at->d_name || *end != '\0') continue; // "."
        if (local_read_socket((int)descriptor, port, &address)) {
            local_write(&address, out_hosts[count++]);
        }
    }
    closedir(list);
    return count;
}

// ---- users

// Where one connection is asked for, the system looks it up among all of them. Else its list is
// read line by line, which takes the longer the more there are.
typedef struct user_request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
} user_request;

typedef union user_answer {
    struct nlmsghdr header;
    uint8_t bytes[1024];
} user_answer;

static user_request user_ask_for(const local_address *from, unsigned from_port,
                                 const local_address *to, unsigned to_port) {
    user_request request = {
        .header = {.nlmsg_len = sizeof request,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = local_is_four(from) ? AF_INET : AF_INET6,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX,
                 .id = {.idiag_sport = htons((uint16_t)from_port),
                        .idiag_dport = htons((uint16_t)to_port),
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    const size_t skipped = local_is_four(from) ? 12 : 0;
    memcpy(request.body.id.idiag_src, &from->bytes.s6_addr[skipped], 16 - skipped);
    memcpy(request.body.id.idiag_dst, &to->bytes.s6_addr[skipped], 16 - skipped);
    return request;
}

// A socket that its process has closed is nobody's, and the system says 0 then.
static bool user_ask(const local_address *from, unsigned from_port, const local_address *to,
                     unsigned to_port, uid_t *out_user) {
    const struct timeval patience = {.tv_sec = 1};
    const user_request request = user_ask_for(from, from_port, to, to_port);
    struct inet_diag_msg found = {.idiag_inode = 0};
    user_answer answer;
    const int line = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (line < 0) return false;
    (void)setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (send(line, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        const ssize_t count = recv(line, &answer, sizeof answer, 0);
        if (count >= (ssize_t)NLMSG_LENGTH(sizeof found) &&
            answer.header.nlmsg_type == SOCK_DIAG_BY_FAMILY) {
            memcpy(&found, answer.bytes + NLMSG_HDRLEN, sizeof found);
        }
    }
    close(line);
    // the system also finds who listens there
    if (found.idiag_inode == 0 || found.id.idiag_dport != htons((uint16_t)to_port)) return false;
    *out_user = found.idiag_uid;
    return true;
}

// "0100007F" (a word of 4 bytes as this machine has it), or four of them.
static bool local_read_words(const char *text, size_t length, local_address *out_address) {
    uint32_t words[4];
    if (length != 8 && length != 32) return false;
    for (size_t i = 0; i < length / 8; i++) {
        char word[9] = "";
        memcpy(word, text + 8 * i, 8);
        words[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    if (length == 8) {
        *out_address = local_from_four((struct in_addr){words[0]});
    } else {
        memcpy(&out_address->bytes, words, sizeof words);
    }
    return true;
}

// A line of /proc/net/tcp: "0: 0100007F:9C40 0100007F:0FA0 01 … user …"
static bool local_read_line(const char *line, local_address *out_here, unsigned *out_here_port,
                            unsigned *out_there_port, unsigned *out_user) {
    char here[33], there[33];
    char inode[2];
    if (sscanf(line,
               " %*u: %32[0-9A-F]:%4x %32[0-9A-F]:%4x %*2x %*x:%*x %*x:%*x %*x %u %*u %1[0-9]",
               here, out_here_port, there, out_there_port, out_user, inode) != 6) {
        return false;
    }
    if (inode[0] == '0') return false; // nobody's any more
    return local_read_words(here, strlen(here), out_here);
}

static bool local_find_user(const char *file, const local_address *address, unsigned from,
                            unsigned to, uid_t *out_user) {
    char line[512];
    bool is_found = false;
    FILE *list = fopen(file, "re");
    if (list == NULL) return false;
    for (uint32_t i = 0; i < LOCAL_LINES_LIMIT && !is_found; i++) {
        local_address here;
        unsigned here_port, there_port, user;
        if (fgets(line, sizeof line, list) == NULL) break;
        if (!local_read_line(line, &here, &here_port, &there_port, &user)) continue;
        is_found =
            here_port == from && there_port == to && memcmp(&here, address, sizeof here) == 0;
        if (is_found) *out_user = (uid_t)user;
    }
    fclose(list);
    return is_found;
}

// The caller's end of the connection is known to the system as well, with whose it is. Who calls an
// address of this host calls from the same one as a rule, or at loopback from any.
bool pen_local_host_user(const char *address, uint16_t port, uid_t *out_user) {
    char host[PEN_LOCAL_HOST_BYTES];
    local_address from;
    const char *colon = strrchr(address, ':');
    if (colon == NULL) return false;
    const bool has_brackets = address[0] == '[';
    const char *first = address + has_brackets;
    if (colon - first < 2 * has_brackets) return false;
    const size_t length = (size_t)(colon - first) - has_brackets;
    if (length >= sizeof host) return false;
    memcpy(host, first, length);
    host[length] = '\0';
    if (!local_read(host, &from)) return false;
    const unsigned from_port = (unsigned)strtoul(colon + 1, NULL, 10);
    if (user_ask(&from, from_port, &from, port, out_user)) return true;
    return local_find_user("/proc/net/tcp", &from, from_port, port, out_user) ||
           local_find_user("/proc/net/tcp6", &from, from_port, port, out_user);
}
