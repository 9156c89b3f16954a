// Trains again and again through a middleman, in several processes, and says what came of it:
//
//   hostile [--trainings N] [--first SEED] [--jobs N] [--patience X] [--tell]
//
// Each process has a coordinator and three workers, which live on from training to training where
// nobody lies. A process that crashes, or hangs beyond all deadlines, is counted and replaced. On a
// build without sanitizers, resident memory may not rise by more than 64 MiB above that of an
// undisturbed training. Exit code 1: something did not hold; the seed is said, and
// `--first SEED --trainings 1 --tell` does the same once more.
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer.h"
#include "base/thread.h"
#include "tests/hostile/hostile_training.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define JOBS_LIMIT 64u
#define MEMORY_LIMIT_KIB ((uint64_t)64 << 10)
#define FROZEN_SECONDS                                                                             \
    1.0 // the parent itself did not run for so long: nothing is said of deadlines
#define TURN_SECONDS 0.02
#define STARVED_SHARE 0.5 // likewise, of what a thread that sleeps in turns should have run
#define TRAININGS_OF_A_PROCESS 200u // then another begins: what grows in the test's arena goes

typedef struct hostile_options {
    uint64_t trainings, first;
    unsigned job_count;
    double patience;
    bool tells;
} hostile_options;

typedef enum hostile_state { HOSTILE_WAITS, HOSTILE_RUNS, HOSTILE_DONE } hostile_state;

// Of a training; in memory that all processes share.
typedef struct hostile_result {
    hostile_state state;
    hostile_outcome outcome;
    uint64_t peak_kib; // above that of an undisturbed training
    double began;
    bool is_excused; // the machine stood still meanwhile
} hostile_result;

typedef struct hostile_process {
    pid_t id;              // 0: none
    uint64_t from, to, at; // trainings, by number; `at` is that which runs
    bool is_ready;         // its undisturbed training is done
    struct hostile_result *results;
    volatile bool is_done;
    uint64_t grown_kib; // resident memory, from its first training to its last
} hostile_process;

typedef struct hostile_shared {
    hostile_process processes[JOBS_LIMIT];
    hostile_result results[];
} hostile_shared;

static bool is_wrong(const hostile_result *result) {
    const bool is_forgiven = result->is_excused && result->outcome.is_of_time;
    return result->outcome.wrong[0] != '\0' && !is_forgiven;
}

// ---- memory

// "VmHWM": the resident peak; "VmRSS": what is resident now.
static uint64_t memory_kib(const char *what) {
    char line[256];
    uint64_t found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, what, strlen(what)) == 0) {
            found = strtoull(line + strlen(what) + 1, NULL, 10);
        }
    }
    fclose(file);
    return found;
}

static void memory_forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL) return;
    fputs("5", file);
    fclose(file);
}

// ---- a process that trains

// Notices that threads of the process wait for processors for long, or often.
static void process_notice_standstill(void *context) {
    hostile_process *process = context;
    double before = pen_clock_seconds(), window = before;
    unsigned turns = 0;
    while (!process->is_done) {
        pen_clock_pause(TURN_SECONDS);
        const double now = pen_clock_seconds();
        bool is_starved = now - before > FROZEN_SECONDS;
        turns += 1;
        before = now;
        if (now - window > 1) {
            is_starved = is_starved || turns * TURN_SECONDS < STARVED_SHARE * (now - window);
            window = now;
            turns = 0;
        }
        if (is_starved) process->results[process->at].is_excused = true;
    }
}

static void process_run(const hostile_options *options, hostile_shared *shared, unsigned job) {
    static hostile_world world;
    hostile_process *process = &shared->processes[job];
    char folder[64];
    memory_forget_peak();
    hostile_world_init(&world, options->patience);
    const uint64_t usual = memory_kib("VmHWM");
    snprintf(folder, sizeof folder, "shards-%u-%d", job, (int)getpid());
    world.g.folder = scratch_path(folder);
    pen_thread *noticing;
    process->results = shared->results;
    CHECK_OK(pen_thread_create("noticing", process_notice_standstill, process, &noticing));
    process->is_ready = true;
    const uint64_t at_first = memory_kib("VmRSS");
    for (uint64_t i = process->from; i < process->to; i++) {
        hostile_result *result = &shared->results[i];
        process->at = i;
        result->began = pen_clock_seconds();
        result->state = HOSTILE_RUNS;
        memory_forget_peak();
        hostile_train(&world, options->first + i, &result->outcome);
        const uint64_t peak = memory_kib("VmHWM");
        result->peak_kib = peak > usual ? peak - usual : 0;
        const uint64_t now = memory_kib("VmRSS");
        process->grown_kib = now > at_first ? now - at_first : 0;
        result->state = HOSTILE_DONE;
        if (options->tells || is_wrong(result)) {
            fprintf(stderr, "seed %" PRIu64 ", %s over %s: %s; %s\n", options->first + i,
                    hostile_profile_names[result->outcome.profile],
                    hostile_way_names[result->outcome.way], result->outcome.wrong,
                    result->outcome.said);
            middleman_tell(stderr);
        }
    }
    process->is_done = true;
    pen_thread_join(noticing);
    hostile_world_deinit(&world);
}

