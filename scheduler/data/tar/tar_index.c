#include "scheduler/data/tar/tar_index.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/format/quantity.h"
#include "scheduler/data/tar/tar_archive.h"

#define TAR_KEY_BYTES_LIMIT 1024  // of a name
#define TAR_CLASS_BYTES_LIMIT 32  // of a text that says a class
#define TAR_CLASS_UNSET INT64_MIN // no class was found yet
#define TAR_WEIGHT_UNSET (-1)     // no bits of a float32
#define TAR_WEIGHT_BYTES_LIMIT 64 // of a text that says a weight

// The example whose members come.
typedef struct tar_example {
    const pen_tar_parts *parts;
    const uint8_t *bytes;
    const char *path;
    pen_tar_take take;
    void *context;
    uint32_t field_count;
    char key[TAR_KEY_BYTES_LIMIT]; // "": none yet
    int64_t row[3 + 2 * PEN_DATASET_INPUT_COUNT_LIMIT];
} tar_example;

uint32_t pen_tar_parts_fields(const pen_tar_parts *parts) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < parts->input_count; i++) {
        const bool is_same = i > 0 && strcmp(parts->inputs[i].name, parts->inputs[i - 1].name) == 0;
        count += is_same ? 0 : 1;
    }
    return count;
}

// The place of the weight, which is the last.
static uint32_t tar_weight_place(uint32_t field_count) {
    return 2 + 2 * field_count;
}

uint32_t pen_tar_parts_row_length(const pen_tar_parts *parts) {
    return tar_weight_place(pen_tar_parts_fields(parts)) + (parts->weight != NULL ? 1 : 0);
}

float pen_tar_row_weight(const pen_tar_parts *parts, const int64_t *row) {
    const uint32_t bits = (uint32_t)row[tar_weight_place(pen_tar_parts_fields(parts))];
    float weight;
    memcpy(&weight, &bits, sizeof weight);
    return weight;
}

static void tar_begin(tar_example *example, const char *name, size_t key_length) {
    snprintf(example->key, sizeof example->key, "%.*s", (int)key_length, name);
    example->row[1] = TAR_CLASS_UNSET;
    for (uint32_t f = 0; f < example->field_count; f++)
        example->row[2 + 2 * f] = -1;
    example->row[tar_weight_place(example->field_count)] = TAR_WEIGHT_UNSET;
}

// How long the name of the part with the weight is, without a key behind it.
static size_t tar_weight_length(const pen_tar_parts *parts) {
    return strcspn(parts->weight, ":");
}

// The first name of an input that nothing was found for; NULL: all is there.
static const char *tar_find_missing(const tar_example *example) {
    const pen_tar_parts *parts = example->parts;
    uint32_t field = UINT32_MAX;
    for (uint32_t i = 0; i < parts->input_count; i++) {
        if (i == 0 || strcmp(parts->inputs[i].name, parts->inputs[i - 1].name) != 0) field += 1;
        if (example->row[2 + 2 * field] < 0) return parts->inputs[i].path;
    }
    if (parts->label != NULL && example->row[1] == TAR_CLASS_UNSET) return parts->label;
    return parts->weight != NULL &&
                   example->row[tar_weight_place(example->field_count)] == TAR_WEIGHT_UNSET
               ? parts->weight
               : NULL;
}

static pen_status tar_end(const tar_example *example) {
    if (example->key[0] == '\0') return PEN_OK;
    const char *missing = tar_find_missing(example);
    if (missing == NULL) return example->take(example->context, example->row);
    const int length = missing == example->parts->weight ? (int)tar_weight_length(example->parts)
                                                         : (int)strlen(missing);
    return pen_error(PEN_INVALID_INPUT, "'%s': the example '%s' has no member '%s.%.*s'",
                     example->path, example->key, example->key, length, missing);
}

// A whole number, with spaces and line ends around it.
static pen_status tar_read_class(tar_example *example, const pen_tar_member *member) {
    char text[TAR_CLASS_BYTES_LIMIT + 1];
    const size_t length =
        member->length < TAR_CLASS_BYTES_LIMIT ? member->length : TAR_CLASS_BYTES_LIMIT;
    memcpy(text, example->bytes + member->offset, length);
    text[length] = '\0';
    char *end = text;
    const long long number = strtoll(text, &end, 10);
    const bool is_number = end != text && strspn(end, " \t\r\n") == strlen(end) &&
                           member->length == length && number >= 0 && number < INT32_MAX;
    if (!is_number) {
        text[strcspn(text, "\r\n")] = '\0';
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the member '%s' says '%s', expected the number of a class",
                         example->path, member->name, text);
    }
    if (example->row[1] != TAR_CLASS_UNSET) {
        return pen_error(PEN_INVALID_INPUT, "'%s': the member '%s' is there twice", example->path,
                         member->name);
    }
    example->row[1] = number;
    return PEN_OK;
}

