// What every operator must have, walked over the table.
#include "graph/op_table.h"

#include "device/reference/reference_kernel.h"
#include "tests/support/check.h"

typedef void (*op_check)(const pen_op_family *family, const pen_op *op);

static void for_each_op(op_check check) {
    uint32_t count = 0;
    for (uint32_t f = 0; f < pen_op_family_count(); f++) {
        const pen_op_family *family = pen_op_family_at(f);
        for (uint32_t i = 0; i < family->op_count; i++) {
            check(family, &family->ops[i]);
            count++;
        }
    }
    CHECK(count > 150, "only %u operators", count);
}

static bool is_snake_case(const char *name) {
    if (name[0] < 'a' || name[0] > 'z') return false;
    for (const char *c = name; *c != '\0'; c++) {
        const bool fits = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_';
        if (!fits) return false;
    }
    return true;
}

static void check_words(const pen_op_family *family, const pen_op *op) {
    CHECK(is_snake_case(op->name), "'%s' of %s", op->name, family->name);
    CHECK(op->summary != NULL && op->summary[0] != '\0', "%s has no summary", op->name);
    CHECK(strlen(op->summary) <= 120 && strchr(op->summary, '\n') == NULL, "%s: '%s'", op->name,
          op->summary);
    const pen_op *found;
    CHECK_OK(pen_op_find(op->name, &found));
    CHECK(found == op, "%s is there twice", op->name);
}

static void names_are_unique_and_explained(void **state) {
    (void)state;
    for_each_op(check_words);
    for (uint32_t f = 0; f < pen_op_family_count(); f++) {
        CHECK(pen_op_family_at(f)->op_count > 0, "%s is empty", pen_op_family_at(f)->name);
        for (uint32_t g = 0; g < f; g++) {
            assert_string_not_equal(pen_op_family_at(f)->name, pen_op_family_at(g)->name);
        }
    }
    const pen_op *none;
    CHECK_ERROR(pen_op_find("no_such_op", &none), PEN_NOT_FOUND, "'no_such_op'");
    CHECK_ERROR(pen_op_find("", &none), PEN_NOT_FOUND, "''");
}

static bool within(uint64_t bits, uint32_t count) {
    return count >= 64 || bits >> count == 0;
}

static bool has_int(const pen_op *op, const char *name) {
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        const pen_attribute_schema *attribute = &op->attributes[i];
        if (strcmp(attribute->name, name) == 0) return attribute->kind == PEN_ATTRIBUTE_INT;
    }
    return false;
}

// What goes between devices is moved by whoever runs a part: no kernel does.
static bool is_moved(const pen_op *op) {
    return strcmp(op->name, "send") == 0 || strcmp(op->name, "receive") == 0;
}

static void check_counts(const pen_op_family *family, const pen_op *op) {
    (void)family;
    CHECK(op->input_min <= op->input_max, "%s", op->name);
    CHECK(op->output_min <= op->output_max, "%s", op->name);
    CHECK(op->output_max >= 1 || is_moved(op), "%s", op->name);
    CHECK(within(op->statistics_inputs, op->input_max), "%s", op->name);
    CHECK((op->statistics_inputs == 0) == (op->statistics_if == NULL), "%s", op->name);
    CHECK(op->statistics_if == NULL || has_int(op, op->statistics_if), "%s", op->name);
    CHECK(within(op->constant_inputs, op->input_max), "%s", op->name);
    CHECK(within(op->in_place_inputs, op->input_max), "%s", op->name);
    CHECK((op->constant_inputs & op->in_place_inputs) == 0, "%s overwrites a constant", op->name);
    CHECK(!op->is_view || (op->input_min >= 1 && op->output_max == 1), "%s", op->name);
    CHECK(!op->is_view || (op->constant_inputs & 1) == 0, "%s", op->name);
    CHECK(op->infer != NULL, "%s has no shape rule", op->name);
    CHECK(op->attribute_count == 0 || op->attributes != NULL, "%s", op->name);
}

static void counts_and_masks_fit(void **state) {
    (void)state;
    for_each_op(check_counts);
}

