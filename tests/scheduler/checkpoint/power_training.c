#include "tests/scheduler/checkpoint/power_training.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/checkpoint/checkpoint_state.h"
#include "scheduler/checkpoint/order_book.h"
#include "tests/support/chance.h"
#include "tests/support/paired_disk.h"

#define POWER_TENSORS 3
#define POWER_SHARDS 3
#define POWER_STEPS 12     // more than all lives do
#define POWER_LIFE_STEPS 3 // of one life
#define POWER_FLOATS 900   // of a tensor, at most
#define POWER_KEPT 2       // checkpoints
#define POWER_LANES 4

// A checkpoint that was told durable.
typedef struct power_told {
    uint64_t step; // 0: none
    bool is_on[POWER_DISKS];
} power_told;

typedef struct power_world {
    const power_case *the_case;
    const pen_checkpoint_subject *subject;
    power_result *result;
    pen_arena *arena;
    faulty_disk *disks[POWER_DISKS];
    chance dice;
    int64_t floats[POWER_TENSORS];
    pen_stored_tensor tensors[POWER_TENSORS];
    float found[POWER_TENSORS][POWER_FLOATS]; // what was loaded
    pen_tensor_store store;
    bool is_tried[POWER_STEPS + 1]; // a manifest of the step may be there
    power_told told[POWER_KEPT];    // the last, the one before
    uint64_t generation;            // told durable
} power_world;

// One life of the training.
typedef struct power_life {
    power_world *world;
    pen_arena *arena;
    paired_disk *disk;
    pen_checkpoint_store *store;
    pen_order_book *book;
    uint64_t step; // that were done
} power_life;

PEN_PRINTF(2, 3)
static void power_complain(power_world *world, const char *format, ...) {
    va_list arguments;
    if (world->result->complaint[0] != '\0') return;
    va_start(arguments, format);
    vsnprintf(world->result->complaint, sizeof world->result->complaint, format, arguments);
    va_end(arguments);
}

// ---- what is trained: bytes that seed and step decide

static float power_value(const power_world *world, uint64_t step, uint32_t tensor, int64_t index) {
    const uint64_t mixed = chance_mix(world->the_case->seed * 31 + step * 1009 + tensor) +
                           (uint64_t)index * 0x9e3779b97f4a7c15u;
    return (float)(chance_mix(mixed) >> 40);
}

static pen_step_order power_order(uint64_t step) {
    pen_step_order order = {.count = POWER_LANES};
    for (uint32_t place = 0; place < POWER_LANES; place++) {
        order.lanes =
            pen_arrivals_order_add(order.lanes, place, (uint32_t)(place + step) % POWER_LANES);
    }
    return order;
}

static pen_status power_write(void *context, uint32_t index, uint64_t first, const void *host,
                              uint64_t bytes) {
    power_world *world = context;
    memcpy((char *)world->found[index] + first, host, bytes);
    return PEN_OK;
}

static void power_shape(power_world *world) {
    static const char *const names[POWER_TENSORS] = {"weight", "bias", "weight/velocity"};
    chance dice = {world->the_case->seed};
    for (uint32_t t = 0; t < POWER_TENSORS; t++) {
        world->floats[t] = (int64_t)chance_between(&dice, 1, POWER_FLOATS);
        world->tensors[t] = (pen_stored_tensor){
            .name = names[t],
            .type = pen_tensor_type_make(PEN_FLOAT32, 1, &world->floats[t]),
            .bytes = (uint64_t)world->floats[t] * sizeof(float),
            .is_model = t < 2,
        };
    }
    world->store = (pen_tensor_store){
        .count = POWER_TENSORS, .tensors = world->tensors, .context = world, .write = power_write};
}

static bool power_is_right(const power_world *world, uint64_t step) {
    for (uint32_t t = 0; t < POWER_TENSORS; t++) {
        for (int64_t i = 0; i < world->floats[t]; i++) {
            if (world->found[t][i] != power_value(world, step, t, i)) return false;
        }
    }
    return true;
}

