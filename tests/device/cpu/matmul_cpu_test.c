#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/blas.h"
#include "device/cpu/cpu_kernel_list.h"
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/onednn_gemm.h"
#include "tests/support/device_check.h"
#include "tests/support/random_case.h"

static pen_tensor_type matmul_matrix(const pen_shape *batch, int64_t rows, int64_t columns,
                                     bool transposed) {
    pen_tensor_type type = {PEN_FLOAT32, *batch};
    type.shape.dims[type.shape.rank++] = transposed ? columns : rows;
    type.shape.dims[type.shape.rank++] = transposed ? rows : columns;
    return type;
}

static void matmul_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 140; seed++) {
        random_case random = {seed, 0};
        const int64_t m = random_between(&random, 1, 40), n = random_between(&random, 1, 40);
        const int64_t k = random_between(&random, 1, 70);
        const bool trans_a = random_chance(&random, 40), trans_b = random_chance(&random, 40);
        const pen_tensor_type batch = random_type(&random, 0, 2, 4, 12);
        pen_shape batch_a = batch.shape, batch_b = batch.shape;
        if (random_chance(&random, 40)) batch_a = random_broadcast_of(&random, &batch).shape;
        if (random_chance(&random, 40)) batch_b = random_broadcast_of(&random, &batch).shape;
        op_case c = {.op = "matmul", .input_count = 2, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("transA", trans_a);
        c.attributes[1] = pen_attribute_int("transB", trans_b);
        c.inputs[0].type = matmul_matrix(&batch_a, m, k, trans_a);
        c.inputs[1].type = matmul_matrix(&batch_b, k, n, trans_b);
        op_check_device(&c, seed, 1e-5);
    }
}

// Large enough for several parts and for a team: long sums, many products, and edges of parts.
static void large_products_equal_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        const int64_t m = random_between(&random, 1, seed % 4 == 0 ? 30 : 400);
        const int64_t n = random_between(&random, 1, seed % 4 == 1 ? 30 : 700);
        const int64_t most = 12000000 / (m * n);
        const int64_t k = random_between(&random, 1, most < 6000 ? most + 1 : 6000);
        const bool trans_a = random_chance(&random, 40), trans_b = random_chance(&random, 50);
        const pen_shape batch = {.rank = seed % 5 == 0 ? 1 : 0, .dims = {(int64_t)(seed % 3) + 2}};
        op_case c = {.op = "matmul", .input_count = 2, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("transA", trans_a);
        c.attributes[1] = pen_attribute_int("transB", trans_b);
        c.inputs[0].type = matmul_matrix(&batch, m, k, trans_a);
        c.inputs[1].type = matmul_matrix(&batch, k, n, trans_b);
        op_check_device(&c, seed, 1e-4);
    }
}

static void vectors_multiply(void **state) {
    (void)state;
    op_case c = {.op = "matmul", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 1, 17);
    c.inputs[1].type = op_type(PEN_FLOAT32, 1, 17);
    op_check_device(&c, 1, 1e-5);
    c.inputs[0].type = op_type(PEN_FLOAT32, 3, 2, 5, 17);
    op_check_device(&c, 2, 1e-5);
    c.inputs[0].type = op_type(PEN_FLOAT32, 1, 17);
    c.inputs[1].type = op_type(PEN_FLOAT32, 2, 17, 33);
    op_check_device(&c, 3, 1e-5);
    c.inputs[0].type = op_type(PEN_FLOAT64, 2, 3, 17); // no kernel but the reference
    c.inputs[1].type = op_type(PEN_FLOAT64, 2, 17, 33);
    op_check_device(&c, 4, 1e-12);
    c.inputs[0].type = op_type(PEN_INT32, 2, 3, 17);
    c.inputs[1].type = op_type(PEN_INT32, 2, 17, 5);
    c.inputs[0].low = c.inputs[1].low = -9;
    c.inputs[0].high = c.inputs[1].high = 9;
    op_check_device(&c, 5, 0);
}

