// At which address of this machine other tasks reach it.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_ADDRESS_H
#define PEN_SCHEDULER_LAUNCHED_TASK_ADDRESS_H

#include "base/status.h"

#define PEN_TASK_HOST_BYTES 64 // an address without port, as text

// PENSTOCK_ADDRESS in the environment, where it is set. Else the one from which this machine would
// speak to the node that Slurm's command was started on, or to anywhere; else 127.0.0.1. Nothing is
// sent. INVALID_INPUT: PENSTOCK_ADDRESS is no address
PEN_NODISCARD pen_status pen_task_address_find(char out_host[PEN_TASK_HOST_BYTES]);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_ADDRESS_H
