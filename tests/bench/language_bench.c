// How fast a model of language writes, beside what the machine can do: one position with keys and
// values kept (decode) beside a sum that only reads as many bytes, and all positions (prefill)
// beside the bare products of OpenBLAS of the same shapes, on as many threads.
//
//   language_bench MODEL [THREADS [ROUNDS [SEQUENCE]]]     default: 1 15 128
//
// The four take turns, so that what else the machine does meets all alike. Of each the fastest
// round counts, by the clock and in seconds of the processors; the latter say nothing of several
// threads, which are busy while they wait. With LANGUAGE_NODES in the environment, also what each
// node takes.
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/system/kernel_level.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/ops/product/attention_geometry.h"
#include "graph/ops/product/matmul_geometry.h"
#include "scheduler/runner/runner.h"

#define LANGUAGE_SUM_LANES 32 // sums at once, in registers

// cblas_sgemm, row-major, and its numbers for "as it lies" and "transposed".
typedef void (*language_sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k,
                                  float alpha, const float *a, int lda, const float *b, int ldb,
                                  float beta, float *c, int ldc);

typedef struct language_times {
    double wall, processor; // of the fastest round
} language_times;

typedef struct language_piece {
    const float *from;
    int64_t count;
} language_piece;

typedef struct language_bench {
    pen_arena *arena;
    const pen_runner_form *prefill, *decode;
    language_sgemm_fn sgemm;
    int threads;
    int64_t sequence, position;
    double bytes;                 // that the decoding form reads for a token
    const language_piece *pieces; // [piece_count], where these lie
    uint32_t piece_count;
    float *a, *b, *c; // operands of the bare products
    float sum;
} language_bench;

static double language_processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// ---- bytes

static bool language_is_given(const pen_value *value) {
    return value->kind == PEN_VALUE_PARAMETER || value->kind == PEN_VALUE_CONSTANT;
}

static void language_add_piece(language_bench *bench, language_piece *pieces, pen_value_id value,
                               double share) {
    const pen_program *program = bench->decode->program;
    const uint64_t bytes = pen_tensor_type_bytes(pen_value_type(program->graph, value));
    const float *from = pen_executor_address(bench->decode->executor, value, 0);
    if (from == NULL) return;
    const int64_t count = (int64_t)((double)bytes * share / sizeof *from);
    pieces[bench->piece_count++] = (language_piece){from, count};
    bench->bytes += (double)count * sizeof *from;
}

// What the decoding form reads for one position: parameters whole, but one row of a table that is
// looked up; keys and values up to the position.
static pen_status language_find_pieces(language_bench *bench) {
    const pen_program *program = bench->decode->program;
    const pen_graph *graph = program->graph;
    const double seen = (double)(bench->position + 1) / (double)bench->sequence;
    language_piece *pieces;
    uint32_t most = program->cached_count;
    for (uint32_t i = 0; i < program->order_count; i++)
        most += pen_graph_node(graph, program->order[i])->input_count;
    PEN_TRY(PEN_NEW(bench->arena, most, &pieces));
    bench->pieces = pieces;
    for (uint32_t i = 0; i < program->order_count; i++) {
        const pen_node *node = pen_graph_node(graph, program->order[i]);
        for (uint32_t j = 0; j < node->input_count; j++) {
            const pen_value_id value = node->inputs[j];
            if (!pen_value_is(value) || !language_is_given(pen_graph_value(graph, value))) continue;
            const double rows = (double)pen_value_type(graph, value)->shape.dims[0];
            language_add_piece(bench, pieces, value, node->op == PEN_OP(gather) ? 1 / rows : 1);
        }
    }
    for (uint32_t i = 0; i < program->cached_count; i++)
        language_add_piece(bench, pieces, program->cached[i], seen);
    return PEN_OK;
}

// ---- what takes turns

static pen_status language_run_form(const pen_runner_form *form) {
    const pen_run_context run = {.first_microbatch = true};
    return pen_executor_run(form->executor, PEN_EXECUTOR_MICROBATCH, 0, &run);
}

static pen_status language_run_prefill(language_bench *bench) {
    return language_run_form(bench->prefill);
}

static pen_status language_run_decode(language_bench *bench) {
    return language_run_form(bench->decode);
}

static float language_sum_line(const float *from, int64_t count) {
    float sums[LANGUAGE_SUM_LANES] = {0}, total = 0;
    int64_t i = 0;
    for (; i + LANGUAGE_SUM_LANES <= count; i += LANGUAGE_SUM_LANES) {
#pragma GCC unroll 32
        for (int lane = 0; lane < LANGUAGE_SUM_LANES; lane++)
            sums[lane] += from[i + lane];
    }
    for (int lane = 0; lane < LANGUAGE_SUM_LANES; lane++)
        total += sums[lane];
    for (; i < count; i++)
        total += from[i];
    return total;
}

