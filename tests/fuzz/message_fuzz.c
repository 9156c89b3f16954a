// Fuzzes the reader of control messages: any bytes give a message that reads back the same from
// what is written of it, or an error with a message.
#include <stdlib.h>
#include <string.h>

#include "scheduler/protocol/message.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_message message, again;
    if (!fuzz_reads(pen_message_decode(data, size, &message))) return 0;
    const size_t room = PEN_MESSAGE_ROOM + message.bytes_length;
    uint8_t *first = malloc(room), *second = malloc(room);
    fuzz_must(first != NULL && second != NULL);
    const size_t length = pen_message_encode(&message, first, room);
    fuzz_must(length <= room);
    if (fuzz_works(pen_message_decode(first, length, &again))) {
        fuzz_must(again.kind == message.kind);
        fuzz_must(pen_message_encode(&again, second, room) == length);
        fuzz_must(memcmp(first, second, length) == 0);
    }
    free(first);
    free(second);
    return 0;
}
