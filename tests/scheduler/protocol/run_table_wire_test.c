#include "scheduler/protocol/run_table_wire.h"

#include "scheduler/protocol/run_table_check.h"
#include "tests/support/check.h"
#include "tests/support/random_run_table.h"
#include "tests/support/record_bytes.h"

// Two devices on two workers: the host feeds device 0, which sends to device 1 and back.
static pen_run_table small_table(pen_arena *arena) {
    static const pen_run_channel channels[] = {
        {.target_worker = 1,
         .source_device = PEN_CHANNEL_HOST,
         .capacity = 3,
         .copies = 3,
         .bytes = 64},
        {.source_worker = 1,
         .target_worker = 2,
         .target_device = 1,
         .capacity = 2,
         .copies = 4,
         .bytes = (uint64_t)1 << 40},
        {.source_worker = 2,
         .target_worker = 1,
         .source_device = 1,
         .capacity = 1,
         .copies = 1,
         .bytes = 4,
         .is_per_step = true},
    };
    static const uint32_t refs[] = {0, 1, 0, 1, 2, 2};
    static const pen_run_task tasks[] = {
        {.task = {PEN_TASK_FORWARD, 0, 0},
         .receive_end = 1,
         .send_first = 1,
         .send_end = 2,
         .release_first = 2,
         .release_end = 3},
        {.task = {PEN_TASK_UPDATE, 0, 0},
         .list = PEN_RUN_LIST_NONE,
         .receive_first = 5,
         .receive_end = 6},
        {.task = {PEN_TASK_FORWARD, 1, 0},
         .receive_first = 3,
         .receive_end = 4,
         .send_first = 4,
         .send_end = 5,
         .makes_loss = true},
    };
    pen_run_device *devices;
    pen_run_form *form;
    CHECK_OK(PEN_NEW(arena, 2, &devices));
    CHECK_OK(PEN_NEW(arena, 1, &form));
    devices[0] = (pen_run_device){.worker = 1, .task_end = 2};
    devices[1] = (pen_run_device){.worker = 2, .task_first = 2, .task_end = 3};
    *form = (pen_run_form){.microbatch_count = 1,
                           .trains = true,
                           .microbatch_size = 7,
                           .channel_count = 3,
                           .channels = channels,
                           .task_count = 3,
                           .tasks = tasks,
                           .ref_count = 6,
                           .refs = refs,
                           .devices = devices};
    return (pen_run_table){.worker_count = 2, .device_count = 2, .form_count = 1, .forms = form};
}

static void reads_back_what_it_wrote(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_table table = small_table(arena);
    const pen_run_table *read;
    const void *bytes, *again;
    uint64_t byte_count, again_count;
    CHECK_OK(pen_run_table_encode(&table, arena, &bytes, &byte_count));
    CHECK_OK(pen_run_table_decode(bytes, byte_count, arena, &read));
    CHECK_OK(pen_run_table_encode(read, arena, &again, &again_count));
    CHECK(byte_count == again_count && memcmp(bytes, again, byte_count) == 0, "other bytes");
    const pen_run_form *form = &read->forms[0];
    CHECK(form->channels[0].source_device == PEN_CHANNEL_HOST, "the host");
    CHECK(form->channels[1].bytes == (uint64_t)1 << 40, "bytes");
    CHECK(form->channels[2].is_per_step, "per step");
    CHECK(form->tasks[1].list == PEN_RUN_LIST_NONE && form->tasks[0].list == 0, "lists");
    CHECK(form->tasks[2].makes_loss && form->refs[4] == 2, "the last task");
    pen_arena_destroy(arena);
}

static void refuses_what_is_cut_short(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_table table = small_table(arena), *read;
    const void *bytes;
    uint64_t byte_count;
    CHECK_OK(pen_run_table_encode(&table, arena, &bytes, &byte_count));
    for (uint64_t length = 0; length < byte_count; length++) {
        CHECK_ERROR(pen_run_table_decode(bytes, length, arena, &read), PEN_CORRUPT, "");
    }
    pen_arena_destroy(arena);
}

