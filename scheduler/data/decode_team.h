// Threads that decode pictures, several at once, without taking a core from what computes.
//
// For each thread that may decode at once there are two: one stands back behind every thread of a
// usual priority, the other does not. While examples wait ahead of a training, those that stand
// back decode. Once the training had to wait for examples, the others do: its own cores have
// nothing to do then, and other programs get no more than their share of them. (A thread may give
// up its priority, but not take it back, so it is not one thread that does both.)
//
// Lifetime: from create to destroy; threads are started by the first run.
// Threads:  one at a time runs, and is among those that hurry; pen_decode_team_hurry may be called
// from any.
#ifndef PEN_SCHEDULER_DATA_DECODE_TEAM_H
#define PEN_SCHEDULER_DATA_DECODE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define PEN_DECODE_THREADS_LIMIT 64 // that decode at once

typedef struct pen_decode_team pen_decode_team;

// Does piece `place`, with what belongs to `member`. False: no piece that was not begun is needed.
typedef bool (*pen_decode_fn)(void *context, uint32_t member, uint64_t place);

// `thread_count` is 1 to PEN_DECODE_THREADS_LIMIT. It hurries until it is told not to.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_decode_team_create(uint32_t thread_count, pen_decode_team **out_team);

// Accepts NULL.
void pen_decode_team_destroy(pen_decode_team *team);

// How many members there are: no two threads are the same one at a time.
uint32_t pen_decode_team_member_count(const pen_decode_team *team);

// Has pieces 0 to `count` - 1 done, begun in this order, and waits until all that were begun are
// done. Threads that the system does not give are done without.
void pen_decode_team_run(pen_decode_team *team, uint64_t count, pen_decode_fn decode,
                         void *context);

// Whether somebody waits for what is decoded. Accepts NULL.
void pen_decode_team_hurry(pen_decode_team *team, bool hurries);

#endif // PEN_SCHEDULER_DATA_DECODE_TEAM_H
