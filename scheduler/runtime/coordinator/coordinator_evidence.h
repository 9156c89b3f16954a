// The contract of coordinator_audit.c.
//
// What audits move between workers through this process (scheduler/audit/audit_core.h): what one
// has kept comes here in parts, and goes on to another in parts. Whoever trains waits for neither:
// the next part is asked for, or sent, when the one before has come.
//
// Threads: take functions are the transport's, the rest is the caller's.
#ifndef PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_EVIDENCE_H
#define PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_EVIDENCE_H

#include "scheduler/protocol/message.h"
#include "scheduler/runtime/coordinator/coordinator.h"

// What a worker has kept, on its way here. Guarded by the coordinator's lock.
typedef struct coordinator_evidence {
    uint32_t worker;     // 0: nobody is asked
    uint8_t *bytes;      // [limit] for the first part, and then for all
    uint64_t limit;      //
    uint64_t byte_count; // in all, as the first part says,
    uint64_t taken;      // of which so many are here
    bool has_begun;      // the first part is here
    bool is_corrupt;     // a part does not go with the first
    double moved_at;     // when the last part came
} coordinator_evidence;

// What a worker was asked to compute again. Guarded likewise.
typedef struct coordinator_opinion {
    uint32_t worker; // 0: nobody is asked
    uint32_t asked;
    pen_coordinator_package package; // lent
    uint64_t sent;                   // of its bytes,
    uint64_t taken;                  // of which it has so many
    bool is_sending;                 // somebody does, and reads the package without the lock
    bool is_answered;
    bool is_failed;
    uint64_t digest;
    char text[PEN_MESSAGE_TEXT_BYTES];
} coordinator_opinion;

void pen_coordinator_take_evidence(pen_coordinator *c, uint32_t peer, const pen_message *message);
void pen_coordinator_take_recomputed(pen_coordinator *c, uint32_t peer, const pen_message *message);

// For who asks how it stands: what an audit waits for, as a line; "" where there is none.
void pen_coordinator_describe_audit(pen_coordinator *c, char *text, size_t size);

#endif // PEN_SCHEDULER_RUNTIME_COORDINATOR_COORDINATOR_EVIDENCE_H
