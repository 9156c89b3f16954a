#include "tests/simulator/ghosts.h"

#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/links.h"
#include "tests/simulator/worker_process.h"

typedef struct ghost {
    uint32_t peer;
    pen_message message;
} ghost;

static void ghost_appear(process *from, void *context, uint64_t value) {
    const ghost *g = context;
    uint32_t peer;
    process *to = link_other_process(from, g->peer, &peer);
    (void)value;
    if (to == NULL || to->is_frozen || to->is_held) return;
    from->world->result->faults[SIMULATION_FAULT_GHOST] += 1;
    WORLD_NOTE(from->world, to, "a ghost appears", g->message.kind, g->message.generation,
               g->message.incarnation);
    if (to->worker != NULL) {
        worker_message(to, peer, &g->message);
    } else {
        coordinator_message(to, peer, &g->message);
    }
}

// Of an earlier generation, or another process: with other contents, too.
static void ghost_draw(process *from, ghost *g) {
    world *w = from->world;
    pen_message *message = &g->message;
    const bool is_of_worker = from->worker != NULL;
    if (message->kind == PEN_MESSAGE_ASSIGN && chance_one_in(&w->chaos, 2)) {
        message->target_incarnation ^= chance_next(&w->chaos) | 2;
    } else if (is_of_worker && g->peer == 0 && chance_one_in(&w->chaos, 2)) {
        message->incarnation ^= chance_next(&w->chaos) | 2;
        if (chance_one_in(&w->chaos, 4)) message->kind = PEN_MESSAGE_FAIL;
    } else {
        message->generation -= 1;
    }
    message->value ^= chance_below(&w->chaos, 4) << 40;
    message->round += chance_below(&w->chaos, 3);
    message->sequence += chance_below(&w->chaos, 4);
    message->step += chance_below(&w->chaos, 2);
}

void ghost_follow(process *from, uint32_t peer, const pen_message *message) {
    world *w = from->world;
    if (w->network.ghost == 0 || w->is_calm || message->kind == PEN_MESSAGE_HELLO) return;
    if (chance_below(&w->chaos, 1000000) >= w->network.ghost) return;
    ghost *g = WORLD_NEW(w, ghost);
    g->peer = peer;
    g->message = *message;
    ghost_draw(from, g);
    world_call_in(w, chance_below(&w->chaos, 5 * WORLD_MILLISECOND), from, ghost_appear, g, 0);
}