static const char *const power_folders[POWER_DISKS] = {"one/runs/a", "two/runs/a"};

static pen_checkpoint_folders power_name_folders(const power_life *life) {
    const bool is_mirrored = life->world->the_case->is_mirrored;
    return (pen_checkpoint_folders){.folder = power_folders[0],
                                    .mirror = is_mirrored ? power_folders[1] : NULL,
                                    .disk = &life->disk->base};
}

static bool power_is_faulty(const power_world *world) {
    return world->the_case->fault != POWER_FAULT_NONE;
}

// ---- judging

// P1 and P2 of one checkpoint.
static void power_judge_one(power_life *life, uint32_t index) {
    power_world *world = life->world;
    const pen_commit_record *record = pen_checkpoint_store_record(life->store, index);
    const uint64_t step = record->manifest.step;
    if (step > POWER_STEPS || !world->is_tried[step]) {
        power_complain(world, "there is a checkpoint of step %" PRIu64 ", which nobody made", step);
        return;
    }
    pen_status status = PEN_OK;
    if (!power_is_faulty(world)) status = pen_checkpoint_store_verify(life->store, index);
    if (status == PEN_OK) status = pen_checkpoint_store_load(life->store, index, &world->store);
    if (paired_disk_has_crashed(life->disk)) {
        pen_status_ignore(status, "the next life looks again");
        return;
    }
    const bool is_told = step == world->told[0].step || step == world->told[1].step;
    if (status != PEN_OK && power_is_faulty(world) && !is_told) {
        pen_status_ignore(status, "it is on the faulty disk alone");
        return;
    }
    if (status != PEN_OK) {
        power_complain(world, "P2: the checkpoint of step %" PRIu64 " is not whole: %s", step,
                       pen_status_message(status));
    } else if (!power_is_right(world, step)) {
        power_complain(world, "P1: the checkpoint of step %" PRIu64 " has other bytes", step);
    }
    pen_status_ignore(status, "complained of");
}

static bool power_has(const power_life *life, uint64_t step) {
    for (uint32_t i = 0; i < pen_checkpoint_store_count(life->store); i++) {
        if (pen_checkpoint_store_record(life->store, i)->manifest.step == step) return true;
    }
    return false;
}

// What a life finds, before it changes anything.
static void power_judge(power_life *life) {
    power_world *world = life->world;
    const uint64_t generation = pen_checkpoint_store_generation(life->store);
    if (paired_disk_has_crashed(life->disk)) return; // what it sees is what it saw last
    if (generation < world->generation) {
        power_complain(world, "P3: generation %" PRIu64 " is in force, %" PRIu64 " was fenced",
                       generation, world->generation);
    }
    if (pen_checkpoint_store_damaged_count(life->store) > 0 && !power_is_faulty(world)) {
        power_complain(world, "P2: a record of the log is damaged");
    }
    for (uint32_t i = 0; i < pen_checkpoint_store_count(life->store); i++) {
        if (!paired_disk_has_crashed(life->disk)) power_judge_one(life, i);
    }
    for (uint32_t k = 0; k < POWER_KEPT; k++) {
        const power_told *told = &world->told[k];
        if (!told->is_on[0] && !told->is_on[1]) continue;
        if (power_has(life, told->step)) continue;
        power_complain(world, "P1: the checkpoint of step %" PRIu64 " is gone", told->step);
    }
}

// ---- a life

