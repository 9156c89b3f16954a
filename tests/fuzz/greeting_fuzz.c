// Fuzzes what is read from a local socket: the greeting that hands over the memory of a ring or
// asks for a token, and what comes after it. The first byte says how many descriptors come along.
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scheduler/transport/ring/ring_memory.h"
#include "scheduler/transport/ring/ring_socket.h"
#include "tests/fuzz/fuzz.h"

#define DESCRIPTORS_LIMIT 4

static void send_greeting(int socket, const uint8_t *data, size_t size, uint32_t count) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(DESCRIPTORS_LIMIT * sizeof(int))];
    } control = {.bytes = {0}};
    uint8_t copy[256] = {0};
    size = size < sizeof copy ? size : sizeof copy;
    memcpy(copy, data, size);
    struct iovec part = {copy, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int descriptors[DESCRIPTORS_LIMIT];
    for (uint32_t i = 0; i < count; i++)
        descriptors[i] = memfd_create("fuzz", MFD_CLOEXEC);
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    fuzz_must(sendmsg(socket, &message, MSG_DONTWAIT) == (ssize_t)size);
    for (uint32_t i = 0; i < count; i++)
        close(descriptors[i]);
}

// All descriptors that came must be closed again.
static int count_descriptors(void) {
    const int next = dup(0);
    close(next);
    return next;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int ends[2], shared = -1;
    uint64_t token = 0;
    bool asks = false;
    void *memory;
    if (size < 2) return 0;
    const int before = count_descriptors();
    fuzz_must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    send_greeting(ends[0], data + 1, size - 1, data[0] % (DESCRIPTORS_LIMIT + 1));
    close(ends[0]);
    const bool is_read = fuzz_reads(pen_ring_receive(ends[1], &token, &shared, &asks));
    fuzz_must(!asks || (is_read && shared < 0));
    if (is_read && shared >= 0) {
        fuzz_must(!fuzz_reads(pen_ring_memory_open(shared, &memory))); // it is empty
        close(shared);
    }
    fuzz_must(pen_ring_hear(ends[1]) == PEN_RING_GONE);
    close(ends[1]);
    fuzz_must(count_descriptors() == before);
    return 0;
}
