// One placement of one giant training graph, in a process of its own so that the peak of memory is
// its own. Prints a line of JSON.
//   giant_bench transformer|branching NODES DEVICES free|contiguous STRATEGY SECONDS [SEED]
//   giant_bench transformer|branching NODES DEVICES free|contiguous --write WORKLOAD.json
// STRATEGY metis_alone is METIS's partition as it comes: neither memory nor the order of devices is
// looked at, "right" says what became of them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "partition/bound/bounds.h"
#include "partition/problem/problem_build.h"
#include "partition/strategies/metis_strategy.h"
#include "partition/strategies/strategies.h"
#include "tests/support/giant_graph.h"

#define GIANT_BENCH_THREADS 2

typedef struct giant_bench {
    pen_arena *arena;
    pen_problem_given given;
    pen_problem *problem;
    pen_placement *placement;
    double build_seconds;
    double seconds; // building counts
    bool is_right;
} giant_bench;

static pen_status giant_bench_metis(giant_bench *bench, uint64_t seed) {
    uint32_t *part, *device_of_node;
    double bound;
    PEN_TRY(PEN_NEW(bench->arena, bench->problem->group_count, &part));
    PEN_TRY(PEN_NEW(bench->arena, bench->given.node_count, &device_of_node));
    PEN_TRY(pen_metis_partition(bench->problem, seed, bench->arena, part));
    for (uint32_t v = 0; v < bench->given.node_count; v++)
        device_of_node[v] = part[bench->problem->group_of_node[v]];
    PEN_TRY(pen_placement_new(bench->problem, device_of_node, bench->arena, &bench->placement));
    PEN_TRY(pen_bound(bench->problem, bench->arena, &bound));
    bench->placement->lower_bound = bound;
    const pen_status wrong = pen_placement_check(bench->problem, bench->placement);
    bench->is_right = wrong == PEN_OK;
    pen_status_ignore(wrong, "it is told");
    return PEN_OK;
}

static pen_status giant_bench_run(giant_bench *bench, char **arguments, uint64_t seed) {
    const double begin = pen_clock_seconds();
    const double limit = atof(arguments[6]);
    const pen_strategy *strategy;
    PEN_TRY(pen_problem_build(&bench->given, bench->arena, &bench->problem));
    bench->build_seconds = pen_clock_seconds() - begin;
    if (strcmp(arguments[5], "metis_alone") == 0) {
        PEN_TRY(giant_bench_metis(bench, seed));
    } else {
        PEN_TRY(pen_strategy_find(arguments[5], bench->arena, &strategy));
        const pen_strategy_options options = {
            .seed = seed,
            // checking comes after the strategy, and building came before
            .time_limit_seconds = fmax(0.95 * limit - 2.0 * bench->build_seconds, 0.001),
            .thread_count = GIANT_BENCH_THREADS};
        PEN_TRY(pen_place(bench->problem, strategy, &options, bench->arena, &bench->placement));
        bench->is_right = true;
    }
    bench->seconds = pen_clock_seconds() - begin;
    return PEN_OK;
}

// Also how far the loads are transfers, and how far they are even.
static void giant_bench_print(const giant_bench *bench, const char *strategy) {
    const pen_placement *placement = bench->placement;
    const pen_problem_given *given = &bench->given;
    struct rusage usage;
    double compute = 0.0, total = 0.0, full = 0.0;
    for (uint32_t d = 0; d < given->device_count; d++) {
        total += placement->load[d];
        if (placement->bytes[d] > 0.95 * given->devices[d].bytes_limit) full += 1.0;
    }
    for (uint32_t v = 0; v < given->node_count; v++) {
        compute += given->compute[v] * given->devices[placement->device_of_node[v]].slowness;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"strategy\": \"%s\", \"nodes\": %u, \"groups\": %u, \"devices\": %u, "
           "\"value\": %.9g, \"lower_bound\": %.9g, \"gap\": %.5f, \"seconds\": %.3f, "
           "\"place_seconds\": %.6f, \"peak_bytes\": %.0f, \"right\": %s, \"moved_share\": %.4f, "
           "\"even\": %.4f, \"full_devices\": %.0f}\n",
           strategy, given->node_count, bench->problem->group_count, given->device_count,
           placement->value, placement->lower_bound, placement->value / placement->lower_bound - 1,
           bench->seconds, bench->seconds - bench->build_seconds, 1024.0 * (double)usage.ru_maxrss,
           bench->is_right ? "true" : "false", 1.0 - compute / total,
           total / given->device_count / placement->value, full);
}

static pen_status giant_bench_main(int argument_count, char **arguments, giant_bench *bench) {
    const giant_graph_options graph = {
        .kind = strcmp(arguments[1], "branching") == 0 ? GIANT_BRANCHING : GIANT_TRANSFORMER,
        .node_count = (uint32_t)atol(arguments[2]),
        .device_count = (uint32_t)atol(arguments[3]),
        .seed = 1,
        .is_contiguous = strcmp(arguments[4], "contiguous") == 0,
        .is_unequal = strcmp(arguments[5], "--write") != 0,
        .room = 2.5};
    const uint64_t seed = argument_count > 7 ? (uint64_t)atol(arguments[7]) : 1;
    PEN_TRY(pen_arena_create(&bench->arena));
    PEN_TRY(giant_graph_make(&graph, bench->arena, &bench->given));
    if (!graph.is_unequal) return giant_graph_write(&bench->given, arguments[6]);
    PEN_TRY(giant_bench_run(bench, arguments, seed));
    giant_bench_print(bench, arguments[5]);
    return PEN_OK;
}

int main(int argument_count, char **arguments) {
    giant_bench bench = {0};
    if (argument_count < 7) {
        fprintf(stderr, "usage: giant_bench transformer|branching NODES DEVICES free|contiguous "
                        "STRATEGY SECONDS [SEED]\n");
        return 2;
    }
    const pen_status status = giant_bench_main(argument_count, arguments, &bench);
    pen_arena_destroy(bench.arena);
    if (status == PEN_OK) return EXIT_SUCCESS;
    fprintf(stderr, "giant_bench: %s\n", pen_status_message(status));
    pen_status_ignore(status, "the program ends");
    return EXIT_FAILURE;
}
