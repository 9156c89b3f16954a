#include "scheduler/transport/grpc/refusals.h"

#include <stdio.h>
#include <string.h>

static pen_refusal_kind *refusals_find(pen_refusals *refusals, const char *text) {
    uint32_t i = 0;
    while (i + 1 < PEN_REFUSAL_KINDS && refusals->kinds[i].count > 0 &&
           strcmp(refusals->kinds[i].text, text) != 0) {
        i++;
    }
    return &refusals->kinds[i];
}

static bool refusals_is_told(uint64_t count) {
    while (count % 10 == 0)
        count /= 10;
    return count == 1;
}

// The port is another one at each attempt.
bool pen_refusals_add(pen_refusals *refusals, const char *address, const char *reason,
                      uint64_t *out_count) {
    char text[PEN_REFUSAL_TEXT_LIMIT];
    const char *port = strrchr(address, ':');
    const size_t length = port != NULL ? (size_t)(port - address) : strlen(address);
    (void)snprintf(text, sizeof text, "%.*s %s", (int)length, address, reason);
    pen_refusal_kind *kind = refusals_find(refusals, text);
    memcpy(kind->text, text, sizeof text);
    *out_count = ++kind->count;
    return refusals_is_told(kind->count);
}
