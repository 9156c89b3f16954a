#include "scheduler/engine/diagnose_step.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INSPECT_RUNS 3

// A computation of one part.
typedef struct diagnose_run {
    pen_node_inspection *nodes; // [node_limit]
    uint32_t bad;
    double loss;
} diagnose_run;

typedef struct diagnosis {
    const pen_diagnosed_step *step;
    pen_arena *arena;
    uint32_t part;
    char where[64]; // "step 12, microbatch 3"
    diagnose_run runs[INSPECT_RUNS];
} diagnosis;

static pen_status diagnose_compute(diagnosis *i, uint32_t index) {
    diagnose_run *run = &i->runs[index];
    memset(run->nodes, 0, i->step->node_limit * sizeof *run->nodes);
    run->loss = 0;
    return i->step->run(i->step->context, i->part, run->nodes, &run->bad, &run->loss);
}

// What is not a number has a sign that depends on who added it to what.
static bool diagnose_is_same_loss(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    uint64_t first, second;
    memcpy(&first, &a, sizeof first);
    memcpy(&second, &b, sizeof second);
    return first == second;
}

// The first node whose bits differ; UINT32_MAX: none.
static uint32_t diagnose_find_difference(const diagnosis *i, uint32_t a, uint32_t b) {
    for (uint32_t n = 0; n < i->step->node_limit; n++) {
        const pen_node_inspection *first = &i->runs[a].nodes[n], *second = &i->runs[b].nodes[n];
        if (first->was_run && second->was_run && first->hash != second->hash) return n;
        if (first->was_run != second->was_run) return n;
    }
    return UINT32_MAX;
}

// ---- verdicts

static pen_status diagnose_blame_numbers(const diagnosis *i) {
    const char *text;
    PEN_TRY(i->step->describe_bad(i->step->context, i->part, i->runs[1].bad, i->arena, &text));
    return pen_error(PEN_NOT_FINITE, "%s%s%s: first in %s. Computed again, the bits are the same",
                     i->where, i->step->first == NULL ? " on " : "",
                     i->step->first == NULL ? i->step->device : "", text);
}

// Two computations here differ: a third says which was odd.
static pen_status diagnose_blame_hardware(diagnosis *i, uint32_t node) {
    const char *text;
    PEN_TRY(i->step->describe_node(i->step->context, i->part, node, i->arena, &text));
    PEN_TRY(diagnose_compute(i, 2));
    const bool is_first = i->runs[2].nodes[node].hash == i->runs[0].nodes[node].hash;
    const bool is_second = i->runs[2].nodes[node].hash == i->runs[1].nodes[node].hash;
    return pen_error(PEN_UNAVAILABLE,
                     "%s: %s gives different bits from one computation to the next, first in %s "
                     "(%s): its hardware is not to be trusted",
                     i->where, i->step->device, text,
                     is_first    ? "the second of three is the odd one"
                     : is_second ? "the first of three is the odd one"
                                 : "all three differ");
}

// What was computed first is not what comes out twice now.
static pen_status diagnose_blame_first(const diagnosis *i) {
    const pen_diagnosed_step *step = i->step;
    const char *who = NULL, *what = NULL;
    if (step->find_odd != NULL) {
        PEN_TRY(step->find_odd(step->context, i->part, i->arena, &who, &what));
    }
    if (who != NULL) {
        return pen_error(PEN_UNAVAILABLE,
                         "%s: %s gave other bits of %s the first time than %s twice since: the "
                         "hardware of %s is not to be trusted",
                         i->where, who, what, step->device, who);
    }
    char first[32] = "other bits";
    if (i->part < step->loss_count) {
        snprintf(first, sizeof first, "a loss of %.9g", step->losses[i->part]);
    }
    return pen_error(PEN_UNAVAILABLE,
                     "%s: %s gave %s the first time, and %s %.9g twice since: the hardware of %s "
                     "is not to be trusted",
                     i->where, step->first != NULL ? step->first : step->device, first,
                     step->first != NULL ? step->device : "gives", i->runs[0].loss,
                     step->first != NULL ? step->first : step->device);
}

// ---- one part after another

// *out_is_clear: nothing is wrong with this part.
static pen_status diagnose_part(diagnosis *i, bool *out_is_clear) {
    const pen_diagnosed_step *step = i->step;
    const bool has_loss = i->part < step->loss_count && step->losses[i->part] != 0;
    *out_is_clear = false;
    PEN_TRY(diagnose_compute(i, 0));
    const bool is_same = has_loss && diagnose_is_same_loss(i->runs[0].loss, step->losses[i->part]);
    if (i->runs[0].bad == UINT32_MAX && (is_same || !has_loss)) {
        *out_is_clear = true;
        return PEN_OK;
    }
    PEN_TRY(diagnose_compute(i, 1));
    const uint32_t different = diagnose_find_difference(i, 0, 1);
    if (different != UINT32_MAX) return diagnose_blame_hardware(i, different);
    // a bad node behind the loss, or before one that was bad the first time, too
    if (i->runs[0].bad != UINT32_MAX) return diagnose_blame_numbers(i);
    return diagnose_blame_first(i);
}

static pen_status diagnose_all(diagnosis *i) {
    const pen_diagnosed_step *step = i->step;
    for (uint32_t run = 0; run < INSPECT_RUNS; run++) {
        PEN_TRY(PEN_NEW(i->arena, step->node_limit, &i->runs[run].nodes));
    }
    for (i->part = 0; i->part < step->part_count; i->part++) {
        bool is_clear;
        snprintf(i->where, sizeof i->where, "step %" PRIu64 ", microbatch %" PRIu32, step->step,
                 i->part);
        PEN_TRY(diagnose_part(i, &is_clear));
        PEN_ASSERT(is_clear); // else an error
    }
    return pen_error(PEN_UNAVAILABLE,
                     "step %" PRIu64 ": %s had numbers that were not finite, and %s finite ones "
                     "when all was computed again: the hardware of %s is not to be trusted",
                     step->step, step->first != NULL ? step->first : step->device,
                     step->first != NULL ? step->device : "has",
                     step->first != NULL ? step->first : step->device);
}

pen_status pen_diagnose_step(const pen_diagnosed_step *step) {
    diagnosis i = {.step = step};
    PEN_TRY(pen_arena_create(&i.arena));
    const pen_status status = diagnose_all(&i);
    pen_arena_destroy(i.arena);
    return status;
}
