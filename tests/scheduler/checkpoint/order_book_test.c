// Records of the order of lanes: read as they were written, to the last whole line; and the book
// that keeps them, over a disk each call of which fails.
#include "scheduler/checkpoint/order_book.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "tests/support/check.h"
#include "tests/support/failing_disk.h"
#include "tests/support/scratch.h"

static const char *const of = "model 0123456789abcdef, seed 3, lanes 4";

// Lanes of a step, drawn.
static pen_step_order drawn(uint64_t step) {
    const pen_random_key key = {9, pen_random_stream("orders", step, 0)};
    pen_step_order order = {.count = 1 + (uint32_t)pen_random_below(key, 0, PEN_ARRIVALS_LANES)};
    uint32_t left[PEN_ARRIVALS_LANES];
    for (uint32_t i = 0; i < order.count; i++) {
        left[i] = i;
    }
    for (uint32_t place = 0; place < order.count; place++) {
        const uint32_t rest = order.count - place;
        const uint32_t at = (uint32_t)pen_random_below(key, place + 1, rest);
        order.lanes = pen_arrivals_order_add(order.lanes, place, left[at]);
        left[at] = left[rest - 1];
    }
    return order;
}

static size_t write_record(char *bytes, size_t room, uint64_t steps, pen_arena *arena) {
    pen_order_writer writer;
    const char *head;
    size_t length;
    CHECK_OK(pen_order_write_head(&writer, of, arena, &head, &length));
    memcpy(bytes, head, length);
    for (uint64_t step = 1; step <= steps; step++) {
        const pen_step_order order = drawn(step);
        CHECK(length + PEN_ORDER_LINE_BYTES <= room, "room");
        length += pen_order_write_step(&writer, &order, bytes + length);
    }
    return length;
}

static bool is_drawn(uint64_t step, const pen_step_order *found) {
    const pen_step_order order = drawn(step);
    return found->lanes == order.lanes && found->count == order.count;
}

// Cut anywhere, a record has the steps that are whole, and says that something is missing.
static void cut_records_have_what_is_whole(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char bytes[8192];
    const size_t length = write_record(bytes, sizeof bytes, 100, arena);
    for (size_t cut = 0; cut <= length; cut++) {
        pen_order_record record;
        uint32_t line;
        pen_status status = pen_order_record_decode(bytes, cut, arena, &record, &line);
        if (status != PEN_OK) {
            CHECK(pen_status_get_code(status) == PEN_CORRUPT && line >= 1 && line <= 3, "cut");
            pen_status_ignore(status, "of the beginning");
            continue;
        }
        CHECK(strcmp(record.of, of) == 0, "of '%s'", record.of);
        CHECK((record.damage == NULL) == (cut == 0 || bytes[cut - 1] == '\n'), "cut to %zu", cut);
        for (uint64_t step = 1; step <= record.step_count; step++) {
            CHECK(is_drawn(step, &record.steps[step - 1]), "step %llu", (unsigned long long)step);
        }
    }
    pen_arena_destroy(arena);
}

// Any bit that turns is noticed, at its line or behind it.
static void no_bit_turns_unseen(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char bytes[2048];
    const size_t length = write_record(bytes, sizeof bytes, 20, arena);
    for (size_t at = 0; at < length; at++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            pen_order_record record;
            uint32_t line;
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
            pen_status status = pen_order_record_decode(bytes, length, arena, &record, &line);
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
            const bool is_seen = status != PEN_OK || record.damage != NULL;
            pen_status_ignore(status, "the bit");
            CHECK(is_seen, "bit %u of byte %zu", bit, at);
        }
    }
    pen_arena_destroy(arena);
}

// ---- the book

static pen_order_book *new_book(pen_disk *disk) {
    pen_order_book *book;
    CHECK_OK(pen_order_book_create(disk, of, &book));
    return book;
}

static void add(pen_order_book *book, uint64_t step) {
    const pen_step_order order = drawn(step);
    CHECK_OK(pen_order_book_add(book, step, &order));
}

static void check_known(const pen_order_book *book, uint64_t count) {
    CHECK(pen_order_book_count(book) == count, "%llu steps, not %llu",
          (unsigned long long)pen_order_book_count(book), (unsigned long long)count);
    for (uint64_t step = 1; step <= count; step++) {
        CHECK(is_drawn(step, pen_order_book_find(book, step)), "step %llu",
              (unsigned long long)step);
    }
    CHECK(pen_order_book_find(book, count + 1) == NULL, "no more");
}