static void check_attributes(const pen_op_family *family, const pen_op *op) {
    (void)family;
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        const pen_attribute_schema *schema = &op->attributes[i];
        CHECK(schema->name != NULL && schema->name[0] != '\0', "%s", op->name);
        CHECK(!(schema->required && schema->has_default), "%s: %s", op->name, schema->name);
        const bool is_list =
            schema->kind == PEN_ATTRIBUTE_INTS || schema->kind == PEN_ATTRIBUTE_FLOATS;
        CHECK(!(is_list && schema->has_default), "%s: %s", op->name, schema->name);
        const bool is_text = schema->kind == PEN_ATTRIBUTE_TEXT;
        CHECK(!(is_text && schema->has_default && schema->text == NULL), "%s: %s", op->name,
              schema->name);
        for (uint32_t k = 0; k < i; k++) {
            CHECK(strcmp(op->attributes[k].name, schema->name) != 0, "%s: '%s' twice", op->name,
                  schema->name);
        }
    }
}

static bool has_attribute(const pen_op *op, const char *name, pen_attribute_kind kind) {
    for (uint32_t i = 0; i < op->attribute_count; i++) {
        const pen_attribute_schema *schema = &op->attributes[i];
        if (strcmp(schema->name, name) == 0) return schema->kind == kind && !schema->required;
    }
    return false;
}

// So that copies of their nodes can draw the same numbers. Ops whose nodes always name a stream
// where they draw numbers are a function of what they are given.
static void check_stream(const pen_op_family *family, const pen_op *op) {
    (void)family;
    CHECK(!op->is_random || has_attribute(op, "stream", PEN_ATTRIBUTE_TEXT), "%s", op->name);
}

static void random_ops_name_their_stream(void **state) {
    (void)state;
    for_each_op(check_stream);
}

static void attributes_are_consistent(void **state) {
    (void)state;
    for_each_op(check_attributes);
}

static void check_kernel(const pen_op_family *family, const pen_op *op) {
    (void)family;
    CHECK((pen_reference_kernel_find(op->name) != NULL) != is_moved(op), "%s: its reference kernel",
          op->name);
}

// Views too: constants are folded through them.
static void every_op_has_a_reference_kernel(void **state) {
    (void)state;
    for_each_op(check_kernel);
    assert_null(pen_reference_kernel_find("no_such_op"));
}

static bool ends_in_backward(const char *name) {
    const char *at = strstr(name, "_backward");
    return at != NULL;
}

// Backward ops, updates and ops that give integers or shapes carry no gradient; the rest does.
static void check_gradient(const pen_op_family *family, const pen_op *op) {
    static const char *const without[] = {"optimizer", "transfer"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        if (strcmp(family->name, without[i]) == 0) {
            CHECK(op->gradient == NULL, "%s", op->name);
            return;
        }
    }
    if (ends_in_backward(op->name)) return;
    static const char *const differentiable[] = {
        "add",
        "mul",
        "div",
        "pow",
        "relu",
        "tanh",
        "sigmoid",
        "clip",
        "exp",
        "log",
        "sqrt",
        "matmul",
        "gemm",
        "conv",
        "max_pool",
        "average_pool",
        "concat",
        "split",
        "slice",
        "pad",
        "transpose",
        "reshape",
        "expand",
        "where",
        "gather",
        "softmax",
        "log_softmax",
        "reduce_sum",
        "reduce_max",
        "reduce_mean",
        "dropout",
        "lrn",
        "cast",
        "batch_normalization",
        "conv_transpose",
        "softmax_cross_entropy_loss",
        "negative_log_likelihood_loss",
        "mean_squared_error",
        "binary_cross_entropy",
        "global_average_pool",
        "erf",
        "hard_swish",
        "leaky_relu",
    };
    for (size_t i = 0; i < sizeof differentiable / sizeof *differentiable; i++) {
        if (strcmp(op->name, differentiable[i]) != 0) continue;
        CHECK(op->gradient != NULL, "%s cannot be differentiated", op->name);
    }
}

static void models_can_be_differentiated(void **state) {
    (void)state;
    for_each_op(check_gradient);
    static const char *const needed[] = {"conv", "conv_transpose", "softmax_cross_entropy_loss",
                                         "batch_normalization", "reduce_max"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        const pen_op *op;
        CHECK_OK(pen_op_find(needed[i], &op));
    }
}

PEN_TEST_MAIN(cmocka_unit_test(names_are_unique_and_explained),
              cmocka_unit_test(counts_and_masks_fit), cmocka_unit_test(attributes_are_consistent),
              cmocka_unit_test(random_ops_name_their_stream),
              cmocka_unit_test(every_op_has_a_reference_kernel),
              cmocka_unit_test(models_can_be_differentiated))
