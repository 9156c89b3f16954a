#include "partition/spec/name_match.h"

#include <string.h>

#include "base/pattern.h"
#include "base/sets/order.h"
#include "base/text.h"
#include "partition/spec/name_range.h"

#define MATCH_SIGNS "^$*+?(){}|[]\\" // of patterns
#define MATCH_NEAR_COUNT 3           // names listed when none is meant
#define MATCH_NEAR_LIMIT 100000      // names that are compared for that

// Whether a text that is no name is taken for a pattern.
static bool match_is_pattern(const char *text) {
    return strpbrk(text, MATCH_SIGNS) != NULL;
}

// The letters of a pattern without its signs, or a name as it is.
static pen_status match_plain_text(const char *text, pen_arena *arena, const char **out_plain) {
    pen_text plain;
    pen_text_init(&plain, arena);
    pen_text_add(&plain, "");
    for (const char *at = text; *at != '\0'; at++) {
        const bool is_any = at[0] == '.' && (at[1] == '*' || at[1] == '+' || at[1] == '?');
        if (is_any || strchr(MATCH_SIGNS, *at) != NULL) continue;
        pen_text_append(&plain, at, 1);
    }
    return pen_text_finish(&plain, out_plain);
}

// How far a name is from what was asked for. A pattern may mean the beginning of a name alone.
static size_t match_distance(const char *plain, bool is_pattern, const char *name) {
    char beginning[PEN_TEXT_DISTANCE_LIMIT + 1];
    const size_t length = strnlen(plain, PEN_TEXT_DISTANCE_LIMIT);
    const size_t whole = pen_text_distance(plain, name);
    if (!is_pattern || strlen(name) <= length) return whole;
    memcpy(beginning, name, length);
    beginning[length] = '\0';
    const size_t part = pen_text_distance(plain, beginning);
    return part < whole ? part : whole;
}

// The names nearest to `text`, nearest first; at most MATCH_NEAR_COUNT. None that are far.
static pen_status match_find_near(const pen_name_set *set, const char *text, pen_arena *arena,
                                  uint32_t out_near[MATCH_NEAR_COUNT], uint32_t *out_count) {
    size_t distances[MATCH_NEAR_COUNT];
    uint32_t found = 0;
    const char *plain;
    PEN_TRY(match_plain_text(text, arena, &plain));
    const size_t farthest = 2 + strnlen(plain, PEN_TEXT_DISTANCE_LIMIT) / 2;
    const uint32_t compared = set->count < MATCH_NEAR_LIMIT ? set->count : MATCH_NEAR_LIMIT;
    for (uint32_t i = 0; i < compared; i++) {
        const size_t distance =
            plain[0] != '\0' && pen_text_contains(set->names[i], plain)
                ? 0
                : 1 + match_distance(plain, match_is_pattern(text), set->names[i]);
        if (distance > farthest) continue;
        uint32_t at = found;
        while (at > 0 && distances[at - 1] > distance) {
            at -= 1;
        }
        if (at == MATCH_NEAR_COUNT) continue;
        if (found < MATCH_NEAR_COUNT) found += 1;
        for (uint32_t j = found - 1; j > at; j--) {
            distances[j] = distances[j - 1];
            out_near[j] = out_near[j - 1];
        }
        distances[at] = distance;
        out_near[at] = i;
    }
    *out_count = found;
    return PEN_OK;
}

// A text that means nothing is answered with near names, or the first few, and with the pattern
// that was perhaps meant.
static pen_status match_refuse(const pen_name_set *set, const char *text, pen_arena *arena) {
    uint32_t near[MATCH_NEAR_COUNT];
    uint32_t near_count = 0;
    pen_text message;
    PEN_TRY(match_find_near(set, text, arena, near, &near_count));
    pen_text_init(&message, arena);
    pen_text_print(&message, "no %s %s ", set->what,
                   match_is_pattern(text) ? "matches" : "is called");
    pen_text_add_quoted(&message, text, strlen(text));
    // when nothing is near, the first few say at least what names look like
    const bool is_near = near_count > 0;
    if (!is_near) {
        near_count = set->count < MATCH_NEAR_COUNT ? set->count : MATCH_NEAR_COUNT;
    }
    for (uint32_t i = 0; i < near_count; i++) {
        pen_text_add(&message, i > 0 ? ", " : is_near ? ", near: " : ", possible: ");
        pen_text_print(&message, "%.100s", set->names[is_near ? near[i] : i]);
    }
    if (!is_near && near_count < set->count) {
        pen_text_print(&message, " and %u more", set->count - near_count);
    }
    if (is_near && !match_is_pattern(text) && pen_text_contains(set->names[near[0]], text)) {
        pen_text_add(&message, "; a text without any of " MATCH_SIGNS " is a whole name: \"");
        pen_text_print(&message, "%.60s.*\" means all that contain it", text);
    }
    return pen_text_error(&message, PEN_NOT_FOUND);
}

