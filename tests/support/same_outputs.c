#include "tests/support/same_outputs.h"

#include "base/random.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"

static void same_fill(run_graph *run) {
    for (uint32_t i = 0; i < pen_graph_value_count(run->graph); i++) {
        const pen_value *value = pen_graph_value(run->graph, (pen_value_id){i});
        if (value->kind != PEN_VALUE_INPUT && value->kind != PEN_VALUE_PARAMETER) continue;
        const pen_random_key key = {1, pen_random_stream(value->name, 0, 0)};
        for (int64_t k = 0; k < pen_tensor_count(&run->tensors[i]); k++) {
            pen_tensor_set(&run->tensors[i], k, pen_random_normal(key, (uint64_t)k) / 2);
        }
    }
}

void check_same_outputs(const pen_graph *before, const pen_graph *after) {
    const pen_graph *graphs[2] = {before, after};
    run_graph runs[2];
    pen_arena *arena = check_arena();
    for (int i = 0; i < 2; i++) {
        CHECK_OK(run_graph_init(&runs[i], graphs[i], arena));
        same_fill(&runs[i]);
        CHECK_OK(run_graph_all(&runs[i]));
    }
    assert_int_equal(pen_graph_output_count(before), pen_graph_output_count(after));
    for (uint32_t i = 0; i < pen_graph_output_count(before); i++) {
        const pen_value_id outputs[2] = {pen_graph_output(before, i), pen_graph_output(after, i)};
        const pen_tensor *a = &runs[0].tensors[outputs[0].index];
        const pen_tensor *b = &runs[1].tensors[outputs[1].index];
        assert_string_equal(pen_value_name(before, outputs[0]), pen_value_name(after, outputs[1]));
        CHECK(pen_tensor_type_equal(&a->type, &b->type), "output %u changed its type", i);
        assert_memory_equal(a->data, b->data, pen_tensor_type_bytes(&a->type));
    }
    pen_arena_destroy(arena);
}
