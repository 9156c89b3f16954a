#include "scheduler/penstock.h"

#include "base/arena.h"
#include "base/memory.h"
#include "scheduler/checkpoint/model_export.h"
#include "scheduler/checkpoint/parameter_file.h"
#include "scheduler/train/train.h"

struct pen_training {
    pen_arena *arena; // the job
    const pen_job *job;
    pen_trainer *trainer;
    pen_dataset *evaluated; // evaluation data; NULL: none
};

const char *pen_version(void) {
    return PEN_VERSION;
}

// Several devices plan for the batches that are evaluated, so they are known from the start.
static pen_status training_open_evaluated(pen_training *training) {
    const pen_job_data *data = &training->job->data;
    if (!data->has_eval && !(data->has_train && data->holdout > 0)) return PEN_OK;
    return pen_job_open_dataset(training->job, PEN_DATASET_PART_EVAL, training->arena,
                                &training->evaluated);
}

static pen_status training_start(pen_training *training, const char *job_path,
                                 const pen_training_options *options) {
    pen_trainer_options trainer_options = {
        .step_limit = options == NULL ? 0 : options->step_limit,
        .parameters = options == NULL ? NULL : options->parameters,
    };
    PEN_TRY(pen_arena_create(&training->arena));
    PEN_TRY(pen_job_read(job_path, training->arena, &training->job));
    PEN_TRY(training_open_evaluated(training));
    if (training->evaluated != NULL) {
        trainer_options.evaluated = pen_dataset_get_info(training->evaluated);
    }
    return pen_trainer_create(training->job, &trainer_options, &training->trainer);
}

pen_status pen_training_open(const char *job_path, const pen_training_options *options,
                             pen_training **out_training) {
    *out_training = NULL;
    pen_training *training = pen_memory_allocate(1, sizeof *training);
    if (training == NULL) return pen_error_out_of_memory();
    const pen_status status = training_start(training, job_path, options);
    if (status != PEN_OK) {
        pen_training_close(training);
        return status;
    }
    *out_training = training;
    return PEN_OK;
}

void pen_training_close(pen_training *training) {
    if (training == NULL) return;
    pen_trainer_destroy(training->trainer);
    pen_dataset_close(training->evaluated);
    pen_arena_destroy(training->arena);
    pen_memory_free(training);
}

uint64_t pen_training_step_count(const pen_training *training) {
    return pen_trainer_get_size(training->trainer).step_count;
}

pen_status pen_training_step(pen_training *training, pen_training_step_report *out_report,
                             bool *out_more) {
    pen_step_report report = {0};
    *out_report = (pen_training_step_report){0};
    *out_more = false;
    PEN_TRY(pen_trainer_step(training->trainer, &report, out_more));
    if (!*out_more) return PEN_OK;
    *out_report = (pen_training_step_report){
        .step = report.step,
        .epoch = report.epoch,
        .loss = report.loss,
        .example_count = report.example_count,
        .target_count = report.target_count,
        .correct_count = report.correct_count,
        .learning_rate = report.learning_rate,
        .seconds = report.seconds,
    };
    return PEN_OK;
}

// Where the job has no evaluation data, opening them gives the error that says what it lacks.
pen_status pen_training_evaluate(pen_training *training, pen_training_evaluation *out_evaluation) {
    pen_evaluation evaluation = {0};
    pen_engine *engine = pen_trainer_engine(training->trainer);
    *out_evaluation = (pen_training_evaluation){0};
    if (training->evaluated == NULL) { // says what the job lacks
        return pen_job_open_dataset(training->job, PEN_DATASET_PART_EVAL, training->arena,
                                    &training->evaluated);
    }
    const pen_dataset_info *info = pen_dataset_get_info(training->evaluated);
    PEN_TRY(engine->kind->evaluate(engine, training->evaluated,
                                   pen_trainer_evaluation_batch(training->job, info), &evaluation));
    *out_evaluation = (pen_training_evaluation){
        .example_count = evaluation.example_count,
        .loss = evaluation.loss,
        .target_count = evaluation.target_count,
        .correct_count = evaluation.correct_count,
        .seconds = evaluation.seconds,
    };
    return PEN_OK;
}

pen_status pen_training_save(pen_training *training, const char *path) {
    return pen_parameter_file_save(path, pen_trainer_tensors(training->trainer));
}

pen_status pen_training_export(pen_training *training, const char *path) {
    const pen_engine *engine = pen_trainer_engine(training->trainer);
    const pen_import_options import = pen_job_import_options(training->job);
    const pen_model_export_source source = {
        .model_path = training->job->model.file,
        .import = &import,
        .plan = engine->kind->plan != NULL ? engine->kind->plan(engine) : NULL};
    return pen_model_export(pen_trainer_tensors(training->trainer), &source, path);
}
