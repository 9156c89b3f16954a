// What language models and recurrent networks need, on an emulated GPU against the reference.
#include "tests/support/attention_case.h"
#include "tests/support/cuda_check.h"
#include "tests/support/device_check.h"
#include "tests/support/recurrent_case.h"

// Rows in several tiles, and one that is not full.
static void attentions(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        op_case forward, backward;
        attention_case_make(seed, seed % 2 == 0 ? 70 : 20, &forward, &backward);
        cuda_check(&forward, seed, 2e-5);
    }
}

static void gradients_of_attentions(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        op_case forward, backward;
        attention_case_make(seed + 1000, seed % 2 == 0 ? 70 : 20, &forward, &backward);
        op_built built = attention_case_run(seed, &forward, &backward);
        cuda_check(&backward, seed, 3e-5);
        op_built_free(&built);
    }
}

// A mask has the sum of what all that read it give: heads, examples, rows and keys, in several
// tiles.
static void gradients_of_masks(void **state) {
    (void)state;
    const pen_tensor_type masks[] = {
        op_type(PEN_FLOAT32, 3, 2, 40, 35),    op_type(PEN_FLOAT32, 4, 3, 1, 40, 35),
        op_type(PEN_FLOAT32, 2, 40, 35),       op_type(PEN_FLOAT32, 4, 1, 2, 1, 35),
        op_type(PEN_FLOAT32, 4, 3, 2, 40, 1),  op_type(PEN_FLOAT32, 4, 3, 2, 1, 1),
        op_type(PEN_FLOAT32, 4, 3, 2, 40, 35),
    };
    for (uint64_t seed = 0; seed < sizeof masks / sizeof *masks; seed++) {
        op_case c = {.op = "attention", .input_count = 4, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("causal", seed == 2);
        c.attributes[1] = pen_attribute_float("scale", 0.5);
        c.inputs[0].type = op_type(PEN_FLOAT32, 4, 3, 2, 40, 5);
        c.inputs[1].type = c.inputs[2].type = op_type(PEN_FLOAT32, 4, 3, 2, 35, 5);
        c.inputs[3].type = masks[seed];
        op_case b = {.op = "attention_backward", .input_count = 6, .output_count = 4};
        b.attribute_count = c.attribute_count;
        memcpy(b.attributes, c.attributes, sizeof b.attributes);
        b.inputs[0].type = b.inputs[4].type = c.inputs[0].type;
        for (uint32_t i = 0; i < 3; i++)
            b.inputs[i + 1].type = c.inputs[i].type;
        b.inputs[5].type = masks[seed];
        op_built built = attention_case_run(seed, &c, &b);
        cuda_check(&b, seed, 3e-5);
        op_built_free(&built);
    }
}

// As many numbers in a row as there is room for, and one more, which the host takes.
static void attentions_of_long_rows(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        op_case c = {.op = "attention", .input_count = 3, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("causal", seed != 1);
        c.attributes[1] = pen_attribute_float("scale", 0.1);
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2, 33, 128);
        c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 40, 128);
        c.inputs[2].type = op_type(PEN_FLOAT32, 3, 2, 40, 101);
        cuda_check(&c, seed, 2e-5);
        op_case b = {.op = "attention_backward", .input_count = 6, .output_count = 3};
        b.inputs[5].is_absent = true;
        b.attribute_count = c.attribute_count;
        memcpy(b.attributes, c.attributes, sizeof b.attributes);
        b.inputs[0].type = b.inputs[4].type = op_type(PEN_FLOAT32, 3, 2, 33, 101);
        for (uint32_t i = 0; i < 3; i++)
            b.inputs[i + 1].type = c.inputs[i].type;
        op_built built = attention_case_run(seed, &c, &b);
        cuda_check(&b, seed, 3e-5);
        op_built_free(&built);
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2, 33, 129);
        c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 40, 129);
        cuda_check_place(&c, false);
    }
}

