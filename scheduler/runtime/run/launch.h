// Worker processes on this machine, which this process starts and ends.
//
// Each is the worker program (worker_program.h), run as `penstock worker --listen 127.0.0.1:0
// --announce FD`: it writes its port and its build to the pipe FD. It ends when told to, and when
// the thread that started it ends, however that comes.
//
// Lifetime: pen_launch_workers to pen_launched_end.
// Threads:  one, that which started them (they end when it does).
#ifndef PEN_SCHEDULER_RUNTIME_RUN_LAUNCH_H
#define PEN_SCHEDULER_RUNTIME_RUN_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scheduler/transport/transport.h"

typedef struct pen_launched pen_launched;

// What is started, and what it is told about links: workers and this process show each other the
// same certificate.
typedef struct pen_launch_options {
    pen_transport_tls tls;
    bool is_insecure;
    const char *token_file; // NULL: none
    const char *store;      // beneath which they write; NULL: nowhere
    const char *mirror;     // and beneath that; NULL: there is no other
    const char *program;    // as pen_worker_program_find takes it; NULL: it is looked for
} pen_launch_options;

// Starts `count` workers and waits until each takes links.
//   UNAVAILABLE  there is no worker program, the system starts none, one ended before it took
//                links, or is of another build than this library
//   DEADLINE     none took links in time
//   CORRUPT      what was started is no worker
PEN_NODISCARD pen_status pen_launch_workers(uint32_t count, const pen_launch_options *options,
                                            pen_launched **out_launched);
// Where worker `index` takes links: "127.0.0.1:40123".
const char *pen_launched_address(const pen_launched *launched, uint32_t index);
// Whether worker `index` has not ended; else out_end says how: "killed by signal 9". Returns at
// once.
bool pen_launched_is_alive(pen_launched *launched, uint32_t index, char *out_end, size_t size);
// Ends worker `index`, if it has not ended, and starts another in its place, at another address.
// As pen_launch_workers
PEN_NODISCARD pen_status pen_launched_restart(pen_launched *launched, uint32_t index);
// Ends them: asks, then kills. Waits. Accepts NULL.
void pen_launched_end(pen_launched *launched);

#endif // PEN_SCHEDULER_RUNTIME_RUN_LAUNCH_H
