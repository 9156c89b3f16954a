#include "cli/sweep_crew.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/interrupt.h"

#define CREW_PAUSE_SECONDS 0.05 // between two looks at who has ended
#define CREW_SIGNAL_CODE 128    // and the signal's number: as shells have it

typedef struct sweep_crew {
    pen_sweep_work *works;
    pid_t *children; // [count] 0: none runs
    uint32_t count;
    uint32_t next; // that was not begun
    uint32_t running;
    bool is_asked; // to stop, and children were
} sweep_crew;

// In the child, between fork and exec: only what signal handlers may do. A group of its own keeps
// Ctrl-C from it: it is asked to stop once, by us.
static void crew_become(const pen_sweep_work *work, int output, pid_t parent) {
    static const char failure[] = "cannot start the command again\n";
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int nothing = open("/dev/null", O_RDONLY);
    if (getppid() == parent && nothing >= 0 && dup2(nothing, 0) == 0 && dup2(output, 1) == 1 &&
        dup2(output, 2) == 2) {
        execv("/proc/self/exe", work->arguments);
        if (write(2, failure, sizeof failure - 1) < 0) _exit(126);
    }
    _exit(127);
}

// What a run says is added to what it said before it was cut.
static pen_status crew_begin(sweep_crew *crew) {
    const pen_sweep_work *work = &crew->works[crew->next];
    const int output = open(work->messages, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (output < 0) {
        return pen_error(PEN_IO, "cannot write '%s': %s", work->messages, strerror(errno));
    }
    const pid_t parent = getpid();
    const pid_t child = fork();
    const int failure = errno;
    if (child == 0) crew_become(work, output, parent);
    close(output);
    if (child < 0) {
        return pen_error(PEN_IO, "cannot start a process for run %s: %s", work->name,
                         strerror(failure));
    }
    pen_log(PEN_LOG_NOTE, "%s: begins", work->name);
    crew->children[crew->next++] = child;
    crew->running += 1;
    return PEN_OK;
}

// Takes note of the runs that have ended, without waiting for those that have not.
static void crew_look(sweep_crew *crew) {
    for (uint32_t i = 0; i < crew->next; i++) {
        int how = 0;
        if (crew->children[i] == 0) continue;
        const pid_t ended = waitpid(crew->children[i], &how, WNOHANG);
        if (ended == 0) continue;
        pen_sweep_work *work = &crew->works[i];
        crew->children[i] = 0;
        crew->running -= 1;
        work->is_ended = true;
        work->code =
            ended > 0 && WIFEXITED(how) ? WEXITSTATUS(how) : CREW_SIGNAL_CODE + WTERMSIG(how);
        if (work->code == 0) {
            pen_log(PEN_LOG_NOTE, "%s: ended", work->name);
        } else {
            pen_log(PEN_LOG_WARNING, "%s: exit code %d; %s says why", work->name, work->code,
                    work->messages);
        }
    }
}

static void crew_stop(sweep_crew *crew) {
    for (uint32_t i = 0; i < crew->next && !crew->is_asked; i++) {
        if (crew->children[i] > 0) kill(crew->children[i], SIGTERM);
    }
    crew->is_asked = true;
}

pen_status pen_sweep_crew_run(pen_sweep_work *works, uint32_t count, uint32_t parallel) {
    sweep_crew crew = {.works = works, .count = count};
    crew.children = pen_memory_allocate((size_t)count + 1, sizeof *crew.children);
    if (crew.children == NULL) return pen_error_out_of_memory();
    pen_status status = PEN_OK;
    while (crew.running > 0 || (crew.next < count && !crew.is_asked)) {
        if (pen_interrupt_requested() || status != PEN_OK) crew_stop(&crew);
        if (!crew.is_asked && crew.next < count && crew.running < parallel) {
            status = crew_begin(&crew);
            continue;
        }
        crew_look(&crew);
        pen_clock_pause(CREW_PAUSE_SECONDS);
    }
    pen_memory_free(crew.children);
    return status;
}
