#include "device/measure_fill.h"
#include "device/measure_op.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/small_graph.h"

static pen_device *open_reference(void) {
    const pen_device_kind *kind;
    pen_device *device;
    CHECK_OK(pen_device_kind_find("reference", &kind));
    CHECK_OK(kind->open(&(pen_device_options){.thread_count = 1}, &device));
    return device;
}

static const pen_measure_step *step_of(const small_graph *small, pen_arena *arena) {
    const uint32_t count = pen_graph_node_count(small->graph);
    pen_node_id *order;
    CHECK_OK(PEN_NEW(arena, count, &order));
    for (uint32_t n = 0; n < count; n++) {
        order[n] = (pen_node_id){n};
    }
    const pen_measure_program program = {.graph = small->graph,
                                         .order = order,
                                         .order_count = count,
                                         .kept = &small->y,
                                         .kept_count = 1};
    const pen_measure_step *step;
    pen_device *device = open_reference();
    CHECK_OK(pen_measure_step_build(device, &program, arena, &step));
    device->kind->close(device);
    return step;
}

static void distances_are_bytes_between_uses(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena); // two products
    const pen_measure_step *step = step_of(&small, arena);
    const uint64_t first = pen_node_bytes(small.graph, (pen_node_id){0});
    const uint64_t second = pen_node_bytes(small.graph, (pen_node_id){1});
    assert_int_equal(step->step_bytes, first + second);
    const uint64_t *a = step->distances + step->first_of_node[0];
    const uint64_t *b = step->distances + step->first_of_node[1];
    assert_int_equal(a[0], second); // x, and the weight: used in the step before
    assert_int_equal(a[1], second);
    assert_int_equal(b[0], 0); // written just before
    assert_int_equal(b[1], first);
    assert_int_equal(step->same_as[step->first_of_node[1] + 2], 2);
    pen_arena_destroy(arena);
}

static void updates_lie_on_what_they_replace(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_training(arena);
    const pen_measure_step *step = step_of(&small, arena);
    uint32_t update_count = 0;
    for (uint32_t n = 0; n < pen_graph_node_count(small.graph); n++) {
        const pen_node *node = pen_graph_node(small.graph, (pen_node_id){n});
        for (uint32_t i = 0; i < node->output_count; i++) {
            const pen_value *output = pen_graph_value(small.graph, node->outputs[i]);
            if (!pen_value_is(output->replaces)) continue;
            const uint32_t same = step->same_as[step->first_of_node[n] + node->input_count + i];
            assert_true(same < node->input_count);
            assert_true(pen_value_same(node->inputs[same], output->replaces));
            update_count += 1;
        }
        for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
            const uint64_t distance = step->distances[step->first_of_node[n] + i];
            CHECK(distance <= step->step_bytes, "%s %u", node->name, i);
        }
    }
    assert_true(update_count >= 2);
    pen_arena_destroy(arena);
}

static void contents_are_benign(void **state) {
    (void)state;
    float floats[20000];
    pen_measure_contents contents = {.element = PEN_FLOAT32};
    pen_measure_fill(&contents, floats, sizeof floats);
    for (size_t i = 0; i < 20000; i++) {
        assert_true(floats[i] > 0.09F && floats[i] < 0.91F);
    }
    contents.is_signed = true;
    uint32_t negative = 0, zeros = 0;
    pen_measure_fill(&contents, floats, sizeof floats);
    for (size_t i = 0; i < 20000; i++) {
        assert_true(floats[i] > -0.91F && floats[i] < 0.91F);
        negative += floats[i] < 0;
    }
    CHECK(negative > 9000 && negative < 11000, "%u", negative);
    contents.is_rectified = true;
    pen_measure_fill(&contents, floats, sizeof floats);
    for (size_t i = 0; i < 20000; i++) {
        assert_true(floats[i] >= 0);
        zeros += floats[i] == 0;
    }
    assert_int_equal(zeros, negative);

    int64_t integers[1001];
    for (uint64_t limit = 1; limit < 300; limit += 13) {
        contents = (pen_measure_contents){.element = PEN_INT64, .limit = limit};
        pen_measure_fill(&contents, integers, sizeof integers);
        for (size_t i = 0; i < 1001; i++) {
            assert_true(integers[i] >= (limit > 1) && integers[i] < (int64_t)limit);
        }
        uint8_t bytes[999];
        contents.element = PEN_UINT8;
        pen_measure_fill(&contents, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes; i++) {
            assert_true(bytes[i] < limit && bytes[i] < 128);
        }
        contents.element = PEN_BOOL;
        pen_measure_fill(&contents, bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes; i++) {
            assert_true(bytes[i] <= 1);
        }
    }
    pen_measure_fill(&contents, NULL, 0);
}

PEN_TEST_MAIN(cmocka_unit_test(distances_are_bytes_between_uses),
              cmocka_unit_test(updates_lie_on_what_they_replace),
              cmocka_unit_test(contents_are_benign))
