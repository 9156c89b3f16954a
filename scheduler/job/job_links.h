// How the links between a job's processes are made: files of TLS, and shared memory or not.
#ifndef PEN_SCHEDULER_JOB_JOB_LINKS_H
#define PEN_SCHEDULER_JOB_JOB_LINKS_H

#include <stdbool.h>

#include "scheduler/job/job.h"
#include "scheduler/transport/transport.h"

// Points into the job. Without `tls` in the job all of it is NULL.
pen_transport_tls pen_job_transport_tls(const pen_job *job);
// Whether processes of one host may send through shared memory.
bool pen_job_shares_memory(const pen_job *job);

#endif // PEN_SCHEDULER_JOB_JOB_LINKS_H
