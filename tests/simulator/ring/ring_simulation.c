// One seed: prepares both ends, gives them turns until nothing is left to do, and judges.
#include "tests/simulator/ring/ring_simulation.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "scheduler/transport/ring/ring_memory.h"
#include "tests/simulator/ring/ring_world.h"

#define STACK_BYTES ((size_t)128 << 10)

const char *const ring_fault_names[RING_FAULT_COUNT] = {
    [RING_FAULT_NONE] = "none",
    [RING_FAULT_PAUSE] = "pause",
    [RING_FAULT_DEATH] = "death",
    [RING_FAULT_LIES] = "lies",
};

static uint8_t *stacks[2];

// ---- once in a process

static void *check_memory(void *memory) {
    if (memory == NULL || memory == MAP_FAILED) {
        fprintf(stderr, "no memory for the simulation\n");
        _exit(1);
    }
    return memory;
}

static void open_ring(uint32_t ring) {
    void *writer = NULL, *reader = NULL;
    int descriptor = -1;
    pen_status status = pen_ring_memory_create(&writer, &descriptor);
    if (status == PEN_OK) status = pen_ring_memory_open(descriptor, &reader);
    pen_status_ignore(status, "then there is no memory");
    close(descriptor);
    ring_world.memory[ring][ring] = check_memory(writer);
    ring_world.memory[ring][1 - ring] = check_memory(reader);
}

