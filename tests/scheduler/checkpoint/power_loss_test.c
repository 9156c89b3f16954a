// The power goes at every call that a training's checkpoints make to their disk, seed after seed:
// PEN_POWER_SEEDS of them (make check-power), a few without.
#include <inttypes.h>

#include "base/log.h"
#include "base/planted.h"
#include "tests/scheduler/checkpoint/power_training.h"
#include "tests/support/chance.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"
#include "tests/support/training.h"

#define POWER_SEEDS 8 // without the environment's

// in the product nothing asks for it; a build that has planted mistakes (base/planted.h) does
__attribute__((weak)) const char *pen_planted_mistake = "";

static const pen_checkpoint_subject *make_subject(pen_arena *arena) {
    pen_checkpoint_subject *subject;
    CHECK_OK(PEN_NEW(arena, 1, &subject));
    const char *model = tiny_model_write(&(tiny_model){0}, "tiny.onnx");
    const char *data = tiny_data_write("tiny", 13, 3);
    subject->job = training_job(arena,
                                "version: 1\n"
                                "model: {file: %s}\n"
                                "data: {train: {format: npy, inputs: {x: %s_x.npy}, labels: "
                                "%s_y.npy}}\n"
                                "train: {loss: softmax_cross_entropy, batch: 8, epochs: 4, "
                                "optimizer: {sgd: {lr: 0.1}}}\n"
                                "devices: [{name: a}]\n",
                                model, data, data);
    subject->example_count = 13;
    return subject;
}

static uint64_t count_seeds(void) {
    const char *text = getenv("PEN_POWER_SEEDS");
    return text == NULL ? POWER_SEEDS : strtoull(text, NULL, 10);
}

// A third of the seeds lose power once, a third twice, and a third first a process and then power,
// so that something is built on what a dead process left.
static power_case make_case(uint64_t seed, uint64_t cut_at, faulty_disk_lie lie) {
    chance dice = {seed * 2654435761u + cut_at};
    power_case the_case = {.seed = seed, .lie = lie};
    the_case.lives[0].end = seed % 3 == 2 ? POWER_END_DEATH : POWER_END_LOSS;
    the_case.lives[0].cut_at = cut_at;
    if (seed % 3 != 0) {
        the_case.lives[1].end = POWER_END_LOSS;
        the_case.lives[1].cut_at = chance_between(&dice, 1, 80);
    }
    return the_case;
}

// Two disks, of which one is faulty, full or dead, or may be replaced by an empty one.
static void add_mirror(power_case *the_case) {
    chance dice = {the_case->seed * 40503 + the_case->lives[0].cut_at};
    the_case->is_mirrored = true;
    the_case->fault = (power_fault)(the_case->seed % 4);
    the_case->faulty = (uint32_t)chance_below(&dice, POWER_DISKS);
    the_case->dead_from = chance_between(&dice, 1, 200);
    the_case->is_replaced = chance_one_in(&dice, 2);
}

// The first complaint of a seed, at any call; its number of calls.
static uint64_t cut_everywhere(const pen_checkpoint_subject *subject, uint64_t seed,
                               faulty_disk_lie lie, bool is_mirrored, power_result *out_result) {
    uint64_t cut_at = 0;
    do {
        power_case the_case = make_case(seed, ++cut_at, lie);
        if (is_mirrored) add_mirror(&the_case);
        power_train(&the_case, subject, out_result);
    } while (out_result->was_cut && out_result->complaint[0] == '\0');
    return cut_at;
}

static void survive(bool is_mirrored) {
    pen_arena *arena = check_arena();
    const pen_checkpoint_subject *subject = make_subject(arena);
    const uint64_t seeds = count_seeds();
    uint64_t calls = 0;
    pen_log_set_level(PEN_LOG_ERROR);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        power_result result;
        const uint64_t cut_at =
            cut_everywhere(subject, seed, FAULTY_DISK_IS_HONEST, is_mirrored, &result);
        CHECK(result.complaint[0] == '\0', "seed %" PRIu64 ", call %" PRIu64 ": %s", seed, cut_at,
              result.complaint);
        calls += cut_at;
    }
    pen_log_set_level(PEN_LOG_NOTE);
    printf("%" PRIu64 " seeds, the power went %" PRIu64 " times\n", seeds, calls);
    pen_arena_destroy(arena);
}

// What was told durable is there, whatever the moment at which the power goes.
static void survives_at_each_call(void **state) {
    (void)state;
    survive(false);
}

// The same with a mirror, while one of the disks fails as disks do, or is lost.
static void survives_a_disk(void **state) {
    (void)state;
    survive(true);
}

// A disk that does not do what it says is found out: as if the product had not asked for it.
static void finds_what_was_not_synced(void **state) {
    (void)state;
    static const faulty_disk_lie lies[] = {FAULTY_DISK_LOSES_FILES, FAULTY_DISK_LOSES_NAMES,
                                           FAULTY_DISK_LOSES_MADE_FOLDERS};
    pen_arena *arena = check_arena();
    const pen_checkpoint_subject *subject = make_subject(arena);
    pen_log_set_level(PEN_LOG_ERROR);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        power_result result = {0};
        for (uint64_t seed = 0; seed < 100 && result.complaint[0] == '\0'; seed++) {
            (void)cut_everywhere(subject, seed, lies[i], false, &result);
        }
        CHECK(result.complaint[0] != '\0', "lie %zu is not found out", i);
    }
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
}

// In a build that has mistakes of the product planted (make check-power).
static void finds_planted_mistakes(void **state) {
    (void)state;
#ifdef PEN_PLANTED_MISTAKES
    static const struct {
        const char *name;
        bool is_mirrored;
    } mistakes[] = {
        {"no_fsync_file", false},           {"no_fsync_folder", false},
        {"prune_too_early", false},         {"power_folders_unsettled", false},
        {"power_removal_unordered", false}, {"power_record_unsynced", false},
        {"power_order_unsynced", false},    {"power_begins_anew", true},
        {"power_unread_copy", true},        {"power_record_alone", true},
        {"power_no_other_copy", true},
    };
    pen_arena *arena = check_arena();
    const pen_checkpoint_subject *subject = make_subject(arena);
    pen_log_set_level(PEN_LOG_ERROR);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        power_result result = {0};
        uint64_t seed = 0;
        pen_planted_mistake = mistakes[i].name;
        for (; seed < 1000 && result.complaint[0] == '\0'; seed++) {
            (void)cut_everywhere(subject, seed, FAULTY_DISK_IS_HONEST, mistakes[i].is_mirrored,
                                 &result);
        }
        pen_planted_mistake = "";
        CHECK(result.complaint[0] != '\0', "%s is not found", mistakes[i].name);
        printf("%-26s found after %4" PRIu64 " seeds  %s\n", mistakes[i].name, seed,
               result.complaint);
    }
    pen_log_set_level(PEN_LOG_NOTE);
    pen_arena_destroy(arena);
#else
    skip(); // there are none in this build
#endif
}

PEN_TEST_MAIN(cmocka_unit_test(survives_at_each_call), cmocka_unit_test(survives_a_disk),
              cmocka_unit_test(finds_what_was_not_synced), cmocka_unit_test(finds_planted_mistakes))
