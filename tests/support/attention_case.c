#include "tests/support/attention_case.h"

#include "tests/support/random_case.h"

static pen_tensor_type operand(const pen_shape *batch, bool by_row, int64_t rows, int64_t numbers) {
    pen_tensor_type type = {PEN_FLOAT32, *batch};
    type.shape.dims[type.shape.rank++] = rows;
    type.shape.dims[type.shape.rank++] = numbers;
    if (by_row) {
        type.shape.dims[batch->rank] = batch->dims[batch->rank - 1];
        type.shape.dims[batch->rank - 1] = rows;
    }
    return type;
}

// An attention and its backward, of the same shapes.
void attention_case_make(uint64_t seed, int64_t most, op_case *forward, op_case *backward) {
    random_case random = {.seed = seed};
    const pen_shape own = random_type(&random, 0, 2, 3, 6).shape; // of k and v
    pen_shape batch = own;
    if (batch.rank > 0 && random_chance(&random, 40)) batch.dims[batch.rank - 1] *= 2;
    const int64_t rows = random_between(&random, 1, most), keys = random_between(&random, 1, most);
    const int64_t depth = random_between(&random, 1, 33), width = random_between(&random, 1, 33);
    bool by_row[4];
    for (int i = 0; i < 4; i++) {
        by_row[i] = batch.rank > 0 && random_chance(&random, 50);
    }
    op_case c = {.op = "attention", .input_count = 3, .attribute_count = 6};
    c.inputs[0].type = operand(&batch, by_row[0], rows, depth);
    c.inputs[1].type = operand(&own, by_row[1], keys, depth);
    c.inputs[2].type = operand(&own, by_row[2], keys, width);
    static const char *const names[] = {"q_by_row", "k_by_row", "v_by_row", "y_by_row"};
    for (int i = 0; i < 4; i++) {
        c.attributes[i] = pen_attribute_int(names[i], by_row[i]);
    }
    c.attributes[4] = pen_attribute_int("causal", random_chance(&random, 40));
    c.attributes[5] = pen_attribute_float("scale", 0.4);
    if (random_chance(&random, 40)) {
        c.attributes[6] = pen_attribute_float("dropout", 0.4);
        c.attributes[7] = pen_attribute_text("stream", "drops");
        c.attribute_count = 8;
    }
    op_case b = {.op = "attention_backward", .input_count = 6, .output_count = 3};
    b.inputs[5].is_absent = true;
    if (random_chance(&random, 60)) {
        const pen_tensor_type square = operand(&batch, false, rows, keys);
        c.input_count = 4;
        c.inputs[3].type = random_broadcast_of(&random, &square);
        if (random_chance(&random, 30)) { // rows may be hidden wholly
            c.inputs[3].type.element = PEN_BOOL;
            const bool drops = c.attribute_count > 6; // which may drop what is no number
            if (drops || random_chance(&random, 70)) {
                c.attributes[c.attribute_count++] =
                    pen_attribute_float("fill", random_chance(&random, 50) ? -1e9 : -1e4);
            }
        }
        b.inputs[5] = c.inputs[3];
        const bool is_float = c.inputs[3].type.element == PEN_FLOAT32;
        if (is_float && random_chance(&random, 60)) b.output_count = 4;
    }
    b.attribute_count = c.attribute_count;
    memcpy(b.attributes, c.attributes, sizeof b.attributes);
    for (uint32_t i = 0; i < 3; i++) {
        b.inputs[i + 1] = c.inputs[i];
    }
    b.inputs[0].type = b.inputs[4].type = operand(&batch, by_row[3], rows, width);
    *forward = c;
    *backward = b;
}

static const void *attention_read(const run_graph *run, pen_value_id value) {
    return run->tensors[value.index].data;
}

// The backward op is given what a forward op made of its operands: kernels may use y, or work it
// out.
op_built attention_case_run(uint64_t seed, const op_case *forward, op_case *backward) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(forward, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(forward, &built, seed, &run);
    CHECK_OK(run_graph_all(&run));
    for (uint32_t i = 0; i < 3; i++) {
        backward->inputs[i + 1].data = attention_read(&run, built.inputs[i]);
    }
    backward->inputs[4].data = attention_read(&run, built.outputs[0]);
    if (forward->input_count > 3) backward->inputs[5].data = attention_read(&run, built.inputs[3]);
    return built;
}