static pen_status power_save_shards(power_life *life, pen_shard_summary *out_summaries,
                                    uint32_t *out_count) {
    power_world *world = life->world;
    chance dice = {world->the_case->seed * 7 + life->step};
    const uint32_t count = (uint32_t)chance_between(&dice, 1, POWER_SHARDS);
    for (uint32_t s = 0; s < count; s++) {
        pen_shard_tensor list[POWER_TENSORS];
        float *data;
        const char *name;
        uint64_t floats = 0;
        pen_shard_source source = {.tensors = list};
        PEN_TRY(PEN_NEW(life->arena, POWER_TENSORS * POWER_FLOATS, &data));
        for (uint32_t t = 0; t < POWER_TENSORS; t++) {
            if (t % count != s) continue;
            list[source.count++] = (pen_shard_tensor){.name = world->tensors[t].name,
                                                      .type = world->tensors[t].type,
                                                      .bytes = world->tensors[t].bytes};
            for (int64_t i = 0; i < world->floats[t]; i++) {
                data[floats++] = power_value(world, life->step, t, i);
            }
        }
        source.data = data;
        PEN_TRY(pen_shard_name(pen_checkpoint_store_generation(life->store), life->step, s,
                               life->arena, &name));
        PEN_TRY(pen_shard_write(&life->disk->base, &source,
                                pen_checkpoint_store_shard_folder(life->store), name, life->arena,
                                &out_summaries[s]));
    }
    *out_count = count;
    return PEN_OK;
}

// Which disks have the checkpoint of a step; a faulty one counts for none.
static power_told power_find(const power_life *life, uint64_t step) {
    const power_world *world = life->world;
    power_told told = {.step = step};
    for (uint32_t i = 0; i < life->store->entry_count; i++) {
        const pen_checkpoint_entry *entry = &life->store->entries[i];
        if (pen_checkpoint_store_record(life->store, i)->manifest.step != step) continue;
        for (uint32_t d = 0; d < POWER_DISKS; d++) {
            told.is_on[d] = told.is_on[d] || entry->records[d] != NULL;
        }
    }
    if (power_is_faulty(world)) told.is_on[world->the_case->faulty] = false;
    return told;
}

static void power_note_told(power_world *world, power_told told) {
    if (world->told[0].step != told.step) world->told[1] = world->told[0];
    world->told[0] = told;
}

// As train_loop.c and train_keeper.c do it: the order, the shards, the record, and then what is
// old. *out_is_kept: the checkpoint is; it costs no more than itself.
static pen_status power_save(power_life *life, bool *out_is_kept) {
    power_world *world = life->world;
    const pen_checkpoint checkpoint = {.step = life->step, .rate_steps = POWER_STEPS};
    pen_shard_summary summaries[POWER_SHARDS];
    uint32_t count = 0;
    *out_is_kept = false;
    PEN_TRY(pen_order_book_sync(life->book));
    const pen_status status = power_save_shards(life, summaries, &count);
    if (status != PEN_OK) {
        pen_checkpoint_store_give_up(life->store, true);
        return status;
    }
    world->is_tried[life->step] = true;
    PEN_TRY(pen_checkpoint_store_publish(life->store, &checkpoint, summaries, count));
    if (paired_disk_has_crashed(life->disk)) return PEN_OK; // nobody was told
    const power_told told = power_find(life, life->step);
    if (!told.is_on[0] && !told.is_on[1]) {
        power_complain(world, "P7: the checkpoint of step %" PRIu64 " is on the faulty disk alone",
                       life->step);
    }
    power_note_told(world, told);
    *out_is_kept = true;
    return pen_checkpoint_store_prune(life->store, POWER_KEPT);
}