// Sums the bytes that a token reads, where they lie.
static pen_status language_run_sum(language_bench *bench) {
    float total = 0;
#pragma omp parallel reduction(+ : total)
    for (uint32_t i = 0; i < bench->piece_count; i++) {
        const int64_t team = omp_get_num_threads(), thread = omp_get_thread_num();
        const language_piece *piece = &bench->pieces[i];
        const int64_t first = piece->count * thread / team;
        const int64_t last = piece->count * (thread + 1) / team;
        total += language_sum_line(piece->from + first, last - first);
    }
    bench->sum += total;
    return PEN_OK;
}

static pen_status language_product(const language_bench *bench, const pen_node *node) {
    const pen_graph *graph = bench->prefill->program->graph;
    pen_matmul_geometry g;
    PEN_TRY(node->op == PEN_OP(gemm) ? pen_gemm_geometry_of(graph, node, &g)
                                     : pen_matmul_geometry_of(graph, node, &g));
    for (int64_t i = 0; i < g.product_count; i++) {
        bench->sgemm(101, 111, g.trans_b ? 112 : 111, (int)g.m, (int)g.n, (int)g.k, 1, bench->a,
                     (int)g.k, bench->b, (int)(g.trans_b ? g.k : g.n), 0, bench->c, (int)g.n);
    }
    return PEN_OK;
}

static pen_status language_attention(const language_bench *bench, const pen_node *node) {
    pen_attention_geometry g;
    PEN_TRY(pen_attention_geometry_of(bench->prefill->program->graph, node, 0, 3, &g));
    const int rows = (int)g.query_count, keys = (int)g.key_count;
    const int depth = (int)g.depth, width = (int)g.value_depth;
    for (int64_t i = 0; i < g.outer_count * g.head_count; i++) {
        bench->sgemm(101, 111, 112, rows, keys, depth, 1, bench->a, depth, bench->b, depth, 0,
                     bench->c, keys);
        bench->sgemm(101, 111, 111, rows, width, keys, 1, bench->c, keys, bench->b, width, 0,
                     bench->a, width);
    }
    return PEN_OK;
}

static pen_status language_run_products(language_bench *bench) {
    const pen_program *program = bench->prefill->program;
    for (uint32_t i = 0; i < program->order_count; i++) {
        const pen_node *node = pen_graph_node(program->graph, program->order[i]);
        if (node->op == PEN_OP(matmul) || node->op == PEN_OP(gemm)) {
            PEN_TRY(language_product(bench, node));
        } else if (node->op == PEN_OP(attention)) {
            PEN_TRY(language_attention(bench, node));
        }
    }
    return PEN_OK;
}

typedef pen_status (*language_part_fn)(language_bench *bench);

static pen_status language_time(language_bench *bench, language_part_fn part,
                                language_times *times) {
    const double wall = pen_clock_seconds(), processor = language_processor_seconds();
    PEN_TRY(part(bench));
    times->processor = fmin(times->processor, language_processor_seconds() - processor);
    times->wall = fmin(times->wall, pen_clock_seconds() - wall);
    return PEN_OK;
}

// ---- set-up

static pen_status language_find_blas(language_bench *bench) {
    void *library = dlopen("/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0", RTLD_NOW);
    if (library == NULL) library = dlopen("libopenblas.so.0", RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "cblas_sgemm");
    if (symbol == NULL) return pen_error(PEN_NOT_FOUND, "there is no OpenBLAS");
    memcpy(&bench->sgemm, &symbol, sizeof symbol);
    return PEN_OK;
}

static pen_status language_floats(language_bench *bench, int64_t count, float **out) {
    PEN_TRY(PEN_NEW(bench->arena, (size_t)count, out));
    for (int64_t i = 0; i < count; i++)
        (*out)[i] = (float)(i % 251) * 0.001f;
    return PEN_OK;
}

// Tokens for both forms, and what the sum and the bare products read.
static pen_status language_fill(language_bench *bench) {
    const pen_program *whole = bench->prefill->program, *one = bench->decode->program;
    const pen_graph *graph = whole->graph;
    int64_t *tokens, largest = 0;
    PEN_TRY(PEN_NEW(bench->arena, (size_t)bench->sequence, &tokens));
    for (int64_t i = 0; i < bench->sequence; i++)
        tokens[i] = (7 * i + i * i) % 97;
    PEN_TRY(pen_executor_write(bench->prefill->executor, whole->inputs[0], 0, tokens,
                               (uint64_t)bench->sequence * sizeof *tokens));
    PEN_TRY(pen_executor_write(bench->decode->executor, one->inputs[0], 0, tokens, sizeof *tokens));
    PEN_TRY(pen_executor_write(bench->decode->executor, one->position, 0, &bench->position,
                               sizeof bench->position));
    for (uint32_t i = 0; i < pen_graph_value_count(graph); i++) {
        const pen_shape *shape = &pen_value_type(graph, (pen_value_id){i})->shape;
        const int64_t count = pen_shape_element_count(shape);
        if (count > largest) largest = count;
    }
    PEN_TRY(language_find_pieces(bench));
    PEN_TRY(language_floats(bench, largest, &bench->a));
    PEN_TRY(language_floats(bench, largest, &bench->b));
    return language_floats(bench, largest, &bench->c);
}

