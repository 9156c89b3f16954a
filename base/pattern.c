#include "base/pattern.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct pen_pattern {
    regex_t compiled;
};

// Skips a bracket expression, in which all signs but ']' are themselves. Returns the index behind.
static size_t pattern_skip_bracket(const char *text, size_t index) {
    index += 1;
    if (text[index] == '^') index += 1;
    if (text[index] == ']') index += 1;
    while (text[index] != '\0' && text[index] != ']') {
        const bool is_class =
            text[index] == '[' && text[index + 1] != '\0' && strchr(":.=", text[index + 1]) != NULL;
        if (is_class) {
            const char end[3] = {text[index + 1], ']', '\0'};
            const char *found = strstr(text + index + 2, end);
            if (found == NULL) return strlen(text);
            index = (size_t)(found - text) + 1;
        }
        index += 1;
    }
    return text[index] == '\0' ? index : index + 1;
}

// The C library writes x+ as xx* and x{9} as nine x, within each other too, so a few signs can
// stand for any amount of memory. The size after that is reckoned here, before it is done.
typedef struct pattern_size {
    unsigned depth;                                   // parentheses that are open
    unsigned long whole[PEN_PATTERN_DEPTH_LIMIT + 1]; // of what each has so far
    unsigned long last[PEN_PATTERN_DEPTH_LIMIT + 1];  // of what a repetition would repeat
} pattern_size;

static void pattern_add(pattern_size *size, unsigned long amount) {
    size->whole[size->depth] += amount;
    size->last[size->depth] = amount;
}

// What precedes is written `times` times. Sizes stay below the square of what is refused anyway.
static void pattern_repeat(pattern_size *size, unsigned long times) {
    const unsigned long last = size->last[size->depth];
    size->whole[size->depth] += last * (times - 1);
    size->last[size->depth] = last * times;
}

// How often a repetition "{m,n}" at `text` writes what it repeats, at most one past the limit.
static unsigned long pattern_repetition(const char *text) {
    unsigned long largest = 1;
    for (const char *at = text + 1; *at != '\0' && *at != '}'; at++) {
        if (!isdigit((unsigned char)*at)) continue;
        char *end;
        const unsigned long number = strtoul(at, &end, 10);
        if (number > largest) largest = number;
        at = end - 1;
    }
    // {m,} keeps one more, which repeats
    return largest > PEN_PATTERN_SIZE_LIMIT ? PEN_PATTERN_SIZE_LIMIT + 1 : largest + 1;
}

// Takes the sign at `index`; returns the index behind it.
static size_t pattern_take(pattern_size *size, const char *text, size_t index) {
    const char sign = text[index];
    if (sign == '[') {
        pattern_add(size, 1);
        return pattern_skip_bracket(text, index);
    }
    if (sign == '(') {
        size->depth += 1;
        if (size->depth > PEN_PATTERN_DEPTH_LIMIT) return index + 1;
        size->whole[size->depth] = 1;
        size->last[size->depth] = 1;
    } else if (sign == ')' && size->depth > 0) {
        size->depth -= 1;
        pattern_add(size, size->whole[size->depth + 1]);
    } else if (sign == '+') {
        pattern_repeat(size, 2);
    } else if (sign == '{') {
        pattern_repeat(size, pattern_repetition(text + index));
        const size_t end = index + 1 + strspn(text + index + 1, "0123456789,");
        if (text[end] == '}') return end + 1;
    } else if (sign != '*' && sign != '?') { // which repeat without writing anything twice
        pattern_add(size, 1);
    }
    return sign == '\\' && text[index + 1] != '\0' ? index + 2 : index + 1;
}

// The C library's compiler of patterns takes time and memory by the size of the pattern with all
// repetitions written out, seconds for a few bytes of nested ones. So that size is bounded before
// it sees the text.
static pen_status pattern_check_bounds(const char *text) {
    pattern_size size = {.depth = 0};
    if (strlen(text) > PEN_PATTERN_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has %zu bytes, at most %d are allowed",
                         strlen(text), PEN_PATTERN_BYTES_LIMIT);
    }
    bool repeats = false; // the sign before was a repetition
    for (size_t i = 0; text[i] != '\0';) {
        const bool is_repetition = strchr("*+?{", text[i]) != NULL;
        if (repeats && is_repetition) {
            return pen_error(PEN_INVALID_INPUT, "'%c' repeats a repetition", text[i]);
        }
        repeats = is_repetition;
        if (text[i] == '\\' && isdigit((unsigned char)text[i + 1])) {
            return pen_error(PEN_INVALID_INPUT, "back references (\\%c) are not supported",
                             text[i + 1]);
        }
        i = pattern_take(&size, text, i);
        if (size.depth > PEN_PATTERN_DEPTH_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "more than %d parentheses within each other",
                             PEN_PATTERN_DEPTH_LIMIT);
        }
        if (size.whole[size.depth] > PEN_PATTERN_SIZE_LIMIT) {
            return pen_error(PEN_INVALID_INPUT,
                             "written out without repetitions it has more than %d signs",
                             PEN_PATTERN_SIZE_LIMIT);
        }
    }
    return PEN_OK;
}

pen_status pen_pattern_create(const char *text, pen_pattern **out_pattern) {
    PEN_TRY(pattern_check_bounds(text));
    pen_pattern *pattern = pen_memory_allocate(1, sizeof *pattern);
    if (pattern == NULL) return pen_error_out_of_memory();
    const int problem = regcomp(&pattern->compiled, text, REG_EXTENDED | REG_NOSUB);
    if (problem == 0) {
        *out_pattern = pattern;
        return PEN_OK;
    }
    char message[128];
    regerror(problem, &pattern->compiled, message, sizeof message);
    pen_memory_free(pattern);
    if (problem == REG_ESPACE) return pen_error_out_of_memory();
    message[0] = (char)tolower((unsigned char)message[0]);
    return pen_error(PEN_INVALID_INPUT, "%s", message);
}

void pen_pattern_destroy(pen_pattern *pattern) {
    if (pattern == NULL) return;
    regfree(&pattern->compiled);
    pen_memory_free(pattern);
}

bool pen_pattern_matches(const pen_pattern *pattern, const char *name) {
    return regexec(&pattern->compiled, name, 0, NULL, 0) == 0;
}
