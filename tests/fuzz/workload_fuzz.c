// libFuzzer: workloads of the placement benchmark and placements for them. Bytes up to the first
// line that is "%" are the workload, what follows is a placement. What can be read must be a
// problem that every check accepts, and be placed.
#include <stdlib.h>
#include <string.h>

#include "partition/strategies/strategies.h"
#include "partition/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// An odd name for a property: whether something went as it must.
static void must(bool holds) {
    if (!holds) abort();
}

static void place_all(pen_workload *workload, pen_objective objective, bool is_contiguous,
                      const uint32_t *wished, pen_arena *arena) {
    static const char *const names[] = {"greedy", "round_robin", "manual"};
    pen_problem *problem;
    workload->given.objective = objective;
    workload->given.is_contiguous = is_contiguous;
    pen_status status = pen_problem_build(&workload->given, arena, &problem);
    const pen_strategy_options options = {
        .seed = 1, .time_limit_seconds = 0.01, .thread_count = 1, .device_of_node = wished};
    for (size_t i = 0; status == PEN_OK && i < sizeof names / sizeof *names; i++) {
        const pen_strategy *strategy;
        pen_placement *placement;
        must(pen_strategy_find(names[i], arena, &strategy) == PEN_OK);
        const pen_status placed = pen_place(problem, strategy, &options, arena, &placement);
        must(pen_status_get_code(placed) != PEN_INTERNAL);
        pen_status_ignore(placed, "it need not fit");
    }
    pen_status_ignore(status, "cycles, and nodes too large for any device");
}

static void read_all(const char *text, size_t length, const char *placed, size_t placed_length,
                     pen_arena *arena) {
    pen_workload *workload;
    uint32_t *wished = NULL;
    pen_status status = pen_workload_parse("fuzz", text, length, arena, &workload);
    if (status == PEN_OK && placed != NULL) {
        must(PEN_NEW(arena, workload->given.node_count, &wished) == PEN_OK);
        status =
            pen_workload_parse_placement(workload, "fuzz", placed, placed_length, arena, wished);
    }
    // the reader is what is tried here, so long searches are not
    if (status == PEN_OK && workload->given.node_count <= 64 &&
        workload->given.device_count <= 64) {
        for (int i = 0; i < 4; i++) {
            place_all(workload, i % 2 == 0 ? PEN_OBJECTIVE_THROUGHPUT : PEN_OBJECTIVE_LATENCY,
                      i >= 2, wished, arena);
        }
    }
    pen_status_ignore(status, "most inputs are wrong");
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
    must(pen_arena_create(&arena) == PEN_OK);
    read_all(text, length, placed, placed_length, arena);
    pen_arena_destroy(arena);
    return 0;
}
