// Evaluations as the command tells them.
//
// Threads: functions share nothing.
#ifndef PEN_CLI_EVALUATION_TEXT_H
#define PEN_CLI_EVALUATION_TEXT_H

#include "cli/loss_terms.h"
#include "scheduler/runner/evaluate.h"
#include "scheduler/train/train.h"

#define PEN_EVALUATION_METRICS_BYTES (PEN_METRIC_COUNT * 48)
#define PEN_EVALUATION_TEXT_BYTES (PEN_LOSS_TERMS_TEXT_BYTES + PEN_EVALUATION_METRICS_BYTES + 128)

// "loss 0.3312  accuracy 0.8841 over 10000 examples". Returns out_text.
const char *pen_evaluation_format(const pen_program *program, const pen_evaluation *evaluation,
                                  char out_text[PEN_EVALUATION_TEXT_BYTES]);

// A key for each metric that was asked for besides loss and accuracy. One that is not a number is
// null.
void pen_evaluation_write_metrics(pen_json_writer *json, const pen_evaluation *evaluation);

// Which evaluation was the best, and whether the training has ended after `steps_done` because none
// was better. Nothing where none was made while it ran.
void pen_evaluation_say_best(const pen_trainer *trainer, uint64_t steps_done);

#endif // PEN_CLI_EVALUATION_TEXT_H
