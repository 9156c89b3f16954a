// Text of a small transformer on the cpu device: with keys and values kept, the tokens are those of
// whole windows, and scores differ by no more than is reckoned with.
#include "scheduler/runner/sample.h"

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define SEQUENCE 40
#define VOCABULARY 60
#define COUNT 50

static const char model[] =
    "seed: 3\n"
    "inputs: {tokens: {shape: [40], dtype: int64}}\n"
    "layers:\n"
    "  - embedding: {input_dim: 60, output_dim: 64, name: words}\n"
    "  - multi_head_attention: {from: [words, words], num_heads: 4, key_dim: 16, causal: true, "
    "name: first}\n"
    "  - add: {from: [words, first], name: x}\n"
    "  - layer_normalization: {name: norm}\n"
    "  - multi_head_attention: {from: [norm, norm], num_heads: 2, key_dim: 24, causal: true, name: "
    "second}\n"
    "  - add: {from: [x, second]}\n"
    "  - dense: {units: 200, activation: relu}\n"
    "  - dense: {units: 60, kernel_initializer: {random_normal: {stddev: 0.3}}}\n";

static void open_runner(uint64_t memory, pen_runner **out_runner) {
    static const int64_t dims[] = {SEQUENCE};
    static const pen_compile_input tokens = {"", 1, dims};
    const pen_runner_options options = {
        .device_kind = "cpu",
        .device = {.name = "a", .thread_count = 2, .memory_bytes = memory},
        .compile = {.model_path = scratch_file("model.yaml", model, sizeof model - 1),
                    .inputs = &tokens,
                    .input_count = 1}};
    CHECK_OK(pen_runner_create(&options, out_runner));
}

typedef struct written {
    uint32_t tokens[COUNT];
    uint32_t count;
} written;

static pen_status take(void *context, uint32_t token) {
    written *text = context;
    assert_true(text->count < COUNT);
    text->tokens[text->count++] = token;
    return PEN_OK;
}

static pen_sample_figures write_on(pen_runner *runner, const pen_sample_request *request,
                                   written *out_text) {
    pen_sample_figures figures;
    pen_arena *arena;
    CHECK_OK(pen_arena_create(&arena));
    *out_text = (written){0};
    CHECK_OK(pen_sample(runner, request, arena, take, out_text, &figures));
    assert_int_equal(out_text->count, request->count);
    assert_int_equal(figures.window_count + figures.decoded_count, request->count);
    pen_arena_destroy(arena);
    return figures;
}

// Prompts of one token, some, all of the window, and more; the window is left on the way.
static void tokens_are_those_of_whole_windows(void **state) {
    (void)state;
    static const uint64_t lengths[] = {1, 7, SEQUENCE - 1, SEQUENCE, SEQUENCE + 3};
    static const double temperatures[] = {0, 0.7, 2};
    int64_t prompt[SEQUENCE + 3];
    pen_runner *runner;
    uint64_t decoded = 0;
    for (int i = 0; i < SEQUENCE + 3; i++)
        prompt[i] = i * i % VOCABULARY;
    open_runner(0, &runner);
    for (int l = 0; l < 5; l++) {
        for (uint64_t seed = 0; seed < 9; seed++) {
            pen_sample_request request = {.prompt = prompt,
                                          .prompt_count = lengths[l],
                                          .count = COUNT,
                                          .sampling = {.temperature = temperatures[seed % 3],
                                                       .top_k = seed % 2 * 20,
                                                       .seed = seed}};
            written kept, whole;
            const pen_sample_figures figures = write_on(runner, &request, &kept);
            assert_int_equal(figures.kept_bytes, 2 * SEQUENCE * (64 + 48) * sizeof(float));
            decoded += figures.decoded_count;
            request.whole_windows = true;
            assert_int_equal(write_on(runner, &request, &whole).decoded_count, 0);
            assert_memory_equal(&kept, &whole, sizeof kept);
        }
    }
    // of a beginning of one token, that one, too; all that are within the window, but for few
    assert_in_range(decoded, 9 * (30 + 25), 9 * (40 + 33 + 1));
    pen_runner_destroy(runner);
}

static void scores_differ_by_no_more_than_reckoned(void **state) {
    (void)state;
    static float all[SEQUENCE][VOCABULARY], row[VOCABULARY];
    const pen_run_context run = {.first_microbatch = true};
    const pen_runner_form *whole, *one;
    pen_runner *runner;
    int64_t tokens[SEQUENCE];
    double largest = 0, error = 0;
    open_runner(0, &runner);
    CHECK_OK(pen_runner_get_row(runner, PEN_COMPILE_PREFILL, NULL, &whole));
    CHECK_OK(pen_runner_get_row(runner, PEN_COMPILE_DECODE, NULL, &one));
    for (int i = 0; i < SEQUENCE; i++)
        tokens[i] = (7 * i + i * i) % VOCABULARY;
    CHECK_OK(
        pen_executor_write(whole->executor, whole->program->inputs[0], 0, tokens, sizeof tokens));
    CHECK_OK(pen_executor_run(whole->executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    CHECK_OK(pen_executor_read(whole->executor, whole->program->outputs[0], 0, all, sizeof all));
    for (int64_t p = 0; p < SEQUENCE; p++) {
        CHECK_OK(pen_executor_write(one->executor, one->program->inputs[0], 0, &tokens[p], 8));
        CHECK_OK(pen_executor_write(one->executor, one->program->position, 0, &p, 8));
        CHECK_OK(pen_executor_run(one->executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
        CHECK_OK(pen_executor_read(one->executor, one->program->outputs[0], 0, row, sizeof row));
        for (int k = 0; k < VOCABULARY; k++) {
            largest = fmax(largest, fabs((double)all[p][k]));
            error = fmax(error, fabs((double)all[p][k] - (double)row[k]));
        }
    }
    CHECK(error < PEN_SAMPLE_ERROR / 4 * largest, "%g of %g", error, largest);
    pen_runner_destroy(runner);
}

// The model fits, what it would keep does not: it writes the same text without.
static void without_memory_it_runs_whole_windows(void **state) {
    (void)state;
    static const int64_t prompt[] = {3, 1, 2};
    const pen_sample_request request = {.prompt = prompt, .prompt_count = 3, .count = 20};
    pen_runner *runner;
    const pen_runner_form *form;
    written kept, narrow;
    open_runner(0, &runner);
    CHECK_OK(pen_runner_get_row(runner, PEN_COMPILE_PREFILL, NULL, &form));
    const uint64_t bytes = pen_runner_device_bytes(runner);
    write_on(runner, &request, &kept);
    pen_runner_destroy(runner);
    open_runner(bytes + 4096, &runner);
    assert_int_equal(write_on(runner, &request, &narrow).decoded_count, 0);
    assert_memory_equal(&kept, &narrow, sizeof kept);
    pen_runner_destroy(runner);
}

PEN_TEST_MAIN(cmocka_unit_test(tokens_are_those_of_whole_windows),
              cmocka_unit_test(scores_differ_by_no_more_than_reckoned),
              cmocka_unit_test(without_memory_it_runs_whole_windows))
