// Runs seeds of simulated trainings, and tells what became of them:
//
//   simulate [--seeds A..B | --seeds N] [--profile NAME] [--mistake NAME] [--verbose SEED]
//
// Profiles: all, loss-only, crash, disk, partition, zombie, calm; `mixed` (as it is without): most
// seeds all, the others in turn. A seed that breaks an invariant ends it with code 7, after its
// last 60 events. --mistake needs a build that has planted ones (base/planted.h).

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/planted.h"
#include "tests/simulator/simulation.h"
#include "tests/support/arrivals_judge.h"

#ifdef PEN_PLANTED_MISTAKES
const char *pen_planted_mistake = "";
#endif

#define EXIT_WRONG 7

typedef struct simulate_sums {
    uint64_t seeds;
    uint64_t events;
    uint64_t digest;
    double duration;
    uint64_t faults[SIMULATION_FAULT_COUNT];
    uint64_t generations, recoveries, commits, failed_saves, fallbacks, takeovers, superseded;
    uint64_t steps, resent, late_waits;
} simulate_sums;

typedef struct simulate_options {
    uint64_t first;
    uint64_t end;
    int profile; // -1: mixed
    bool is_verbose;
    bool is_quiet;
} simulate_options;

static void simulate_add(simulate_sums *sums, const simulation_result *result) {
    sums->seeds += 1;
    sums->events += result->events;
    sums->digest = sums->digest * 0x9e3779b97f4a7c15u + result->digest;
    sums->duration += (double)result->duration * 1e-9;
    for (uint32_t i = 0; i < SIMULATION_FAULT_COUNT; i++) {
        sums->faults[i] += result->faults[i];
    }
    sums->generations += result->generations;
    sums->recoveries += result->recoveries;
    sums->commits += result->commits;
    sums->failed_saves += result->failed_saves;
    sums->fallbacks += result->fallbacks;
    sums->takeovers += result->takeovers;
    sums->superseded += result->superseded;
    sums->steps += result->steps;
    sums->resent += result->resent;
    sums->late_waits += result->late_waits;
}

static void simulate_print(const simulate_sums *sums, double seconds) {
    printf("%" PRIu64 " seeds in %.1f s of a core: %.0f a second; %" PRIu64
           " events, %.0f s of the worlds\n",
           sums->seeds, seconds, (double)sums->seeds / seconds, sums->events, sums->duration);
    printf("  %-24s %12" PRIu64 "\n  %-24s %12" PRIu64 "\n  %-24s %12" PRIu64 "\n", "steps",
           sums->steps, "generations", sums->generations, "recoveries", sums->recoveries);
    printf("  %-24s %12" PRIu64 "\n  %-24s %12" PRIu64 "\n  %-24s %12" PRIu64 "\n", "commits",
           sums->commits, "saves given up", sums->failed_saves, "checkpoints passed over",
           sums->fallbacks);
    printf("  %-24s %12" PRIu64 "\n  %-24s %12" PRIu64 "\n  %-24s %12" PRIu64 "\n", "takeovers",
           sums->takeovers, "coordinators superseded", sums->superseded, "sent again",
           sums->resent);
    printf("  %-24s %12" PRIu64 "\n", "waits of workers ended", sums->late_waits);
    for (uint32_t i = 0; i < SIMULATION_FAULT_COUNT; i++) {
        printf("  %-24s %12" PRIu64 "\n", simulation_fault_names[i], sums->faults[i]);
    }
    printf("digest %016" PRIx64 "\n", sums->digest);
}

static simulation_profile simulate_profile(const simulate_options *options, uint64_t seed) {
    if (options->profile >= 0) return (simulation_profile)options->profile;
    const uint64_t turn = seed % 12;
    return turn >= 6 ? SIMULATION_ALL : (simulation_profile)turn;
}

static double simulate_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t simulate_done; // seeds

