#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"
#include "tests/support/check.h"

#define TOLD_LINES 300

typedef struct told {
    char lines[TOLD_LINES][128];
    uint32_t count;
} told;

static void take_line(void *context, pen_log_level level, const char *text) {
    told *all = context;
    assert_int_equal(level, PEN_LOG_WARNING);
    assert_true(all->count < TOLD_LINES);
    snprintf(all->lines[all->count++], sizeof all->lines[0], "%s", text);
}

// What a generation with the workers of `spec`, of which 1 is in this process, says of a text.
static void tell(const pen_run_spec *spec, pen_coordinator_told *kept, uint32_t peer,
                 const char *text) {
    pen_coordinator *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->setup = (pen_coordinator_setup){.told = kept, .local_worker = 1};
    c->spec = spec;
    pen_mutex_init(&c->lock);
    pen_coordinator_tell_lacks(c, peer, text, strlen(text));
    pen_coordinator_tell_lacks(c, peer, text, strlen(text));
    pen_mutex_deinit(&c->lock);
    free(c);
}

// A line comes once in a training, whichever generation it is, and says which worker it is of.
static void lines_are_told_once_with_their_worker(void **state) {
    (void)state;
    static told all;
    const pen_run_spec_worker workers[] = {
        {"the coordinator", ""}, {"this process", ""}, {"worker 2 (n2:7070)", ""}};
    const pen_run_spec_worker later[] = {
        {"the coordinator", ""}, {"this process", ""}, {"worker 2 (n2:7071)", ""}};
    const pen_run_spec spec = {.workers = workers}, again = {.workers = later};
    pen_coordinator_told kept = {0};
    pen_log_redirect(take_line, &all);
    tell(&spec, &kept, 1, "device 'g': no cuBLAS");
    tell(&spec, &kept, 2, "device 'h': no cuBLAS\n\ndevice 'i': no cuDNN");
    tell(&again, &kept, 2, "device 'h': no cuBLAS\ndevice 'i': no cuBLAS");
    assert_int_equal(all.count, 4);
    assert_string_equal(all.lines[0], "device 'g': no cuBLAS");
    assert_string_equal(all.lines[1], "worker 2 (n2:7070): device 'h': no cuBLAS");
    assert_string_equal(all.lines[2], "worker 2 (n2:7070): device 'i': no cuDNN");
    assert_string_equal(all.lines[3], "worker 2 (n2:7071): device 'i': no cuBLAS");
    // without what is kept, once in a generation
    tell(&spec, NULL, 1, "device 'g': no cuBLAS");
    assert_int_equal(all.count, 5);
    // a false worker has no more printed than there is room for
    for (uint32_t i = 0; i < 2 * PEN_COORDINATOR_TOLD_LIMIT; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %u", i);
        tell(&spec, &kept, 2, line);
    }
    assert_int_equal(kept.count, PEN_COORDINATOR_TOLD_LIMIT);
    assert_int_equal(all.count, PEN_COORDINATOR_TOLD_LIMIT + 1);
    pen_log_redirect(NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_told_once_with_their_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
