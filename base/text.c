#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"

#define TEXT_CAPACITY_FIRST 64
#define TEXT_QUOTED_LIMIT 60

void pen_text_init(pen_text *text, pen_arena *arena) {
    *text = (pen_text){.arena = arena};
}

// Makes room for `length` more bytes and the ending 0.
static bool text_reserve(pen_text *text, size_t length) {
    size_t needed;
    if (text->failed) return false;
    if (!pen_size_add(text->length, length, &needed) || !pen_size_add(needed, 1, &needed)) {
        text->failed = true;
        return false;
    }
    if (needed <= text->capacity) return true;
    size_t capacity = text->capacity == 0 ? TEXT_CAPACITY_FIRST : text->capacity;
    while (capacity < needed) {
        if (!pen_size_mul(capacity, 2, &capacity)) capacity = needed;
    }
    char *bytes = pen_arena_allocate(text->arena, capacity, 1, 1);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    if (text->length > 0) memcpy(bytes, text->bytes, text->length);
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void pen_text_append(pen_text *text, const char *bytes, size_t length) {
    if (!text_reserve(text, length)) return;
    if (length > 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void pen_text_add(pen_text *text, const char *string) {
    pen_text_append(text, string, strlen(string));
}

void pen_text_print(pen_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !text_reserve(text, (size_t)length)) {
        text->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

pen_status pen_text_finish(pen_text *text, const char **out_text) {
    if (text->failed) return pen_error_out_of_memory();
    return pen_arena_copy_text(text->arena, text->length == 0 ? "" : text->bytes, text->length,
                               out_text);
}

pen_status pen_text_error_at(const char *file, int line, pen_text *text, pen_status_code code) {
    const char *whole;
    PEN_TRY(pen_text_finish(text, &whole));
    return pen_error_at(file, line, code, "%s", whole);
}

static int text_fold(char letter) {
    return tolower((unsigned char)letter);
}

static size_t text_min(size_t a, size_t b) {
    return a < b ? a : b;
}

// How far a misspelt key is from a right one, for "did you mean". Swapping two neighbours counts as
// one change, case as none.
size_t pen_text_distance(const char *a, const char *b) {
    // Optimal string alignment: three rows of the dynamic programme are enough.
    size_t rows[3][PEN_TEXT_DISTANCE_LIMIT + 1];
    const size_t a_length = strnlen(a, PEN_TEXT_DISTANCE_LIMIT);
    const size_t b_length = strnlen(b, PEN_TEXT_DISTANCE_LIMIT);
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above_that = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const bool same = text_fold(a[i - 1]) == text_fold(b[j - 1]);
            size_t best = above[j - 1] + (same ? 0 : 1);
            best = text_min(best, text_min(above[j], row[j - 1]) + 1);
            const bool swapped = i > 1 && j > 1 && text_fold(a[i - 1]) == text_fold(b[j - 2]) &&
                                 text_fold(a[i - 2]) == text_fold(b[j - 1]);
            if (swapped) best = text_min(best, above_that[j - 2] + 1);
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

#define TEXT_PART_BYTES 5 // from which a name within another says something

typedef enum text_nearness { // from near to far
    TEXT_NEAR_LETTER,        // one letter is another, or one begins the other
    TEXT_NEAR_LETTERS,       // a third of the letters of the longer are others
    TEXT_NEAR_PART,          // one is within the other
    TEXT_FAR,
} text_nearness;

// "gpus" is not near to "tls": of short names a third is a letter.
static text_nearness text_judge(const char *wanted, const char *name, size_t distance) {
    const size_t shorter = text_min(strlen(wanted), strlen(name));
    const size_t longer = strlen(wanted) + strlen(name) - shorter;
    if (longer > PEN_TEXT_DISTANCE_LIMIT) return TEXT_FAR; // the rest of it was not compared
    const bool begins = shorter >= 2 && strncmp(wanted, name, shorter) == 0;
    if (distance <= 1 || begins) return TEXT_NEAR_LETTER;
    if (distance <= longer / 3) return TEXT_NEAR_LETTERS;
    if (shorter < TEXT_PART_BYTES) return TEXT_FAR;
    const bool is_within = pen_text_contains(wanted, name) || pen_text_contains(name, wanted);
    return is_within ? TEXT_NEAR_PART : TEXT_FAR;
}

size_t pen_text_nearest(const char *wanted, const char *const *names, size_t count) {
    size_t best = count, best_distance = 0;
    text_nearness best_nearness = TEXT_FAR;
    for (size_t i = 0; i < count; i++) {
        const size_t distance = pen_text_distance(wanted, names[i]);
        const text_nearness nearness = text_judge(wanted, names[i], distance);
        const bool is_less = nearness == best_nearness && distance < best_distance;
        if (nearness == TEXT_FAR || nearness > best_nearness) continue;
        if (nearness < best_nearness || is_less) {
            best = i;
            best_distance = distance;
            best_nearness = nearness;
        }
    }
    return best;
}

// Whether another word of a name begins here: "_size" and "Size", but not the "U" of "TPU".
static bool text_begins_part(const char *text) {
    if (*text != '\0' && strchr("_-.", *text) != NULL) return true;
    return isupper((unsigned char)text[0]) && islower((unsigned char)text[1]);
}

// "CrossEntropyLoss" is "cross_entropy_loss": the one is a class, the other a key. As deep as the
// word is long, which is one of ours. Beside a `*` a "_" must be seen: "lr_*" is no "lru".
static bool text_is_word(const char *word, const char *text) {
    const bool is_part = *word == '_';
    word += strspn(word, "_");
    if (*word == '*') {
        if (is_part && !text_begins_part(text)) return false;
        const bool has_part = word[1] == '_';
        for (;; text++) {
            const size_t gap = has_part ? strspn(text, "_-.") : 0;
            const bool is_possible = !has_part || text_begins_part(text);
            if (is_possible && text_is_word(word + 1, text + gap)) return true;
            if (*text == '\0') return false;
        }
    }
    text += strspn(text, "_-");
    if (text_fold(*word) != text_fold(*text)) return false;
    return *word == '\0' || text_is_word(word + 1, text + 1);
}

const char *pen_text_find_word(const pen_text_word *words, const char *text) {
    for (; words != NULL && words->word != NULL; words++) {
        if (text_is_word(words->word, text)) return words->meaning;
    }
    return NULL;
}

bool pen_text_contains(const char *text, const char *part) {
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && text_fold(text[i]) == text_fold(part[i])) {
            i += 1;
        }
        if (part[i] == '\0') return true;
    }
    return false;
}

// 0 for a name that contains what is wanted; SIZE_MAX for one that is far from it.
static size_t text_rank(const char *wanted, const char *name) {
    if (wanted[0] != '\0' && pen_text_contains(name, wanted)) return 0;
    const size_t distance = pen_text_distance(wanted, name);
    return distance <= 1 + strnlen(wanted, PEN_TEXT_DISTANCE_LIMIT) / 2 ? 1 + distance : SIZE_MAX;
}

size_t pen_text_find_near(const char *wanted, const char *const *names, size_t count, size_t limit,
                          uint32_t *out_near) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t rank = text_rank(wanted, names[i]);
        size_t at = found;
        if (rank == SIZE_MAX) continue;
        while (at > 0 && text_rank(wanted, names[out_near[at - 1]]) > rank) {
            at -= 1;
        }
        if (at == limit) continue;
        if (found < limit) found += 1;
        for (size_t j = found - 1; j > at; j--) {
            out_near[j] = out_near[j - 1];
        }
        out_near[at] = (uint32_t)i;
    }
    return found;
}

void pen_text_add_names(pen_text *text, const char *wanted, const char *const *names, size_t count,
                        size_t limit) {
    const size_t nearest = pen_text_nearest(wanted, names, count);
    size_t written = 0;
    if (nearest < count) {
        pen_text_add(text, names[nearest]);
        written = 1;
    }
    for (size_t i = 0; i < count && written < limit; i++) {
        if (i == nearest) continue;
        pen_text_print(text, "%s%s", written > 0 ? ", " : "", names[i]);
        written += 1;
    }
    if (written < count) pen_text_print(text, " and %zu more", count - written);
    if (nearest < count && count > 1 && strcmp(names[nearest], wanted) != 0) {
        pen_text_print(text, "; did you mean %s?", names[nearest]);
    }
}

pen_status pen_text_find_name(const char *what, const char *name, pen_text_name_fn *name_at,
                              size_t count, pen_arena *arena, size_t *out_index) {
    const char **names;
    pen_text text;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name_at(i), name) != 0) continue;
        *out_index = i;
        return PEN_OK;
    }
    PEN_TRY(PEN_NEW(arena, count, &names));
    for (size_t i = 0; i < count; i++) {
        names[i] = name_at(i);
    }
    pen_text_init(&text, arena);
    pen_text_print(&text, "unknown %s '%.100s', possible: ", what, name);
    pen_text_add_names(&text, name, names, count, count);
    return pen_text_error(&text, PEN_NOT_FOUND);
}