static void simulate_aborted(int number) {
    (void)number;
    // NOLINTNEXTLINE(bugprone-signal-handler): nothing else runs
    simulation_tell_last(stderr); // the world is as it was; nothing goes on
    // NOLINTNEXTLINE(bugprone-signal-handler)
    fprintf(stderr, "found after %" PRIu64 " seeds\n", simulate_done + 1);
    _exit(EXIT_WRONG);
}

// Which gradients make which version, where lanes are asynchronous: no world is needed for it.
static bool simulate_arrivals(uint64_t seed, arrivals_tally *tally) {
    const char *wrong = arrivals_judge(seed, tally);
    if (wrong == NULL) return true;
    fprintf(stderr, "seed %" PRIu64 ", profile arrivals: I11: %s\n", seed, wrong);
    return false;
}

static int simulate_run(const simulate_options *options) {
    simulate_sums sums = {0};
    arrivals_tally arrivals = {0};
    const double start = simulate_clock();
    for (uint64_t seed = options->first; seed < options->end; seed++) {
        const simulation_options one = {.seed = seed,
                                        .profile = simulate_profile(options, seed),
                                        .verbose = options->is_verbose ? stdout : NULL};
        simulation_result result;
        simulate_done = seed - options->first;
        simulation_run(&one, stderr, &result);
        simulate_add(&sums, &result);
        if (!result.is_wrong && simulate_arrivals(seed, &arrivals)) continue;
        fprintf(stderr, "found after %" PRIu64 " seeds\n", seed - options->first + 1);
        return EXIT_WRONG;
    }
    if (!options->is_quiet) simulate_print(&sums, simulate_clock() - start);
    return 0;
}

static bool simulate_read_seeds(const char *text, simulate_options *out_options) {
    char *end;
    const uint64_t first = strtoull(text, &end, 10);
    if (end == text) return false;
    out_options->first = 0;
    out_options->end = first;
    if (*end == '\0') return true;
    if (strncmp(end, "..", 2) != 0) return false;
    const char *second = end + 2;
    out_options->first = first;
    out_options->end = strtoull(second, &end, 10);
    return end != second && *end == '\0';
}

static bool simulate_read_profile(const char *text, simulate_options *out_options) {
    out_options->profile = -1;
    if (strcmp(text, "mixed") == 0) return true;
    for (int i = 0; i < SIMULATION_PROFILE_COUNT; i++) {
        if (strcmp(simulation_profile_names[i], text) == 0) out_options->profile = i;
    }
    return out_options->profile >= 0;
}

static bool simulate_read(int count, char **arguments, simulate_options *out_options) {
    *out_options = (simulate_options){.end = 1000, .profile = -1};
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--quiet") == 0) {
            out_options->is_quiet = true;
            continue;
        }
        if (i + 1 == count) return false;
        const char *text = arguments[++i];
        bool is_right = true;
        if (strcmp(name, "--seeds") == 0) {
            is_right = simulate_read_seeds(text, out_options);
        } else if (strcmp(name, "--profile") == 0) {
            is_right = simulate_read_profile(text, out_options);
        } else if (strcmp(name, "--verbose") == 0) {
            out_options->first = strtoull(text, NULL, 10);
            out_options->end = out_options->first + 1;
            out_options->is_verbose = true;
#ifdef PEN_PLANTED_MISTAKES
        } else if (strcmp(name, "--mistake") == 0) {
            pen_planted_mistake = text;
#endif
        } else {
            return false;
        }
        if (!is_right) return false;
    }
    return true;
}

int main(int count, char **arguments) {
    simulate_options options;
    if (!simulate_read(count, arguments, &options)) {
        fprintf(stderr, "simulate [--seeds A..B] [--profile all|loss-only|crash|disk|partition|"
                        "zombie|calm|mixed] [--mistake NAME] [--verbose SEED] [--quiet]\n");
        return 2;
    }
    pen_log_set_level(PEN_LOG_ERROR);
    signal(SIGABRT, simulate_aborted);
    return simulate_run(&options);
}