static bool match_find_name(const pen_name_set *set, const char *name, uint32_t *out_index) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->names[i], name) != 0) continue;
        *out_index = i;
        return true;
    }
    return false;
}

// A pattern that matches nothing is an error: a pin that does nothing would go unnoticed.
static pen_status match_pattern(const pen_name_set *set, const char *text, pen_arena *arena,
                                pen_name_matches *out_matches) {
    uint32_t *indices;
    uint32_t count = 0;
    pen_pattern *pattern = NULL;
    PEN_TRY(PEN_NEW(arena, set->count, &indices));
    const pen_status status = pen_pattern_create(text, &pattern);
    if (pen_status_get_code(status) == PEN_INVALID_INPUT) {
        const pen_status whole =
            pen_error(PEN_INVALID_INPUT,
                      "found \"%.100s\", expected the name of a %s or a regular "
                      "expression (POSIX extended): %s",
                      text, set->what, pen_status_message(status));
        pen_status_ignore(status, "its message goes on after the text it is about");
        return whole;
    }
    PEN_TRY(status);
    for (uint32_t i = 0; i < set->count; i++) {
        if (pen_pattern_matches(pattern, set->names[i])) indices[count++] = i;
    }
    pen_pattern_destroy(pattern);
    if (count == 0) return match_refuse(set, text, arena);
    *out_matches = (pen_name_matches){.indices = indices, .count = count};
    return PEN_OK;
}

pen_status pen_match_names(const pen_name_set *set, const char *text, pen_arena *arena,
                           pen_name_matches *out_matches) {
    uint32_t *index;
    PEN_TRY(PEN_NEW(arena, 1, &index));
    if (match_find_name(set, text, index)) {
        *out_matches = (pen_name_matches){.indices = index, .count = 1};
        return PEN_OK;
    }
    if (!match_is_pattern(text)) return match_refuse(set, text, arena);
    return match_pattern(set, text, arena, out_matches);
}

static pen_status match_ranges(const pen_name_set *set, const pen_name_ranges *ranges,
                               pen_arena *arena, pen_name_matches *out_matches) {
    uint32_t *indices;
    PEN_TRY(PEN_NEW(arena, ranges->total, &indices));
    for (uint32_t i = 0; i < ranges->total; i++) {
        const char *name;
        PEN_TRY(pen_name_ranges_format(ranges, ranges, i, arena, &name));
        if (match_find_name(set, name, &indices[i])) continue;
        return pen_status_add_context(match_refuse(set, name, arena), "one of those of \"%.100s\"",
                                      ranges->text);
    }
    pen_sort_ids(indices, ranges->total);
    *out_matches = (pen_name_matches){.indices = indices, .count = ranges->total};
    return PEN_OK;
}

// Whether a text with ranges has signs of patterns beside them.
static bool match_is_only_ranges(const pen_name_ranges *ranges) {
    if (ranges->range_count == 0) return false;
    size_t next = 0;
    for (size_t i = 0; ranges->text[i] != '\0'; i++) {
        if (next < ranges->range_count && i == ranges->ranges[next].begin) {
            i = ranges->ranges[next++].end - 1;
        } else if (strchr(MATCH_SIGNS, ranges->text[i]) != NULL) {
            return false;
        }
    }
    return true;
}

pen_status pen_match_devices(const pen_name_set *set, const char *text, pen_arena *arena,
                             pen_name_matches *out_matches) {
    pen_name_ranges ranges;
    uint32_t index;
    const bool is_name = match_find_name(set, text, &index);
    const pen_status status = pen_name_ranges_parse(text, &ranges);
    if (!is_name && status == PEN_OK && match_is_only_ranges(&ranges)) {
        return match_ranges(set, &ranges, arena, out_matches);
    }
    pen_status_ignore(status, "what is no range may be a pattern");
    return pen_match_names(set, text, arena, out_matches);
}