// For messages: what a user wrote, in quotes, cut where it is long, and with nothing that a
// terminal would obey.
void pen_text_add_quoted(pen_text *text, const char *bytes, size_t length) {
    pen_text_add(text, "\"");
    size_t shown = text_min(length, TEXT_QUOTED_LIMIT);
    // never cut inside a UTF-8 sequence
    while (shown < length && shown > 0 && ((unsigned char)bytes[shown] & 0xC0) == 0x80) {
        shown -= 1;
    }
    for (size_t i = 0; i < shown; i++) {
        const unsigned char letter = (unsigned char)bytes[i];
        if (letter == '\n') {
            pen_text_add(text, "\\n");
        } else if (letter < 0x20 || letter == 0x7F) {
            pen_text_print(text, "\\x%02x", letter);
        } else if (letter == '"' || letter == '\\') {
            pen_text_print(text, "\\%c", letter);
        } else {
            pen_text_append(text, bytes + i, 1);
        }
    }
    pen_text_add(text, shown < length ? "...\"" : "\"");
}

size_t pen_text_sequence_length(const unsigned char *bytes, size_t length) {
    const unsigned char first = bytes[0];
    if (first < 0x80) return 1;
    const size_t needed = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length < needed) return 0;
    for (size_t i = 1; i < needed; i++) {
        if ((bytes[i] & 0xC0) != 0x80) return 0;
    }
    if (first == 0xE0 && bytes[1] < 0xA0) return 0;
    if (first == 0xED && bytes[1] > 0x9F) return 0;
    if (first == 0xF0 && bytes[1] < 0x90) return 0;
    if (first == 0xF4 && bytes[1] > 0x8F) return 0;
    return needed;
}

