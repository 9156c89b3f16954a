// What a training of asynchronous lanes came to: versions, how old gradients were, and the time
// that was drawn for it (graph/arrivals.h) beside that of lanes which wait for each other. It is
// read from the state that the training keeps, so it counts all of its steps, those before a
// checkpoint too.
//
// Threads: one.
#ifndef PEN_SCHEDULER_REPORT_LANES_REPORT_H
#define PEN_SCHEDULER_REPORT_LANES_REPORT_H

#include "base/format/json_writer.h"
#include "scheduler/job/job.h"
#include "scheduler/store/tensor_store.h"

// Nothing is told of lanes that wait for each other, nor before the first step. As the store's
// read.

// The key "asynchronous" of the object that is open: {"versions", "gradients", "staleness_mean",
// "staleness_worst", "drawn_time", "drawn_time_synchronous"}; times in those of one gradient, and
// left out where the order was not drawn.
PEN_NODISCARD pen_status pen_lanes_report_json(pen_json_writer *json, const pen_job *job,
                                               const pen_tensor_store *tensors);

// The same as a note for people.
PEN_NODISCARD pen_status pen_lanes_report_say(const pen_job *job, const pen_tensor_store *tensors);

#endif // PEN_SCHEDULER_REPORT_LANES_REPORT_H