// ---- where the time goes

static void language_print_nodes(const pen_runner_form *form, const double *seconds, int rounds) {
    const pen_program *program = form->program;
    for (uint32_t i = 0; i < program->order_count; i++) {
        const pen_node *node = pen_graph_node(program->graph, program->order[i]);
        printf("  %8.1f us  %s %s\n", seconds[i] / rounds * 1e6, node->op->name, node->name);
    }
}

static pen_status language_profile(language_bench *bench, const pen_runner_form *form, int rounds) {
    double *seconds;
    PEN_TRY(PEN_NEW(bench->arena, form->program->order_count, &seconds));
    pen_executor_time_nodes(form->executor, seconds);
    for (int i = 0; i < rounds; i++)
        PEN_TRY(language_run_form(form));
    pen_executor_time_nodes(form->executor, NULL);
    language_print_nodes(form, seconds, rounds);
    return PEN_OK;
}

static void language_print(const language_bench *bench, const language_times times[4]) {
    const double bytes = bench->bytes;
    printf("decode   %8.2f ms  %6.2f GB/s  %8.2f ms of processors  %.1f tokens/s\n",
           times[0].wall * 1e3, bytes / times[0].wall * 1e-9, times[0].processor * 1e3,
           1 / times[0].wall);
    printf("sum      %8.2f ms  %6.2f GB/s  %8.2f ms of processors  %.1f MB a token\n",
           times[1].wall * 1e3, bytes / times[1].wall * 1e-9, times[1].processor * 1e3,
           bytes * 1e-6);
    printf("         share %.2f, of processors %.2f\n", times[1].wall / times[0].wall,
           times[1].processor / times[0].processor);
    printf("prefill  %8.2f ms  %8.2f ms of processors\n", times[2].wall * 1e3,
           times[2].processor * 1e3);
    printf("products %8.2f ms  %8.2f ms of processors\n", times[3].wall * 1e3,
           times[3].processor * 1e3);
    printf("         share %.2f, of processors %.2f\n", times[3].wall / times[2].wall,
           times[3].processor / times[2].processor);
}

static pen_status language_measure(language_bench *bench, int rounds) {
    static const language_part_fn parts[4] = {language_run_decode, language_run_sum,
                                              language_run_prefill, language_run_products};
    language_times times[4];
    for (int i = 0; i < 4; i++)
        times[i] = (language_times){INFINITY, INFINITY};
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 4; i++) {
            PEN_TRY(language_time(bench, parts[i], &times[i]));
            if (i < 2) PEN_TRY(language_time(bench, parts[i], &times[i]));
        }
    }
    language_print(bench, times);
    if (getenv("LANGUAGE_NODES") == NULL) return PEN_OK;
    PEN_TRY(language_profile(bench, bench->decode, rounds));
    return language_profile(bench, bench->prefill, rounds);
}

static pen_status language_run(language_bench *bench, const char *model, int rounds) {
    const pen_compile_input tokens = {"", 1, &bench->sequence};
    const pen_runner_options options = {
        .device_kind = "cpu",
        .device = {.name = "bench",
                   .thread_count = (uint32_t)bench->threads,
                   .level = pen_kernel_level_best()},
        .compile = {.model_path = model, .inputs = &tokens, .input_count = 1}};
    pen_runner *runner;
    PEN_TRY(pen_runner_create(&options, &runner));
    pen_status status = pen_runner_get_row(runner, PEN_COMPILE_PREFILL, NULL, &bench->prefill);
    if (status == PEN_OK) {
        status = pen_runner_get_row(runner, PEN_COMPILE_DECODE, NULL, &bench->decode);
    }
    omp_set_num_threads(bench->threads);
    if (status == PEN_OK) status = language_find_blas(bench);
    if (status == PEN_OK) status = language_fill(bench);
    if (status == PEN_OK) status = language_measure(bench, rounds);
    pen_runner_destroy(runner);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: language_bench MODEL [THREADS [ROUNDS [SEQUENCE]]]\n");
        return 2;
    }
    language_bench bench = {.threads = argc > 2 ? atoi(argv[2]) : 1,
                            .sequence = argc > 4 ? atoi(argv[4]) : 128};
    const int rounds = argc > 3 ? atoi(argv[3]) : 15;
    bench.position = bench.sequence / 2;
    pen_status status = pen_arena_create(&bench.arena);
    if (status == PEN_OK) {
        status = language_run(&bench, argv[1], rounds);
        pen_arena_destroy(bench.arena);
    }
    if (status == PEN_OK) return bench.sum < 0;
    fprintf(stderr, "language_bench: %s\n", pen_status_message(status));
    pen_status_ignore(status, "it was told");
    return 1;
}