// The code point of a sequence of UTF-8.
static uint32_t text_code_point(const unsigned char *bytes, size_t length) {
    if (length == 1) return bytes[0];
    uint32_t point = bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (bytes[i] & 0x3Fu);
    return point;
}

// What terminals act upon, or what makes a text look like another one: control characters, marks
// of direction, characters without width, tags.
static bool text_is_deceptive(uint32_t point) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},     {0x61C, 0x61C},
                  {0x200B, 0x200F}, {0x2028, 0x202E},  {0x2060, 0x206F}, {0xFEFF, 0xFEFF},
                  {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (point >= ranges[i].first && point <= ranges[i].last) return true;
    }
    return false;
}

char *pen_text_clean(char *text, bool keeps_lines) {
    unsigned char *at = (unsigned char *)text;
    for (size_t left = strlen(text); left > 0;) {
        const size_t found = pen_text_sequence_length(at, left);
        const size_t length = found == 0 ? 1 : found;
        if (*at == '\t') {
            *at = ' ';
        } else if (found == 0 || (text_is_deceptive(text_code_point(at, length)) &&
                                  !(keeps_lines && *at == '\n'))) {
            memset(at, '?', length);
        }
        at += length;
        left -= length;
    }
    return text;
}

// Three significant digits of `value`, which lies in [1, 1024).
static void text_three_digits(double value, const char *unit, char *out_text) {
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%.*f %s", decimals, value, unit);
}

const char *pen_bytes_format(uint64_t bytes, char out_text[PEN_QUANTITY_TEXT_BYTES]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%u byte%s", (unsigned)bytes,
                 bytes == 1 ? "" : "s");
        return out_text;
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024.0;
        unit += 1;
    }
    text_three_digits(value, units[unit], out_text);
    return out_text;
}

// Three digits and a unit: 310 us, 1.25 s, 3 min 20 s. Limits are where rounding would give a
// fourth digit.
const char *pen_seconds_format(double seconds, char out_text[PEN_QUANTITY_TEXT_BYTES]) {
    if (!isfinite(seconds) || seconds < 0 || seconds >= 1e12) {
        snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%g s", seconds);
    } else if (seconds < 0.9995e-6) {
        snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%.0f ns", seconds * 1e9);
    } else if (seconds < 0.9995e-3) {
        text_three_digits(seconds * 1e6, "us", out_text);
    } else if (seconds < 0.9995) {
        text_three_digits(seconds * 1e3, "ms", out_text);
    } else if (seconds < 99.95) {
        text_three_digits(seconds, "s", out_text);
    } else {
        const uint64_t whole = (uint64_t)(seconds + 0.5);
        if (whole < 3600) {
            snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%u min %02u s", (unsigned)(whole / 60),
                     (unsigned)(whole % 60));
        } else {
            snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%llu h %02u min",
                     (unsigned long long)(whole / 3600), (unsigned)(whole / 60 % 60));
        }
    }
    return out_text;
}

const char *pen_count_format(uint64_t number, char out_text[PEN_QUANTITY_TEXT_BYTES]) {
    static const char *const units[] = {"k", "M", "G", "T", "P", "E"};
    if (number < 1000) {
        snprintf(out_text, PEN_QUANTITY_TEXT_BYTES, "%u", (unsigned)number);
        return out_text;
    }
    double value = (double)number / 1000.0;
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1000.0;
        unit += 1;
    }
    text_three_digits(value, units[unit], out_text);
    return out_text;
}