// ---- who starts them and looks after them

static bool parent_start(const hostile_options *options, hostile_shared *shared, unsigned job,
                         uint64_t from, uint64_t to) {
    hostile_process *process = &shared->processes[job];
    *process = (hostile_process){.from = from, .to = to, .at = from};
    fflush(NULL);
    const pid_t id = fork();
    if (id == 0) {
        process_run(options, shared, job);
        exit(0);
    }
    process->id = id;
    for (unsigned i = 0; id > 0 && !process->is_ready && i < 6000; i++) { // their files are alike
        if (waitpid(id, NULL, WNOHANG) == id) return false;
        pen_clock_pause(0.02);
    }
    return id > 0 && process->is_ready;
}

// What a process that hangs waits for, where there is gdb.
static void parent_look_into(pid_t id) {
    char text[32];
    fflush(NULL);
    const pid_t looker = fork();
    if (looker == 0) {
        snprintf(text, sizeof text, "%d", (int)id);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execlp("gdb", "gdb", "-q", "-batch", "-p", text, "-ex", "thread apply all bt 12",
               (char *)NULL);
        _exit(127);
    }
    if (looker > 0) waitpid(looker, NULL, 0);
}

// A child of ours that is not ended with us would go on training.
static void parent_end_all(hostile_shared *shared) {
    for (unsigned job = 0; job < JOBS_LIMIT; job++) {
        if (shared->processes[job].id > 0) kill(shared->processes[job].id, SIGKILL);
    }
}

// A process ended: what it was at when it crashed is wrong. The next number that nobody does.
static void parent_ended(const hostile_options *options, hostile_shared *shared, unsigned job,
                         int how) {
    hostile_process *process = &shared->processes[job];
    hostile_result *result = &shared->results[process->at];
    process->id = 0;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return;
    if (result->outcome.wrong[0] == '\0') {
        snprintf(result->outcome.wrong, sizeof result->outcome.wrong, "the process %s %d",
                 WIFSIGNALED(how) ? "crashed with signal" : "ended with code",
                 WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
    result->state = HOSTILE_DONE;
    printf("seed %" PRIu64 ": %s\n", options->first + process->at, result->outcome.wrong);
}

static void parent_watch(const hostile_options *options, hostile_shared *shared, unsigned job,
                         bool was_frozen) {
    hostile_process *process = &shared->processes[job];
    hostile_result *result = &shared->results[process->at];
    int how;
    if (process->id == 0) return;
    if (waitpid(process->id, &how, WNOHANG) == process->id) {
        parent_ended(options, shared, job, how);
        return;
    }
    if (result->state != HOSTILE_RUNS) return;
    if (was_frozen) {
        result->is_excused = true;
        result->began = pen_clock_seconds();
    }
    if (pen_clock_seconds() - result->began < 2 * hostile_seconds_limit(options->patience)) return;
    snprintf(result->outcome.wrong, sizeof result->outcome.wrong, "it hangs");
    parent_look_into(process->id);
    kill(process->id, SIGKILL);
    result->began = pen_clock_seconds();
}

static uint64_t parent_count(const hostile_shared *shared, uint64_t trainings) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < trainings; i++) {
        count += shared->results[i].state == HOSTILE_DONE;
    }
    return count;
}

// Gives each process that is free the next trainings, until all are done.
static void parent_run(const hostile_options *options, hostile_shared *shared) {
    uint64_t next = 0, said = 0;
    unsigned running = 1;
    double before = pen_clock_seconds();
    while (running > 0) {
        const double now = pen_clock_seconds();
        running = 0;
        for (unsigned job = 0; job < options->job_count; job++) {
            hostile_process *process = &shared->processes[job];
            parent_watch(options, shared, job, now - before > FROZEN_SECONDS);
            uint64_t from = next, to = next + TRAININGS_OF_A_PROCESS;
            if (process->id == 0 && process->to > process->at + 1) { // it crashed in the middle
                from = process->at + 1;
                to = process->to;
            } else if (process->id == 0) {
                if (to > options->trainings) to = options->trainings;
                next = to;
            }
            if (process->id == 0 && from < to) {
                const bool is_started = parent_start(options, shared, job, from, to);
                if (!is_started) parent_end_all(shared);
                CHECK(is_started, "no process could be started");
            }
            running += process->id != 0;
        }
        before = pen_clock_seconds();
        pen_clock_pause(0.05);
        const uint64_t done = parent_count(shared, options->trainings);
        if (done / 100 > said) {
            said = done / 100;
            printf("%" PRIu64 " trainings\n", done);
            fflush(stdout);
        }
    }
}

// ---- what is said