// Whatever a flipped bit makes of it, what is accepted is within its ranges.
static void checks_what_is_flipped(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_table table = small_table(arena), *read;
    const void *bytes;
    uint64_t byte_count;
    uint32_t refused = 0;
    CHECK_OK(pen_run_table_encode(&table, arena, &bytes, &byte_count));
    char *copy;
    CHECK_OK(PEN_NEW(arena, byte_count, &copy));
    for (uint64_t bit = 0; bit < byte_count * 8; bit++) {
        memcpy(copy, bytes, byte_count);
        copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << (bit % 8)));
        const pen_status status = pen_run_table_decode(copy, byte_count, arena, &read);
        if (status == PEN_OK) {
            CHECK_OK(pen_run_table_check(read));
            continue;
        }
        CHECK(pen_status_get_code(status) == PEN_CORRUPT, "bit %llu", (unsigned long long)bit);
        pen_status_ignore(status, "meant");
        refused++;
    }
    CHECK(refused > byte_count, "only %u refused", refused);
    pen_arena_destroy(arena);
}

#define CHECK_SPOILED(field, value, text)                                                          \
    do {                                                                                           \
        pen_run_channel channels[3];                                                               \
        pen_run_task tasks[3];                                                                     \
        uint32_t refs[6];                                                                          \
        pen_run_device devices[2];                                                                 \
        pen_run_form form = table.forms[0];                                                        \
        memcpy(channels, form.channels, sizeof channels);                                          \
        memcpy(tasks, form.tasks, sizeof tasks);                                                   \
        memcpy(refs, form.refs, sizeof refs);                                                      \
        memcpy(devices, form.devices, sizeof devices);                                             \
        form.channels = channels;                                                                  \
        form.tasks = tasks;                                                                        \
        form.refs = refs;                                                                          \
        form.devices = devices;                                                                    \
        const pen_run_table spoiled = {                                                            \
            .worker_count = 2, .device_count = 2, .form_count = 1, .forms = &form};                \
        CHECK_OK(pen_run_table_check(&spoiled));                                                   \
        field = (value);                                                                           \
        CHECK_ERROR(pen_run_table_check(&spoiled), PEN_CORRUPT, text);                             \
    } while (0)

static void names_what_is_out_of_range(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_run_table table = small_table(arena);
    CHECK_SPOILED(channels[0].first_microbatch, form.microbatch_count, "carries 0 microbatches");
    CHECK_SPOILED(channels[0].microbatch_count, form.microbatch_count + 1, "microbatches from 0");
    CHECK_SPOILED(channels[0].first_microbatch, 1, "channel 0");
    CHECK_SPOILED(channels[1].target_worker, 1, "channel 1 goes");
    CHECK_SPOILED(channels[1].capacity, 0, "channel 1 has 4 and 0 places");
    CHECK_SPOILED(channels[1].is_shared, true, "channel 1 has");
    CHECK_SPOILED(refs[3], 3, "channel 3 of 3");
    CHECK_SPOILED(refs[3], 0, "task 2 waits for another device's channel");
    CHECK_SPOILED(refs[1], 2, "task 0 sends on another device's channel");
    CHECK_SPOILED(refs[2], 1, "task 0 releases another device's channel");
    CHECK_SPOILED(tasks[0].task.microbatch, 1, "task 0 is out of range");
    CHECK_SPOILED(tasks[0].receive_first, 2, "task 0 is out of range");
    CHECK_SPOILED(tasks[0].release_end, 6, "tasks share");
    CHECK_SPOILED(devices[0].task_end, 1, "device 1 of worker 2 has tasks 2");
    CHECK_SPOILED(devices[1].worker, 3, "device 1 of worker 3");
    CHECK_SPOILED(form.microbatch_count, 0, "0 microbatches");
    pen_arena_destroy(arena);
}

// Gradients of all microbatches are there before what uses them.
static void refuses_an_update_before_the_last_backward_pass(void **state) {
    (void)state;
    for (uint32_t halves = 0; halves < 2; halves++) {
        const pen_task_kind backward = halves ? PEN_TASK_BACKWARD_WEIGHT : PEN_TASK_BACKWARD;
        pen_run_task tasks[] = {{.task = {PEN_TASK_FORWARD, 0, 0}},
                                {.task = {PEN_TASK_FORWARD, 0, 1}},
                                {.task = {backward, 0, 0}},
                                {.task = {backward, 0, 1}},
                                {.task = {PEN_TASK_UPDATE, 0, 0}}};
        const pen_run_device device = {.worker = 1, .task_end = 5};
        const pen_run_form form = {.microbatch_count = 2,
                                   .trains = true,
                                   .microbatch_size = 1,
                                   .task_count = 5,
                                   .tasks = tasks,
                                   .devices = &device};
        const pen_run_table table = {
            .worker_count = 1, .device_count = 1, .form_count = 1, .forms = &form};
        CHECK_OK(pen_run_table_check(&table));
        const pen_run_task last = tasks[3];
        tasks[3] = tasks[4];
        tasks[4] = last;
        CHECK_ERROR(pen_run_table_check(&table), PEN_CORRUPT,
                    "update of stage 0 comes after the backward passes of 1 of 2 microbatches");
    }
}

