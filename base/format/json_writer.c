#include "base/format/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void pen_json_init_file(pen_json_writer *json, FILE *file, uint32_t indent) {
    *json = (pen_json_writer){.file = file, .indent = indent};
}

void pen_json_init_text(pen_json_writer *json, pen_text *text, uint32_t indent) {
    *json = (pen_json_writer){.text = text, .indent = indent};
}

static void json_put(pen_json_writer *json, const char *bytes, size_t length) {
    if (json->text != NULL) {
        pen_text_append(json->text, bytes, length);
    } else if (fwrite(bytes, 1, length, json->file) != length) {
        json->failed = true;
    }
}

static void json_put_line(pen_json_writer *json) {
    if (json->indent == 0) return;
    json_put(json, "\n", 1);
    for (uint32_t i = 0; i < json->indent * json->depth; i++) {
        json_put(json, " ", 1);
    }
}

// What stands before a key, or before a value that has none.
static void json_put_separator(pen_json_writer *json) {
    if (json->depth == 0) return;
    bool *is_started = &json->is_started[json->depth - 1];
    if (*is_started) json_put(json, ",", 1);
    if (*is_started && json->indent == 0) json_put(json, " ", 1);
    *is_started = true;
    json_put_line(json);
}

static void json_begin_value(pen_json_writer *json) {
    if (json->key_written) {
        json->key_written = false;
        return;
    }
    PEN_ASSERT(json->depth == 0 || !json->is_object[json->depth - 1]);
    json_put_separator(json);
}

static void json_begin(pen_json_writer *json, bool is_object) {
    json_begin_value(json);
    PEN_ASSERT(json->depth < PEN_JSON_DEPTH_LIMIT);
    json_put(json, is_object ? "{" : "[", 1);
    json->is_object[json->depth] = is_object;
    json->is_started[json->depth] = false;
    json->depth += 1;
}

static void json_end(pen_json_writer *json, bool is_object) {
    PEN_ASSERT(json->depth > 0 && json->is_object[json->depth - 1] == is_object);
    PEN_ASSERT(!json->key_written);
    json->depth -= 1;
    if (json->is_started[json->depth]) json_put_line(json);
    json_put(json, is_object ? "}" : "]", 1);
}

void pen_json_begin_object(pen_json_writer *json) {
    json_begin(json, true);
}

void pen_json_end_object(pen_json_writer *json) {
    json_end(json, true);
}

void pen_json_begin_array(pen_json_writer *json) {
    json_begin(json, false);
}

void pen_json_end_array(pen_json_writer *json) {
    json_end(json, false);
}

// The two letters with a short form that occur often; all others as \u00XX.
static void json_put_escape(pen_json_writer *json, unsigned char letter) {
    char escape[8];
    switch (letter) {
    case '"':
        json_put(json, "\\\"", 2);
        return;
    case '\\':
        json_put(json, "\\\\", 2);
        return;
    case '\n':
        json_put(json, "\\n", 2);
        return;
    case '\t':
        json_put(json, "\\t", 2);
        return;
    default:
        break;
    }
    snprintf(escape, sizeof escape, "\\u%04x", letter);
    json_put(json, escape, 6);
}

// Writes runs of plain letters at once. What is not UTF-8 becomes U+FFFD: the output is JSON
// whatever a file's names hold.
static void json_put_string(pen_json_writer *json, const char *bytes, size_t length) {
    const unsigned char *letters = (const unsigned char *)bytes;
    size_t plain = 0; // first byte not yet written
    json_put(json, "\"", 1);
    for (size_t i = 0; i < length;) {
        const size_t step = pen_text_sequence_length(letters + i, length - i);
        const bool special =
            letters[i] < 0x20 || letters[i] == '"' || letters[i] == '\\' || letters[i] == 0x7F;
        if (step != 0 && !special) {
            i += step;
            continue;
        }
        json_put(json, bytes + plain, i - plain);
        if (step == 0) {
            json_put(json, "\\ufffd", 6);
        } else {
            json_put_escape(json, letters[i]);
        }
        i += 1;
        plain = i;
    }
    json_put(json, bytes + plain, length - plain);
    json_put(json, "\"", 1);
}

void pen_json_key(pen_json_writer *json, const char *key) {
    PEN_ASSERT(json->depth > 0 && json->is_object[json->depth - 1] && !json->key_written);
    json_put_separator(json);
    json_put_string(json, key, strlen(key));
    json_put(json, ": ", 2);
    json->key_written = true;
}

void pen_json_text_bytes(pen_json_writer *json, const char *bytes, size_t length) {
    json_begin_value(json);
    json_put_string(json, bytes, length);
}

void pen_json_text(pen_json_writer *json, const char *text) {
    pen_json_text_bytes(json, text, strlen(text));
}

static void json_put_word(pen_json_writer *json, const char *word) {
    json_begin_value(json);
    json_put(json, word, strlen(word));
}

void pen_json_number(pen_json_writer *json, double number) {
    char text[40];
    if (!isfinite(number)) {
        json_put_word(json, "null");
        return;
    }
    snprintf(text, sizeof text, "%.17g", number);
    json_put_word(json, text);
}

void pen_json_integer(pen_json_writer *json, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    json_put_word(json, text);
}

void pen_json_unsigned(pen_json_writer *json, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    json_put_word(json, text);
}

void pen_json_bool(pen_json_writer *json, bool truth) {
    json_put_word(json, truth ? "true" : "false");
}

void pen_json_null(pen_json_writer *json) {
    json_put_word(json, "null");
}

void pen_json_key_array(pen_json_writer *json, const char *key) {
    pen_json_key(json, key);
    pen_json_begin_array(json);
}

void pen_json_key_object(pen_json_writer *json, const char *key) {
    pen_json_key(json, key);
    pen_json_begin_object(json);
}

void pen_json_key_text(pen_json_writer *json, const char *key, const char *text) {
    pen_json_key(json, key);
    pen_json_text(json, text);
}

void pen_json_key_number(pen_json_writer *json, const char *key, double number) {
    pen_json_key(json, key);
    pen_json_number(json, number);
}

void pen_json_key_integer(pen_json_writer *json, const char *key, int64_t number) {
    pen_json_key(json, key);
    pen_json_integer(json, number);
}

void pen_json_key_unsigned(pen_json_writer *json, const char *key, uint64_t number) {
    pen_json_key(json, key);
    pen_json_unsigned(json, number);
}

void pen_json_key_bool(pen_json_writer *json, const char *key, bool truth) {
    pen_json_key(json, key);
    pen_json_bool(json, truth);
}

void pen_json_end_to(pen_json_writer *json, uint32_t depth) {
    if (json->key_written) pen_json_null(json);
    while (json->depth > depth) {
        json_end(json, json->is_object[json->depth - 1]);
    }
}

pen_status pen_json_finish(pen_json_writer *json) {
    PEN_ASSERT(json->depth == 0);
    json_put(json, "\n", 1);
    if (json->text != NULL) return json->text->failed ? pen_error_out_of_memory() : PEN_OK;
    if (fflush(json->file) != 0 || json->failed) {
        return pen_error(PEN_IO, "cannot write the JSON text: the stream refuses bytes");
    }
    return PEN_OK;
}