static void empty_operands_give_zeros(void **state) {
    (void)state;
    op_case c = {.op = "matmul", .input_count = 2};
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, 3, 0);
    c.inputs[1].type = op_type(PEN_FLOAT32, 2, 0, 5);
    op_check_device(&c, 1, 0);
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, 0, 4);
    c.inputs[1].type = op_type(PEN_FLOAT32, 2, 4, 5);
    op_check_device(&c, 1, 0);
}

static void gemm_equals_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 140; seed++) {
        random_case random = {seed, 0};
        const int64_t m = random_between(&random, 1, 60), n = random_between(&random, 1, 60);
        const int64_t k = random_between(&random, 1, 90);
        const bool trans_a = random_chance(&random, 40), trans_b = random_chance(&random, 40);
        static const double factors[] = {1, 1, 0, -0.5, 2};
        op_case c = {.op = "gemm", .input_count = 2, .attribute_count = 4};
        c.attributes[0] = pen_attribute_int("transA", trans_a);
        c.attributes[1] = pen_attribute_int("transB", trans_b);
        c.attributes[2] = pen_attribute_float("alpha", factors[random_between(&random, 0, 4)]);
        c.attributes[3] = pen_attribute_float("beta", factors[random_between(&random, 0, 4)]);
        const pen_shape none = {0};
        c.inputs[0].type = matmul_matrix(&none, m, k, trans_a);
        c.inputs[1].type = matmul_matrix(&none, k, n, trans_b);
        const pen_tensor_type y = matmul_matrix(&none, m, n, false);
        if (random_chance(&random, 75)) {
            c.input_count = 3;
            c.inputs[2].type = random_broadcast_of(&random, &y);
        }
        op_check_device(&c, seed, 1e-5);
    }
}

// One library against sums in double, on a product large enough for its blocking.
static void matmul_check_library(pen_status (*sgemm)(const pen_gemm *), const char *name,
                                 random_case *random) {
    pen_gemm g = {
        .m = random_between(random, 1, 150),
        .n = random_between(random, 1, 150),
        .k = random_between(random, 1, 400),
        .trans_a = random_chance(random, 50),
        .trans_b = random_chance(random, 50),
        .alpha = random_chance(random, 50) ? 1.0f : -0.5f,
        .beta = random_chance(random, 50) ? 0.0f : 1.0f,
    };
    g.lda = (g.trans_a ? g.m : g.k) + random_between(random, 0, 3);
    g.ldb = (g.trans_b ? g.k : g.n) + random_between(random, 0, 3);
    g.ldc = g.n + random_between(random, 0, 3);
    const size_t a_size = (size_t)((g.trans_a ? g.k : g.m) * g.lda);
    const size_t b_size = (size_t)((g.trans_b ? g.n : g.k) * g.ldb);
    const size_t c_size = (size_t)(g.m * g.ldc);
    float *a = pen_memory_allocate(a_size, sizeof *a);
    float *b = pen_memory_allocate(b_size, sizeof *b);
    float *c = pen_memory_allocate(c_size, sizeof *c);
    for (size_t i = 0; i < a_size; i++) {
        a[i] = (float)random_between(random, -64, 64) / 64;
    }
    for (size_t i = 0; i < b_size; i++) {
        b[i] = (float)random_between(random, -64, 64) / 64;
    }
    for (size_t i = 0; i < c_size; i++) {
        c[i] = g.beta == 0 ? NAN : 0.25f; // with beta 0, c is not read
    }
    g.a = a;
    g.b = b;
    g.c = c;
    CHECK_OK(sgemm(&g));
    for (int64_t i = 0; i < g.m; i++) {
        for (int64_t j = 0; j < g.n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < g.k; p++) {
                sum += (double)a[g.trans_a ? p * g.lda + i : i * g.lda + p] *
                       (double)b[g.trans_b ? j * g.ldb + p : p * g.ldb + j];
            }
            sum = (double)g.alpha * sum + (g.beta == 0 ? 0 : 0.25);
            const double found = (double)c[i * g.ldc + j];
            CHECK(fabs(found - sum) <= 2e-5 * (1 + fabs(sum)),
                  "%s, %lld x %lld x %lld: [%lld][%lld] is %g, expected %g", name, (long long)g.m,
                  (long long)g.n, (long long)g.k, (long long)i, (long long)j, found, sum);
        }
    }
    pen_memory_free(a);
    pen_memory_free(b);
    pen_memory_free(c);
}

