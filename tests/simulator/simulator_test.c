// 500 seeds of every check, ten times as many with PEN_LONG, and each seed that once found a
// mistake (seeds.txt).

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/simulator/simulation.h"
#include "tests/support/check.h"

#define SEEDS 500u

static simulation_profile profile_of(uint64_t seed) {
    const uint64_t turn = seed % 12;
    return turn >= 6 ? SIMULATION_ALL : (simulation_profile)turn;
}

static uint64_t run_seed(uint64_t seed, simulation_profile profile, simulation_result *sums) {
    const simulation_options options = {.seed = seed, .profile = profile};
    simulation_result result;
    simulation_run(&options, stderr, &result);
    CHECK(!result.is_wrong, "seed %llu, profile %s: %s: %s", (unsigned long long)seed,
          simulation_profile_names[profile], result.invariant, result.text);
    for (uint32_t i = 0; i < SIMULATION_FAULT_COUNT && sums != NULL; i++) {
        sums->faults[i] += result.faults[i];
    }
    if (sums != NULL) {
        sums->recoveries += result.recoveries;
        sums->commits += result.commits;
        sums->takeovers += result.takeovers;
    }
    return result.digest;
}

// All hold, and all kinds of faults happen.
static void holds_whatever_goes_wrong(void **state) {
    (void)state;
    simulation_result sums = {0};
    const uint64_t count = getenv("PEN_LONG") != NULL ? 20 * SEEDS : SEEDS;
    for (uint64_t seed = 0; seed < count; seed++) {
        run_seed(seed, profile_of(seed), &sums);
    }
    for (uint32_t i = 0; i < SIMULATION_FAULT_COUNT; i++) {
        CHECK(sums.faults[i] > 0, "no %s in %llu seeds", simulation_fault_names[i],
              (unsigned long long)count);
    }
    CHECK(sums.recoveries > count / 10, "%llu recoveries", (unsigned long long)sums.recoveries);
    CHECK(sums.takeovers > count / 10, "%llu takeovers", (unsigned long long)sums.takeovers);
    CHECK(sums.commits > count, "%llu commits", (unsigned long long)sums.commits);
}

static void same_seed_is_the_same_run(void **state) {
    (void)state;
    for (uint64_t seed = 1000; seed < 1040; seed++) {
        const uint64_t first = run_seed(seed, profile_of(seed), NULL);
        run_seed(seed + 1, SIMULATION_ALL, NULL);
        CHECK(run_seed(seed, profile_of(seed), NULL) == first, "seed %llu runs differently",
              (unsigned long long)seed);
    }
}

// Lines "SEED PROFILE what it found"; others begin with #.
static void holds_for_seeds_that_found_mistakes(void **state) {
    (void)state;
    FILE *file = fopen("tests/simulator/seeds.txt", "r");
    CHECK(file != NULL, "tests/simulator/seeds.txt: %s", strerror(errno));
    char line[512];
    uint32_t count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long seed;
        char name[32];
        if (line[0] == '#' || sscanf(line, "%llu %31s", &seed, name) != 2) continue;
        int profile = -1;
        for (int i = 0; i < SIMULATION_PROFILE_COUNT; i++) {
            if (strcmp(simulation_profile_names[i], name) == 0) profile = i;
        }
        CHECK(profile >= 0, "there is no profile '%s'", name);
        run_seed(seed, (simulation_profile)profile, NULL);
        count++;
    }
    fclose(file);
    CHECK(count > 0, "no seeds");
}

static void tell_and_end(int number) {
    (void)number;
    // NOLINTNEXTLINE(bugprone-signal-handler): nothing else runs
    simulation_tell_last(stderr);
    _exit(7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(holds_whatever_goes_wrong),
                                       cmocka_unit_test(same_seed_is_the_same_run),
                                       cmocka_unit_test(holds_for_seeds_that_found_mistakes)};
    pen_log_set_level(PEN_LOG_ERROR);
    signal(SIGABRT, tell_and_end);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
