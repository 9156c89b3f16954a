#include "tests/fuzz/fuzz_json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define JSON_VALUES_LIMIT 4096
#define JSON_DEPTH_LIMIT 64
#define JSON_KEY_BYTES 32
#define JSON_PUT_LIMIT 4096 // bytes that are put in at once

// libFuzzer's own changes of bytes; not there in readers_test, which changes nothing this way.
extern size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t limit) __attribute__((weak));

// A value of the text.
typedef struct json_value {
    uint32_t start, end;   // of its bytes
    uint32_t member_start; // with the key, of a member of an object
    uint32_t key_length;   // of the text in quotes at member_start; 0: it is an item of a list
    bool is_within;        // the scope
} json_value;

typedef struct json_values {
    uint8_t *bytes;
    size_t length, limit;
    const fuzz_json_scope *scope;
    pen_random_key key;
    uint64_t drawn;
    uint32_t count, within_count;
    json_value values[JSON_VALUES_LIMIT];
    uint32_t within[JSON_VALUES_LIMIT]; // places in `values`
} json_values;

static uint32_t json_draw(json_values *json, uint32_t count) {
    return (uint32_t)pen_random_below(json->key, json->drawn++, count);
}

// ---- taking apart

static uint32_t json_text_end(const json_values *json, uint32_t at) {
    for (at++; at < json->length && json->bytes[at] != '"'; at++) {
        if (json->bytes[at] == '\\') at++;
    }
    return at < json->length ? at + 1 : (uint32_t)json->length;
}

static bool json_is_any(const json_values *json, uint32_t at, const char *bytes) {
    return json->bytes[at] != '\0' && strchr(bytes, json->bytes[at]) != NULL;
}

static bool json_is_of_scope(const json_values *json, uint32_t start, uint32_t length) {
    const char *const *keys = json->scope->keys;
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        if (strlen(keys[i]) == length && memcmp(keys[i], json->bytes + start + 1, length) == 0) {
            return true;
        }
    }
    return keys == NULL;
}

// What is read but not closed.
typedef struct json_level {
    uint32_t values[JSON_DEPTH_LIMIT]; // places of lists and objects
    uint32_t depth;
    uint32_t key_start, key_length; // of the member that comes; length 0: none
} json_level;

static void json_open_value(json_values *json, json_level *level, uint32_t start, uint32_t end) {
    const bool is_outer_within =
        level->depth > 0 && json->values[level->values[level->depth - 1]].is_within;
    const bool has_key = level->key_length > 0;
    json_value *value = &json->values[json->count];
    *value = (json_value){.start = start,
                          .end = end,
                          .member_start = has_key ? level->key_start : start,
                          .key_length = level->key_length,
                          .is_within = is_outer_within || json->scope->keys == NULL};
    if (has_key && !value->is_within) {
        value->is_within = json_is_of_scope(json, level->key_start, level->key_length);
    }
    if (value->is_within) json->within[json->within_count++] = json->count;
    level->key_length = 0;
    json->count++;
}

// A text in quotes is a key when a colon follows.
static uint32_t json_take_text(json_values *json, json_level *level, uint32_t at) {
    const uint32_t end = json_text_end(json, at);
    uint32_t next = end;
    while (next < json->length && json_is_any(json, next, " \n\r\t")) {
        next++;
    }
    if (next < json->length && json->bytes[next] == ':' && end > at + 2) {
        level->key_start = at;
        level->key_length = end - at - 2;
        return next + 1;
    }
    json_open_value(json, level, at, end);
    return end;
}

static void json_close(json_values *json, json_level *level, uint32_t at) {
    if (level->depth > 0) json->values[level->values[--level->depth]].end = at + 1;
    level->key_length = 0;
}

// All values, in the order in which they begin. Lists and objects that are left open end where they
// began.
static void json_take_apart(json_values *json) {
    json_level level = {.depth = 0};
    uint32_t at = 0;
    while (at < json->length && json->count < JSON_VALUES_LIMIT) {
        if (json->bytes[at] == '"') {
            at = json_take_text(json, &level, at);
        } else if (json_is_any(json, at, "[{")) {
            json_open_value(json, &level, at, at + 1);
            if (level.depth < JSON_DEPTH_LIMIT) level.values[level.depth++] = json->count - 1;
            at++;
        } else if (json_is_any(json, at, "]}")) {
            json_close(json, &level, at++);
        } else if (json_is_any(json, at, " \n\r\t,:")) {
            at++;
        } else if (json->bytes[at] == '\0') {
            level = (json_level){.depth = 0};
            at++;
        } else {
            const uint32_t start = at;
            while (at < json->length && json->bytes[at] != '\0' &&
                   !json_is_any(json, at, " \n\r\t,:]}[{\"")) {
                at++;
            }
            json_open_value(json, &level, start, at);
        }
    }
}

// ---- changing