static void open_world(void) {
    if (stacks[0] != NULL) return;
    for (uint32_t i = 0; i < 2; i++) {
        world_end *end = &ring_world.ends[i];
        const int access = PROT_READ | PROT_WRITE;
        stacks[i] = check_memory(
            mmap(NULL, STACK_BYTES, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
        end->taken = check_memory(pen_memory_allocate(2 * WORLD_MARGIN + WORLD_FRAME_BYTES, 1));
        open_ring(i);
    }
    for (uint32_t i = 0; i < sizeof world_payload; i++)
        world_payload[i] = (uint8_t)((i * 2654435761u) >> 23);
}

// ---- a seed

static void end_enter(void) {
    world_end *end = ring_world.current;
    if (end->is_liar) world_liar_run(end);
    world_end_run(end);
}

static void clear_end(uint32_t index, uint32_t frame_limit) {
    world_end *end = &ring_world.ends[index];
    uint8_t *taken = end->taken;
    memset(end, 0, offsetof(world_end, stores));
    end->store_count = 0;
    end->index = index;
    end->taken = taken;
    pen_mutex_init(&end->lanes.lock);
    memset(ring_world.memory[index][index], 0, PEN_RING_FILE_BYTES);
    world_end_prepare(end, frame_limit);
    getcontext(&end->context);
    end->context.uc_stack.ss_sp = stacks[index];
    end->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&end->context, end_enter, 0);
}

static void begin_seed(const ring_simulation_options *options) {
    world *w = &ring_world;
    w->seed = options->seed;
    w->draw = pen_random_sequence_of(pen_random_stream("ring simulation", options->seed, 0));
    w->turn = w->step_count = 0;
    w->dies_at = 0;
    w->current = NULL;
    w->is_verbose = options->is_verbose;
    w->fault = (ring_fault)(options->seed % RING_FAULT_COUNT);
    w->result->fault = w->fault;
    for (uint32_t i = 0; i < 2; i++)
        clear_end(i, options->frame_limit);
    if (w->fault == RING_FAULT_DEATH) w->dies_at = 1 + world_draw(world_draw(2) == 0 ? 60 : 600);
    if (w->fault == RING_FAULT_LIES) world_liar_prepare(&w->ends[world_draw(2)]);
}

// How many steps an end may take before the other one: mostly few.
static uint32_t draw_budget(void) {
    const uint32_t kind = world_draw(16);
    if (kind < 8) return 0;
    if (kind < 13) return world_draw(6);
    return world_draw(kind < 15 ? 40 : 400);
}

static void die(world_end *end) {
    world_tell(end, EVENT_DIES, end->sent_count, end->arrived_count);
    world_see_all(end); // what it has done reaches the memory
    end->is_dead = true;
}

// What happens beside the steps of the ends.
static void befall(void) {
    world *w = &ring_world;
    for (uint32_t i = 0; i < 2; i++) {
        world_end *end = &w->ends[i];
        if (end->lent_count < end->loan_count && !end->is_dead && world_draw(8) == 0) {
            world_end_lend(end);
        }
        if (world_draw(3) == 0) world_see_one(end);
        if (w->fault == RING_FAULT_PAUSE && end->paused_until <= w->turn && world_draw(60) == 0) {
            end->paused_until = w->turn + world_draw(world_draw(2) == 0 ? 30 : 400);
            world_tell(end, EVENT_PAUSES, w->turn, end->paused_until);
        }
    }
    if (w->turn == w->dies_at) die(&w->ends[world_draw(2)]);
}

// The survivor hears of it sooner or later. True: it had not before.
static bool tell_of_death(void) {
    for (uint32_t i = 0; i < 2; i++) {
        world_end *end = &ring_world.ends[i];
        const world_end *dead = &ring_world.ends[1 - i];
        if (!dead->is_dead || end->is_dead || end->lane.is_gone || end->hears_of_death) continue;
        if (end->lane.state == PEN_RING_LANE_BROKEN) continue;
        end->hears_of_death = true;
        world_end_wake(end);
        return true;
    }
    return false;
}

static world_end *choose_end(void) {
    world *w = &ring_world;
    const uint32_t first = world_draw(2);
    for (uint32_t i = 0; i < 2; i++) {
        world_end *end = &w->ends[(first + i) % 2];
        if (world_end_can_go_on(end) && end->paused_until <= w->turn) return end;
    }
    return NULL;
}

// Nobody can take a step. True: there is something yet to come.
static bool resume_something(void) {
    bool has_resumed = false;
    for (uint32_t i = 0; i < 2; i++) {
        world_end *end = &ring_world.ends[i];
        if (end->store_count != 0 || end->paused_until > ring_world.turn) has_resumed = true;
        world_see_all(end);
        end->paused_until = 0;
        if (end->lent_count < end->loan_count && !end->is_dead) {
            world_end_lend(end);
            has_resumed = true;
        }
    }
    return has_resumed || tell_of_death();
}

static void give_turn(world_end *end) {
    end->budget = draw_budget();
    ring_world.current = end;
    swapcontext(&ring_world.context, &end->context);
    ring_world.current = NULL;
}

// Both ends sleep, and nothing is on its way: then all that was lent has arrived.
static void judge_end(const world_end *end) {
    const world_end *other = &ring_world.ends[1 - end->index];
    if (end->is_dead || end->is_liar) return;
    const bool is_broken = end->lane.state == PEN_RING_LANE_BROKEN;
    if ((other->is_dead || other->is_liar) && !is_broken) {
        world_wrong("end %" PRIu32 " does not know that the other one is gone", end->index);
    }
    if (is_broken) return;
    if (end->sent_count != end->loan_count || other->arrived_count != end->loan_count) {
        world_wrong("all sleep: of %" PRIu32 " frames of end %" PRIu32 ", %" PRIu32
                    " are sent, and %" PRIu32 " have arrived",
                    end->loan_count, end->index, end->sent_count, other->arrived_count);
    }
}

void ring_simulate(const ring_simulation_options *options, ring_simulation_result *out_result) {
    world *w = &ring_world;
    open_world();
    *out_result = (ring_simulation_result){.digest = options->seed};
    w->result = out_result;
    begin_seed(options);
    while (!out_result->is_wrong) {
        w->turn += 1;
        befall();
        if (world_draw(20) == 0) (void)tell_of_death();
        world_end *end = choose_end();
        if (end != NULL) {
            give_turn(end);
        } else if (!resume_something()) {
            break;
        }
        if (w->step_count > WORLD_STEP_LIMIT) world_wrong("the ends go on for ever");
    }
    for (uint32_t i = 0; i < 2; i++) {
        judge_end(&w->ends[i]);
        pen_frame_intake_deinit(&w->ends[i].lane.intake);
        pen_mutex_deinit(&w->ends[i].lanes.lock);
    }
}
