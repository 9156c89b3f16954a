// gRPC's own log. It is silent but for handshakes that failed: the other end learns nothing of
// why, so here is the only place that tells.
#include <grpc/support/log.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "scheduler/transport/grpc_link.h"

static _Atomic uint64_t log_failures;

static void log_take(gpr_log_func_args *args) {
    if (getenv("PEN_GRPC_DEBUG"))
        pen_log(PEN_LOG_NOTE, "grpc[%d] %s:%d %s", args->severity, args->file, args->line,
                args->message);
}

static void log_hook(void) {
    gpr_set_log_function(log_take);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
}

void pen_grpc_log_hook(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, log_hook);
}

uint64_t pen_grpc_log_handshake_failures(void) {
    return atomic_load_explicit(&log_failures, memory_order_relaxed);
}
