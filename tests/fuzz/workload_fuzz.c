// libFuzzer: workloads of the placement benchmark and placements for them. Bytes up to the first
// line that is "%" are the workload, what follows is a placement. What can be read must be a
// problem that every check accepts, and be placed.
#include <string.h>

#include "partition/problem/problem_build.h"
#include "partition/problem/workload.h"
#include "partition/strategies/strategies.h"
#include "tests/fuzz/fuzz.h"

static void place_all(pen_workload *workload, pen_objective objective, bool is_contiguous,
                      const uint32_t *wished, pen_arena *arena) {
    static const char *const names[] = {"greedy", "round_robin", "manual"};
    pen_problem *problem;
    workload->given.objective = objective;
    workload->given.is_contiguous = is_contiguous;
    if (!fuzz_reads(pen_problem_build(&workload->given, arena, &problem))) return;
    const pen_strategy_options options = {
        .seed = 1, .time_limit_seconds = 0.01, .thread_count = 1, .device_of_node = wished};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const pen_strategy *strategy;
        pen_placement *placement;
        if (!fuzz_works(pen_strategy_find(names[i], arena, &strategy))) return;
        fuzz_reads(pen_place(problem, strategy, &options, arena, &placement)); // it need not fit
    }
}

static void read_all(const char *text, size_t length, const char *placed, size_t placed_length,
                     pen_arena *arena) {
    pen_workload *workload;
    uint32_t *wished = NULL;
    if (!fuzz_reads(pen_workload_parse("fuzz", text, length, arena, &workload))) return;
    if (placed != NULL) {
        if (!fuzz_works(PEN_NEW(arena, workload->given.node_count, &wished))) return;
        if (!fuzz_reads(pen_workload_parse_placement(workload, "fuzz", placed, placed_length, arena,
                                                     wished))) {
            return;
        }
    }
    // the reader is what is tried here, so long searches are not
    if (workload->given.node_count <= 64 && workload->given.device_count <= 64) {
        for (int i = 0; i < 4; i++) {
            place_all(workload, i % 2 == 0 ? PEN_OBJECTIVE_THROUGHPUT : PEN_OBJECTIVE_LATENCY,
                      i >= 2, wished, arena);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *placed = NULL;
    size_t length = size, placed_length = 0;
    for (size_t i = 0; i + 3 <= size; i++) {
        if (memcmp(text + i, "\n%\n", 3) != 0) continue;
        length = i;
        placed = text + i + 3;
        placed_length = size - i - 3;
        break;
    }
    pen_arena *arena;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    read_all(text, length, placed, placed_length, arena);
    pen_arena_destroy(arena);
    return 0;
}
