// Rounds of a search share its time limit, and learn of the plan at hand alone.
#include "base/clock.h"
#include "scheduler/plan/kernel_sizes.h"
#include "scheduler/plan/plan_memory.h"
#include "scheduler/plan/plan_room.h"
#include "scheduler/plan/plan_schedule.h"
#include "tests/support/check.h"
#include "tests/support/planned.h"

#define DEVICES 4

// ---- time

static pen_plan_room room_of(uint64_t *missing, pen_cluster_device *devices) {
    return (pen_plan_room){
        .cluster = {.device_count = 1, .devices = devices}, .devices = devices, .missing = missing};
}

// Each search takes all that it may, as if the clock had gone on so far.
static double room_spend(pen_plan_room *room) {
    const double seconds = pen_plan_room_cut(room);
    room->end_seconds -= seconds;
    return seconds;
}

static void rounds_share_the_limit(void **state) {
    (void)state;
    uint64_t missing = 0;
    pen_cluster_device device = {.name = "a"};
    for (uint32_t searches = 1; searches <= 3; searches++) { // of a round
        pen_plan_room room = room_of(&missing, &device);
        pen_plan_room_begin(&room, 100);
        double total = room_spend(&room);
        assert_true(total == 90.0);
        assert_true(pen_plan_room_schedule_cut(&room, 8) == 8.0);
        for (uint32_t round = 1; round < PEN_PLAN_ROOM_ROUNDS; round++) {
            missing = 1;
            assert_true(pen_plan_room_learn(&room));
            for (uint32_t s = 0; s < searches; s++) {
                const double seconds = room_spend(&room);
                CHECK(seconds >= 0.5, "%g seconds", seconds);
                total += seconds;
            }
        }
        CHECK(total > 94 && total <= 100, "%g seconds of 100", total);
        const double left = pen_plan_room_schedule_cut(&room, 8);
        CHECK(left > 0 && left <= 8, "%g seconds of 8 for a schedule", left);
        room.end_seconds = pen_clock_seconds() - 100;
        room.round = 1;
        assert_true(pen_plan_room_cut(&room) == 0.5);
        assert_true(pen_plan_room_schedule_cut(&room, 8) < 0);
    }
    assert_int_equal(device.own_bytes, 9); // three rounds, three times
}

// What a plan before lacked is forgotten when another is searched.
static void a_search_begins_with_nothing_missing(void **state) {
    (void)state;
    uint64_t missing = 7;
    pen_cluster_device device = {.name = "a"};
    pen_plan_room room = room_of(&missing, &device);
    pen_plan_room_begin(&room, 1);
    (void)pen_plan_room_cut(&room);
    assert_false(pen_plan_room_learn(&room));
    assert_int_equal(device.own_bytes, 0);
}

// ---- bytes

typedef struct refine_case {
    pen_arena *arena;
    pen_plan_job *plan_job;
    pen_device *device;
    uint64_t missing[DEVICES];
    pen_plan_memory_request request;
} refine_case;

static void refine_begin(refine_case *c, const pen_plan **out_plan) {
    static const pen_plan_forms no_forms = {.count = 0};
    const pen_device_kind *kind;
    pen_kernel_sizes **sizes;
    const void **contexts;
    pen_device **devices;
    *c = (refine_case){.arena = check_arena()};
    c->plan_job =
        planned_start(planned_reference(c->arena, "mlp", 4,
                                        PLANNED_FOUR_DEVICES "placement: {strategy: round_robin}\n"
                                                             "pipeline: {schedule: 1f1b}\n"));
    *out_plan = planned_place(c->plan_job, c->arena);
    CHECK_OK(pen_device_kind_find("cpu", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.name = "a", .thread_count = 1}, &c->device));
    CHECK_OK(PEN_NEW(c->arena, 1, &sizes));
    CHECK_OK(PEN_NEW(c->arena, DEVICES, &contexts));
    CHECK_OK(PEN_NEW(c->arena, DEVICES, &devices));
    CHECK_OK(pen_kernel_sizes_new(c->device, c->arena, sizes));
    for (uint32_t d = 0; d < DEVICES; d++) {
        contexts[d] = sizes;
        devices[d] = c->device;
    }
    c->request = (pen_plan_memory_request){.cluster = planned_request(c->plan_job)->cluster,
                                           .program = pen_plan_job_program(c->plan_job),
                                           .forms = &no_forms,
                                           .value_bytes = pen_kernel_sizes_of_value,
                                           .workspace = pen_kernel_sizes_of_node,
                                           .contexts = contexts,
                                           .devices = devices,
                                           .missing = c->missing};
    CHECK_OK(pen_plan_schedule(*out_plan, c->arena, &c->request.schedule));
}

// A plan like it, of which one device takes `lacking` bytes more than it says, and than there are.
static pen_status refine_short(refine_case *c, const pen_plan *plan, uint32_t device,
                               uint64_t lacking) {
    pen_plan other = *plan;
    pen_plan_device *devices;
    double *limits;
    CHECK_OK(PEN_NEW(c->arena, DEVICES, &devices));
    CHECK_OK(PEN_NEW(c->arena, DEVICES, &limits));
    for (uint32_t d = 0; d < DEVICES; d++) {
        devices[d] = plan->devices[d];
        limits[d] = 1e9;
    }
    devices[device].memory.total -= lacking;
    limits[device] = (double)devices[device].memory.total;
    other.devices = devices;
    other.stages.bytes_limit = limits;
    c->request.plan = &other;
    return pen_plan_memory_refine(&c->request, c->arena, &other);
}

static void what_lacks_is_of_the_plan_at_hand(void **state) {
    (void)state;
    const pen_plan *plan;
    refine_case c;
    refine_begin(&c, &plan);
    CHECK_ERROR(refine_short(&c, plan, 0, 5000), PEN_DOES_NOT_FIT, "'a'");
    assert_int_equal(c.missing[0], 5000);
    CHECK_ERROR(refine_short(&c, plan, 1, 300), PEN_DOES_NOT_FIT, "'b'");
    assert_int_equal(c.missing[0], 0);
    assert_int_equal(c.missing[1], 300);
    CHECK_ERROR(refine_short(&c, plan, 1, 20), PEN_DOES_NOT_FIT, "'b'");
    assert_int_equal(c.missing[1], 20);
    CHECK_OK(refine_short(&c, plan, 1, 0));
    assert_int_equal(c.missing[1], 0);
    c.device->kind->close(c.device);
    pen_plan_job_destroy(c.plan_job);
    pen_arena_destroy(c.arena);
}

PEN_TEST_MAIN(cmocka_unit_test(rounds_share_the_limit),
              cmocka_unit_test(a_search_begins_with_nothing_missing),
              cmocka_unit_test(what_lacks_is_of_the_plan_at_hand))
