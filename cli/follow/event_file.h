// What `train --tensorboard DIR` writes: an event file, which TensorBoard draws as curves.
//
// A file is a row of records: length (8 bytes), checksum of that, an Event of protobuf, checksum of
// that. The checksums are CRC32C, masked as TFRecord says. The fields are those of TensorFlow's
// event.proto and summary.proto.
//
// A training that goes on begins a file of its own, whose name sorts behind those that are there.
// Its first events say from which step on the earlier files no longer count.
//
// An event is written whole and at once. What a full disk took in part is cut off again, so that
// the file stays readable; it is warned of once, and later events are tried again.
//
// Lifetime: open to close, in one place. One of zeros takes everything and writes nothing.
// Threads:  one.
#ifndef PEN_CLI_FOLLOW_EVENT_FILE_H
#define PEN_CLI_FOLLOW_EVENT_FILE_H

#include "base/arena.h"
#include "scheduler/compile/compile_request.h"
#include "scheduler/train/train.h"

typedef struct pen_event_file {
    const char *path; // NULL: there is none
    int file;
    uint64_t length; // of the whole events in it
    bool is_warned;
} pen_event_file;

// Makes the folder if it is not there, and a file in it. `folder` NULL: none. IO
PEN_NODISCARD pen_status pen_event_file_open(const char *folder, pen_arena *arena,
                                             pen_event_file *out_events);
void pen_event_file_close(pen_event_file *events);

// `step_kept` steps were done before: what is in earlier files about later ones is done again.
void pen_event_file_start(pen_event_file *events, uint64_t step_kept);
// loss, losses/NAME, accuracy, learning_rate, examples_per_second
void pen_event_file_step(pen_event_file *events, const pen_step_report *report,
                         const pen_program *program);
// evaluation/loss, evaluation/losses/NAME, evaluation/accuracy
void pen_event_file_evaluation(pen_event_file *events, uint64_t step,
                               const pen_evaluation *evaluation, const pen_program *program);

#endif // PEN_CLI_FOLLOW_EVENT_FILE_H
