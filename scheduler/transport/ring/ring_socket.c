#include "scheduler/transport/ring/ring_socket.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/random.h"
#include "base/system/machine.h"

#define SOCKET_MAGIC 0x70656e72u     // "penr"
#define SOCKET_MAGIC_ASK 0x70656e74u // "pent"
#define SOCKET_VERSION 1u
#define SOCKET_BACKLOG 64

typedef struct socket_greeting {
    uint32_t magic;
    uint32_t version;
    uint64_t token;
} socket_greeting;

static pen_status socket_error(const char *what, const char *where) {
    return pen_error(PEN_UNAVAILABLE, "no shared memory: %s %s: %s", what, where, strerror(errno));
}

// ---- the folder

// It must be a folder of ours that nobody else may enter: who can put sockets there can pose as
// one of our processes.
static pen_status socket_check_folder(const char *path, struct stat *out_folder) {
    if (lstat(path, out_folder) != 0) return socket_error("stat", path);
    if (!S_ISDIR(out_folder->st_mode) || out_folder->st_uid != geteuid() ||
        (out_folder->st_mode & 0777) != 0700) {
        return pen_error(PEN_UNAVAILABLE,
                         "no shared memory: '%s' is not a folder of this user alone (mode 0700)",
                         path);
    }
    return PEN_OK;
}

// The same text for all processes that share a kernel since it started, and their network: hosts
// that are made of namespaces are hosts of their own.
static void socket_describe_host(char *out_text, size_t size) {
    char boot[PEN_MACHINE_BOOT_BYTES], network[64] = "";
    pen_machine_boot(boot);
    const ssize_t length = readlink("/proc/self/ns/net", network, sizeof network - 1);
    network[length > 0 ? length : 0] = '\0';
    snprintf(out_text, size, "%s %s", boot, network);
}

pen_status pen_ring_meeting_make(const char *folder, pen_ring_meeting *out_meeting) {
    struct stat found;
    char host[160];
    if (strlen(folder) >= sizeof out_meeting->folder) {
        return pen_error(PEN_UNAVAILABLE, "no shared memory: the path '%s' is too long", folder);
    }
    snprintf(out_meeting->folder, sizeof out_meeting->folder, "%s", folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return socket_error("making", folder);
    PEN_TRY(socket_check_folder(folder, &found));
    socket_describe_host(host, sizeof host);
    out_meeting->host = pen_random_stream(host, found.st_dev, found.st_ino);
    return PEN_OK;
}

// Nobody but its user may put anything there.
static bool socket_is_private(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
           (found.st_mode & 0022) == 0;
}

// Two processes of one user may differ in what their environment says, so each place counts.
bool pen_ring_meeting_folder(uint32_t place, char out_folder[PEN_RING_FOLDER_LIMIT]) {
    char parent[PEN_RING_FOLDER_LIMIT];
    const unsigned user = (unsigned)geteuid();
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int length = 0;
    switch (place) {
    case 0:
        if (runtime == NULL || runtime[0] != '/') return false;
        length = snprintf(parent, sizeof parent, "%s", runtime);
        break;
    case 1:
        length = snprintf(parent, sizeof parent, "/run/user/%u", user);
        break;
    default: // the folder above is everybody's: that one's own rights are looked at
        snprintf(out_folder, PEN_RING_FOLDER_LIMIT, "/tmp/penstock-%u", user);
        return true;
    }
    if (length < 0 || (size_t)length >= sizeof parent || !socket_is_private(parent)) return false;
    length = snprintf(out_folder, PEN_RING_FOLDER_LIMIT, "%s/penstock", parent);
    return length < PEN_RING_FOLDER_LIMIT;
}

pen_status pen_ring_meeting_find(pen_ring_meeting *out_meeting) {
    char folder[PEN_RING_FOLDER_LIMIT];
    uint32_t place = 0;
    while (!pen_ring_meeting_folder(place, folder))
        place += 1;
    return pen_ring_meeting_make(folder, out_meeting);
}

bool pen_ring_meeting_is_private(const char *folder) {
    struct stat found;
    const pen_status status = socket_check_folder(folder, &found);
    const bool is_private = status == PEN_OK;
    pen_status_ignore(status, "then nothing is looked for there");
    return is_private;
}

// ---- listening

static void socket_address(const pen_ring_meeting *meeting, uint64_t name, const char *suffix,
                           struct sockaddr_un *out_address) {
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(out_address->sun_path, sizeof out_address->sun_path, "%s/%016" PRIx64 "%s",
             meeting->folder, name, suffix);
}

static int socket_new(void) {
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool socket_is_ours(int descriptor) {
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           who.uid == geteuid();
}

// The name of a door (ring_door.h) whose socket is no longer there.
static void socket_sweep_door(int folder, const char *name) {
    struct stat found;
    if (fstatat(folder, name, &found, 0) != 0 && errno == ENOENT) (void)unlinkat(folder, name, 0);
}

// A process that was killed leaves its socket, at which nobody answers. Sockets get their names
// when they listen, so none is taken for a dead one before.
static void socket_sweep(const pen_ring_meeting *meeting) {
    DIR *folder = opendir(meeting->folder);
    const struct dirent *entry;
    if (folder == NULL) return;
    while ((entry = readdir(folder)) != NULL) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        if (strchr(entry->d_name, '@') != NULL) socket_sweep_door(dirfd(folder), entry->d_name);
        if (strlen(entry->d_name) != 16 || strchr(entry->d_name, '@') != NULL) continue;
        snprintf(address.sun_path, sizeof address.sun_path, "%s/%.16s", meeting->folder,
                 entry->d_name);
        const int caller = socket_new();
        if (caller < 0) break;
        if (connect(caller, (const struct sockaddr *)&address, sizeof address) != 0 &&
            errno == ECONNREFUSED) {
            (void)unlink(address.sun_path);
        }
        close(caller);
    }
    closedir(folder);
}

// The socket gets its name when it listens already: one without an answer is a dead one's.
pen_status pen_ring_listen(const pen_ring_meeting *meeting, uint64_t name, int *out_listener) {
    struct sockaddr_un draft, address;
    socket_sweep(meeting);
    socket_address(meeting, name, ".new", &draft);
    socket_address(meeting, name, "", &address);
    const int listener = socket_new();
    if (listener < 0) return socket_error("socket in", meeting->folder);
    pen_status status = PEN_OK;
    if (bind(listener, (const struct sockaddr *)&draft, sizeof draft) != 0) {
        status = socket_error("binding", draft.sun_path);
    } else if (listen(listener, SOCKET_BACKLOG) != 0 ||
               rename(draft.sun_path, address.sun_path) != 0) {
        status = socket_error("listening at", address.sun_path);
        (void)unlink(draft.sun_path);
    }
    if (status != PEN_OK) {
        close(listener);
        return status;
    }
    *out_listener = listener;
    return PEN_OK;
}

bool pen_ring_is_there(const pen_ring_meeting *meeting, uint64_t name) {
    struct sockaddr_un address;
    struct stat found;
    socket_address(meeting, name, "", &address);
    return lstat(address.sun_path, &found) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

void pen_ring_unlisten(const pen_ring_meeting *meeting, uint64_t name, int listener) {
    struct sockaddr_un address;
    socket_address(meeting, name, "", &address);
    (void)unlink(address.sun_path);
    close(listener);
}

int pen_ring_accept(int listener) {
    for (;;) {
        const int caller = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (caller < 0 || socket_is_ours(caller)) return caller;
        close(caller);
    }
}

// ---- handing over

// Connecting to a socket of this kind never waits: it succeeds, or the backlog is full.
pen_status pen_ring_call_at(const char *path, int *out_socket) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *out_socket = -1;
    const int length = snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof address.sun_path) {
        return pen_error(PEN_UNAVAILABLE, "no shared memory: the path '%s' is too long", path);
    }
    const int caller = socket_new();
    if (caller < 0) return socket_error("socket to", path);
    if (connect(caller, (const struct sockaddr *)&address, sizeof address) != 0) {
        // its backlog is full
        const pen_status status = errno == EAGAIN ? PEN_OK : socket_error("calling", path);
        close(caller);
        return status;
    }
    if (!socket_is_ours(caller)) {
        close(caller);
        return pen_error(PEN_UNAVAILABLE, "no shared memory: another user listens at %s", path);
    }
    *out_socket = caller;
    return PEN_OK;
}

