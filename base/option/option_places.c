#include "base/option/option_places.h"

#include <string.h>

#define PLACES_SHOWN 4
#define PLACES_DEPTH 6 // tables may have themselves within them

typedef struct places {
    const char *key;
    const char *steps[PLACES_DEPTH];
    uint32_t depth;
    uint32_t level; // only what lies so deep is looked for
    uint32_t count;
    bool is_path; // the only one, and each step of it is a key
    pen_text text;
} places;

static void places_add(places *p, const char *tag, const char *variant) {
    p->count += 1;
    p->is_path = p->count == 1 && variant == NULL;
    if (p->count > PLACES_SHOWN) return;
    if (p->count > 1) pen_text_add(&p->text, ", ");
    if (p->depth == 0) pen_text_add(&p->text, "the top of the file");
    for (uint32_t i = 0; i < p->depth; i++) {
        const bool is_item = p->steps[i][0] == '[';
        pen_text_print(&p->text, "%s%s", i > 0 && !is_item ? "." : "", p->steps[i]);
        p->is_path = p->is_path && !is_item;
    }
    if (variant != NULL) pen_text_print(&p->text, " with %s: %s", tag, variant);
}

static void places_look(places *p, const pen_option_table *table, const char *tag,
                        const char *variant);

static void places_look_within(places *p, const pen_option_field *field) {
    const bool is_list = field->kind == PEN_OPTION_LIST || field->kind == PEN_OPTION_MAP;
    const pen_option_table *inner = field->table;
    if (is_list && field->item != NULL) inner = field->item->table;
    const uint32_t depth = p->depth;
    if (inner == NULL || depth + (is_list ? 2 : 1) > p->level) return;
    p->steps[p->depth++] = field->key;
    if (is_list) p->steps[p->depth++] = "[…]";
    places_look(p, inner, NULL, NULL);
    p->depth = depth;
}

static void places_look(places *p, const pen_option_table *table, const char *tag,
                        const char *variant) {
    for (uint32_t i = 0; i < table->field_count && p->count <= PLACES_SHOWN; i++) {
        const bool is_here = p->depth == p->level;
        if (is_here && strcmp(table->fields[i].key, p->key) == 0) places_add(p, tag, variant);
        places_look_within(p, &table->fields[i]);
    }
    for (uint32_t i = 0; i < table->variant_count && p->count <= PLACES_SHOWN; i++) {
        const pen_option_field *chosen = &table->variants[i];
        if (chosen->table != NULL) places_look(p, chosen->table, table->tag, chosen->key);
    }
}

// Of the same mapping, had its tag another value.
static bool places_add_variants(const pen_option_table *here, const char *key, pen_text *text) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < here->variant_count; i++) {
        const pen_option_table *variant = here->variants[i].table;
        for (uint32_t f = 0; variant != NULL && f < variant->field_count; f++) {
            if (strcmp(variant->fields[f].key, key) != 0) continue;
            if (count++ == 0) pen_text_print(text, "goes with %s: ", here->tag);
            pen_text_print(text, "%s%s", count > 1 ? ", " : "", here->variants[i].key);
        }
    }
    return count > 0;
}

// The places that are least deep: those further in are seldom what was meant.
static void places_find(places *p, const pen_option_table *root, pen_arena *arena) {
    pen_text_init(&p->text, arena);
    for (; p->count == 0 && p->level <= PLACES_DEPTH; p->level++) {
        places_look(p, root, NULL, NULL);
    }
}

bool pen_option_add_places(const pen_option_table *root, const pen_option_table *here,
                           const char *key, pen_text *text) {
    places p = {.key = key};
    if (places_add_variants(here, key, text)) return true;
    places_find(&p, root, text->arena);
    if (p.count == 0 || p.count > PLACES_SHOWN) return false;
    pen_text_add(text, "is a key of ");
    pen_text_append(text, p.text.bytes, p.text.length);
    return true;
}

const char *pen_option_find_path(const pen_option_table *root, const char *key, pen_arena *arena) {
    places p = {.key = key};
    const char *within, *path;
    places_find(&p, root, arena);
    if (!p.is_path) return NULL;
    if (p.level == 1) return key; // of the top
    pen_status status = pen_text_finish(&p.text, &within);
    if (status == PEN_OK) status = pen_arena_format(arena, &path, "%s.%s", within, key);
    if (status == PEN_OK) return path;
    pen_status_ignore(status, "the message does without");
    return NULL;
}

// How many bytes of `written` are `key`; 0: it begins otherwise.
static size_t places_match_key(const char *key, const char *written) {
    size_t i = 0;
    for (; key[i] != '\0'; i++) {
        const char letter = written[i] == '-' ? '_' : written[i];
        if (letter != key[i]) return 0;
    }
    return i;
}

typedef struct places_match {
    const char *separators;
    char *path; // as long as what is written
    uint32_t depth;
} places_match;

static bool places_match_table(places_match *m, const pen_option_table *table, const char *written,
                               size_t at);

// What is behind the key of a map or a mapping: an entry has any name, and that is the path's end.
static bool places_match_within(places_match *m, const pen_option_field *field, const char *written,
                                size_t at) {
    if (field->kind == PEN_OPTION_LIST) return false;
    if (field->kind != PEN_OPTION_MAP) {
        return field->table != NULL && places_match_table(m, field->table, written, at);
    }
    if (written[at] == '\0' || strchr(written + at, '.') != NULL) return false;
    memcpy(m->path + at, written + at, strlen(written + at) + 1);
    return true;
}

static bool places_match_field(places_match *m, const pen_option_field *field, const char *written,
                               size_t at) {
    const size_t length = places_match_key(field->key, written + at);
    if (length == 0) return false;
    const size_t end = at + length;
    memcpy(m->path + at, field->key, length + 1);
    if (written[end] == '\0') return true;
    if (strchr(m->separators, written[end]) == NULL) return false;
    m->path[end] = '.';
    return places_match_within(m, field, written, end + 1);
}

// Tries each key that may stand here; one that leads nowhere is written over by the next.
static bool places_match_table(places_match *m, const pen_option_table *table, const char *written,
                               size_t at) {
    bool is_found = false;
    if (m->depth == PLACES_DEPTH) return false;
    m->depth += 1;
    for (uint32_t i = 0; i < table->field_count && !is_found; i++) {
        is_found = places_match_field(m, &table->fields[i], written, at);
    }
    if (table->tag != NULL && !is_found) {
        const pen_option_field tag = {.key = table->tag, .kind = PEN_OPTION_CHOICE};
        is_found = places_match_field(m, &tag, written, at);
    }
    for (uint32_t i = 0; i < table->variant_count && !is_found; i++) {
        const pen_option_table *variant = table->variants[i].table;
        is_found = variant != NULL && places_match_table(m, variant, written, at);
    }
    m->depth -= 1;
    return is_found;
}

const char *pen_option_match_path(const pen_option_table *root, const char *written,
                                  const char *separators, pen_arena *arena) {
    places_match m = {.separators = separators};
    const pen_status status = PEN_NEW(arena, strlen(written) + 1, &m.path);
    pen_status_ignore(status, "the message does without");
    if (status != PEN_OK) return NULL;
    return places_match_table(&m, root, written, 0) ? m.path : NULL;
}
