#include "partition/objective/segment_load.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/placement_generator.h"
#include "tests/support/placement_judge.h"
#include "tests/support/random_case.h"

// The load of a device that has the segment's groups, when all others are on another one.
static double judge_segment(const pen_problem *problem, const pen_segment_load *segment, uint32_t d,
                            pen_arena *arena) {
    uint32_t devices[30];
    double load[6], bytes[6];
    for (uint32_t g = 0; g < problem->group_count; g++) {
        devices[g] = segment->is_inside[g] ? d : (d + 1) % problem->given.device_count;
    }
    placement_judge_loads(&problem->given, placement_case_spread(problem, devices, arena), load,
                          bytes);
    return load[d];
}

static void check_segment(const pen_problem *problem, const pen_segment_load *segment,
                          const pen_device_classes *classes, pen_arena *arena) {
    double bytes = 0.0;
    for (uint32_t g = 0; g < problem->group_count; g++)
        bytes += segment->is_inside[g] ? problem->group_bytes[g] : 0.0;
    assert_true(fabs(bytes - segment->bytes) < 1e-6);
    for (uint32_t c = 0; c < classes->class_count; c++) {
        const pen_device_class *class = &classes->classes[c];
        bool allows = true;
        for (uint32_t g = 0; g < problem->group_count; g++) {
            if (segment->is_inside[g] && !pen_problem_allows(problem, g, class->devices[0]))
                allows = false;
        }
        assert_int_equal(allows, pen_segment_load_allows(segment, class));
        if (!allows) continue;
        const double expected = judge_segment(problem, segment, class->devices[0], arena);
        const double found = pen_segment_load_on(segment, class);
        CHECK(fabs(expected - found) < 1e-6, "load %.17g, judged %.17g", found, expected);
        assert_true(pen_segment_load_bound(segment, class) <= found + 1e-6);
    }
}

// Segments of a random line, grown and shrunk at their end, behind a prefix that moves on.
static void walk(const pen_problem *problem, uint64_t seed, pen_arena *arena) {
    random_case random = {.seed = seed};
    pen_segment_load *segment;
    pen_device_classes *classes;
    uint32_t line[30], begin = 0, end = 0;
    CHECK_OK(pen_segment_load_new(problem, arena, &segment));
    CHECK_OK(pen_device_classes_new(problem, 0, arena, &classes));
    for (uint32_t g = 0; g < problem->group_count; g++) {
        const uint32_t j = (uint32_t)random_between(&random, 0, g);
        line[g] = line[j];
        line[j] = g;
    }
    for (int step = 0; step < 200; step++) {
        if (begin == end && random_chance(&random, 50)) { // empty: the prefix may move
            if (begin > 0 && random_chance(&random, 50)) {
                end = --begin;
                pen_segment_load_retreat(segment, line[begin]);
            } else if (begin < problem->group_count) {
                pen_segment_load_advance(segment, line[begin++]);
                end = begin;
            }
            continue;
        }
        double bounds[6];
        for (uint32_t c = 0; c < classes->class_count; c++)
            bounds[c] = pen_segment_load_bound(segment, &classes->classes[c]);
        if (end < problem->group_count && random_chance(&random, 60)) {
            pen_segment_load_add(segment, line[end++]);
            for (uint32_t c = 0; c < classes->class_count; c++) {
                const pen_device_class *class = &classes->classes[c];
                assert_true(pen_segment_load_bound(segment, class) >= bounds[c] - 1e-6);
            }
        } else if (end > begin) {
            pen_segment_load_remove(segment, line[--end]);
        }
        assert_int_equal(segment->count, end - begin);
        check_segment(problem, segment, classes, arena);
    }
}

static void loads_are_the_judges(void **state) {
    (void)state;
    uint64_t seed = 50000;
    for (int i = 0; i < 100; i++) {
        pen_arena *arena = check_arena();
        const placement_wish wish = {.node_count_most = 30,
                                     .device_count_most = 6,
                                     .is_contiguous = true,
                                     .is_plain = true,
                                     .has_no_links = true};
        const pen_problem *problem = placement_case_build(&seed, &wish, arena);
        if (problem->given.device_count > 1) walk(problem, seed, arena);
        pen_arena_destroy(arena);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(loads_are_the_judges))