static void recurrent_layers(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        const recurrent_case_options options =
            seed < 24 ? RECURRENT_CASE_PLAIN : RECURRENT_CASE_USUAL;
        const op_case forward = recurrent_case_forward(seed, options);
        cuda_check(&forward, seed, 2e-5);
        const op_case backward = recurrent_case_backward(seed, options);
        cuda_check(&backward, seed, 5e-5);
    }
}

static void lengths_that_are_none_are_told(void **state) {
    (void)state;
    static const int32_t lengths[][3] = {{0, 2, 3}, {1, -1, 4}}, right[] = {3, 0, 2};
    for (uint32_t i = 0; i < 2; i++) {
        op_case c = {.op = "gru", .input_count = 5};
        c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2 + (int)i, 3, 4);
        c.inputs[1].type = op_type(PEN_FLOAT32, 3, 1, 6, 4);
        c.inputs[2].type = op_type(PEN_FLOAT32, 3, 1, 6, 2);
        c.inputs[3].is_absent = true;
        c.inputs[4].type = op_type(PEN_INT32, 1, 3);
        static const int32_t least[] = {2, 0, 1};
        cuda_check_refuses_at(&c, 4, lengths[i], i == 0 ? least : right, sizeof right,
                              i == 0 ? "the length of sequence 2 is outside of 0 to 2"
                                     : "the length of sequence 1 is outside of 0 to 3");
    }
}

// What no kernel of the GPU can do runs on the host, with the same numbers.
static void unusual_recurrent_layers_run_on_the_host(void **state) {
    (void)state;
    op_case c = recurrent_case_forward(1, RECURRENT_CASE_PLAIN); // a gru
    c.attributes[c.attribute_count++] = pen_attribute_text("activations", "Sigmoid Softsign");
    c.attributes[0] = pen_attribute_text("direction", "forward");
    for (uint32_t i = 1; i < 3; i++)
        c.inputs[i].type.shape.dims[0] = 1;
    for (uint32_t i = 3; i < c.input_count; i++)
        c.inputs[i].is_absent = true;
    cuda_check_place(&c, false);
    c = recurrent_case_forward(2, RECURRENT_CASE_PLAIN);
    c.attributes[c.attribute_count++] = pen_attribute_float("clip", 0.5);
    cuda_check_place(&c, false);
    op_check_device(&c, 2, 2e-5);
}

// The same elements are dropped as on every device.
static void dropouts(void **state) {
    (void)state;
    static const bool modes[] = {true, false};
    static const float ratios[] = {0.5f, 0.1f, 0, 0.9f};
    for (uint64_t seed = 0; seed < 12; seed++) {
        op_case c = {.op = "dropout", .input_count = 3, .attribute_count = 1};
        c.attributes[0] = pen_attribute_text("stream", "drops");
        c.attributes[1] = pen_attribute_int("seed", 5);
        c.attribute_count += seed % 3 == 0;
        c.output_count = 1 + seed % 2;
        c.inputs[0].type = op_type(PEN_FLOAT32, 2, 7, 11 + (int)seed * 20);
        c.inputs[1] = (op_case_input){
            .type = op_type(PEN_FLOAT32, 0), .data = &ratios[seed % 4], .is_constant = true};
        c.inputs[2] = (op_case_input){
            .type = op_type(PEN_BOOL, 0), .data = &modes[seed == 7], .is_constant = true};
        cuda_check(&c, seed, 1e-6);
        op_case b = {.op = "dropout_backward", .input_count = 2, .attribute_count = 1};
        b.attributes[0] = pen_attribute_float("ratio", (double)ratios[seed % 4]);
        b.inputs[0].type = b.inputs[1].type = c.inputs[0].type;
        b.inputs[1].type.element = PEN_BOOL;
        b.inputs[1].high = 2;
        cuda_check(&b, seed, 1e-6);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(attentions), cmocka_unit_test(gradients_of_attentions),
              cmocka_unit_test(gradients_of_masks), cmocka_unit_test(attentions_of_long_rows),
              cmocka_unit_test(recurrent_layers), cmocka_unit_test(lengths_that_are_none_are_told),
              cmocka_unit_test(unusual_recurrent_layers_run_on_the_host),
              cmocka_unit_test(dropouts))
