#include "scheduler/measure/step_runner.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/thread.h"
#include "device/measure_fill.h"
#include "device/run_context.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runner/feed.h"

#define STEP_LEARNING_RATE 1e-6 // numbers stay what they are

static pen_status step_create_executor(pen_step_runner *runner) {
    const pen_program *program = runner->program;
    const pen_executor_spec spec = {.device = runner->device,
                                    .graph = program->graph,
                                    .order = program->order,
                                    .order_count = program->order_count,
                                    .update_first = program->update_first,
                                    .kept = program->kept,
                                    .kept_count = program->kept_count};
    return pen_executor_create(&spec, &runner->executor);
}

// The loss whose labels they are; NULL: none.
static const pen_program_loss *step_find_labels(const pen_program *program, pen_value_id input) {
    for (uint32_t i = 0; i < program->loss_count; i++) {
        if (pen_value_same(input, program->losses[i].labels)) return &program->losses[i];
    }
    return NULL;
}

// The limit of an input's integers that every node that reads it can take.
static uint64_t step_integer_limit(const pen_program *program, pen_value_id input) {
    uint64_t limit = UINT64_MAX;
    const pen_program_loss *loss = step_find_labels(program, input);
    if (loss != NULL && loss->class_count > 0) return loss->class_count;
    for (uint32_t p = 0; p < program->order_count; p++) {
        const pen_node *node = pen_graph_node(program->graph, program->order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_same(node->inputs[i], input)) continue;
            limit =
                pen_min_u64(limit, pen_measure_integer_limit(program->graph, program->order[p]));
        }
    }
    return limit == UINT64_MAX ? 2 : limit;
}

static pen_status step_feed_input(pen_step_runner *runner, pen_value_id input) {
    const pen_tensor_type *type = pen_value_type(runner->program->graph, input);
    const uint64_t bytes = pen_tensor_type_bytes(type);
    if (bytes == 0) return PEN_OK;
    void *host = pen_memory_allocate(bytes, 1);
    if (host == NULL) return pen_error_out_of_memory();
    const pen_measure_contents contents = {
        .element = type->element,
        .is_signed = type->shape.rank > 1 && step_find_labels(runner->program, input) == NULL,
        .limit = step_integer_limit(runner->program, input)};
    pen_measure_fill(&contents, host, bytes);
    const pen_status status = pen_executor_write(runner->executor, input, 0, host, bytes);
    pen_memory_free(host);
    return status;
}

static pen_status step_feed(pen_step_runner *runner) {
    const pen_program *program = runner->program;
    const pen_runner_form form = {.program = program, .executor = runner->executor};
    for (uint32_t i = 0; i < program->fed_count; i++) {
        PEN_TRY(step_feed_input(runner, program->inputs[i]));
    }
    const pen_feed_step step = {.loss_weight = 1.0 / runner->microbatch_count,
                                .scale = 1,
                                .unscale = 1,
                                .learning_rate = STEP_LEARNING_RATE,
                                .update = 1};
    return pen_feed_numbers(&form, &step);
}

pen_status pen_step_runner_run(pen_step_runner *runner, uint64_t step, double *out_seconds) {
    const double started = pen_clock_seconds();
    const pen_lanes lanes = {runner->lanes, runner->microbatch_count};
    for (uint32_t m = 0; m < runner->microbatch_count; m++) {
        pen_run_context run = {.seed = 1, .step = step};
        pen_run_context_place(&run, &lanes, m, runner->microbatch_count);
        PEN_TRY(pen_executor_enqueue(runner->executor, PEN_EXECUTOR_MICROBATCH, 0, &run));
    }
    pen_run_context run = {.seed = 1, .step = step};
    pen_run_context_place_update(&run, &lanes, runner->microbatch_count);
    PEN_TRY(pen_executor_run(runner->executor, PEN_EXECUTOR_UPDATE, 0, &run)); // awaits all
    *out_seconds = pen_clock_seconds() - started;
    return PEN_OK;
}

pen_status pen_step_runner_open(pen_step_runner *runner) {
    if (runner->executor == NULL) PEN_TRY(step_create_executor(runner));
    return step_feed(runner);
}

// ---- company

typedef struct step_companion {
    pen_step_runner runner;
    struct pen_step_company *company;
    pen_thread *thread;
    pen_status status; // of its steps
} step_companion;

struct pen_step_company {
    step_companion *companions; // [count]
    uint32_t count;
    atomic_bool is_over;
};

static void step_keep_company(void *context) {
    step_companion *companion = context;
    double unused;
    for (uint64_t s = 1; !atomic_load(&companion->company->is_over); s++) {
        companion->status = pen_step_runner_run(&companion->runner, s, &unused);
        if (companion->status != PEN_OK) return;
    }
}

static pen_status step_start_companion(pen_step_company *company, const pen_step_runner *like,
                                       const pen_device_options *options) {
    step_companion *companion = &company->companions[company->count++];
    companion->company = company;
    companion->status = PEN_OK;
    companion->runner = (pen_step_runner){
        .program = like->program, .microbatch_count = like->microbatch_count, .lanes = like->lanes};
    PEN_TRY(like->device->kind->open(options, &companion->runner.device));
    PEN_TRY(pen_step_runner_open(&companion->runner));
    return pen_thread_create("company", step_keep_company, companion, &companion->thread);
}

pen_status pen_step_company_start(const pen_step_runner *like, const pen_device_options *others,
                                  uint32_t count, pen_step_company **out_company) {
    pen_step_company *company = pen_memory_allocate(1, sizeof *company);
    pen_status status = PEN_OK;
    if (company == NULL) return pen_error_out_of_memory();
    company->companions = pen_memory_allocate(count > 0 ? count : 1, sizeof *company->companions);
    if (company->companions == NULL) status = pen_error_out_of_memory();
    for (uint32_t d = 0; d < count && status == PEN_OK; d++) {
        status = step_start_companion(company, like, &others[d]);
    }
    if (status == PEN_OK) {
        *out_company = company;
        return PEN_OK;
    }
    return pen_status_join(status, pen_step_company_end(company));
}

pen_status pen_step_company_end(pen_step_company *company) {
    pen_status status = PEN_OK;
    if (company == NULL) return PEN_OK;
    atomic_store(&company->is_over, true);
    for (uint32_t c = 0; c < company->count; c++) {
        step_companion *companion = &company->companions[c];
        pen_device *device = companion->runner.device;
        pen_thread_join(companion->thread);
        pen_executor_destroy(companion->runner.executor);
        if (device != NULL) device->kind->close(device);
        status = pen_status_join(status, companion->status);
    }
    pen_memory_free(company->companions);
    pen_memory_free(company);
    return status;
}
