// What the page of a training is told of it: steps and evaluations, into a history.
//
// Threads: as the history. One of NULL takes everything and keeps nothing.
#ifndef PEN_CLI_FOLLOW_HISTORY_FEED_H
#define PEN_CLI_FOLLOW_HISTORY_FEED_H

#include "scheduler/report/training_history.h"
#include "scheduler/train/train.h"

void pen_history_feed_step(pen_training_history *history, const pen_program *program,
                           const pen_step_report *report);
// The evaluation after a step: its loss, accuracy where it has classes, and each of several losses.
void pen_history_feed_evaluation(pen_training_history *history, uint64_t step,
                                 const pen_step_report *report, const pen_trainer *trainer);

#endif // PEN_CLI_FOLLOW_HISTORY_FEED_H
