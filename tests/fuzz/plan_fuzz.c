// Fuzzes the reader of plans: any bytes give a plan that passes its check and is written such that
// it reads back the same, or an error with a message.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "partition/plan_dump.h"
#include "partition/plan_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(pen_status status) {
    char text[256];
    if (status != PEN_OK && pen_status_format(status, text, sizeof text) == 0) abort();
    pen_status_ignore(status, "most inputs are wrong");
}

static void write_again(const pen_plan *plan, bool is_edited, pen_arena *arena) {
    const char *first, *second;
    pen_plan *read;
    pen_text table;
    if (pen_plan_check(plan, is_edited, arena) != PEN_OK) abort();
    if (pen_plan_format(plan, arena, &first) != PEN_OK) abort();
    const pen_status status =
        pen_plan_parse("plan.yaml", first, strlen(first), is_edited, arena, &read);
    if (status != PEN_OK) {
        look_at(status);
        abort();
    }
    if (pen_plan_format(read, arena, &second) != PEN_OK || strcmp(first, second) != 0) abort();
    pen_text_init(&table, arena);
    pen_plan_dump(plan, true, &table);
}

// The first byte says whether the plan counts as edited.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    pen_plan *plan;
    if (size == 0) return 0;
    const bool is_edited = data[0] == '!';
    if (pen_arena_create(&arena) != PEN_OK) abort();
    const char *text = (const char *)data + is_edited;
    const pen_status status =
        pen_plan_parse("plan.yaml", text, size - is_edited, is_edited, arena, &plan);
    if (status == PEN_OK) write_again(plan, is_edited, arena);
    look_at(status);
    pen_arena_destroy(arena);
    return 0;
}
