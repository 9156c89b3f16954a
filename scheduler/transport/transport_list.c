// The transports there are. A new one is a file and a line here.
#include <stdio.h>
#include <string.h>

#include "scheduler/transport/transport.h"

// Each is pen_transport_<name>.
#define TRANSPORT_LIST(TRANSPORT)                                                                  \
    TRANSPORT(grpc)                                                                                \
    TRANSPORT(local)

#define TRANSPORT_DECLARE(name) extern const pen_transport_kind pen_transport_##name;
#define TRANSPORT_ENTRY(name) &pen_transport_##name,

TRANSPORT_LIST(TRANSPORT_DECLARE)

const pen_transport_kind *const pen_transport_kinds[] = {TRANSPORT_LIST(TRANSPORT_ENTRY) NULL};

pen_status pen_transport_kind_find(const char *name, const pen_transport_kind **out_kind) {
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; pen_transport_kinds[i] != NULL; i++) {
        if (strcmp(pen_transport_kinds[i]->name, name) == 0) {
            *out_kind = pen_transport_kinds[i];
            return PEN_OK;
        }
        const int more = snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                                  pen_transport_kinds[i]->name);
        PEN_ASSERT(more > 0 && (size_t)more < sizeof names - used);
        used += (size_t)more;
    }
    return pen_error(PEN_NOT_FOUND, "unknown transport '%.100s', possible: %s", name, names);
}
