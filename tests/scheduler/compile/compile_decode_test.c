// A program of one position beside the program of all: the same scores, whatever is in the rows
// that come later; and a model that looks forward is told as one, with the node.
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/verify.h"
#include "scheduler/compile/compile.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"
#include "tests/support/scratch.h"

#define SEQUENCE 6
#define VOCABULARY 11

#define HEAD                                                                                       \
    "inputs: {tokens: {shape: [6], dtype: int64}}\n"                                               \
    "layers:\n"                                                                                    \
    "  - embedding: {input_dim: 11, output_dim: 8, name: words}\n"
#define TAIL "  - dense: {units: 11, name: scores}\n"

static const char transformer[] = HEAD
    "  - layer_normalization: {name: first_norm}\n"
    "  - multi_head_attention: {from: [first_norm, first_norm], num_heads: 2, key_dim: 4, causal: "
    "true, name: first}\n"
    "  - add: {from: [words, first], name: x}\n"
    "  - layer_normalization: {name: norm}\n"
    "  - group_query_attention: {from: [norm, norm], head_dim: 4, num_query_heads: 4, "
    "num_key_value_heads: 2, causal: true, name: second}\n"
    "  - add: {from: [x, second], name: y}\n"
    "  - dense: {units: 16, activation: gelu}\n" TAIL;
static const char forward[] = HEAD
    "  - multi_head_attention: {from: [words, words], num_heads: 2, key_dim: 4, name: both}\n" TAIL;
static const char recurrent[] =
    HEAD "  - lstm: {units: 8, return_sequences: true, name: read}\n" TAIL;

typedef struct decode_case {
    const pen_program *whole, *one;
    pen_arena *arena;
    run_graph whole_run, one_run;
} decode_case;

static pen_compile_request request_of(const char *path, pen_compile_mode mode) {
    static const int64_t dims[] = {SEQUENCE};
    static const pen_compile_input tokens = {"", 1, dims};
    return (pen_compile_request){.model_path = path,
                                 .mode = mode,
                                 .microbatch_size = 1,
                                 .is_whole = true,
                                 .inputs = &tokens,
                                 .input_count = 1};
}

static void open_case(const char *path, decode_case *c) {
    const pen_compile_request whole = request_of(path, PEN_COMPILE_PREFILL);
    const pen_compile_request one = request_of(path, PEN_COMPILE_DECODE);
    CHECK_OK(pen_arena_create(&c->arena));
    CHECK_OK(pen_compile(&whole, &c->whole));
    CHECK(c->whole->cache_refusal == NULL, "%s", c->whole->cache_refusal);
    CHECK_OK(pen_compile(&one, &c->one));
    CHECK_OK(pen_graph_verify(c->one->graph, &(pen_verify_options){.types = true}));
    CHECK_OK(run_graph_init(&c->whole_run, c->whole->graph, c->arena));
    CHECK_OK(run_graph_init(&c->one_run, c->one->graph, c->arena));
}

static void close_case(decode_case *c) {
    pen_program_destroy(c->whole);
    pen_program_destroy(c->one);
    pen_arena_destroy(c->arena);
}

// What is kept up to `position`, and behind it numbers that would spoil everything.
static void fill_states(decode_case *c, const uint32_t *axes, int64_t position) {
    for (uint32_t i = 0; i < c->one->cached_count; i++) {
        const pen_tensor *from = &c->whole_run.tensors[c->whole->cached[i].index];
        const pen_tensor *to = &c->one_run.tensors[c->one->cached[i].index];
        assert_true(pen_tensor_type_equal(&from->type, &to->type));
        const int64_t inner = pen_shape_count(&to->type.shape, axes[i] + 1, to->type.shape.rank);
        for (int64_t k = 0; k < pen_tensor_count(to); k++) {
            const bool is_known = k / inner % SEQUENCE < position;
            pen_tensor_set(to, k, is_known ? pen_tensor_get(from, k) : 1e18);
        }
    }
}

// The axis of positions in each kept value: the only one of that size here.
static void find_axes(const decode_case *c, uint32_t *axes) {
    for (uint32_t i = 0; i < c->one->cached_count; i++) {
        const pen_shape *shape = &pen_value_type(c->one->graph, c->one->cached[i])->shape;
        axes[i] = 0;
        while (shape->dims[axes[i]] != SEQUENCE)
            axes[i]++;
    }
}

