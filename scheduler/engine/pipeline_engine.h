// The engine that trains over several devices: threads of this process, processes of this machine,
// or machines on a network. The job's plan says which device has which stage; a coordinator in this
// process drives the workers that have the devices.
//
// Losses and parameters are those of one device, bit for bit, at equal microbatches and threads per
// device.
//
// Lifetime, threads: scheduler/engine/engine.h.
#ifndef PEN_SCHEDULER_ENGINE_PIPELINE_ENGINE_H
#define PEN_SCHEDULER_ENGINE_PIPELINE_ENGINE_H

#include "scheduler/engine/engine.h"

//   UNAVAILABLE    workers that are not there at the rendezvous deadline, by name and address
//   INVALID_INPUT  a worker of another build or instruction set
//   DOES_NOT_FIT   no plan keeps to the devices' memory
//   else           as pen_plan_job_place, pen_compile and pen_executor_create
PEN_NODISCARD pen_status pen_pipeline_engine_create(const pen_engine_options *options,
                                                    pen_engine **out_engine);

#endif // PEN_SCHEDULER_ENGINE_PIPELINE_ENGINE_H
