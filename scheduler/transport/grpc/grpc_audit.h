// Who called, as lines of a log that is kept: who, from where, with which certificate, for which
// job, and what came of it. Each line is a JSON object.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_AUDIT_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_AUDIT_H

#include <grpc/grpc.h>
#include <stdbool.h>

#include "base/system/rotating_log.h"
#include "scheduler/transport/transport.h"

#define PEN_GRPC_AUDIT_SCHEMA "penstock/link-audit/1"

// A caller that has introduced itself. `status` is why it was not taken.
typedef struct pen_grpc_audit {
    grpc_call *call;
    const char *address;
    const pen_introduction *who;
    bool is_resumed; // the stream goes on with a link that was taken before
} pen_grpc_audit;

// Adds a line. `log` NULL: nothing is done.
void pen_grpc_audit_add(pen_rotating_log *log, const pen_grpc_audit *link, pen_status status);
// One that was refused before it said who it is. `count` callers of its host were so, for the same
// reason.
void pen_grpc_audit_add_stranger(pen_rotating_log *log, const char *address, const char *reason,
                                 uint64_t count);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_AUDIT_H
