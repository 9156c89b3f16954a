// From a model to a program: a graph with everything in it that runs, and the order in which it
// runs.
//
// The compiler is a list of passes (compile.c). Which of them run follows from the request.
// `penstock inspect` lists them, and prints the graph after any of them.
//
// Lifetime: a program owns its memory and the mapping of its model file.
// Threads:  immutable once returned.
#ifndef PEN_SCHEDULER_COMPILE_COMPILE_H
#define PEN_SCHEDULER_COMPILE_COMPILE_H

#include "scheduler/compile/compile_request.h"

//   NOT_FOUND, IO, CORRUPT, INVALID_INPUT, UNSUPPORTED  the model cannot be read or understood, or
//                                        the data does not suit it; with the model's own names
PEN_NODISCARD pen_status pen_compile(const pen_compile_request *request,
                                     const pen_program **out_program);
// A model that is open, as the request's mode LOOK or LOOK_FUSED has it. The graph goes with the
// model, whose own is changed. As pen_compile, without the context of its errors.
PEN_NODISCARD pen_status pen_compile_look(const pen_compile_request *request, pen_model *model,
                                          const pen_graph **out_graph);

// Lets the system drop the model's file from memory, once its tensors are on a device.
void pen_program_forget(const pen_program *program);
// Accepts NULL.
void pen_program_destroy(const pen_program *program);

#endif // PEN_SCHEDULER_COMPILE_COMPILE_H