static pen_status matmul_openblas(const pen_gemm *gemm) {
    pen_blas_sgemm(gemm);
    return PEN_OK;
}

static void libraries_multiply(void **state) {
    (void)state;
    pen_kernel_level level;
    CHECK_OK(pen_kernel_level_settle(op_check_level(), &level));
    CHECK_OK(pen_onednn_start(level));
    CHECK_OK(pen_blas_load(level));
    for (uint64_t seed = 0; seed < 60; seed++) {
        random_case random = {seed, 0};
        matmul_check_library(pen_onednn_sgemm, "oneDNN", &random);
        if (pen_blas_is_loaded()) matmul_check_library(matmul_openblas, "OpenBLAS", &random);
    }
}

static const pen_cpu_kernel *matmul_find(const pen_cpu_request *request, const char *name) {
    const pen_cpu_kernel *entries[PEN_CPU_CANDIDATE_LIMIT];
    const uint32_t count = pen_cpu_candidates(request, entries);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(entries[i]->name, name) == 0) return entries[i];
    }
    fail_msg("%s has no kernel '%s'", request->node->op->name, name);
    return NULL;
}

// The same again on larger teams, which must not change a bit.
static void matmul_check_teams(const pen_cpu_kernel *kernel, const pen_cpu_call *call,
                               int64_t count) {
    float *again = pen_memory_allocate((uint64_t)count, sizeof *again);
    pen_cpu_call other = *call;
    other.outputs = (void *const[]){again};
    for (int team = 2; team <= 3; team++) {
        omp_set_num_threads(team);
        CHECK_OK(kernel->run(&other));
        CHECK(memcmp(again, call->outputs[0], (size_t)count * sizeof *again) == 0,
              "%s: %d threads give other bits than 1", kernel->name, team);
    }
    omp_set_num_threads(1);
    pen_memory_free(again);
}

// Runs the kernel `name`, whichever the device would take.
static void matmul_check_kernel(const op_case *c, const char *name, pen_kernel_level level,
                                uint64_t seed) {
    op_built built;
    run_graph run;
    CHECK_OK(op_build(c, &built));
    CHECK_OK(run_graph_init(&run, built.graph, built.arena));
    op_fill(c, &built, seed, &run);
    CHECK_OK(run_graph_all(&run));
    const pen_cpu_request request = {.graph = built.graph,
                                     .node = pen_graph_node(built.graph, built.node),
                                     .node_id = built.node,
                                     .arena = built.arena,
                                     .thread_count = 3,
                                     .level = level};
    const pen_cpu_kernel *kernel = matmul_find(&request, name);
    void *kernel_state = NULL;
    uint64_t workspace_bytes = 0;
    if (kernel->prepare != NULL) {
        CHECK_OK(kernel->prepare(&request, &kernel_state, &workspace_bytes));
    }
    const pen_tensor *y = &run.tensors[built.outputs[0].index];
    const int64_t count = pen_tensor_count(y);
    float *found = pen_memory_allocate((uint64_t)count, sizeof *found);
    void *workspace = pen_memory_allocate(workspace_bytes + 1, 1);
    assert_true(found != NULL && workspace != NULL);
    static const pen_run_context context = {.first_microbatch = true};
    const pen_cpu_call call = {
        .state = kernel_state,
        .inputs = (void *const[]){run.tensors[built.inputs[0].index].data,
                                  run.tensors[built.inputs[1].index].data},
        .outputs = (void *const[]){found},
        .workspace = workspace,
        .run = &context,
    };
    CHECK_OK(kernel->run(&call));
    for (int64_t k = 0; k < count; k++) {
        const double expected = pen_tensor_get(y, k);
        CHECK(fabs((double)found[k] - expected) <= 2e-5 * (1 + fabs(expected)),
              "%s: element %lld is %g, expected %g", name, (long long)k, (double)found[k],
              expected);
    }
    matmul_check_teams(kernel, &call, count);
    if (kernel->release != NULL && kernel_state != NULL) kernel->release(kernel_state);
    pen_memory_free(workspace);
    pen_memory_free(found);
    op_built_free(&built);
}

