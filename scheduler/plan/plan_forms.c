#include "scheduler/plan/plan_forms.h"

#include "base/integer.h"
#include "base/log.h"
#include "scheduler/data/batches.h"
#include "scheduler/runner/feed.h"

uint64_t pen_plan_evaluation_batch(const pen_job *job, const pen_dataset_info *info) {
    return pen_min_u64((uint64_t)job->train.batch, info->example_count);
}

// A training that ends within its first epoch never comes to the last batch of one.
pen_plan_form_sizes pen_plan_form_sizes_of(const pen_job *job, const pen_dataset_info *trained,
                                           uint64_t step_count, const pen_dataset_info *evaluated) {
    const pen_job_train *train = &job->train;
    const uint64_t batch = (uint64_t)train->batch;
    const uint64_t epoch_steps = pen_batches_count(trained->example_count, batch, train->drop_last);
    pen_plan_form_sizes sizes = {0};
    if (!train->drop_last && step_count >= epoch_steps) {
        const uint64_t size = (uint64_t)(train->batch / train->microbatches);
        sizes.rest = pen_feed_cut(trained->example_count % batch, size).rest;
    }
    if (evaluated == NULL || evaluated->example_count == 0) return sizes;
    sizes.evaluate_batch = pen_plan_evaluation_batch(job, evaluated);
    sizes.evaluate_rest = evaluated->example_count % sizes.evaluate_batch;
    return sizes;
}

pen_status pen_plan_form_sizes_find(const pen_job *job, const pen_dataset_info *trained,
                                    pen_arena *arena, pen_plan_form_sizes *out_sizes) {
    const uint64_t batch = (uint64_t)job->train.batch;
    const uint64_t steps = pen_job_get_step_count(
        job, pen_batches_count(trained->example_count, batch, job->train.drop_last));
    pen_dataset *dataset = NULL;
    *out_sizes = pen_plan_form_sizes_of(job, trained, steps, NULL);
    if (!pen_job_data_can_evaluate(&job->data)) return PEN_OK;
    const pen_status status = pen_job_open_dataset(job, PEN_DATASET_PART_EVAL, arena, &dataset);
    if (status != PEN_OK) {
        if (pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
        pen_log(PEN_LOG_WARNING, "%s; planning without evaluations", pen_status_message(status));
        pen_status_ignore(status, "planning needs no data, and a training refuses what is wrong");
        return PEN_OK;
    }
    *out_sizes = pen_plan_form_sizes_of(job, trained, steps, pen_dataset_get_info(dataset));
    pen_dataset_close(dataset);
    return PEN_OK;
}

// One more program, whose microbatches have `size` examples; 0: none. A training that is added is
// of what is left at the end of an epoch, and stands behind the whole microbatches of that batch.
static pen_status forms_add(const pen_plan_forms_request *wanted, pen_compile_mode mode,
                            uint64_t size, pen_plan_forms *forms) {
    const pen_job_train *train = &wanted->job->train;
    const bool trains = mode == PEN_COMPILE_TRAIN;
    const uint64_t left = wanted->example_count % (uint64_t)train->batch;
    const pen_compile_request *compile = wanted->compile;
    const pen_compile_form compiled = {.mode = mode,
                                       .microbatch_size = size,
                                       .microbatches = compile->microbatches,
                                       .most_examples = compile->most_examples,
                                       .accumulates = train->microbatches > 1,
                                       .is_whole = wanted->is_local,
                                       .device = compile->device};
    const pen_compile_request request = pen_compile_request_of(compile, &compiled);
    pen_plan_form *form = &forms->items[forms->count];
    if (size == 0) return PEN_OK;
    PEN_TRY(pen_compile(&request, &form->program));
    form->trains = trains;
    if (trains) form->first_microbatch = (uint32_t)(left / compile->most_examples);
    forms->count += 1;
    return PEN_OK;
}

pen_status pen_plan_blame_rest(pen_status status, uint64_t rest) {
    return pen_status_add_context(status,
                                  "for the last %llu examples of an epoch; drop_last: true leaves "
                                  "a batch that is not full out",
                                  (unsigned long long)rest);
}

pen_status pen_plan_forms_open(const pen_plan_forms_request *request, pen_plan_forms *out_forms) {
    const pen_plan_form_sizes *sizes = &request->sizes;
    const pen_compile_mode mode = request->compile->mode;
    if (mode == PEN_COMPILE_EVALUATE) {
        return forms_add(request, mode, sizes->evaluate_rest, out_forms);
    }
    if (mode != PEN_COMPILE_TRAIN) return PEN_OK;
    PEN_TRY(pen_plan_blame_rest(forms_add(request, PEN_COMPILE_TRAIN, sizes->rest, out_forms),
                                sizes->rest));
    PEN_TRY(forms_add(request, PEN_COMPILE_EVALUATE, sizes->evaluate_batch, out_forms));
    return forms_add(request, PEN_COMPILE_EVALUATE, sizes->evaluate_rest, out_forms);
}

void pen_plan_forms_close(pen_plan_forms *forms) {
    for (uint32_t f = 0; f < forms->count; f++) {
        pen_program_destroy(forms->items[f].program);
    }
    *forms = (pen_plan_forms){0};
}
