// What the files of the simulated rings share: the world of one seed.
#ifndef PEN_TESTS_SIMULATOR_RING_RING_WORLD_H
#define PEN_TESTS_SIMULATOR_RING_RING_WORLD_H

#include <ucontext.h>

#include "base/random.h"
#include "scheduler/transport/ring/ring_lanes_inside.h"
#include "tests/simulator/ring/ring_simulation.h"

#define WORLD_FRAME_LIMIT 10u
#define WORLD_FRAME_BYTES 6144u  // the largest that is taken
#define WORLD_MARGIN 64u         // around a frame's memory
#define WORLD_STORE_LIMIT 24u    // on their way at once
#define WORLD_STEP_LIMIT 200000u // of a seed

// What an end has written and the other one does not see yet.
typedef struct world_store {
    uint8_t *at;
    uint32_t count;
    bool is_release; // comes after all before it
    uint8_t bytes[PEN_RING_PIECE_BYTES < 1024 ? PEN_RING_PIECE_BYTES : 1024];
} world_store;

typedef struct world_end {
    uint32_t index;
    ucontext_t context;
    uint32_t budget; // steps before the other one may have its turn

    // as the thread of its lanes
    pen_ring_lanes lanes;
    pen_ring_lane lane;
    uint32_t bell_count; // rung for it, and not heard
    bool has_news;
    bool is_asleep;
    uint32_t steps_of_call; // of a call of the product

    // the user
    pen_transport_events user;
    uint32_t loan_count, lent_count, summed_count, sent_count, arrived_count;
    pen_ring_loan loans[WORLD_FRAME_LIMIT];
    uint32_t made[WORLD_FRAME_LIMIT][4];  // checksums, by the lane
    uint32_t right[WORLD_FRAME_LIMIT][4]; // what they must be
    uint8_t *taken;                       // [WORLD_MARGIN + WORLD_FRAME_BYTES + WORLD_MARGIN]
    uint64_t taken_bytes;                 // of the frame that arrives

    // faults
    bool is_liar, is_dead, hears_of_death;
    uint64_t paused_until; // a turn
    uint32_t deeds_left;   // of a liar
    uint32_t lies;         // which: bits of lie
    void *lie_at;          // the last one; NULL: none
    uint32_t lie_count;
    uint64_t truth; // which was there

    world_store stores[WORLD_STORE_LIMIT];
    uint32_t store_count;
} world_end;

typedef enum lie {
    LIE_COUNTERS = 1,
    LIE_LENGTHS = 2,
    LIE_HEADS = 4,
    LIE_PAYLOADS = 8,
    LIE_BELLS = 16,
} lie;

typedef enum world_event_kind {
    EVENT_LOAD,
    EVENT_STORE,
    EVENT_EXCHANGE,
    EVENT_READ,
    EVENT_WRITE,
    EVENT_SEEN,
    EVENT_BELL,
    EVENT_LENT,
    EVENT_SENT,
    EVENT_BEGIN,
    EVENT_ARRIVED,
    EVENT_SLEEPS,
    EVENT_DIES,
    EVENT_GONE,
    EVENT_FAILS,
    EVENT_PAUSES,
    EVENT_LIE,
} world_event_kind;

typedef struct world {
    uint64_t seed;
    pen_random_sequence draw;
    ring_fault fault;
    world_end ends[2];
    uint8_t *memory[2][2]; // [ring][end]: of a ring that the end of the same number writes
    uint64_t turn;
    uint32_t step_count;
    uint64_t dies_at; // a turn; 0: never
    bool is_verbose;
    ucontext_t context;
    world_end *current; // whose turn it is; NULL: nobody's
    ring_simulation_result *result;
} world;

extern world ring_world;

// ---- ring_world.c
static inline uint32_t world_draw(uint32_t limit) {
    return pen_random_next_below(&ring_world.draw, limit);
}
void world_tell(const world_end *end, world_event_kind kind, uint64_t first, uint64_t second);
// Ends the seed: the first one counts. Returns where an end's turn is over.
void world_wrong(const char *format, ...) PEN_PRINTF(1, 2);
// An end's next step: the other one may have its turn before it.
void world_step(world_end *end);
// Leaves its turn.
void world_leave(world_end *end);
// Where in the rings something is, to be told.
uint64_t world_offset(const world_end *end, const void *at);
// Lets the other end see one of the stores that are on their way, or all.
void world_see_one(world_end *end);
void world_see_all(world_end *end);

// ---- ring_ends.c: who moves frames, and whose they are
extern uint8_t world_payload[2 * WORLD_FRAME_BYTES];
void world_end_prepare(world_end *end, uint32_t frame_limit);
void world_end_run(world_end *end);  // never returns
void world_end_lend(world_end *end); // the next frame
void world_end_wake(world_end *end);
// Rings the bell of the other end than the one whose socket it is: pen_ring_sound is made to be it.
void world_sound(int socket);
bool world_end_can_go_on(const world_end *end);
void world_end_move(world_end *end, bool *out_has_moved);

// ---- ring_liar.c
void world_liar_prepare(world_end *end);
void world_liar_run(world_end *end); // never returns

#endif // PEN_TESTS_SIMULATOR_RING_RING_WORLD_H
