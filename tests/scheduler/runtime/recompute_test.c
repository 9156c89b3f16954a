// What a worker computed, computed again by another from what it kept: the same bits for each task
// of a training; and packages that are damaged, or make no sense, are refused.

#include "scheduler/runtime/worker/recompute.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "scheduler/runtime/executor/evidence.h"
#include "tests/support/check.h"
#include "tests/support/generation_case.h"

#define HEAD_WORDS 4 // of evidence: magic, bytes, digest, checksum

// One round in which the stage and microbatch of a forward task are kept.
static pen_recompute_bytes keep(generation_case *g, pen_coordinator *coordinator,
                                const pen_run_task *task, uint32_t device) {
    pen_recompute_bytes evidence;
    uint64_t round;
    double loss;
    pen_run_note note = {
        .device = device, .stage = task->task.stage, .microbatch = task->task.microbatch};
    const uint32_t worker = g->spec.table->forms[0].devices[device].worker;
    pen_coordinator_note(coordinator, worker, &note);
    CHECK_OK(generation_begin_round(g, coordinator, &round));
    CHECK(round == note.round, "round %u", (unsigned)round);
    CHECK_OK(generation_finish_round(g, coordinator, round, &loss));
    CHECK_OK(pen_coordinator_await_quiet(coordinator));
    CHECK_OK(pen_coordinator_fetch_evidence(coordinator, worker, g->arena));
    do {
        pen_coordinator_await_audit(coordinator);
        CHECK_OK(
            pen_coordinator_find_evidence(coordinator, g->arena, &evidence.bytes, &evidence.count));
    } while (evidence.bytes == NULL);
    return evidence;
}

static uint64_t ask(pen_coordinator *coordinator, uint32_t worker, uint32_t asked, uint32_t device,
                    pen_recompute_bytes package) {
    const pen_coordinator_package sent = {
        .device = device, .bytes = package.bytes, .byte_count = package.count};
    uint64_t digest;
    bool is_failed;
    char text[1024];
    const double deadline = pen_clock_seconds() + 30;
    pen_coordinator_recompute(coordinator, worker, asked, &sent);
    while (!pen_coordinator_find_digest(coordinator, &digest, &is_failed, text, sizeof text)) {
        CHECK(pen_clock_seconds() < deadline, "worker %u does not answer", worker);
        pen_coordinator_await_audit(coordinator);
    }
    CHECK(!is_failed, "worker %u: %s", worker, text);
    return digest;
}

static void others_come_to_the_same_bits(void **state) {
    (void)state;
    generation_case g;
    pen_coordinator *coordinator;
    uint32_t count = 0;
    generation_case_init(&g, "local");
    g.lease_seconds = 60; // the machine may be busy
    const pen_run_form *form = &g.spec.table->forms[0];
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    CHECK_OK(generation_write(&g, coordinator));
    for (uint32_t d = 0; d < g.spec.table->device_count; d++) {
        for (uint32_t t = form->devices[d].task_first; t < form->devices[d].task_end; t++) {
            const uint32_t worker = form->devices[d].worker,
                           other = worker % GENERATION_WORKERS + 1;
            pen_recompute_bytes package;
            uint64_t digest;
            if (form->tasks[t].task.kind != PEN_TASK_FORWARD) continue;
            const pen_recompute_bytes kept = keep(&g, coordinator, &form->tasks[t], d);
            CHECK_OK(pen_evidence_read(kept.bytes, kept.count, &digest));
            CHECK_OK(pen_recompute_pack(&g.spec, worker, kept, g.arena, &package));
            count += 1;
            CHECK(ask(coordinator, other, 2 * count, d, package) == digest, "task %u", t);
            CHECK(ask(coordinator, worker, 2 * count + 1, d, package) == digest, "task %u", t);
        }
    }
    CHECK(count >= 6, "%u tasks", count);
    pen_coordinator_destroy(coordinator);
    generation_case_deinit(&g);
}

