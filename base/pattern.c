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

// The largest number in a repetition "{m,n}" at `text`.
static unsigned long pattern_repetition(const char *text) {
    unsigned long largest = 1;
    for (const char *at = text + 1; *at != '\0' && *at != '}'; at++) {
        if (!isdigit((unsigned char)*at)) continue;
        char *end;
        const unsigned long number = strtoul(at, &end, 10);
        if (number > largest) largest = number;
        at = end - 1;
    }
    return largest;
}

static pen_status pattern_check_bounds(const char *text) {
    unsigned depth = 0;
    unsigned long repetitions = 1;
    if (strlen(text) > PEN_PATTERN_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has %zu bytes, at most %d are allowed",
                         strlen(text), PEN_PATTERN_BYTES_LIMIT);
    }
    for (size_t i = 0; text[i] != '\0';) {
        if (text[i] == '[') {
            i = pattern_skip_bracket(text, i);
            continue;
        }
        if (text[i] == '\\' && isdigit((unsigned char)text[i + 1])) {
            return pen_error(PEN_INVALID_INPUT, "back references (\\%c) are not supported",
                             text[i + 1]);
        }
        if (text[i] == '\\' && text[i + 1] != '\0') {
            i += 1;
        } else if (text[i] == '(') {
            depth += 1;
        } else if (text[i] == ')' && depth > 0) {
            depth -= 1;
        } else if (text[i] == '{') {
            repetitions *= pattern_repetition(text + i);
        }
        if (depth > PEN_PATTERN_DEPTH_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "more than %d parentheses within each other",
                             PEN_PATTERN_DEPTH_LIMIT);
        }
        if (repetitions > PEN_PATTERN_REPETITION_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "its repetitions multiply to more than %d",
                             PEN_PATTERN_REPETITION_LIMIT);
        }
        i += 1;
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
