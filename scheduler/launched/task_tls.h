// Certificates that tasks make for each other where the job has none: one authority a start, which
// the first task makes, and a certificate of each task for its address.
#ifndef PEN_SCHEDULER_LAUNCHED_TASK_TLS_H
#define PEN_SCHEDULER_LAUNCHED_TASK_TLS_H

#include "scheduler/launched/task_folder.h"
#include "scheduler/transport/transport.h"

// In `tls/` of the folder. Paths live in `arena`. As pen_certificates_make
PEN_NODISCARD pen_status pen_task_tls_make(const pen_task_folder *folder, const char *host,
                                           uint64_t incarnation, pen_arena *arena,
                                           pen_transport_tls *out_tls);

#endif // PEN_SCHEDULER_LAUNCHED_TASK_TLS_H
