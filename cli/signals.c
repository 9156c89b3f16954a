#include "cli/signals.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system/interrupt.h"
#include "scheduler/protocol/flight_recorder.h"

#define SIGNALS_VARIABLE "PENSTOCK_FLIGHT"

pen_status pen_signals_prepare_flight(const char *checkpoints, pen_arena *arena) {
    const char *folder = getenv(SIGNALS_VARIABLE);
    if (folder == NULL || folder[0] == '\0') {
        const char *temporary = getenv("TMPDIR");
        if (temporary == NULL || temporary[0] == '\0') temporary = "/tmp";
        if (checkpoints != NULL) {
            PEN_TRY(pen_arena_format(arena, &folder, "%s/flight", checkpoints));
        } else {
            PEN_TRY(pen_arena_format(arena, &folder, "%s/penstock-flight-%d", temporary,
                                     (int)getpid()));
        }
        if (setenv(SIGNALS_VARIABLE, folder, 1) != 0) return pen_error_out_of_memory();
    }
    pen_flight_set_folder(folder);
    return PEN_OK;
}

void pen_signals_prepare_training(bool is_kept) {
    pen_interrupt_install(is_kept ? "\nstopping: the step under way is finished and a checkpoint "
                                    "kept; once more ends at once\n"
                                  : "\nstopping: the step under way is finished; once more ends at "
                                    "once\n");
    pen_interrupt_install_question(NULL);
    pen_interrupt_set_stage(NULL); // answered by the loop of steps, or by who waits for workers
}

void pen_signals_answer(uint64_t step) {
    if (!pen_interrupt_take_question()) return;
    pen_log(PEN_LOG_NOTE, "step %llu is done; nobody is waited for", (unsigned long long)step);
    (void)pen_flight_dump("somebody asked (SIGUSR1)"); // a single device has nothing to write
}

// Dumps help where processes did not understand each other. Mistakes of users and full disks
// explain themselves.
static bool signals_is_worth_dumping(pen_status_code code) {
    switch (code) {
    case PEN_CODE_OK:
    case PEN_INVALID_INPUT:
    case PEN_NOT_FOUND:
    case PEN_UNSUPPORTED:
    case PEN_DOES_NOT_FIT:
    case PEN_OUT_OF_MEMORY:
    case PEN_IO:
    case PEN_NO_STORAGE:
    case PEN_CANCELLED:
    case PEN_NOT_FINITE:
        return false;
    case PEN_CORRUPT:
    case PEN_UNAVAILABLE:
    case PEN_DEADLINE:
    case PEN_INTERNAL:
        return true;
    }
    return false;
}

void pen_signals_dump(pen_status status) {
    if (!signals_is_worth_dumping(pen_status_get_code(status))) return;
    if (pen_flight_dump(pen_status_message(status)) == 0) return;
    pen_log(PEN_LOG_NOTE, "what was done last is in %s: `penstock diagnose` shows it",
            pen_flight_folder());
}
