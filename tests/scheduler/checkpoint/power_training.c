#include "tests/scheduler/checkpoint/power_training.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/checkpoint/checkpoint_state.h"
#include "scheduler/checkpoint/order_book.h"
#include "tests/support/chance.h"

#define POWER_FOLDER "runs/one"
#define POWER_TENSORS 3
#define POWER_SHARDS 3
#define POWER_STEPS 12     // more than all lives do
#define POWER_LIFE_STEPS 3 // of one life
#define POWER_FLOATS 900   // of a tensor, at most
#define POWER_KEPT 2       // checkpoints
#define POWER_LANES 4

typedef struct power_world {
    const power_case *the_case;
    const pen_checkpoint_subject *subject;
    power_result *result;
    pen_arena *arena;
    faulty_disk *disk;
    int64_t floats[POWER_TENSORS];
    pen_stored_tensor tensors[POWER_TENSORS];
    float found[POWER_TENSORS][POWER_FLOATS]; // what was loaded
    pen_tensor_store store;
    bool is_tried[POWER_STEPS + 1]; // a manifest of the step may be there
    uint64_t told[POWER_KEPT];      // steps of checkpoints told durable: the last, the one before
    uint64_t generation;            // told durable
} power_world;

// One life of the training.
typedef struct power_life {
    power_world *world;
    pen_arena *arena;
    faulty_view *view;
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
    pen_status status = pen_checkpoint_store_verify(life->store, index);
    if (status == PEN_OK) status = pen_checkpoint_store_load(life->store, index, &world->store);
    if (life->view->has_crashed) {
        pen_status_ignore(status, "the next life looks again");
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
    if (generation < world->generation) {
        power_complain(world, "P3: generation %" PRIu64 " is in force, %" PRIu64 " was fenced",
                       generation, world->generation);
    }
    if (pen_checkpoint_store_damaged_count(life->store) > 0) {
        power_complain(world, "P2: a record of the log is damaged");
    }
    for (uint32_t i = 0; i < pen_checkpoint_store_count(life->store); i++) {
        if (!life->view->has_crashed) power_judge_one(life, i);
    }
    for (uint32_t k = 0; k < POWER_KEPT; k++) {
        if (world->told[k] == 0 || power_has(life, world->told[k])) continue;
        power_complain(world, "P1: the checkpoint of step %" PRIu64 " is gone", world->told[k]);
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
        PEN_TRY(pen_shard_write(&life->view->base, &source,
                                pen_checkpoint_store_shard_folder(life->store), name, life->arena,
                                &out_summaries[s]));
    }
    *out_count = count;
    return PEN_OK;
}

static void power_note_told(power_world *world, uint64_t step) {
    if (world->told[0] == step) return;
    world->told[1] = world->told[0];
    world->told[0] = step;
}

// As train.c and train_keeper.c do it: the order, the shards, the record, and then what is old.
static pen_status power_save(power_life *life) {
    power_world *world = life->world;
    const pen_checkpoint checkpoint = {.step = life->step, .rate_steps = POWER_STEPS};
    pen_shard_summary summaries[POWER_SHARDS];
    uint32_t count = 0;
    PEN_TRY(pen_order_book_sync(life->book));
    PEN_TRY(power_save_shards(life, summaries, &count));
    world->is_tried[life->step] = true;
    PEN_TRY(pen_checkpoint_store_publish(life->store, &checkpoint, summaries, count));
    power_note_told(world, life->step);
    return pen_checkpoint_store_prune(life->store, POWER_KEPT);
}

// Opens what is there, takes over, and stands where the newest checkpoint does.
static pen_status power_begin(power_life *life) {
    power_world *world = life->world;
    const uint64_t incarnation = world->the_case->seed * POWER_LIVES + life->view->owner + 1;
    pen_checkpoint found = {0};
    uint64_t generation = 0;
    PEN_TRY(pen_checkpoint_store_open(&life->view->base, POWER_FOLDER, world->subject, life->arena,
                                      &life->store));
    snprintf(life->store->model_hash, sizeof life->store->model_hash, "0123456789abcdef");
    power_judge(life);
    const bool begins = pen_checkpoint_store_count(life->store) == 0;
    PEN_TRY(pen_checkpoint_store_fence(life->store, incarnation, begins, &generation));
    world->generation = generation;
    if (!begins) {
        PEN_TRY(pen_checkpoint_store_load_newest(life->store, &world->store, &found));
        life->step = found.step;
        power_note_told(world, found.step); // what is built upon was made durable
        pen_status status = pen_order_book_read(life->book, POWER_FOLDER, found.step);
        if (status != PEN_OK && !life->view->has_crashed) {
            power_complain(world, "P4: %s", pen_status_message(status));
        }
        PEN_TRY(status);
    }
    return pen_order_book_keep(life->book, POWER_FOLDER, generation);
}

static pen_status power_live(power_life *life) {
    PEN_TRY(power_begin(life));
    for (uint32_t i = 0; i < POWER_LIFE_STEPS; i++) {
        life->step += 1;
        const pen_step_order order = power_order(life->step);
        PEN_TRY(pen_order_book_add(life->book, life->step, &order));
        PEN_TRY(power_save(life));
    }
    return PEN_OK;
}

// False: it could not live to its end, though nothing cut it.
static bool power_be_born(power_world *world, uint32_t number) {
    const bool is_last = number + 1 == POWER_LIVES;
    const uint64_t cut_at = is_last ? 0 : world->the_case->lives[number].cut_at;
    power_life life = {.world = world};
    pen_status status = pen_arena_create(&life.arena);
    if (status == PEN_OK) status = faulty_view_new(world->disk, number, &life.view);
    if (status == PEN_OK) {
        life.view->crash_at = cut_at;
        status = pen_order_book_create(&life.view->base, "a training", &life.book);
    }
    if (status == PEN_OK) status = power_live(&life);
    const bool is_cut = life.view != NULL && life.view->has_crashed;
    if (number == 0) {
        world->result->was_cut = is_cut;
        world->result->first_calls = life.view == NULL ? 0 : life.view->call_count;
    }
    if (status != PEN_OK && !is_cut) {
        power_complain(world, "P5: life %u ended: %s", number + 1, pen_status_message(status));
    }
    const bool is_well = status == PEN_OK || is_cut;
    pen_status_ignore(status, "complained of, or wanted");
    pen_order_book_destroy(life.book);
    pen_arena_destroy(life.arena);
    return is_well;
}

// A last look, after the power went once more behind the last life.
static void power_look(power_world *world) {
    power_life life = {.world = world};
    pen_status status = pen_arena_create(&life.arena);
    faulty_disk_lose_power(world->disk, FAULTY_DISK_ANY);
    if (status == PEN_OK) status = faulty_view_new(world->disk, POWER_LIVES, &life.view);
    if (status == PEN_OK) {
        status = pen_checkpoint_store_open(&life.view->base, POWER_FOLDER, NULL, life.arena,
                                           &life.store);
    }
    if (status == PEN_OK) power_judge(&life);
    if (status != PEN_OK) power_complain(world, "P5: %s", pen_status_message(status));
    pen_status_ignore(status, "complained of");
    pen_arena_destroy(life.arena);
}

static pen_status power_prepare(const power_case *the_case, power_world **out_world) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = PEN_NEW(arena, 1, out_world);
    if (status == PEN_OK) {
        (*out_world)->arena = arena;
        status = faulty_disk_new(the_case->seed * 977 + the_case->lives[0].cut_at, arena,
                                 &(*out_world)->disk);
    }
    if (status != PEN_OK) pen_arena_destroy(arena);
    return status;
}

void power_train(const power_case *the_case, const pen_checkpoint_subject *subject,
                 power_result *out_result) {
    power_world *world;
    *out_result = (power_result){0};
    if (power_prepare(the_case, &world) != PEN_OK) abort();
    world->the_case = the_case;
    world->subject = subject;
    world->result = out_result;
    faulty_disk_tear_sectors(world->disk);
    faulty_disk_tell_lie(world->disk, the_case->lie);
    power_shape(world);
    for (uint32_t l = 0; l < POWER_LIVES; l++) {
        if (!power_be_born(world, l)) break;
        const bool has_power = l + 1 == POWER_LIVES || the_case->lives[l].end != POWER_END_LOSS;
        if (!has_power) faulty_disk_lose_power(world->disk, FAULTY_DISK_ANY);
    }
    if (out_result->complaint[0] == '\0') power_look(world);
    pen_arena_destroy(world->arena);
}
