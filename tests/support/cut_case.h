// Training graphs that are cut at random, and run: whole on one device, and as parts.
#ifndef PEN_TESTS_SUPPORT_CUT_CASE_H
#define PEN_TESTS_SUPPORT_CUT_CASE_H

#include "tests/support/cut_models.h"
#include "tests/support/part_machine.h"

#define CUT_CASE_STAGES 8
#define CUT_CASE_DEVICES 5

typedef struct cut_case {
    pen_arena *arena;
    random_case dice;
    cut_model model;
    bool accumulates; // a step has several microbatches
    uint32_t stage_count;
    uint32_t device_count;
    uint32_t device_of_stage[CUT_CASE_STAGES];
    bool is_halved[CUT_CASE_STAGES];
    bool is_recomputed[CUT_CASE_STAGES];
    uint32_t *stage_of_node;
    const pen_cut *cut;
} cut_case;

// A model with a random placement, in an arena of its own. `kind` and `seed` say all. Fails the
// test on error, as all here does.
cut_case cut_case_make(cut_model_kind kind, uint64_t seed);
PEN_NODISCARD pen_status cut_case_cut(cut_case *c);

// Runs steps of the whole graph and of parts, which have the graphs of `parts` [device_count],
// and compares what is persistent and kept, bit by bit. Returns how many values were compared.
uint32_t cut_case_run(cut_case *c, const pen_part *parts);

#endif // PEN_TESTS_SUPPORT_CUT_CASE_H
