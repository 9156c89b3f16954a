#include "cli/init/data_guess.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GUESS_KNOWN                                                                                \
    "a folder of pictures, *.npy, *.csv, *.idx or *ubyte (also .gz), or *.txt; docs/job.md has "   \
    "all kinds of data"

static bool guess_ends(const char *name, const char *end) {
    const size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static pen_data_guess_kind guess_kind(const char *path) {
    static const struct {
        const char *end;
        pen_data_guess_kind kind;
    } ends[] = {
        {".npy", PEN_DATA_GUESS_NPY},  {".csv", PEN_DATA_GUESS_CSV},
        {".tsv", PEN_DATA_GUESS_CSV},  {".idx", PEN_DATA_GUESS_IDX},
        {"ubyte", PEN_DATA_GUESS_IDX}, {".idx.gz", PEN_DATA_GUESS_IDX},
        {".txt", PEN_DATA_GUESS_TEXT}, {"ubyte.gz", PEN_DATA_GUESS_IDX},
    };
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return PEN_DATA_GUESS_IMAGES;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (guess_ends(path, ends[i].end)) return ends[i].kind;
    }
    return PEN_DATA_GUESS_NONE;
}

// The file of "NAME=FILE", and the name; NULL: it has none, as a file that has '=' in its name.
static const char *guess_split(const char *operand, pen_arena *arena, const char **out_name,
                               pen_status *status) {
    const char *equals = strchr(operand, '=');
    *out_name = NULL;
    if (equals == NULL || equals == operand || access(operand, F_OK) == 0) return operand;
    *status = pen_arena_copy_text(arena, operand, (size_t)(equals - operand), out_name);
    return equals + 1;
}

static bool guess_has_array(const pen_data_guess *guess, const char *name) {
    for (uint32_t i = 0; i < guess->file_count; i++) {
        if (strcmp(guess->names[i], name) == 0) return true;
    }
    return false;
}

// The input's own name, for one that the model has.
static pen_status guess_find_input(const pen_data_guess *guess, const char *name,
                                   const char *const *inputs, uint32_t input_count,
                                   const char **out_name) {
    if (guess_has_array(guess, name)) {
        return pen_error(PEN_INVALID_INPUT, "found two arrays for the model's input '%.200s'",
                         name);
    }
    for (uint32_t i = 0; i < input_count; i++) {
        *out_name = inputs[i];
        if (strcmp(inputs[i], name) == 0) return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "found an array for '%.200s', but the model has no such input; one is called "
                     "'%.200s'",
                     name, input_count > 0 ? inputs[0] : "");
}

// An array goes to the input of its name; without one to the first input that has none, and where
// all have one it is the labels.
static pen_status guess_add_array(pen_data_guess *guess, const char *file, const char *name,
                                  const char *const *inputs, uint32_t input_count) {
    uint32_t next = 0;
    while (next < input_count && guess_has_array(guess, inputs[next]))
        next++;
    const bool is_labels = name != NULL && strcmp(name, "labels") == 0;
    const bool is_last = name == NULL && next == input_count;
    if ((is_labels || is_last) && guess->labels == NULL) {
        guess->labels = file;
        return PEN_OK;
    }
    if (is_labels || is_last || guess->file_count == PEN_DATA_GUESS_INPUT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "found one array too many, \"%.200s\", expected one for each of the "
                         "model's %u inputs, and then the labels",
                         file, input_count);
    }
    if (name == NULL) {
        name = inputs[next];
    } else {
        PEN_TRY(guess_find_input(guess, name, inputs, input_count, &name));
    }
    guess->names[guess->file_count] = name;
    guess->files[guess->file_count++] = file;
    return PEN_OK;
}

// The first file says what kind all are of.
static pen_status guess_add(pen_data_guess *guess, const char *operand, const char *const *inputs,
                            uint32_t input_count, pen_arena *arena) {
    const char *name;
    pen_status status = PEN_OK;
    const char *file = guess_split(operand, arena, &name, &status);
    PEN_TRY(status);
    const pen_data_guess_kind kind = guess_kind(file);
    const bool is_first = guess->kind == PEN_DATA_GUESS_NONE;
    if (access(file, F_OK) != 0) {
        return pen_error(PEN_NOT_FOUND, "\"%.200s\" is not there", file);
    }
    if (kind == PEN_DATA_GUESS_NONE) {
        return pen_error(PEN_INVALID_INPUT, "found \"%.200s\", expected %s", file, GUESS_KNOWN);
    }
    if (!is_first && kind != guess->kind) {
        return pen_error(PEN_INVALID_INPUT, "found \"%.200s\" beside files of another kind", file);
    }
    guess->kind = kind;
    if (kind == PEN_DATA_GUESS_NPY) {
        return guess_add_array(guess, file, name, inputs, input_count);
    }
    if (is_first) {
        guess->files[guess->file_count++] = file;
        return PEN_OK;
    }
    if (kind == PEN_DATA_GUESS_IDX && guess->labels == NULL) {
        guess->labels = file;
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "found one file too many, \"%.200s\"", file);
}

pen_status pen_data_guess_read(const char *const *operands, uint32_t count,
                               const char *const *inputs, uint32_t input_count, pen_arena *arena,
                               pen_data_guess *out_guess) {
    *out_guess = (pen_data_guess){0};
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(guess_add(out_guess, operands[i], inputs, input_count, arena));
    }
    return PEN_OK;
}
