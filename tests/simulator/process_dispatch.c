// What links tell a process, to whichever kind it is.

#include "scheduler/protocol/message.h"
#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/links.h"
#include "tests/simulator/worker_process.h"

link_answer process_accept(process *p, const link_introduction *introduction) {
    return p->worker != NULL ? worker_accept(p, introduction) : coordinator_accept(p, introduction);
}

void process_up(process *p, uint32_t peer) {
    if (p->worker != NULL) {
        worker_up(p, peer);
    } else {
        coordinator_up(p, peer);
    }
}

void process_down(process *p, uint32_t peer, bool is_final) {
    if (p->worker != NULL) {
        worker_down(p, peer);
    } else {
        coordinator_down(p, peer, is_final);
    }
}

void process_message(process *p, uint32_t peer, const void *bytes, uint32_t count) {
    pen_message message;
    const pen_status status = pen_message_decode(bytes, count, &message);
    if (status != PEN_OK) {
        world_wrong(p->world, "message", "a message cannot be read: %s",
                    pen_status_message(status));
        pen_status_ignore(status, "said");
        return;
    }
    if (p->worker != NULL) {
        worker_message(p, peer, &message);
    } else {
        coordinator_message(p, peer, &message);
    }
}

uint64_t *process_begin(process *p, uint32_t peer, const link_frame *frame, bool *out_is_refused) {
    if (p->worker != NULL) return worker_begin(p, peer, frame, out_is_refused);
    world_wrong(p->world, "message", "a coordinator is sent a frame");
    return NULL;
}

void process_end(process *p, uint32_t peer, const link_frame *frame) {
    worker_end(p, peer, frame);
}

void process_let_go(process *p, uint32_t peer, uint64_t token) {
    (void)peer;
    if (p->worker != NULL) {
        worker_let_go(p, token);
    } else {
        coordinator_let_go(p, token);
    }
}