static void kernels_that_compete_agree(void **state) {
    (void)state;
    pen_kernel_level level;
    CHECK_OK(pen_kernel_level_settle(op_check_level(), &level));
    CHECK_OK(pen_blas_load(level));
    omp_set_num_threads(1);
    for (uint64_t seed = 0; seed < 40; seed++) {
        random_case random = {seed, 0};
        op_case c = {.op = "gemm", .input_count = 2, .attribute_count = 2};
        c.attributes[0] = pen_attribute_int("transB", 1);
        c.attributes[1] = pen_attribute_float("alpha", seed % 3 == 0 ? 0.5 : 1);
        const int k = (int)random_between(&random, 1, seed % 4 == 0 ? 2200 : 100);
        c.inputs[0].type = op_type(PEN_FLOAT32, 2, (int)random_between(&random, 1, 40), k);
        c.inputs[1].type = op_type(PEN_FLOAT32, 2, (int)random_between(&random, 1, 60), k);
        matmul_check_kernel(&c, "rows", level, seed);
        matmul_check_kernel(&c, "onednn", level, seed);
        if (pen_blas_is_loaded()) matmul_check_kernel(&c, "openblas", level, seed);
    }
}

// Rows that end within a vector and a group of columns, and products large enough for a team.
static void one_row_multiplies(void **state) {
    (void)state;
    pen_kernel_level level;
    CHECK_OK(pen_kernel_level_settle(op_check_level(), &level));
    omp_set_num_threads(1);
    for (uint64_t seed = 0; seed < 48; seed++) {
        random_case random = {seed, 0};
        const bool is_long = seed % 4 == 0, trans_b = seed % 2 == 0 || random_chance(&random, 20);
        const int k = (int)random_between(&random, trans_b ? 32 : 1, is_long ? 900 : 100);
        const int n = (int)random_between(&random, trans_b ? 1 : 32, seed % 8 < 2 ? 4500 : 150);
        op_case c = {.op = "gemm", .input_count = 2, .attribute_count = 3};
        const bool trans_a = random_chance(&random, 30);
        c.attributes[0] = pen_attribute_int("transA", trans_a);
        c.attributes[1] = pen_attribute_int("transB", trans_b);
        c.attributes[2] = pen_attribute_float("alpha", seed % 3 == 0 ? 0.5 : 1);
        c.inputs[0].type = trans_a ? op_type(PEN_FLOAT32, 2, k, 1) : op_type(PEN_FLOAT32, 2, 1, k);
        c.inputs[1].type = trans_b ? op_type(PEN_FLOAT32, 2, n, k) : op_type(PEN_FLOAT32, 2, k, n);
        matmul_check_kernel(&c, "one_row", level, seed);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(one_row_multiplies), cmocka_unit_test(kernels_that_compete_agree),
              cmocka_unit_test(matmul_equals_reference),
              cmocka_unit_test(large_products_equal_reference), cmocka_unit_test(vectors_multiply),
              cmocka_unit_test(empty_operands_give_zeros), cmocka_unit_test(gemm_equals_reference),
              cmocka_unit_test(libraries_multiply))
