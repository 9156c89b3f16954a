#include "partition/problem/device_classes.h"

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"

static bool is_alike(const pen_problem *problem, uint32_t a, uint32_t b) {
    const pen_problem_device *x = &problem->given.devices[a], *y = &problem->given.devices[b];
    return x->kind == y->kind && x->slowness == y->slowness && x->send == y->send &&
           x->receive == y->receive && x->bytes_limit == y->bytes_limit &&
           x->microbatches == y->microbatches && x->is_parallel == y->is_parallel;
}

// Every device is in one class, with its like; with pins or links that tell devices apart, alone.
static void check_classes(const pen_problem *problem, const pen_device_classes *classes) {
    uint32_t total = 0;
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const pen_device_class *class = &classes->classes[c];
        for (uint32_t i = 0; i < class->device_count; i++) {
            const uint32_t d = class->devices[i];
            assert_int_equal(classes->class_of_device[d], c);
            assert_true(i == 0 || class->devices[i - 1] < d);
            assert_true(is_alike(problem, class->devices[0], d));
        }
        total += class->device_count;
    }
    assert_int_equal(total, problem->given.device_count);
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (problem->group_pin[g] == PEN_PROBLEM_ANY) continue;
        const uint32_t c = classes->class_of_device[problem->group_pin[g]];
        assert_int_equal(classes->classes[c].device_count, 1);
    }
    for (uint32_t d = 0; d < problem->given.device_count && problem->given.link != NULL; d++)
        assert_int_equal(classes->classes[classes->class_of_device[d]].device_count, 1);
}

// From no device in use, taking devices ends, and uses each class at most as often as it can be.
static void walk(const pen_device_classes *classes, uint32_t state, uint32_t *used, int depth) {
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const uint32_t next = classes->next[state * classes->class_count + c];
        const bool is_used_up = used[c] == classes->classes[c].device_count;
        if (!classes->is_sequence) assert_int_equal(next == PEN_DEVICE_STATE_NONE, is_used_up);
        if (next == PEN_DEVICE_STATE_NONE) continue;
        assert_true(next > state && next < classes->state_count && !is_used_up);
        used[c]++;
        if (depth < 4) walk(classes, next, used, depth + 1);
        used[c]--;
    }
}

static void classes_hold_what_is_alike(void **state) {
    (void)state;
    uint64_t seed = 100000;
    int sequences = 0;
    for (int i = 0; i < 200; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 10, .device_count_most = 12};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        pen_device_classes *classes;
        CHECK_OK(pen_device_classes_new(problem, (uint64_t)i % 3, arena, &classes));
        check_classes(problem, classes);
        uint32_t used[12] = {0};
        walk(classes, 0, used, 0);
        sequences += classes->is_sequence;
        uint32_t met = 0; // bits
        for (uint32_t d = 0; d < problem->given.device_count && classes->is_sequence; d++)
            met |= 1u << classes->sequence[d];
        if (classes->is_sequence) assert_int_equal(met, (1u << problem->given.device_count) - 1);
        pen_arena_destroy(arena);
    }
    assert_true(sequences > 20 && sequences < 180);
}

PEN_TEST_MAIN(cmocka_unit_test(classes_hold_what_is_alike))
