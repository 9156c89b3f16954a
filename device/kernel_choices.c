#include "device/kernel_choices.h"

#include <stdlib.h>
#include <string.h>

#include "base/name_map.h"
#include "base/text.h"

typedef struct kernel_choice {
    const char *key;
    const char *kernel_name;
} kernel_choice;

struct pen_kernel_choices {
    pen_arena *arena;
    bool may_measure;
    pen_name_map map; // of keys
    uint32_t count;
    uint32_t capacity;
    kernel_choice *items;
};

pen_status pen_kernel_choices_create(pen_arena *arena, pen_kernel_choices **out_choices) {
    pen_kernel_choices *choices;
    PEN_TRY(PEN_NEW(arena, 1, &choices));
    choices->arena = arena;
    pen_name_map_init(&choices->map, arena);
    *out_choices = choices;
    return PEN_OK;
}

void pen_kernel_choices_allow_measuring(pen_kernel_choices *choices, bool allowed) {
    choices->may_measure = allowed;
}

bool pen_kernel_choices_may_measure(const pen_kernel_choices *choices) {
    return choices->may_measure;
}

uint32_t pen_kernel_choices_count(const pen_kernel_choices *choices) {
    return choices->count;
}

const char *pen_kernel_choices_find(const pen_kernel_choices *choices, const char *key) {
    const uint32_t index = pen_name_map_find(&choices->map, key);
    return index == PEN_NAME_MAP_NONE ? NULL : choices->items[index].kernel_name;
}

static pen_status kernel_choices_grow(pen_kernel_choices *choices) {
    if (choices->count < choices->capacity) return PEN_OK;
    const uint32_t capacity = choices->capacity == 0 ? 16 : 2 * choices->capacity;
    kernel_choice *items;
    PEN_TRY(PEN_NEW(choices->arena, capacity, &items));
    if (choices->count > 0) memcpy(items, choices->items, choices->count * sizeof *items);
    choices->items = items;
    choices->capacity = capacity;
    return PEN_OK;
}

pen_status pen_kernel_choices_set(pen_kernel_choices *choices, const char *key,
                                  const char *kernel_name) {
    const char *name;
    PEN_TRY(pen_arena_copy_text(choices->arena, kernel_name, strlen(kernel_name), &name));
    const uint32_t index = pen_name_map_find(&choices->map, key);
    if (index != PEN_NAME_MAP_NONE) {
        choices->items[index].kernel_name = name;
        return PEN_OK;
    }
    const char *own_key;
    PEN_TRY(pen_arena_copy_text(choices->arena, key, strlen(key), &own_key));
    PEN_TRY(kernel_choices_grow(choices));
    PEN_TRY(pen_name_map_add(&choices->map, own_key, choices->count));
    choices->items[choices->count++] = (kernel_choice){own_key, name};
    return PEN_OK;
}

static int kernel_choice_compare(const void *a, const void *b) {
    return strcmp(((const kernel_choice *)a)->key, ((const kernel_choice *)b)->key);
}

pen_status pen_kernel_choices_format(const pen_kernel_choices *choices, pen_arena *arena,
                                     const char **out_text) {
    kernel_choice *sorted;
    PEN_TRY(PEN_NEW(arena, choices->count, &sorted));
    if (choices->count > 0) {
        memcpy(sorted, choices->items, choices->count * sizeof *sorted);
        qsort(sorted, choices->count, sizeof *sorted, kernel_choice_compare);
    }
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, "");
    for (uint32_t i = 0; i < choices->count; i++) {
        pen_text_print(&text, "%s: %s\n", sorted[i].key, sorted[i].kernel_name);
    }
    return pen_text_finish(&text, out_text);
}

static pen_status kernel_choices_parse_line(pen_kernel_choices *choices, const char *line,
                                            size_t length) {
    size_t colon = length; // the last one: a key may contain ':'
    while (colon > 0 && line[colon - 1] != ':')
        colon -= 1;
    if (colon < 2 || colon + 1 >= length || line[colon] != ' ') {
        pen_text quoted;
        const char *text;
        pen_text_init(&quoted, choices->arena);
        pen_text_add_quoted(&quoted, line, length);
        PEN_TRY(pen_text_finish(&quoted, &text));
        return pen_error(PEN_INVALID_INPUT, "a kernel choice is written \"key: kernel\", found %s",
                         text);
    }
    const char *key, *name;
    PEN_TRY(pen_arena_copy_text(choices->arena, line, colon - 1, &key));
    PEN_TRY(pen_arena_copy_text(choices->arena, line + colon + 1, length - colon - 1, &name));
    const char *before = pen_kernel_choices_find(choices, key);
    if (before != NULL && strcmp(before, name) != 0) {
        return pen_error(PEN_INVALID_INPUT, "kernel '%s' is chosen for '%s', but '%s' was before",
                         name, key, before);
    }
    return pen_kernel_choices_set(choices, key, name);
}

pen_status pen_kernel_choices_parse(pen_kernel_choices *choices, const char *file,
                                    const char *text) {
    uint32_t line_number = 1;
    for (const char *line = text; *line != '\0'; line_number++) {
        const size_t length = strcspn(line, "\n");
        if (length > 0) {
            const pen_status status = kernel_choices_parse_line(choices, line, length);
            if (status != PEN_OK) {
                return file == NULL ? status : pen_status_at_position(status, file, line_number, 0);
            }
        }
        line += length;
        if (*line == '\n') line += 1;
    }
    return PEN_OK;
}
