#include "cli/follow/train_followers.h"

#include <string.h>

#include "cli/follow/history_feed.h"
#include "cli/training_job.h"

static void followers_lost(void *context, uint64_t step, const char *text) {
    pen_train_followers *followers = context;
    const pen_train_watch *log = &followers->log.watch;
    if (log->lost != NULL) log->lost(log->context, step, text);
    pen_gauge_file_lost(&followers->gauges);
    pen_live_page_lost(followers->live, text);
}

static void followers_recovered(void *context, uint64_t step, uint64_t changed_step) {
    pen_train_followers *followers = context;
    const pen_train_watch *log = &followers->log.watch;
    if (log->recovered != NULL) log->recovered(log->context, step, changed_step);
    pen_gauge_file_recovered(&followers->gauges);
    pen_live_page_recovered(followers->live);
}

// Each is opened before hours of training, so that a wrong path is told at once.
pen_status pen_train_followers_open(pen_command_context *context, const pen_job *job,
                                    const pen_cli_follow *follow, bool is_json, bool adds,
                                    pen_train_followers *out_followers) {
    const pen_cli_follow none = {0};
    if (memcmp(follow, &none, sizeof none) == 0) return PEN_OK;
    context->input_exit_code = PEN_EXIT_USAGE;
    if (follow->log != NULL && strcmp(follow->log, "-") == 0 && is_json) {
        return pen_error(PEN_INVALID_INPUT,
                         "--log -: found beside --json, expected one of them: both are for "
                         "standard output");
    }
    if (follow->log != NULL) {
        PEN_TRY(pen_command_check_model_output(context, job, "--log", follow->log));
    }
    if (follow->metrics != NULL) {
        PEN_TRY(pen_command_check_model_output(context, job, "--metrics", follow->metrics));
    }
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(pen_train_log_open(follow->log, adds, &out_followers->log));
    PEN_TRY(pen_event_file_open(follow->tensorboard, context->arena, &out_followers->events));
    PEN_TRY(pen_gauge_file_open(follow->metrics, context->arena, &out_followers->gauges));
    const pen_live_page_options live = {.address = follow->live,
                                        .token_file = follow->live_token,
                                        .title = out_followers->title,
                                        .job = job};
    PEN_TRY(pen_live_page_open(&live, &out_followers->live));
    out_followers->watch = (pen_train_watch){
        .context = out_followers, .lost = followers_lost, .recovered = followers_recovered};
    return PEN_OK;
}

void pen_train_followers_close(pen_train_followers *followers, const char *hash, pen_status status,
                               int input_code) {
    pen_train_log_close(&followers->log, hash, status, input_code);
    pen_event_file_close(&followers->events);
    pen_gauge_file_close(&followers->gauges);
    pen_live_page_close(followers->live);
}

void pen_train_followers_start(pen_train_followers *followers, const pen_job *job,
                               pen_trainer *trainer) {
    followers->step = pen_trainer_step_kept(trainer);
    pen_train_log_start(&followers->log, job, trainer);
    pen_event_file_start(&followers->events, followers->step);
    pen_gauge_file_start(&followers->gauges, followers->step,
                         pen_trainer_get_size(trainer).step_count);
    pen_live_page_start(followers->live, trainer);
}

void pen_train_followers_step(pen_train_followers *followers, const pen_step_report *report,
                              const pen_trainer *trainer) {
    const pen_program *program = pen_trainer_program(trainer);
    followers->step = report->step;
    pen_train_log_step(&followers->log, report, program);
    pen_event_file_step(&followers->events, report, program);
    pen_gauge_file_step(&followers->gauges, report);
    pen_live_page_step(followers->live, program, report);
    pen_history_feed_step(followers->history, program, report);
    pen_train_followers_checkpoint(followers, trainer);
}

void pen_train_followers_checkpoint(pen_train_followers *followers, const pen_trainer *trainer) {
    pen_train_log_checkpoint(&followers->log, trainer);
    if (trainer == NULL) return;
    pen_gauge_file_checkpoint(&followers->gauges, pen_trainer_step_kept(trainer));
    pen_live_page_checkpoint(followers->live, pen_trainer_step_kept(trainer));
}

// The last evaluation of a training that had no step left to do is of the step that was kept.
void pen_train_followers_evaluation(pen_train_followers *followers, const pen_step_report *report,
                                    const pen_trainer *trainer) {
    const pen_program *program = pen_trainer_program(trainer);
    const uint64_t step = report->step > 0 ? report->step : followers->step;
    pen_train_log_evaluation(&followers->log, report, program);
    pen_event_file_evaluation(&followers->events, step, &report->evaluation, program);
    pen_gauge_file_evaluation(&followers->gauges, step, &report->evaluation);
    pen_history_feed_evaluation(followers->history, step, report, trainer);
    pen_live_page_evaluation(followers->live, step, report, trainer);
}
