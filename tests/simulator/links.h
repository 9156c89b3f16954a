// Links between processes of a world, each end with a session of the product's
// (scheduler/transport/link_session.h), over packets that the network loses, doubles, delays and
// damages, or over streams that break.
//
// As with the transports: between two peers the lower number calls, the other listens; what is sent
// arrives once and in order, or the link is down; memory of a frame is lent until `let_go`.
#ifndef PEN_TESTS_SIMULATOR_LINKS_H
#define PEN_TESTS_SIMULATOR_LINKS_H

#include "tests/simulator/world.h"

#define LINK_ANY UINT32_MAX

typedef struct link_introduction {
    uint32_t peer; // the caller's number
    uint64_t job;
    uint64_t generation;
    uint64_t incarnation;
} link_introduction;

typedef enum link_answer {
    LINK_TAKE,
    LINK_AGAIN, // not now
    LINK_NEVER,
} link_answer;

typedef struct link_frame {
    uint32_t kind; // pen_frame_kind
    uint64_t generation;
    uint64_t incarnation;
    uint32_t form;
    uint32_t channel;
    uint64_t sequence;
    uint32_t checksum; // of all words
    uint32_t words;
} link_frame;

// A process calls. `peer` is what it will call the other. Fails with process' down for `seconds`.
void link_call_peer(process *p, uint32_t peer, uint32_t host, const link_introduction *self,
                    uint64_t deadline);
void link_disconnect(process *p, uint32_t peer);
bool link_is_up(const process *p, uint32_t peer);
// Tells this link to a peer from those before and after it; NULL: there is none.
void *link_identity(const process *p, uint32_t peer);
// Who is at the other end of a link that is up at both; NULL: nobody. *out_peer: what it calls us.
process *link_other_process(const process *p, uint32_t peer, uint32_t *out_peer);
void link_send_message(process *p, uint32_t peer, const void *bytes, uint32_t count);
// `words` [frame->words] are lent.
void link_send_frame(process *p, uint32_t peer, const link_frame *frame, const uint64_t *words,
                     uint64_t token);

// The process is gone: nothing more happens to its links here; peers may be told by their hosts.
void links_forget(process *p);
// Faults: the link between two processes goes down, or its stream breaks. False: there is none.
bool links_reset(process *p, uint64_t choice);
bool links_break(process *p, uint64_t choice);

// ---- what processes are told: of whichever kind they are

link_answer process_accept(process *p, const link_introduction *introduction);
void process_up(process *p, uint32_t peer);
void process_down(process *p, uint32_t peer, bool is_final);
void process_message(process *p, uint32_t peer, const void *bytes, uint32_t count);
// Where a frame is to be written; NULL: nowhere, it is dropped. *out_is_refused: the link goes
// down.
uint64_t *process_begin(process *p, uint32_t peer, const link_frame *frame, bool *out_is_refused);
void process_end(process *p, uint32_t peer, const link_frame *frame);
void process_let_go(process *p, uint32_t peer, uint64_t token);

#endif // PEN_TESTS_SIMULATOR_LINKS_H