// A channel of one of two microbatches; the second task sends on it what it does not carry.
static void refuses_a_frame_that_its_channel_does_not_carry(void **state) {
    (void)state;
    const pen_run_channel channel = {.source_worker = 1,
                                     .target_worker = 2,
                                     .target_device = 1,
                                     .capacity = 1,
                                     .copies = 1,
                                     .bytes = 4,
                                     .microbatch_count = 1};
    const uint32_t refs[] = {0, 0};
    pen_run_task tasks[] = {{.task = {PEN_TASK_FORWARD, 0, 0}, .send_end = 1},
                            {.task = {PEN_TASK_FORWARD, 0, 1}, .send_first = 1, .send_end = 2}};
    const pen_run_device devices[] = {{.worker = 1, .task_end = 2},
                                      {.worker = 2, .task_first = 2, .task_end = 2}};
    const pen_run_form form = {.microbatch_count = 2,
                               .trains = true,
                               .microbatch_size = 1,
                               .channel_count = 1,
                               .channels = &channel,
                               .task_count = 2,
                               .tasks = tasks,
                               .ref_count = 2,
                               .refs = refs,
                               .devices = devices};
    const pen_run_table table = {
        .worker_count = 2, .device_count = 2, .form_count = 1, .forms = &form};
    CHECK_ERROR(pen_run_table_check(&table), PEN_CORRUPT, "channel 0 carries no such microbatch");
    tasks[1].task = (pen_task){PEN_TASK_UPDATE, 0, 0};
    CHECK_ERROR(pen_run_table_check(&table), PEN_CORRUPT, "channel 0 is not per step");
}

static void has_the_same_bytes_as_ever(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_text_init(&text, arena);
    pen_run_table table = small_table(arena);
    for (uint32_t stages = 1; stages < 9; stages++) {
        const void *bytes;
        uint64_t count;
        if (stages > 1) table = *chain_run_table(arena, stages, 2 * stages, stages);
        CHECK_OK(pen_run_table_encode(&table, arena, &bytes, &count));
        record_bytes_add(&text, stages == 1 ? "small" : "chain", bytes, count);
    }
    record_bytes_check(&text, "run_table_bytes.txt");
    pen_arena_destroy(arena);
}

// A replica may have the loss and the hits of a microbatch in two stages, another in one.
static void losses_come_from_as_many_stages_as_a_replica_has(void **state) {
    (void)state;
    pen_run_task tasks[] = {{.task = {PEN_TASK_FORWARD, 0, 0}, .list = 0, .makes_loss = true},
                            {.task = {PEN_TASK_FORWARD, 1, 0}, .list = 1, .makes_loss = true},
                            {.task = {PEN_TASK_FORWARD, 2, 1}, .list = 0, .makes_loss = true}};
    const pen_run_device devices[] = {{.worker = 1, .task_end = 2},
                                      {.worker = 2, .task_first = 2, .task_end = 3}};
    const pen_run_form form = {.microbatch_count = 2,
                               .microbatch_size = 7,
                               .task_count = 3,
                               .tasks = tasks,
                               .devices = devices};
    const pen_run_table table = {
        .worker_count = 2, .device_count = 2, .form_count = 1, .forms = &form};
    CHECK_OK(pen_run_table_check(&table));
    tasks[2].makes_loss = false;
    CHECK_ERROR(pen_run_table_check(&table), PEN_CORRUPT,
                "the loss of microbatch 1 is made by 0 tasks, that of 0 by 2");
}

PEN_TEST_MAIN(cmocka_unit_test(refuses_a_frame_that_its_channel_does_not_carry),
              cmocka_unit_test(losses_come_from_as_many_stages_as_a_replica_has),
              cmocka_unit_test(has_the_same_bytes_as_ever),
              cmocka_unit_test(refuses_an_update_before_the_last_backward_pass),
              cmocka_unit_test(reads_back_what_it_wrote),
              cmocka_unit_test(refuses_what_is_cut_short), cmocka_unit_test(checks_what_is_flipped),
              cmocka_unit_test(names_what_is_out_of_range))