static size_t json_put(const json_values *json, uint32_t start, uint32_t end, const void *text,
                       size_t count) {
    uint8_t put[JSON_PUT_LIMIT];
    const size_t rest = json->length - end;
    if (count > sizeof put || start + count + rest > json->limit) return json->length;
    memcpy(put, text, count);
    memmove(json->bytes + start + count, json->bytes + end, rest);
    memcpy(json->bytes + start, put, count);
    return start + count + rest;
}

static size_t json_put_text(const json_values *json, const json_value *to, const char *text) {
    return json_put(json, to->start, to->end, text, strlen(text));
}

static const json_value *json_pick(json_values *json) {
    return &json->values[json->within[json_draw(json, json->within_count)]];
}

static bool json_same_key(const json_values *json, const json_value *a, const json_value *b) {
    return a->key_length == b->key_length &&
           memcmp(json->bytes + a->member_start, json->bytes + b->member_start, a->key_length) == 0;
}

// The value of another place: of one of the same key, if there is one soon.
static size_t json_swap(json_values *json, const json_value *to) {
    const json_value *from = json_pick(json);
    for (int tries = 0; tries < 16 && !json_same_key(json, from, to); tries++) {
        from = json_pick(json);
    }
    return json_put(json, to->start, to->end, json->bytes + from->start, from->end - from->start);
}

static size_t json_put_known(json_values *json, const json_value *to) {
    char key[JSON_KEY_BYTES] = "";
    uint32_t count = 0;
    if (json->scope->value_of != NULL && to->key_length > 0 && to->key_length < sizeof key) {
        memcpy(key, json->bytes + to->member_start + 1, to->key_length);
        const char *known = json->scope->value_of(key, json_draw(json, UINT32_MAX));
        if (known != NULL) return json_put_text(json, to, known);
    }
    while (json->scope->values[count] != NULL) {
        count++;
    }
    return json_put_text(json, to, json->scope->values[json_draw(json, count)]);
}

// With the comma before it, or behind it.
static size_t json_leave_out(const json_values *json, const json_value *value) {
    uint32_t start = value->member_start, end = value->end;
    if (start > 0 && json->bytes[start - 1] == ',') {
        start--;
    } else if (end < json->length && json->bytes[end] == ',') {
        end++;
    }
    return json_put(json, start, end, "", 0);
}

static size_t json_double(const json_values *json, const json_value *value) {
    const uint32_t count = value->end - value->member_start;
    const size_t length =
        json_put(json, value->end, value->end, json->bytes + value->member_start, count);
    if (length == json->length || length == json->limit) return length;
    json_values longer = {.bytes = json->bytes, .length = length, .limit = json->limit};
    return json_put(&longer, value->end, value->end, ",", 1);
}

static size_t json_change_number(json_values *json, const json_value *value) {
    char text[32] = "";
    const size_t count = value->end - value->start;
    if (count >= sizeof text) return json_swap(json, value);
    memcpy(text, json->bytes + value->start, count);
    const uint64_t number = strtoull(text, NULL, 10);
    const uint64_t changed[] = {number + 1,
                                number - 1,
                                number * 2,
                                number / 2,
                                0 - number,
                                number * 10,
                                number ^ 1u << json_draw(json, 32)};
    snprintf(text, sizeof text, "%lld", (long long)changed[json_draw(json, 7)]);
    return json_put_text(json, value, text);
}

static size_t json_change_byte(json_values *json, const json_value *value) {
    json->bytes[value->start + json_draw(json, value->end - value->start)] =
        (uint8_t)json_draw(json, 256);
    return json->length;
}

// Values that are short are preferred, being many; numbers mostly become other ones.
static size_t json_change(json_values *json) {
    const json_value *value = json_pick(json);
    const uint8_t first = json->bytes[value->start];
    if ((first == '-' || (first >= '0' && first <= '9')) && json_draw(json, 2) == 0) {
        return json_change_number(json, value);
    }
    switch (json_draw(json, 8)) {
    case 0:
        return json_leave_out(json, value);
    case 1:
        return json_double(json, value);
    case 2:
        return json_change_byte(json, value);
    case 3:
    case 4:
    case 5:
        return json_put_known(json, value);
    default:
        return json_swap(json, value);
    }
}

size_t fuzz_change_json(uint8_t *bytes, size_t length, size_t limit, unsigned seed,
                        const fuzz_json_scope *scope) {
    static json_values json; // too large for the stack
    json.bytes = bytes;
    json.length = length;
    json.limit = limit;
    json.scope = scope;
    json.key = (pen_random_key){.seed = seed};
    json.drawn = json.count = json.within_count = 0;
    json_take_apart(&json);
    const bool is_raw = json.within_count == 0 || json_draw(&json, 32) == 0;
    if (!is_raw) return json_change(&json);
    return LLVMFuzzerMutate == NULL ? length : LLVMFuzzerMutate(bytes, length, limit);
}