// Every position in turn, with the states as they are when it comes.
static void check_positions(decode_case *c) {
    static const int64_t tokens[SEQUENCE] = {3, 1, 10, 0, 7, 1};
    uint32_t axes[16];
    assert_in_range(c->one->cached_count, 1, 16);
    find_axes(c, axes);
    memcpy(c->whole_run.tensors[c->whole->inputs[0].index].data, tokens, sizeof tokens);
    CHECK_OK(run_graph_all(&c->whole_run));
    const pen_tensor *all = &c->whole_run.tensors[c->whole->outputs[0].index];
    const pen_tensor *row = &c->one_run.tensors[c->one->outputs[0].index];
    assert_int_equal(pen_tensor_count(row), VOCABULARY);
    for (int64_t p = 0; p < SEQUENCE; p++) {
        fill_states(c, axes, p);
        memcpy(c->one_run.tensors[c->one->inputs[0].index].data, &tokens[p], sizeof *tokens);
        memcpy(c->one_run.tensors[c->one->position.index].data, &p, sizeof p);
        CHECK_OK(run_graph_all(&c->one_run));
        for (int64_t k = 0; k < VOCABULARY; k++) {
            const double wanted = pen_tensor_get(all, p * VOCABULARY + k);
            CHECK(pen_tensor_get(row, k) == wanted, "position %lld score %lld: %g, not %g",
                  (long long)p, (long long)k, pen_tensor_get(row, k), wanted);
        }
    }
}

static void one_position_has_the_scores_of_all(void **state) {
    (void)state;
    decode_case c;
    open_case(scratch_file("transformer.yaml", transformer, sizeof transformer - 1), &c);
    assert_int_equal(c.one->cached_count, 4); // keys and values of two attentions
    check_positions(&c);
    close_case(&c);
}

// Nodes of one position have no axis as long as the window but where they read what is kept.
static void one_position_has_no_whole_windows(void **state) {
    (void)state;
    decode_case c;
    uint32_t wide = 0;
    open_case(scratch_file("transformer.yaml", transformer, sizeof transformer - 1), &c);
    for (uint32_t n = 0; n < c.one->order_count; n++) {
        const pen_node *node = pen_graph_node(c.one->graph, c.one->order[n]);
        const pen_shape *shape = &pen_value_type(c.one->graph, node->outputs[0])->shape;
        for (uint32_t d = 0; d < shape->rank; d++)
            wide += shape->dims[d] == SEQUENCE;
    }
    assert_int_equal(wide, 4 + 2); // what is kept, and which positions were (less, not)
    close_case(&c);
}

static void check_refused(const char *name, const char *text, size_t size, const char *why) {
    const char *path = scratch_file(name, text, size);
    const pen_program *program;
    pen_compile_request request = request_of(path, PEN_COMPILE_PREFILL);
    CHECK_OK(pen_compile(&request, &program));
    assert_int_equal(program->cached_count, 0);
    assert_non_null(program->cache_refusal);
    CHECK(strstr(program->cache_refusal, why) != NULL, "%s", program->cache_refusal);
    pen_program_destroy(program);
    request.mode = PEN_COMPILE_DECODE;
    CHECK_ERROR(pen_compile(&request, &program), PEN_UNSUPPORTED, why);
}

static void what_looks_forward_is_told(void **state) {
    (void)state;
    check_refused("forward.yaml", forward, sizeof forward - 1, "may read all positions of");
    check_refused("recurrent.yaml", recurrent, sizeof recurrent - 1,
                  "does not say which positions it reads of");
}

static void unknown_output_is_told(void **state) {
    (void)state;
    const char *path = scratch_file("transformer.yaml", transformer, sizeof transformer - 1);
    pen_compile_request request = request_of(path, PEN_COMPILE_PREFILL);
    const pen_program *program;
    request.output = "nothing";
    CHECK_OK(pen_compile(&request, &program));
    assert_string_equal(program->cache_refusal, "the model has no output 'nothing'");
    pen_program_destroy(program);
}

PEN_TEST_MAIN(cmocka_unit_test(one_position_has_the_scores_of_all),
              cmocka_unit_test(one_position_has_no_whole_windows),
              cmocka_unit_test(what_looks_forward_is_told),
              cmocka_unit_test(unknown_output_is_told))