pen_status pen_ring_call(const pen_ring_meeting *meeting, uint64_t name, int *out_socket) {
    struct sockaddr_un address;
    socket_address(meeting, name, "", &address);
    return pen_ring_call_at(address.sun_path, out_socket);
}

bool pen_ring_ask(int socket) {
    const socket_greeting greeting = {SOCKET_MAGIC_ASK, SOCKET_VERSION, 0};
    return send(socket, &greeting, sizeof greeting, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           (ssize_t)sizeof greeting;
}

// A greeting and the descriptor in one packet, so that there is never one without the other.
pen_status pen_ring_hand_over(int socket, uint64_t token, int memory) {
    socket_greeting greeting = {SOCKET_MAGIC, SOCKET_VERSION, token};
    struct iovec part = {&greeting, sizeof greeting};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    const struct msghdr message = {.msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &memory, sizeof memory);
    if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof greeting) {
        return PEN_OK;
    }
    return pen_error(PEN_IO, "shared memory was not handed over: %s", strerror(errno));
}

// One descriptor, or none: what else came is closed.
static int socket_take_descriptor(struct msghdr *message) {
    int taken = -1;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
        for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= at->cmsg_len; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(at) + i * sizeof(int), sizeof descriptor);
            if (taken >= 0) close(taken);
            taken = descriptor;
        }
    }
    return taken;
}

// Whatever descriptors came are taken or closed, also with a greeting that is none.
pen_status pen_ring_receive(int socket, uint64_t *out_token, int *out_memory, bool *out_asks) {
    socket_greeting greeting;
    struct iovec part = {&greeting, sizeof greeting};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.bytes};
    *out_memory = -1;
    *out_asks = false;
    const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return PEN_OK;
    if (count <= 0) return pen_error(PEN_UNAVAILABLE, "the caller is gone");
    const int memory = socket_take_descriptor(&message);
    const bool is_whole = count == (ssize_t)sizeof greeting && greeting.version == SOCKET_VERSION &&
                          (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    if (is_whole && memory < 0 && greeting.magic == SOCKET_MAGIC_ASK) {
        *out_asks = true;
        return PEN_OK;
    }
    if (is_whole && memory >= 0 && greeting.magic == SOCKET_MAGIC) {
        *out_token = greeting.token;
        *out_memory = memory;
        return PEN_OK;
    }
    if (memory >= 0) close(memory);
    return pen_error(PEN_CORRUPT, "a greeting that is none");
}

// ---- bells

void pen_ring_sound(int socket) {
    const uint8_t bell = 1;
    (void)send(socket, &bell, sizeof bell, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// One call: a bell is rung once for each time that its hearer has gone to sleep.
pen_ring_heard pen_ring_hear(int socket) {
    uint8_t bell;
    const ssize_t count = recv(socket, &bell, sizeof bell, MSG_DONTWAIT);
    if (count > 0) return PEN_RING_BELL;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return PEN_RING_SILENCE;
    return PEN_RING_GONE;
}