// Opens what is there, takes over, and stands where the newest checkpoint does.
static pen_status power_begin(power_life *life, uint32_t number) {
    power_world *world = life->world;
    const uint64_t incarnation = world->the_case->seed * POWER_LIVES + number + 1;
    const pen_checkpoint_folders folders = power_name_folders(life);
    pen_checkpoint found = {0};
    uint64_t generation = 0;
    PEN_TRY(pen_checkpoint_store_open(&folders, world->subject, life->arena, &life->store));
    snprintf(life->store->model_hash, sizeof life->store->model_hash, "0123456789abcdef");
    power_judge(life);
    const bool begins = pen_checkpoint_store_count(life->store) == 0;
    PEN_TRY(pen_checkpoint_store_fence(life->store, incarnation, begins, &generation));
    if (paired_disk_has_crashed(life->disk)) return PEN_OK;
    world->generation = generation;
    if (!begins) {
        PEN_TRY(pen_checkpoint_store_load_newest(life->store, &world->store, &found));
        if (paired_disk_has_crashed(life->disk)) return PEN_OK;
        life->step = found.step;
        const power_told told = power_find(life, found.step); // what is built upon is durable
        if (told.is_on[0] || told.is_on[1]) power_note_told(world, told);
        pen_status status =
            pen_order_book_read_either(life->book, folders.folder, folders.mirror, found.step);
        if (status != PEN_OK && !paired_disk_has_crashed(life->disk)) {
            power_complain(world, "P4: %s", pen_status_message(status));
        }
        PEN_TRY(status);
    }
    return pen_order_book_keep_both(life->book, folders.folder, folders.mirror, generation);
}

static pen_status power_live(power_life *life, uint32_t number) {
    bool was_kept = true;
    PEN_TRY(power_begin(life, number));
    for (uint32_t i = 0; i < POWER_LIFE_STEPS && !paired_disk_has_crashed(life->disk); i++) {
        bool is_kept;
        life->step += 1;
        const pen_step_order order = power_order(life->step);
        PEN_TRY(pen_order_book_add(life->book, life->step, &order));
        const pen_status status = power_save(life, &is_kept);
        if (!power_is_faulty(life->world) || paired_disk_has_crashed(life->disk)) PEN_TRY(status);
        // a life before may have fenced the faulty disk alone, unseen at the start of this one: its
        // supervisor starts it again
        const bool is_superseded = pen_status_get_code(status) == PEN_CANCELLED;
        if (!is_kept && !was_kept && !is_superseded && !paired_disk_has_crashed(life->disk)) {
            power_complain(life->world, "P6: steps %" PRIu64 " and before are not kept: %s",
                           life->step, pen_status_message(status));
        }
        pen_status_ignore(status, "a checkpoint that fails does not end the training");
        if (is_superseded) return PEN_OK;
        was_kept = is_kept;
    }
    return PEN_OK;
}

// What one of the disks does wrong, on each of its calls or from one on.
static void power_set_fault(const power_world *world, paired_disk *disk) {
    static const faulty_disk_rates rates[] = {
        [POWER_FAULT_SOME] = {.no_space = 20000,
                              .write = 20000,
                              .sync = 20000,
                              .read = 20000,
                              .flip = 20000,
                              .done_after = 20000},
        [POWER_FAULT_FULL] = {.no_space = 1000000},
        [POWER_FAULT_DEAD] = {0},
    };
    const power_case *the_case = world->the_case;
    if (!power_is_faulty(world)) return;
    faulty_disk_set_rates(world->disks[the_case->faulty], &rates[the_case->fault]);
    if (the_case->fault != POWER_FAULT_DEAD) return;
    disk->fail_at = the_case->dead_from;
    disk->fail_disk = the_case->faulty;
}

// False: it could not live to its end, though nothing cut it.
static bool power_be_born(power_world *world, uint32_t number) {
    const bool is_last = number + 1 == POWER_LIVES;
    power_life life = {.world = world};
    pen_status status = pen_arena_create(&life.arena);
    if (status == PEN_OK) {
        status = paired_disk_new(world->disks, number, world->arena, &life.disk);
    }
    if (status != PEN_OK) abort();
    life.disk->crash_at = is_last ? 0 : world->the_case->lives[number].cut_at;
    power_set_fault(world, life.disk);
    status = pen_order_book_create(&life.disk->base, "a training", &life.book);
    if (status == PEN_OK) status = power_live(&life, number);
    const bool is_cut = paired_disk_has_crashed(life.disk);
    if (number == 0) world->result->was_cut = is_cut;
    // until something is kept, the faulty folder may be the one that has it: nothing is begun anew
    const bool is_superseded = pen_status_get_code(status) == PEN_CANCELLED; // as in power_live
    const bool may_wait = power_is_faulty(world) && (world->told[0].step == 0 || is_superseded);
    if (status != PEN_OK && !is_cut && !may_wait) {
        power_complain(world, "P5: life %u ended: %s", number + 1, pen_status_message(status));
    }
    const bool is_well = status == PEN_OK || is_cut || may_wait;
    pen_status_ignore(status, "complained of, or wanted");
    pen_order_book_destroy(life.book);
    pen_arena_destroy(life.arena);
    return is_well;
}

