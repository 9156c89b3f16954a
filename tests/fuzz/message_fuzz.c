// Fuzzes the reader of control messages: any bytes give a message that reads back the same from
// what is written of it, or an error with a message.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_message message;
    const pen_status status = pen_message_decode(data, size, &message);
    if (status != PEN_OK) {
        char text[256];
        if (pen_status_format(status, text, sizeof text) == 0) abort();
        pen_status_ignore(status, "most inputs are wrong");
        return 0;
    }
    const size_t room = PEN_MESSAGE_ROOM + message.bytes_length;
    uint8_t *first = malloc(room), *second = malloc(room);
    if (first == NULL || second == NULL) abort();
    pen_message again;
    const size_t length = pen_message_encode(&message, first, room);
    if (length > room) abort();
    if (pen_message_decode(first, length, &again) != PEN_OK) abort();
    if (again.kind != message.kind) abort();
    if (pen_message_encode(&again, second, room) != length) abort();
    if (memcmp(first, second, length) != 0) abort();
    free(first);
    free(second);
    return 0;
}
