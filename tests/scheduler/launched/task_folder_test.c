#include "scheduler/launched/task_folder.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static void take_message(void *context, pen_log_level level, const char *text) {
    uint32_t *count = context;
    *count += level == PEN_LOG_WARNING && strstr(text, "is damaged") != NULL;
}

static void write_file(const pen_task_folder *folder, const char *name, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "cannot write '%s'", path);
}

static void read_often(const pen_task_folder *folder) {
    for (int i = 0; i < 10; i++) {
        const char *const names[] = {"end", "task.0000", "task.0001"};
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            pen_task_record record;
            bool is_there;
            CHECK_OK(pen_task_folder_read(folder, names[n], &record, &is_there));
            CHECK(is_there == (n == 2), "'%s' is there: %d", names[n], is_there);
        }
    }
}

// Tasks look several times a second, for as long as they live.
static void damage_is_told_once(void **state) {
    (void)state;
    pen_task_folder folder;
    uint32_t count = 0;
    const pen_task_record record = {.rank = 1, .size = 2};
    const char *checkpoints = scratch_path("kept");
    pen_arena *arena = check_arena();
    CHECK_OK(pen_task_folder_open(checkpoints, "train", NULL, true, arena, &folder));
    CHECK_OK(pen_task_folder_write(&folder, "task.0001", &record));
    write_file(&folder, "end", "no record");
    write_file(&folder, "task.0000", "no record");
    pen_log_redirect(take_message, &count);
    read_often(&folder);
    CHECK(count == 2, "said %u times", count);
    write_file(&folder, "end", "another one");
    read_often(&folder);
    CHECK(count == 3, "said %u times", count);
    pen_log_redirect(NULL, NULL);
    pen_arena_destroy(arena);
}

// Checksums of many files fall on the same places.
static void many_damages_are_told_once_each(void **state) {
    (void)state;
    enum { FILES = 40 };
    pen_task_folder folder;
    uint32_t count = 0;
    pen_arena *arena = check_arena();
    CHECK_OK(pen_task_folder_open(scratch_path("many"), "train", NULL, true, arena, &folder));
    char name[PEN_TASK_FILE_BYTES];
    for (uint32_t i = 0; i < FILES; i++) {
        write_file(&folder, pen_task_folder_name(i, name), "no record");
    }
    pen_log_redirect(take_message, &count);
    for (uint32_t i = 0; i < 3 * FILES; i++) {
        pen_task_record record;
        bool is_there;
        CHECK_OK(pen_task_folder_read(&folder, pen_task_folder_name(i % FILES, name), &record,
                                      &is_there));
    }
    pen_log_redirect(NULL, NULL);
    CHECK(count == FILES, "said %u times of %d files", count, FILES);
    pen_arena_destroy(arena);
}

// What another task says becomes words of ours, and its exit code may become our own.
static void other_tasks_are_judged(void **state) {
    (void)state;
    static const struct {
        uint64_t code;
        bool is_code;
    } codes[] = {{0, true},   {6, true},   {9, true},    {137, true},
                 {10, false}, {77, false}, {128, false}, {255, false}};
    uint8_t bytes[PEN_TASK_RECORD_BYTES_LIMIT];
    pen_task_record said = {.size = 2, .node = "\x1b[2J\x9b", .reason = "one\n\x7ftwo\xff"}, read;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        said.code = codes[i].code;
        const pen_status status =
            pen_task_record_decode(bytes, pen_task_record_encode(&said, bytes), &read);
        CHECK((status == PEN_OK) == codes[i].is_code, "code %u", (unsigned)codes[i].code);
        pen_status_ignore(status, "it is looked at");
        if (status != PEN_OK) continue;
        CHECK(read.code == codes[i].code && strcmp(read.node, "?[2J?") == 0 &&
                  strcmp(read.reason, "one\n?two?") == 0,
              "code %u: '%s', '%s'", (unsigned)read.code, read.node, read.reason);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(damage_is_told_once), cmocka_unit_test(other_tasks_are_judged),
              cmocka_unit_test(many_damages_are_told_once_each))
