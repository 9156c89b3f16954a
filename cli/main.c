#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/descriptors.h"
#include "base/system/failpoint.h"
#include "base/system/interrupt.h"
#include "cli/command_main.h"
#include "device/cpu/cpu_device.h"
#include "scheduler/runtime/run/worker_program.h"

// Waiting threads of a team spin for so long before they sleep: some 20 microseconds, longer than
// most of the gaps between operators. The OpenMP runtime's own choice, 150 times that, makes
// training ten times slower when other programs want the same cores, and is hardly faster when none
// do.
#define MAIN_SPIN_COUNT "2000"

// The runtime reads this once, before main: so the program starts again with it set, unless the
// user has chosen. When it cannot start again, it goes on as it is.
static void main_choose_waiting(char **arguments) {
    if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL) return;
    if (setenv("GOMP_SPINCOUNT", MAIN_SPIN_COUNT, 1) != 0) return;
    execv("/proc/self/exe", arguments);
}

// Before libraries are set up, which takes longest: a question (SIGUSR1) ends nothing, though
// nobody answers it yet. What is ignored stays so when the program is executed anew.
static void main_ignore_question(void) {
    (void)signal(SIGUSR1, SIG_IGN);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const main_first)(void) = main_ignore_question;

int main(int argument_count, char **arguments) {
    main_choose_waiting(arguments);
    pen_interrupt_begin();
    pen_descriptors_prepare();
    (void)signal(SIGXFSZ, SIG_IGN); // a file over the limit is an error like a full disk
    (void)signal(SIGCHLD, SIG_DFL); // ignored, nobody would say how our processes ended
    pen_cpu_process_init();
    pen_worker_program_use_self();
    if (!pen_failpoints_init()) return 2;
    return pen_command_main(argument_count > 0 ? argument_count - 1 : 0, arguments + 1);
}
