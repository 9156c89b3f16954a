// From batches of a dataset to microbatches of a program: which values get which bytes.
//
// Threads: one.
#ifndef PEN_SCHEDULER_RUNNER_FEED_H
#define PEN_SCHEDULER_RUNNER_FEED_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/data/batches.h"
#include "scheduler/runner/runner.h"

// The examples of `info` as the compiler wants to know them. Lives in `arena`, and may outlive
// the dataset.
PEN_NODISCARD pen_status pen_feed_describe(const pen_dataset_info *info, pen_arena *arena,
                                           const pen_compile_input **out_inputs,
                                           uint32_t *out_count);

// Whether the data's element types and shapes are what the program's inputs and labels take, to be
// asked before anything runs.
//   INVALID_INPUT  they are not, or there are no labels
PEN_NODISCARD pen_status pen_feed_check_inputs(const pen_program *program,
                                               const pen_dataset_info *info);
PEN_NODISCARD pen_status pen_feed_check_labels(const pen_program *program, uint32_t loss,
                                               const pen_dataset_info *info);

// What a value of a program is fed from.
typedef struct pen_feed_source {
    const pen_dataset_field *field;
    const void *examples; // those of the batch, `field->bytes` each
} pen_feed_source;

// INVALID_INPUT  the data has nothing for the input of this name, or no such labels
PEN_NODISCARD pen_status pen_feed_find(const pen_program *program, const pen_dataset_info *info,
                                       const pen_batch *batch, const char *name,
                                       pen_feed_source *out_source);

// The same for a worker that reads by itself: which field of an example it is (run_data.h).
// PEN_RUN_FIELD_NONE: none, but what is made of a batch. As pen_feed_find
PEN_NODISCARD pen_status pen_feed_find_field(const pen_program *program,
                                             const pen_dataset_info *info, const char *name,
                                             uint32_t *out_field);

// Writes examples first … first + microbatch_size - 1 of a batch into the form's inputs and, when
// the program has some, what its losses take.
//   INVALID_INPUT  the data's element types or shapes are not those of the model
PEN_NODISCARD pen_status pen_feed_microbatch(const pen_runner_form *form,
                                             const pen_dataset_info *info, const pen_batch *batch,
                                             uint64_t first);

// A scalar of float32 or float64 of the microbatch that ran last, as its loss is.
PEN_NODISCARD pen_status pen_feed_read_number(const pen_runner_form *form, pen_value_id scalar,
                                              double *out_number);
// A term of it (pen_program_term); 0: the program does not have it.
PEN_NODISCARD pen_status pen_feed_read_term(const pen_runner_form *form, uint32_t index,
                                            double *out_number);
// Likewise, when work is awaited (pen_executor_fetch_number).
PEN_NODISCARD pen_status pen_feed_fetch_term(const pen_runner_form *form, uint32_t index,
                                             pen_executor_number *out_number);
// Likewise, what updates multiplied scaled gradients by, right after the list that updates; 0 where
// they are not scaled.
PEN_NODISCARD pen_status pen_feed_fetch_applied(const pen_runner_form *form,
                                                pen_executor_number *out_number);
// The numbers of a microbatch's step.
typedef struct pen_feed_step {
    double loss_weight; // the microbatch's share of the step's examples
    double scale;       // that the gradient of the loss is multiplied by; 1: none
    double unscale;     // what undoes it
    double learning_rate;
    double update; // of the optimizer, counted from 1
} pen_feed_step;
// Writes those that the program has, as float32 or float64.
PEN_NODISCARD pen_status pen_feed_numbers(const pen_runner_form *form, const pen_feed_step *step);

// What metrics see of a pass, and its memory. All zero: none yet.
typedef struct pen_feed_seen {
    void *values[PEN_METRIC_SEEN_COUNT];
    uint64_t bytes[PEN_METRIC_SEEN_COUNT];
} pen_feed_seen;

// Reads the values of program->metrics of the microbatch that ran last, which stay until the next
// call; NULL for those that nobody asks for.
PEN_NODISCARD pen_status pen_feed_see(const pen_runner_form *form, pen_feed_seen *seen,
                                      const void *out_values[PEN_METRIC_SEEN_COUNT]);
void pen_feed_forget_seen(pen_feed_seen *seen);

// Predictions of a batch that count, of the loss whose right answers are counted; 0: none are.
// `terms` are those of the batch: of a mask they say how many.
uint64_t pen_feed_target_count(const pen_program *program, const pen_batch *batch,
                               const double *terms);

// How a batch of `count` examples is cut: whole microbatches first, then what is left.
typedef struct pen_feed_split {
    uint64_t whole_count; // microbatches of `size` examples
    uint64_t size;
    uint64_t rest; // examples of a last, smaller microbatch; 0: none
} pen_feed_split;
pen_feed_split pen_feed_cut(uint64_t count, uint64_t microbatch_size);

#endif // PEN_SCHEDULER_RUNNER_FEED_H