static void report_row(const hostile_options *options, const hostile_shared *shared,
                       hostile_profile profile, hostile_way way) {
    uint64_t count = 0, well = 0, untouched = 0, wrong = 0, deeds = 0, peak = 0;
    double longest = 0, total = 0;
    for (uint64_t i = 0; i < options->trainings; i++) {
        const hostile_result *result = &shared->results[i];
        const hostile_outcome *outcome = &result->outcome;
        if (result->state != HOSTILE_DONE || outcome->profile != profile) continue;
        if (outcome->way != way) continue;
        count += 1;
        well += outcome->code == PEN_CODE_OK;
        untouched += outcome->deeds == 0;
        wrong += is_wrong(result);
        deeds += outcome->deeds;
        total += outcome->seconds;
        if (outcome->seconds > longest && !result->is_excused) longest = outcome->seconds;
        if (result->peak_kib > peak) peak = result->peak_kib;
    }
    if (count == 0) return;
    printf("%-9s %-6s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
           " %9.1f %8.2f %8.2f %7.1f\n",
           hostile_profile_names[profile], hostile_way_names[way], count, well, wrong, untouched,
           (double)deeds / (double)count, total / (double)count, longest, (double)peak / 1024);
}

static void report_codes(const hostile_options *options, const hostile_shared *shared) {
    uint64_t counts[PEN_NO_STORAGE + 1] = {0};
    for (uint64_t i = 0; i < options->trainings; i++) {
        if (shared->results[i].state == HOSTILE_DONE) {
            counts[shared->results[i].outcome.code] += 1;
        }
    }
    printf("ended with:");
    for (unsigned code = 0; code <= PEN_NO_STORAGE; code++) {
        if (counts[code] == 0) continue;
        printf(" %s %" PRIu64, code == 0 ? "ok" : pen_status_code_name((pen_status_code)code),
               counts[code]);
    }
    printf("\n");
}

// The table, what was wrong, and the exit code.
static int report(const hostile_options *options, const hostile_shared *shared) {
    uint64_t wrong = 0, excused = 0;
    printf("%-9s %-6s %9s %9s %9s %9s %9s %8s %8s %7s\n", "profile", "over", "trainings", "well",
           "wrong", "untouched", "deeds", "mean s", "max s", "MiB");
    for (unsigned p = 0; p < HOSTILE_PROFILE_COUNT; p++) {
        for (unsigned way = 0; way < HOSTILE_WAY_COUNT; way++) {
            report_row(options, shared, (hostile_profile)p, (hostile_way)way);
        }
    }
    report_codes(options, shared);
    for (uint64_t i = 0; i < options->trainings; i++) {
        const hostile_result *result = &shared->results[i];
        const bool is_large = !PEN_IS_SANITIZED && result->peak_kib > MEMORY_LIMIT_KIB;
        excused += result->is_excused;
        if (result->is_excused && result->outcome.wrong[0] != '\0') continue;
        if (result->state == HOSTILE_DONE && result->outcome.wrong[0] == '\0' && !is_large)
            continue;
        wrong += 1;
        printf("WRONG: seed %" PRIu64 ", %s over %s: %s, %" PRIu64
               " KiB more than undisturbed; %s\n",
               options->first + i, hostile_profile_names[result->outcome.profile],
               hostile_way_names[result->outcome.way],
               result->state == HOSTILE_DONE ? result->outcome.wrong : "it was not run",
               result->peak_kib, result->outcome.said);
    }
    uint64_t grown = 0;
    for (unsigned job = 0; job < JOBS_LIMIT; job++) {
        if (shared->processes[job].grown_kib > grown) grown = shared->processes[job].grown_kib;
    }
    printf("resident memory of a process grew by %.1f MiB at most, in %u trainings at most\n",
           (double)grown / 1024, TRAININGS_OF_A_PROCESS);
    printf("%" PRIu64 " trainings, %" PRIu64 " wrong; the machine stood still in %" PRIu64
           ", of whose deadlines nothing is said\n",
           options->trainings, wrong, excused);
    return wrong > 0;
}

// ---- the command line

static bool option_read(hostile_options *options, const char *name, const char *value) {
    char *end = NULL;
    if (value == NULL) return false;
    if (strcmp(name, "--trainings") == 0) {
        options->trainings = strtoull(value, &end, 10);
    } else if (strcmp(name, "--first") == 0) {
        options->first = strtoull(value, &end, 10);
    } else if (strcmp(name, "--jobs") == 0) {
        options->job_count = (unsigned)strtoul(value, &end, 10);
    } else if (strcmp(name, "--patience") == 0) {
        options->patience = strtod(value, &end);
    }
    return end != NULL && *end == '\0' && options->job_count > 0 &&
           options->job_count <= JOBS_LIMIT && options->patience > 0;
}

int main(int argc, char **argv) {
    hostile_options options = {
        .trainings = 2000, .job_count = 8, .patience = PEN_IS_SANITIZED ? 4 : 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tell") == 0) {
            options.tells = true;
        } else if (!option_read(&options, argv[i], argv[i + 1])) {
            fprintf(stderr, "hostile [--trainings N] [--first SEED] [--jobs N] [--patience X] "
                            "[--tell]\n");
            return 2;
        } else {
            i++;
        }
    }
    const size_t size = sizeof(hostile_shared) + options.trainings * sizeof(hostile_result);
    hostile_shared *shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    (void)scratch_path(""); // the processes' files lie in ours, which goes when we end
    parent_run(&options, shared);
    return report(&options, shared);
}