// ---- what is not trusted

// A copy of a package; evidence begins at *out_evidence.
static unsigned char *copy(generation_case *g, pen_recompute_bytes package,
                           uint64_t **out_evidence) {
    unsigned char *bytes;
    uint64_t described;
    CHECK_OK(PEN_NEW(g->arena, package.count, &bytes));
    memcpy(bytes, package.bytes, package.count);
    memcpy(&described, bytes, sizeof described);
    *out_evidence = (uint64_t *)(void *)(bytes + 8 + (described + 7) / 8 * 8);
    return bytes;
}

static void seal(uint64_t *evidence) {
    evidence[3] = pen_checksum_whole(evidence + HEAD_WORDS, evidence[1] - HEAD_WORDS * 8);
}

static void refuses_what_makes_no_sense(void **state) {
    (void)state;
    static const struct {
        uint32_t word; // of the evidence: kind, value, bytes of the first value
        uint64_t is;
    } cases[] = {{4, 0}, {4, 3}, {5, UINT32_MAX}, {5, UINT64_MAX}, {6, 0}, {6, UINT64_MAX - 3}};
    generation_case g;
    pen_coordinator *coordinator;
    pen_recompute_bytes package;
    uint64_t *evidence, digest, again;
    generation_case_init(&g, "local");
    g.lease_seconds = 60; // the machine may be busy
    const pen_run_form *form = &g.spec.table->forms[0];
    CHECK_OK(generation_begin(&g, 1, &coordinator));
    CHECK_OK(generation_write(&g, coordinator));
    const uint32_t worker = form->devices[0].worker;
    const pen_recompute_bytes kept =
        keep(&g, coordinator, &form->tasks[form->devices[0].task_first], 0);
    CHECK_OK(pen_evidence_read(kept.bytes, kept.count, &digest));
    CHECK_OK(pen_recompute_pack(&g.spec, worker, kept, g.arena, &package));
    unsigned char *bytes = copy(&g, package, &evidence);
    const pen_recompute_bytes copied = {bytes, package.count};
    CHECK_OK(pen_recompute_carry_out(copied, 0, 0, &again));
    CHECK(again == digest, "another digest");
    CHECK_ERROR(pen_recompute_carry_out(copied, 77, 0, &again), PEN_CORRUPT, "without a part");
    CHECK_ERROR(pen_recompute_carry_out(copied, 0, 64, &again), PEN_DOES_NOT_FIT, "");
    const uint64_t first = (uint64_t)((unsigned char *)evidence - bytes);
    for (uint64_t at = first; at < package.count; at += 1 + (package.count - first) / 300) {
        bytes[at] ^= 0x10;
        const pen_status status = pen_recompute_carry_out(copied, 0, 0, &again);
        const bool is_digest = at - first >= 16 && at - first < 24; // what was said is not believed
        CHECK(is_digest == (status == PEN_OK), "byte %u", (unsigned)at);
        pen_status_ignore(status, "it is damaged");
        bytes[at] ^= 0x10;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t was = evidence[cases[i].word];
        evidence[cases[i].word] = cases[i].is;
        seal(evidence);
        CHECK_ERROR(pen_recompute_carry_out(copied, 0, 0, &again), PEN_CORRUPT, "does not fit");
        evidence[cases[i].word] = was;
    }
    for (uint64_t count = 0; count < package.count; count += 1 + package.count / 100) {
        const pen_recompute_bytes cut = {bytes, count};
        const pen_status status = pen_recompute_carry_out(cut, 0, 0, &again);
        CHECK(status != PEN_OK, "%u bytes", (unsigned)count);
        pen_status_ignore(status, "it is cut");
    }
    pen_coordinator_destroy(coordinator);
    generation_case_deinit(&g);
}

PEN_TEST_MAIN(cmocka_unit_test(others_come_to_the_same_bits),
              cmocka_unit_test(refuses_what_makes_no_sense))
