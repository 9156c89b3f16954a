// Trains models within a test.
#ifndef PEN_TESTS_SUPPORT_TRAINING_H
#define PEN_TESTS_SUPPORT_TRAINING_H

#include "scheduler/train/train.h"

// A job from YAML text, printf-like; paths are relative to the top of the source tree. Fails the
// test on error.
const pen_job *training_job(pen_arena *arena, const char *format, ...) PEN_PRINTF(2, 3);

// A trainer of the job; fails the test on error.
pen_trainer *training_start(const pen_job *job);

// One step that must be there.
pen_step_report training_step(pen_trainer *trainer);

// The tensors of a model, one after another as float32, in the order of the model. Other element
// types fail the test.
float *training_read(const pen_tensor_store *store, pen_arena *arena, uint64_t *out_count);

// The index of a tensor by name; fails the test when there is none.
uint32_t training_find(const pen_tensor_store *store, const char *name);

// The hash of the parameters.
uint64_t training_hash(pen_trainer *trainer);

#endif // PEN_TESTS_SUPPORT_TRAINING_H
