// What `train --log FILE` writes: a JSON object a line, for other programs. Each has
//   "schema": "penstock/train-log/1", "event": what happened, "time": seconds since 1970
// and fields of its event, which docs/run.md lists. A later schema of the same number may have more
// events and fields.
//
// A line is written whole and at once, so that a reader sees it while the training runs. A file
// that takes no more (a full disk, a reader that is gone) is warned of once; the training goes on,
// and later lines are tried again.
//
// Lifetime: open to close, in one place. A log of zeros takes everything and writes nothing.
// Threads:  one.
#ifndef PEN_CLI_TRAIN_LOG_H
#define PEN_CLI_TRAIN_LOG_H

#include <stdio.h>

#include "base/format/json_writer.h"
#include "scheduler/runner/evaluate.h"
#include "scheduler/train/metrics.h"
#include "scheduler/train/train.h"

typedef struct pen_train_log {
    const char *path; // NULL: there is none
    int file;
    FILE *line; // in memory: `text` and `length`
    char *text;
    size_t length;
    pen_json_writer json;
    pen_train_watch watch; // for the trainer: "lost", "recovery"
    bool is_warned;
    bool is_cut;             // the last line went out in part
    uint64_t step_kept;      // of the newest checkpoint that was told
    pen_metrics metrics;     // of the epoch
    double epoch_seconds;    // likewise
    bool ends;               // an evaluation ended it, before its last step
    uint64_t step;           // the last
    const char *checkpoints; // folder; NULL: none
    const char *mirror;      // that has them, too; NULL: none
} pen_train_log;

// Opens a file, or standard output for "-"; `adds` to what is there, else begins anew. NULL: no
// log. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_train_log_open(const char *path, bool adds, pen_train_log *out_log);
// Says how it ended: "done", "stopped" or "failed", with the error; `hash` is that of the
// parameters,
// "" where it is not done. `input_code` is what a wrong input means (pen_status_exit_code).
void pen_train_log_close(pen_train_log *log, const char *hash, pen_status status, int input_code);

// What is about to be trained, and where: events "start" and "plan".
void pen_train_log_start(pen_train_log *log, const pen_job *job, pen_trainer *trainer);
// Keys of what the last bits depend on (pen_trainer_arithmetic), in an open object.
void pen_train_log_arithmetic(pen_json_writer *json, const pen_trainer *trainer);
// A step, and with the last of an epoch that epoch.
void pen_train_log_step(pen_train_log *log, const pen_step_report *report,
                        const pen_program *program);
// The newest checkpoint that is kept, unless it was told.
void pen_train_log_checkpoint(pen_train_log *log, const pen_trainer *trainer);
// The evaluation after a step.
void pen_train_log_evaluation(pen_train_log *log, const pen_step_report *report,
                              const pen_program *program);
// Where the newest checkpoint is, if it is not in a folder that should have it, too: for people,
// "": it is. "checkpoint", likewise: an object of step, folder and, if it is not, `without`.
// Nothing where there is none.
#define PEN_TRAIN_KEPT_BYTES 1024
void pen_train_format_kept(const pen_trainer *trainer, char out_text[PEN_TRAIN_KEPT_BYTES]);
// The former as a warning: it is not found out when the other folder is lost.
void pen_train_say_alone(const pen_trainer *trainer);
void pen_train_write_kept(pen_json_writer *json, const pen_trainer *trainer);
// Fields of a step, and of an evaluation, into an object that is begun: those of --json.
void pen_train_write_step(pen_json_writer *json, const pen_program *program,
                          const pen_step_report *report);
void pen_train_write_evaluation(pen_json_writer *json, const pen_program *program,
                                const pen_evaluation *evaluation);
// The key "best": after which step the best evaluation was, and its metric. Nothing, where none was
// made while the training ran.
void pen_train_write_best(pen_json_writer *json, const pen_checkpoint_evaluated *evaluated);
// The key "predicted": the buffers of the devices, and what the process takes with all else; of a
// run over several devices also its figures (report, else NULL).
void pen_train_write_predicted(pen_json_writer *json, const pen_engine_memory *memory,
                               const pen_engine_report *report);

#endif // PEN_CLI_TRAIN_LOG_H
