// 40000 seeds of two ends of a link over rings, ten times as many with PEN_LONG; and each mistake
// that is planted in the rings (base/planted.h) must be found.
//
//   ring_simulator_test SEED    tells each event of one seed

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "tests/simulator/ring/ring_simulation.h"
#include "tests/support/check.h"

#define SEEDS 40000u
#define MISTAKE_SEEDS 20000u
#define MISTAKE_LIMIT 40u

const char *pen_planted_mistake = "";

static void run_seed(uint64_t seed, ring_simulation_result *out_result) {
    const ring_simulation_options options = {.seed = seed};
    ring_simulate(&options, out_result);
}

// The same seed with as few frames as still go wrong.
static void tell_smallest(uint64_t seed, ring_simulation_result *result) {
    for (uint32_t limit = 1; limit < 10; limit++) {
        const ring_simulation_options options = {.seed = seed, .frame_limit = limit};
        ring_simulate(&options, result);
        if (!result->is_wrong) continue;
        fprintf(stderr, "seed %llu, with %u frames at most:\n", (unsigned long long)seed, limit);
        break;
    }
    if (!result->is_wrong) run_seed(seed, result);
    ring_simulation_tell_last(stderr);
    fprintf(stderr, "%s\n", result->text);
}

static void rings_hold_whatever_the_order(void **state) {
    (void)state;
    const uint64_t count = getenv("PEN_LONG") != NULL ? 10 * SEEDS : SEEDS;
    uint64_t faults[RING_FAULT_COUNT] = {0}, frames = 0, bells = 0, refusals = 0;
    for (uint64_t seed = 0; seed < count; seed++) {
        ring_simulation_result result;
        run_seed(seed, &result);
        if (result.is_wrong) tell_smallest(seed, &result);
        CHECK(!result.is_wrong, "seed %llu: %s", (unsigned long long)seed, result.text);
        faults[result.fault] += 1;
        frames += result.frame_count;
        bells += result.bell_count;
        refusals += result.refusal_count;
    }
    for (uint32_t i = 0; i < RING_FAULT_COUNT; i++)
        CHECK(faults[i] > count / 10, "few seeds with fault '%s'", ring_fault_names[i]);
    printf("%llu frames, %llu bells, %llu refusals\n", (unsigned long long)frames,
           (unsigned long long)bells, (unsigned long long)refusals);
    CHECK(frames > count && bells > count && refusals > count / 20, "little happened");
}

static void same_seed_is_the_same_run(void **state) {
    (void)state;
    for (uint64_t seed = 100; seed < 300; seed++) {
        ring_simulation_result first, other, again;
        run_seed(seed, &first);
        run_seed(seed + 1, &other);
        run_seed(seed, &again);
        CHECK(first.digest == again.digest && first.digest != other.digest,
              "seed %llu runs differently", (unsigned long long)seed);
    }
}

// ---- planted mistakes

static void end_as_found(int number) {
    (void)number;
    _exit(7);
}

// In a process of its own, since a mistake may end in an assertion. Returns after how many seeds it
// was found; 0: it was not.
static uint64_t find_mistake(const char *mistake) {
    int ends[2];
    uint64_t count = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        pen_planted_mistake = mistake;
        signal(SIGABRT, end_as_found);
        for (uint64_t seed = 0; seed < MISTAKE_SEEDS; seed++) {
            ring_simulation_result result;
            const uint64_t tried = seed + 1;
            if (write(ends[1], &tried, sizeof tried) < 0) _exit(1);
            run_seed(seed, &result);
            if (!result.is_wrong) continue;
            printf("%s: seed %llu: %s\n", mistake, (unsigned long long)seed, result.text);
            fflush(stdout);
            _exit(7);
        }
        _exit(0);
    }
    close(ends[1]);
    for (uint64_t tried; read(ends[0], &tried, sizeof tried) == sizeof tried;)
        count = tried;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? count : 0;
}

// Adds the names that a source plants. Returns how many there are then.
static uint32_t read_mistakes(const char *path, char names[][64], uint32_t count) {
    FILE *file = fopen(path, "re");
    char line[512];
    CHECK(file != NULL, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        const char *mark = "PEN_PLANTED(";
        for (char *at = line; (at = strstr(at, mark)) != NULL;) {
            size_t length = 0;
            at += strlen(mark);
            while (isalnum((unsigned char)at[length]) || at[length] == '_')
                length += 1;
            assert_true(count < MISTAKE_LIMIT);
            snprintf(names[count], 64, "%.*s", (int)length, at);
            bool is_new = true;
            for (uint32_t i = 0; i < count; i++)
                is_new = is_new && strcmp(names[i], names[count]) != 0;
            count += is_new;
        }
    }
    fclose(file);
    return count;
}

static void planted_mistakes_are_found(void **state) {
    (void)state;
    static char names[MISTAKE_LIMIT][64];
    uint32_t count = read_mistakes("scheduler/transport/ring/ring.c", names, 0);
    count = read_mistakes("scheduler/transport/ring/ring_lanes_move.c", names, count);
    assert_true(count >= 12);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t seeds = find_mistake(names[i]);
        printf("%-32s found after %5llu seeds\n", names[i], (unsigned long long)seeds);
        CHECK(seeds != 0, "%s is not found in %u seeds", names[i], MISTAKE_SEEDS);
    }
}

static void tell_and_end(int number) {
    (void)number;
    // NOLINTNEXTLINE(bugprone-signal-handler): nothing else runs
    ring_simulation_tell_last(stderr);
    _exit(7);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rings_hold_whatever_the_order),
                                       cmocka_unit_test(same_seed_is_the_same_run),
                                       cmocka_unit_test(planted_mistakes_are_found)};
    if (PEN_HAS_TSAN) {
        printf("there is one thread, whose stacks the thread sanitizer does not follow\n");
        return 77;
    }
    signal(SIGABRT, tell_and_end);
    if (count > 1) {
        const ring_simulation_options options = {.seed = strtoull(arguments[1], NULL, 10),
                                                 .is_verbose = true};
        ring_simulation_result result;
        if (count > 2) pen_planted_mistake = arguments[2];
        ring_simulate(&options, &result);
        printf("%s\n", result.is_wrong ? result.text : "nothing is wrong");
        return result.is_wrong;
    }
    cmocka_set_test_filter(getenv("PEN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