// A number as text, with spaces and line ends around it.
static bool tar_parse_weight(const tar_example *example, const pen_tar_member *member,
                             double *out_number) {
    char text[TAR_WEIGHT_BYTES_LIMIT + 1];
    if (member->length > TAR_WEIGHT_BYTES_LIMIT) return false;
    memcpy(text, example->bytes + member->offset, member->length);
    text[member->length] = '\0';
    if (strlen(text) != member->length) return false;
    char *start = text + strspn(text, " \t\r\n");
    size_t length = strlen(start);
    while (length > 0 && strchr(" \t\r\n", start[length - 1]) != NULL)
        length--;
    start[length] = '\0';
    return pen_number_parse(start, out_number);
}

// A number under a key of a JSON object. A member that is none ends the reading, where one without
// such a key is no weight.
static pen_status tar_find_weight(const tar_example *example, const pen_tar_member *member,
                                  const char *key, bool *out_is_number, double *out_number) {
    json_t *root;
    PEN_TRY(pen_status_add_context(pen_json_load(member->name, example->bytes + member->offset,
                                                 member->length, PEN_INVALID_INPUT, &root),
                                   "while reading '%s'", example->path));
    const json_t *value = json_object_get(root, key);
    *out_is_number = json_is_number(value);
    if (*out_is_number) *out_number = json_number_value(value);
    json_decref(root);
    return PEN_OK;
}

// As text, or under a key. A number in the index is at least 0, so -1 says that none was found yet.
static pen_status tar_read_weight(tar_example *example, const pen_tar_member *member) {
    const char *key = example->parts->weight + tar_weight_length(example->parts);
    int64_t *place = &example->row[tar_weight_place(example->field_count)];
    double number = 0;
    bool is_number;
    if (key[0] == ':') {
        PEN_TRY(tar_find_weight(example, member, key + 1, &is_number, &number));
    } else {
        is_number = tar_parse_weight(example, member, &number);
    }
    const float weight = (float)number;
    if (!is_number || !isfinite(weight) || weight < 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s': the member '%s' says no weight%s%s, expected a number of at least "
                         "0",
                         example->path, member->name, key[0] == ':' ? " under the key " : "",
                         key[0] == ':' ? key + 1 : "");
    }
    if (*place != TAR_WEIGHT_UNSET) {
        return pen_error(PEN_INVALID_INPUT, "'%s': the member '%s' is there twice", example->path,
                         member->name);
    }
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    *place = bits;
    return PEN_OK;
}

static bool tar_says_weight(const pen_tar_parts *parts, const char *part) {
    if (parts->weight == NULL) return false;
    const size_t length = tar_weight_length(parts);
    return strncmp(part, parts->weight, length) == 0 && part[length] == '\0';
}

// Puts a member where its part says; others are passed over.
static pen_status tar_place(tar_example *example, const pen_tar_member *member, const char *part) {
    const pen_tar_parts *parts = example->parts;
    uint32_t field = UINT32_MAX;
    if (parts->label != NULL && strcmp(part, parts->label) == 0) {
        PEN_TRY(tar_read_class(example, member));
    }
    if (tar_says_weight(parts, part)) PEN_TRY(tar_read_weight(example, member));
    for (uint32_t i = 0; i < parts->input_count; i++) {
        if (i == 0 || strcmp(parts->inputs[i].name, parts->inputs[i - 1].name) != 0) field += 1;
        if (strcmp(part, parts->inputs[i].path) != 0) continue;
        int64_t *place = &example->row[2 + 2 * field];
        if (place[0] >= 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "'%s': the example '%s' has two members for the input '%s'",
                             example->path, example->key, parts->inputs[i].name);
        }
        place[0] = (int64_t)member->offset;
        place[1] = (int64_t)member->length;
    }
    return PEN_OK;
}

// A key that is another ends the example before it.
static pen_status tar_visit_member(void *context, const pen_tar_member *member) {
    tar_example *example = context;
    const char *name = pen_path_name(member->name);
    const char *point = strchr(name, '.');
    if (point == NULL || point == name) return PEN_OK; // ".DS_Store", "LICENSE"
    const size_t key_length = (size_t)(point - member->name);
    if (key_length >= TAR_KEY_BYTES_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "'%s': the name '%.100s...' has more than %d bytes",
                         example->path, member->name, TAR_KEY_BYTES_LIMIT - 1);
    }
    if (strncmp(example->key, member->name, key_length) != 0 || example->key[key_length] != '\0') {
        PEN_TRY(tar_end(example));
        tar_begin(example, member->name, key_length);
    }
    return tar_place(example, member, point + 1);
}

pen_status pen_tar_index_read(const pen_tar_parts *parts, const pen_mapping *file, const char *path,
                              uint32_t shard, pen_tar_take take, void *context) {
    tar_example example = {.parts = parts,
                           .bytes = file->bytes,
                           .path = path,
                           .take = take,
                           .context = context,
                           .field_count = pen_tar_parts_fields(parts)};
    PEN_ASSERT(example.field_count <= PEN_DATASET_INPUT_COUNT_LIMIT);
    example.row[0] = shard;
    PEN_TRY(pen_tar_walk(file->bytes, file->length, path, tar_visit_member, &example));
    return tar_end(&example);
}
