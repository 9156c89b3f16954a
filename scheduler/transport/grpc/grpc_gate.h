// The contract of grpc_pass.c: what callers of this host show, without TLS, before anything they
// send is read.
//
// A caller asks the process that it wants to reach for a token, over the socket of this user
// (ring_door.h); or it proves that it has the same token file. Either goes with the call, as
// metadata. A link from another host needs neither: there it is TLS that tells, or nobody does. The
// two ends may differ in what is one host, so a proof from another host is answered as well.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_GATE_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_GATE_H

#include <grpc/grpc.h>

#include "base/system/callers.h"
#include "scheduler/transport/admit/one_time_tokens.h"
#include "scheduler/transport/admit/token_file.h"
#include "scheduler/transport/grpc/address.h"

struct pen_grpc;
struct pen_grpc_link;
struct pen_grpc_server;

#define PEN_GRPC_PASS_BYTES (PEN_TOKEN_PROOF_BYTES + 16)

// A caller's; the I/O thread's.
typedef struct pen_grpc_pass {
    bool is_needed;                       // the link stays within this host, and has no TLS
    bool is_asked;                        // for this attempt
    int socket;                           // + 1, where a token was asked for; 0: nowhere
    double until;                         // which an answer may take
    char text[PEN_GRPC_PASS_BYTES];       // what is shown; "": nothing
    char answer[PEN_TOKEN_ANSWER_BYTES];  // to be shown by the other end; "": nothing
    char proof[PEN_TOKEN_ANSWER_BYTES];   // of who was called: shown to the caller; "": nothing
    char where[PEN_ADDRESS_TEXT_LIMIT];   // what its name stands for on this host; "": the link's
    char address[PEN_ADDRESS_TEXT_LIMIT]; // to be called; "": the link's
    grpc_metadata metadata;
} pen_grpc_pass;

// A process'.
typedef struct pen_grpc_gate {
    pen_token_file file;
    pen_one_time_tokens tokens;
    char failure[256]; // why there is no socket for tokens
    // the I/O thread's
    pen_token_seen seen;
    uint16_t port;    // where it takes links
    double looked_at; // for whose process a caller is
} pen_grpc_gate;

// Reads the token file, if there is one. As pen_token_file_read
PEN_NODISCARD pen_status pen_grpc_gate_init(pen_grpc_gate *gate, const char *token_file);
void pen_grpc_gate_deinit(pen_grpc_gate *gate);
// Links are taken at `address`, with this port. UNAVAILABLE: nobody could be admitted there
PEN_NODISCARD pen_status pen_grpc_gate_open(struct pen_grpc *transport, const pen_address *address,
                                            uint16_t port);
// Whether a call may become a link. *out_proof is what is shown to the caller; "": nothing.
// UNAVAILABLE: it may come again; INVALID_INPUT
PEN_NODISCARD pen_status pen_grpc_gate_judge(struct pen_grpc *transport, const char *address,
                                             const grpc_metadata_array *metadata,
                                             char out_proof[PEN_TOKEN_ANSWER_BYTES]);
// Tells a caller why it is not let in, and ends the call, which it takes.
void pen_grpc_gate_refuse(pen_caller caller, grpc_call *take_call, pen_status take_reason);

// Looks where the link leads.
void pen_grpc_pass_init(struct pen_grpc_link *link, const pen_address *address);
// After an attempt that was refused: whether it has led to this host, which was not known before.
bool pen_grpc_pass_learn(struct pen_grpc_link *link);
// Whether an attempt may begin: what is to be shown is there, or is not to be had. Else the link's
// deadline is when to look again.
bool pen_grpc_pass_is_ready(struct pen_grpc_link *link, double now);
// What is sent at the beginning of a call, by either end: none or one. Lent as long as the link.
size_t pen_grpc_pass_metadata(struct pen_grpc_link *link, grpc_metadata **out_metadata);
// Who answers is who was asked for a token, or shows what it must. INVALID_INPUT
PEN_NODISCARD pen_status pen_grpc_pass_check(const struct pen_grpc_link *link);
void pen_grpc_pass_release(struct pen_grpc_link *link);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_GATE_H
