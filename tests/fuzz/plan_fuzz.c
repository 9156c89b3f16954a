// Fuzzes the reader of plans: any bytes give a plan that passes its check and is written such that
// it reads back the same, or an error with a message.
#include <string.h>

#include "partition/plan/plan_check.h"
#include "partition/plan/plan_dump.h"
#include "partition/plan/plan_file.h"
#include "partition/plan/plan_writer.h"
#include "tests/fuzz/fuzz.h"

static void write_again(const pen_plan *plan, bool is_edited, pen_arena *arena) {
    const char *first, *second;
    pen_plan *read;
    pen_text table;
    if (!fuzz_works(pen_plan_check(plan, is_edited, arena))) return;
    if (!fuzz_works(pen_plan_format(plan, arena, &first))) return;
    if (!fuzz_works(pen_plan_parse("plan.yaml", first, strlen(first), is_edited, arena, &read))) {
        return;
    }
    if (!fuzz_works(pen_plan_format(read, arena, &second))) return;
    fuzz_must(strcmp(first, second) == 0);
    pen_text_init(&table, arena);
    pen_plan_dump(plan, true, &table);
}

// The first byte says whether the plan counts as edited.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_plan *plan;
    if (size == 0) return 0;
    const bool is_edited = data[0] == '!';
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    const char *text = (const char *)data + is_edited;
    if (fuzz_reads(pen_plan_parse("plan.yaml", text, size - is_edited, is_edited, arena, &plan))) {
        write_again(plan, is_edited, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
