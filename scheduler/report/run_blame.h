// Why a step took another time than predicted, in terms: computing, transfers, waiting.
//
// Each term is what the step would take more if that alone had been known: the plan's simulation
// with the times that tasks really took, then with values that come as late as they did. The rest
// is waiting: for the coordinator, for threads, for what else runs on the machines. Without a trace
// the times of single transfers are not known, and the last two are one: the computing is that of
// the busiest device.
//
// Lifetime: texts live in the arena. Threads: pure.
#ifndef PEN_SCHEDULER_REPORT_RUN_BLAME_H
#define PEN_SCHEDULER_REPORT_RUN_BLAME_H

#include "base/format/json_writer.h"
#include "partition/plan/plan.h"
#include "scheduler/engine/engine.h"
#include "scheduler/trace/trace.h"

#define PEN_RUN_BLAME_STEP 0.1    // of the prediction: a step that is off by less is not
#define PEN_RUN_BLAME_BUBBLE 0.05 // likewise a bubble

typedef struct pen_run_blame {
    bool is_known; // steps were measured
    bool is_off;   // by more than the above
    double predicted_seconds;
    double measured_seconds;
    double bubble_predicted;
    double bubble; // below 0: not known
    double compute_seconds;
    bool has_transfers; // else waiting_seconds has them
    double transfer_seconds;
    double waiting_seconds;
    const char *device;  // whose computing is off most; NULL: none is known
    double device_ratio; // measured / predicted
    const char *source;  // devices between which values of microbatches are late most, by how much
    const char *target;  // and how often; NULL: none is late, or not known
    double way_seconds;  // mean, from the end of the task that made them until they were there
    double way_predicted;
} pen_run_blame;

// `trace` may be NULL. INVALID_INPUT: it is of another plan; CORRUPT; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_blame_find(const pen_plan *plan, const pen_engine_report *report,
                                            const pen_trace *trace, pen_arena *arena,
                                            pen_run_blame *out_blame);

// A line or two for people, "" where nothing is off. `trace` is the file that was written; NULL:
// none. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_run_blame_text(const pen_run_blame *blame, const char *trace,
                                            pen_arena *arena, const char **out_text);

// The object "difference" with "compute_seconds", "transfer_seconds" (where it is known) and
// "waiting_seconds". Nothing where steps were not measured.
void pen_run_blame_json(pen_json_writer *json, const pen_run_blame *blame);

#endif // PEN_SCHEDULER_REPORT_RUN_BLAME_H