static bool is_there(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void who_takes_over_has_all(void **state) {
    (void)state;
    const char *folder = scratch_path("taken");
    pen_order_book *first = new_book(NULL), *second = new_book(NULL), *third = new_book(NULL);
    CHECK_OK(pen_order_book_keep(first, folder, 1));
    for (uint64_t step = 1; step <= 30; step++) {
        add(first, step); // not synced: its process may end now
    }
    CHECK_OK(pen_order_book_read(second, folder, 20));
    CHECK_OK(pen_order_book_keep(second, folder, 4));
    CHECK(is_there(folder, "order/order.000000000004"), "its own");
    CHECK(!is_there(folder, "order/order.000000000001"), "which has all of the one before");
    add(first, 31); // who was superseded writes where nobody reads
    check_known(second, 30);
    for (uint64_t step = 25; step <= 3000; step++) {
        add(second, step); // some again
    }
    CHECK_OK(pen_order_book_sync(second));
    CHECK_OK(pen_order_book_read(third, folder, UINT64_MAX));
    check_known(third, 3000);
    pen_order_book_destroy(first);
    pen_order_book_destroy(second);
    pen_order_book_destroy(third);
}

static void check_fails(pen_status status, const char *text) {
    char whole[1024];
    pen_status_format(status, whole, sizeof whole);
    CHECK(status != PEN_OK && strstr(whole, text) != NULL, "'%s', expected '%s'", whole, text);
    pen_status_ignore(status, "as expected");
}

static void mistakes_have_a_name_and_a_line(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    char bytes[2048];
    const size_t length = write_record(bytes, sizeof bytes, 20, arena);
    const char *whole = scratch_file("whole", bytes, length);
    const char *cut = scratch_file("cut", bytes, length - 5);
    const char *other = scratch_file("other", "model: {}\n", 10);
    pen_order_book *book = new_book(NULL), *alien;
    CHECK_OK(pen_order_book_create(NULL, "model 1, seed 4", &alien));
    check_fails(pen_order_book_read(alien, whole, 0), "whole:2:1: error: the record is of another "
                                                      "training: found 'model 0123456789abcdef");
    check_fails(pen_order_book_read(book, cut, UINT64_MAX),
                "cut:23:1: error: the order of step 20 cannot be read: the line is cut off");
    check_fails(pen_order_book_read(book, cut, 20), "the order of step 20 cannot be read");
    check_fails(pen_order_book_read(book, whole, 21),
                "the record has the order of 20 steps, of which 21 were done by the checkpoint");
    check_fails(pen_order_book_read(book, other, 0),
                "other:1:1: error: not a record of the order of lanes: expected");
    check_fails(pen_order_book_read(book, scratch_path("none"), 0),
                "there is no record of the order of lanes in ");
    CHECK(pen_order_book_count(book) == 0, "nothing was taken");
    CHECK_OK(pen_order_book_read(book, cut, 19)); // a machine stopped
    check_known(book, 19);
    const pen_step_order one = {.count = 1}, two = {.lanes = 1, .count = 2};
    CHECK_OK(pen_order_book_add(alien, 1, &two));
    check_fails(pen_order_book_add(alien, 1, &one), "step 1 was done in another order before");
    pen_order_book_destroy(book);
    pen_order_book_destroy(alien);
    pen_arena_destroy(arena);
}

// Steps, with a sync now and then, as before checkpoints. Returns the last step that is durable.
static uint64_t keep_on(pen_disk *disk, const char *folder) {
    pen_order_book *book = new_book(disk);
    uint64_t durable = 0;
    pen_status status = pen_order_book_keep(book, folder, 2);
    const bool is_kept = status == PEN_OK;
    pen_status_ignore(status, "it is given up");
    for (uint64_t step = 1; is_kept && step <= 12; step++) {
        add(book, step); // whatever the disk does
        if (step % 3 != 0) continue;
        status = pen_order_book_sync(book);
        if (status == PEN_OK) durable = step;
        pen_status_ignore(status, "no checkpoint is taken then");
    }
    pen_order_book_destroy(book);
    return durable;
}

// Of each call of the disk: what was said to be durable is there, whatever fails.
static void what_is_durable_stays(void **state) {
    (void)state;
    pen_log_set_level(PEN_LOG_ERROR);
    for (uint32_t mode = 0; mode < FAILING_DISK_MODES; mode++) {
        bool has_failed = true;
        for (uint64_t at = 1; has_failed; at++) {
            char name[64];
            failing_disk disk;
            snprintf(name, sizeof name, "failing_%u_%llu", mode, (unsigned long long)at);
            const char *folder = scratch_path(name);
            failing_disk_init(&disk, at, (failing_disk_mode)mode);
            const uint64_t durable = keep_on(&disk.disk, folder);
            has_failed = failing_disk_has_failed(&disk);
            CHECK(has_failed || durable == 12, "nothing failed, and %llu are durable",
                  (unsigned long long)durable);
            if (durable == 0) continue;
            pen_order_book *book = new_book(NULL);
            CHECK_OK(pen_order_book_read(book, folder, durable));
            CHECK(pen_order_book_count(book) >= durable, "call %llu", (unsigned long long)at);
            check_known(book, pen_order_book_count(book));
            pen_order_book_destroy(book);
        }
    }
}

PEN_TEST_MAIN(cmocka_unit_test(cut_records_have_what_is_whole),
              cmocka_unit_test(no_bit_turns_unseen), cmocka_unit_test(who_takes_over_has_all),
              cmocka_unit_test(mistakes_have_a_name_and_a_line),
              cmocka_unit_test(what_is_durable_stays))
