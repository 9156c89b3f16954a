// Devices that a model's file names, as pins of its placement.
//
// A name that is a device's means that device. Of TensorFlow's form, "/job:worker/task:1/GPU:0",
// the job is taken for the name, with the number of the task behind it ("worker1") or without; and
// where no device is called so, the number of the task, or without a job that of the device,
// counts the cluster's devices.
//
// Threads: any; everything is in the arena.
#ifndef PEN_SCHEDULER_COMPILE_MODEL_PINS_H
#define PEN_SCHEDULER_COMPILE_MODEL_PINS_H

#include "base/arena.h"
#include "base/status.h"
#include "partition/costs/cluster.h"
#include "partition/spec/constraints.h"
#include "scheduler/compile/compile.h"

// The device of the cluster that `text` means.
//   NOT_FOUND  none: the error lists the devices there are
PEN_NODISCARD pen_status pen_model_pin_device(const char *text, const pen_cluster *cluster,
                                              uint32_t *out_device);

// Adds the program's pins of nodes that are still there to the constraints. Pins that the user
// wrote come first, and theirs must not contradict.
//   NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_model_pins_add(const pen_program *program, const pen_cluster *cluster,
                                            pen_arena *arena, pen_constraints *constraints);

#endif // PEN_SCHEDULER_COMPILE_MODEL_PINS_H