// ---- between lives

static void power_lose(power_world *world) {
    for (uint32_t d = 0; d < POWER_DISKS; d++) {
        faulty_disk_lose_power(world->disks[d], FAULTY_DISK_ANY);
    }
}

// Where it is mounted is there, and stays.
static void power_add_disk(power_world *world, uint32_t index) {
    faulty_view *view;
    pen_status status =
        faulty_disk_new(chance_next(&world->dice), world->arena, &world->disks[index]);
    if (status == PEN_OK) status = faulty_view_new(world->disks[index], POWER_LIVES, &view);
    if (status == PEN_OK) {
        status = view->base.kind->make_folder(&view->base, index == 0 ? "one" : "two");
    }
    if (status != PEN_OK) abort();
    faulty_disk_tear_sectors(world->disks[index]);
    faulty_disk_tell_lie(world->disks[index], world->the_case->lie);
}

// An empty disk in the place of one: the faulty one, or any that is not the only one to have the
// last checkpoint.
static void power_replace(power_world *world) {
    uint32_t index = (uint32_t)chance_below(&world->dice, POWER_DISKS);
    if (!world->the_case->is_replaced) return;
    if (power_is_faulty(world)) index = world->the_case->faulty;
    const power_told *last = &world->told[0];
    if (!last->is_on[1 - index]) return;
    power_add_disk(world, index);
    for (uint32_t k = 0; k < POWER_KEPT; k++) {
        world->told[k].is_on[index] = false;
    }
}

// A last look, after the power went once more behind the last life.
static void power_look(power_world *world) {
    static const faulty_disk_rates none = {0};
    power_life life = {.world = world};
    pen_status status = pen_arena_create(&life.arena);
    power_lose(world);
    power_replace(world);
    if (status == PEN_OK) {
        status = paired_disk_new(world->disks, POWER_LIVES, world->arena, &life.disk);
    }
    for (uint32_t d = 0; d < POWER_DISKS; d++) {
        faulty_disk_set_rates(world->disks[d], &none);
    }
    if (status == PEN_OK) {
        const pen_checkpoint_folders folders = power_name_folders(&life);
        status = pen_checkpoint_store_open(&folders, NULL, life.arena, &life.store);
    }
    if (status == PEN_OK) power_judge(&life);
    if (status != PEN_OK) power_complain(world, "P5: %s", pen_status_message(status));
    pen_status_ignore(status, "complained of");
    pen_arena_destroy(life.arena);
}

void power_train(const power_case *the_case, const pen_checkpoint_subject *subject,
                 power_result *out_result) {
    pen_arena *arena;
    power_world *world;
    *out_result = (power_result){0};
    if (pen_arena_create(&arena) != PEN_OK || PEN_NEW(arena, 1, &world) != PEN_OK) abort();
    world->arena = arena;
    world->the_case = the_case;
    world->subject = subject;
    world->result = out_result;
    world->dice.state = the_case->seed * 977 + the_case->lives[0].cut_at;
    for (uint32_t d = 0; d < POWER_DISKS; d++) {
        power_add_disk(world, d);
    }
    power_shape(world);
    for (uint32_t l = 0; l < POWER_LIVES; l++) {
        if (!power_be_born(world, l)) break;
        if (l + 1 == POWER_LIVES) break;
        if (the_case->lives[l].end == POWER_END_LOSS) power_lose(world);
        power_replace(world);
    }
    if (out_result->complaint[0] == '\0') power_look(world);
    pen_arena_destroy(arena);
}
