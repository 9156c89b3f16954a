// An end that writes into the memory whatever it likes, and keeps to the rules in between, so that
// it gets far.
#include "tests/simulator/ring/ring_world.h"

void world_liar_prepare(world_end *end) {
    end->is_liar = true;
    end->deeds_left = 20 + world_draw(300);
    end->lies = world_draw(2) == 0 ? 1u << world_draw(4) : 1 + world_draw(31);
}

static uint64_t draw_value(uint64_t before) {
    switch (world_draw(6)) {
    case 0:
        return before + 64 * (uint64_t)world_draw(20);
    case 1:
        return before - 64 * (uint64_t)world_draw(20);
    case 2:
        return world_draw(PEN_RING_HEAD_LIMIT * 2);
    case 3:
        return (uint64_t)pen_random_next(&ring_world.draw) << world_draw(33);
    case 4:
        return UINT64_MAX - world_draw(100);
    default:
        return before ^ ((uint64_t)1 << world_draw(16));
    }
}

// Writes so many bytes of a value, now, where the other one reads or writes next.
static void liar_write(world_end *end, void *at, uint32_t count) {
    uint64_t value = 0;
    memcpy(&value, at, count);
    end->lie_at = at;
    end->lie_count = count;
    end->truth = value;
    value = draw_value(value);
    memcpy(at, &value, count);
    world_tell(end, EVENT_LIE, world_offset(end, at), value);
}

static void liar_spoil_counter(world_end *end) {
    pen_ring_control *control = (void *)ring_world.memory[world_draw(2)][end->index];
    pen_ring_word *words[] = {&control->written, &control->read, &control->writer_sleeps,
                              &control->reader_sleeps};
    liar_write(end, words[world_draw(4)], sizeof(uint64_t));
}

// The record that the other end reads next, or is reading, and one behind it.
static void liar_spoil_record(world_end *end, uint32_t from, uint32_t bytes, uint32_t count) {
    const world_end *other = &ring_world.ends[1 - end->index];
    uint8_t *records = ring_world.memory[end->index][end->index] + PEN_RING_CONTROL_BYTES;
    const uint64_t at = (other->lane.in.ring.own + from + world_draw(bytes)) % PEN_RING_BYTES;
    liar_write(end, records + at, count);
}

// Takes the last lie back, as if it had never been: only who looked meanwhile knows of it.
static void liar_repent(world_end *end) {
    if (end->lie_at == NULL) return;
    memcpy(end->lie_at, &end->truth, end->lie_count);
    end->lie_at = NULL;
}

static void liar_lie(world_end *end) {
    const lie what = (lie)(1u << world_draw(5));
    if (world_draw(2) == 0) liar_repent(end);
    if ((end->lies & what) == 0) return;
    switch (what) {
    case LIE_COUNTERS:
        if (world_draw(8) == 0) liar_spoil_counter(end);
        break;
    case LIE_LENGTHS:
        liar_spoil_record(end, world_draw(2) * 4, 1, 4);
        break;
    case LIE_HEADS:
        liar_spoil_record(end, 8, 60, 1);
        break;
    case LIE_PAYLOADS:
        liar_spoil_record(end, 320, 512, 8);
        break;
    case LIE_BELLS:
        world_sound((int)end->index);
        break;
    }
}

// When it has had enough, it is gone.
void world_liar_run(world_end *end) {
    while (end->deeds_left > 0) {
        bool has_moved = false;
        world_step(end);
        end->deeds_left -= 1;
        if (world_draw(2) == 0) {
            world_end_move(end, &has_moved);
            end->bell_count = 0;
            if (has_moved) world_sound((int)end->index);
        }
        for (uint32_t i = world_draw(4); i > 0; i--) {
            liar_lie(end);
            world_step(end);
        }
    }
    end->is_dead = true;
    world_leave(end);
}
