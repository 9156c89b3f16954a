#include "base/format/json_reader.h"

#include "base/limits.h"

#define JSON_SPARE_COUNT 16 // of values, lists and objects in the shortest texts

// A text may have one value more for so many bytes, and one list or object.
typedef struct json_density {
    size_t bytes_per_value;
    size_t bytes_per_container;
} json_density;

static const json_density json_of_files = {4, 12};
static const json_density json_of_numbers = {2, 4}; // "[[1],[2]]"

typedef struct json_extent {
    size_t values;     // commas and first members: never less than there are
    size_t containers; // lists and objects
    size_t depth;      // the deepest
} json_extent;

// Behind the closing quote of the text that begins at `at`.
static const char *json_skip_text(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) {
        if (*at == '\\') at++;
    }
    return at < end ? at + 1 : end;
}

// Counts values and depth before jansson parses, which has no limit of its own: it takes memory for
// each value, and stack for each level.
static json_extent json_measure(const char *at, const char *end) {
    json_extent extent = {.values = 1};
    size_t depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = json_skip_text(at, end);
            continue;
        }
        if (*at == '[' || *at == '{') {
            extent.containers++;
            extent.values++;
            depth++;
            if (depth > extent.depth) extent.depth = depth;
        } else if ((*at == ']' || *at == '}') && depth > 0) {
            depth--;
        } else if (*at == ',') {
            extent.values++;
        }
        at++;
    }
    return extent;
}

static pen_status json_check_extent(const char *bytes, size_t length, const json_density *density,
                                    pen_status_code code) {
    const json_extent extent = json_measure(bytes, bytes + length);
    if (extent.depth > PEN_NESTING_LIMIT) {
        return pen_error(code, "lists and objects nest %zu deep, at most %d are possible",
                         extent.depth, PEN_NESTING_LIMIT);
    }
    const size_t values_limit = length / density->bytes_per_value + JSON_SPARE_COUNT;
    const size_t containers_limit = length / density->bytes_per_container + JSON_SPARE_COUNT;
    if (extent.values <= values_limit && extent.containers <= containers_limit) return PEN_OK;
    return pen_error(code,
                     "%zu values and %zu lists and objects in %zu bytes: more than any file of its "
                     "kind has",
                     extent.values, extent.containers, length);
}

// jansson's message quotes the file, so control characters in it are replaced before it reaches a
// terminal.
static pen_status json_load_dense(const char *name, const void *bytes, size_t length,
                                  const json_density *density, pen_status_code code,
                                  json_t **out_root) {
    json_error_t error;
    if (length == 0) bytes = ""; // jansson wants a place
    PEN_TRY(pen_status_at_position(json_check_extent(bytes, length, density, code), name, 0, 0));
    json_t *root = json_loadb(bytes, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (root != NULL) {
        *out_root = root;
        return PEN_OK;
    }
    const enum json_error_code why = json_error_code(&error);
    // jansson has no word for all of its failures: without one it is memory
    if (why == json_error_out_of_memory || why == json_error_unknown || error.text[0] == '\0') {
        return pen_error_out_of_memory();
    }
    for (char *c = error.text; *c != '\0'; c++) { // it quotes the file
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    }
    return pen_status_at_position(pen_error(code, "no JSON: %s", error.text), name,
                                  error.line > 0 ? (uint32_t)error.line : 0,
                                  error.column > 0 ? (uint32_t)error.column : 0);
}

pen_status pen_json_load(const char *name, const void *bytes, size_t length, pen_status_code code,
                         json_t **out_root) {
    return json_load_dense(name, bytes, length, &json_of_files, code, out_root);
}

pen_status pen_json_load_numbers(const char *name, const void *bytes, size_t length,
                                 pen_status_code code, json_t **out_root) {
    return json_load_dense(name, bytes, length, &json_of_numbers, code, out_root);
}

const char *pen_jansson_version(void) {
    return jansson_version_str();
}
