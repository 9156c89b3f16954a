#include "scheduler/compile/compile_request.h"

// What one device runs as it is collects nothing: its outputs are where they are read.
pen_compile_request pen_compile_request_of(const pen_compile_request *request,
                                           const pen_compile_form *form) {
    pen_compile_request of = *request;
    of.mode = form->mode;
    of.microbatch_size = form->microbatch_size;
    of.microbatches = form->microbatches;
    of.most_examples = form->most_examples;
    of.accumulate = form->mode == PEN_COMPILE_TRAIN && form->accumulates;
    of.is_whole = form->is_whole;
    of.output = form->output;
    of.collects = form->mode == PEN_COMPILE_PREDICT && !form->is_whole;
    of.device = form->device;
    return of;
}

// ---- what a program's losses tell of a step

static bool terms_have_shares(const pen_program *program) {
    for (uint32_t s = 0; s < PEN_PROGRAM_SHARE_COUNT; s++) {
        if (pen_value_is(program->shares[s])) return true;
    }
    return false;
}

uint32_t pen_program_term_count(const pen_program *program) {
    const uint32_t share_count = terms_have_shares(program) ? PEN_PROGRAM_SHARE_COUNT : 0;
    return program->term_count + program->told_count + share_count;
}

pen_value_id pen_program_term(const pen_program *program, uint32_t index) {
    if (index < program->term_count) return program->losses[index].value;
    index -= program->term_count;
    if (index < program->told_count) return program->told[index].value;
    return program->shares[index - program->told_count];
}

double pen_program_get_share(const pen_program *program, pen_program_share share,
                             const double *terms) {
    if (!pen_value_is(program->shares[share])) return 1;
    return terms[program->term_count + program->told_count + (uint32_t)share];
}

double pen_program_get_told_share(const pen_program *program, uint32_t told, const double *terms) {
    const pen_metric_source source = pen_metric_kinds[program->told[told].metric].source;
    const pen_program_share share =
        source == PEN_METRIC_FROM_NUMBERS ? PEN_PROGRAM_SHARE_NUMBERS : PEN_PROGRAM_SHARE_TARGETS;
    return pen_program_get_share(program, share, terms);
}

// Where nothing counts, the mean is 0, as an evaluation has it.
double pen_program_get_mean(const pen_program *program, uint32_t told, const double *terms) {
    const double whole = pen_program_get_told_share(program, told, terms);
    return whole > 0 ? terms[program->term_count + told] / whole : 0;
}
