#include "scheduler/transport/ring/ring_door.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DOOR_MAGIC 0x70656e61u // "pena"

typedef struct door_answer {
    uint32_t magic;
    uint8_t token[PEN_RING_TOKEN_BYTES];
} door_answer;

// Networks of one machine may have the same addresses: each has a number.
static void door_find_network(char *out_text, size_t size) {
    char link[64] = "";
    const ssize_t length = readlink("/proc/self/ns/net", link, sizeof link - 1);
    const char *from = length > 0 ? strchr(link, '[') : NULL;
    snprintf(out_text, size, "%s", from != NULL ? from + 1 : "0");
    out_text[strcspn(out_text, "]")] = '\0';
}

bool pen_ring_door_path(const char *folder, const char *host, uint16_t port,
                        char out_path[PEN_RING_DOOR_LIMIT]) {
    char network[32];
    if (strchr(host, '/') != NULL) return false;
    door_find_network(network, sizeof network);
    const int length =
        snprintf(out_path, PEN_RING_DOOR_LIMIT, "%s/%u@%s@%s", folder, port, host, network);
    return length > 0 && length < PEN_RING_DOOR_LIMIT;
}

// The new name replaces an older one in one step: who asks meanwhile finds one of both.
pen_status pen_ring_door_open(const pen_ring_meeting *meeting, uint64_t name, const char *host,
                              uint16_t port) {
    char path[PEN_RING_DOOR_LIMIT], draft[PEN_RING_DOOR_LIMIT], target[24];
    if (!pen_ring_door_path(meeting->folder, host, port, path)) {
        return pen_error(PEN_UNAVAILABLE, "the path '%s/%u@%s' is too long", meeting->folder, port,
                         host);
    }
    snprintf(draft, sizeof draft, "%s/%016" PRIx64 ".door", meeting->folder, name);
    snprintf(target, sizeof target, "%016" PRIx64, name);
    (void)unlink(draft);
    if (symlink(target, draft) == 0 && rename(draft, path) == 0) return PEN_OK;
    const pen_status status = pen_error(PEN_UNAVAILABLE, "making %s: %s", path, strerror(errno));
    (void)unlink(draft);
    return status;
}

bool pen_ring_door_is_there(const pen_ring_meeting *meeting, const char *host, uint16_t port) {
    char path[PEN_RING_DOOR_LIMIT];
    struct stat found;
    return pen_ring_door_path(meeting->folder, host, port, path) && lstat(path, &found) == 0;
}

void pen_ring_door_close(const pen_ring_meeting *meeting, uint64_t name, const char *host,
                         uint16_t port) {
    char path[PEN_RING_DOOR_LIMIT], target[24], found[24] = "";
    if (!pen_ring_door_path(meeting->folder, host, port, path)) return;
    snprintf(target, sizeof target, "%016" PRIx64, name);
    if (readlink(path, found, sizeof found - 1) > 0 && strcmp(found, target) == 0) {
        (void)unlink(path);
    }
}

// A place without such a door is as good as no place.
int pen_ring_door_ask(const char *host, uint16_t port, bool *out_is_busy) {
    char folder[PEN_RING_FOLDER_LIMIT], path[PEN_RING_DOOR_LIMIT];
    *out_is_busy = false;
    for (uint32_t place = 0; place < PEN_RING_MEETING_PLACES; place++) {
        int caller = -1;
        if (!pen_ring_meeting_folder(place, folder) || !pen_ring_meeting_is_private(folder)) {
            continue;
        }
        if (!pen_ring_door_path(folder, host, port, path)) continue;
        const pen_status status = pen_ring_call_at(path, &caller);
        if (status == PEN_OK && caller >= 0 && pen_ring_ask(caller)) return caller;
        if (status == PEN_OK) *out_is_busy = true; // it does not take callers, or hung up on us
        pen_status_ignore(status, "nobody takes links there by that name");
        if (caller >= 0) close(caller);
    }
    return -1;
}

pen_ring_answer pen_ring_door_hear(int socket, uint8_t out_token[PEN_RING_TOKEN_BYTES]) {
    door_answer answer;
    const ssize_t count = recv(socket, &answer, sizeof answer, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return PEN_RING_ANSWER_NONE;
    if (count != (ssize_t)sizeof answer || answer.magic != DOOR_MAGIC) {
        return PEN_RING_ANSWER_REFUSED;
    }
    memcpy(out_token, answer.token, sizeof answer.token);
    return PEN_RING_ANSWER_TOKEN;
}

void pen_ring_door_answer(int socket, const uint8_t token[PEN_RING_TOKEN_BYTES]) {
    door_answer answer = {.magic = DOOR_MAGIC};
    memcpy(answer.token, token, sizeof answer.token);
    (void)send(socket, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL);
}
