#include "tests/support/reference_model.h"

#include <unistd.h>

#include "base/format/npy.h"
#include "base/system/file.h"
#include "tests/support/check.h"

#define REFERENCE_LINES_LIMIT 512
#define REFERENCE_CELLS_LIMIT 16

static const char *reference_path(const char *folder, const char *name, pen_arena *arena) {
    const char *path;
    CHECK_OK(pen_arena_format(arena, &path, "%s/%s", folder, name));
    return path;
}

// The lines of a text file, changed in place by the caller.
static uint32_t reference_lines(const char *path, pen_arena *arena, char **out_lines) {
    FILE *file = fopen(path, "r");
    CHECK(file != NULL, "cannot open %s", path);
    uint32_t count = 0;
    char line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        CHECK(count < REFERENCE_LINES_LIMIT, "%s is too long", path);
        const size_t length = strcspn(line, "\r\n");
        CHECK_OK(PEN_NEW(arena, length + 1, &out_lines[count]));
        memcpy(out_lines[count], line, length);
        count++;
    }
    fclose(file);
    return count;
}

static reference_array reference_parse_array(char *line) {
    char *rest;
    reference_array array = {.name = strtok_r(line, " ", &rest), .count = 1};
    array.kind = strtok_r(NULL, " ", &rest);
    const char *offset = strtok_r(NULL, " ", &rest);
    CHECK(offset != NULL, "bad line of %s", array.name);
    array.offset = strtoull(offset, NULL, 10);
    for (const char *dim = strtok_r(NULL, " ", &rest); dim != NULL;
         dim = strtok_r(NULL, " ", &rest)) {
        array.count *= strtoull(dim, NULL, 10);
    }
    return array;
}

reference_model reference_model_open(const char *folder, pen_arena *arena) {
    char *lines[REFERENCE_LINES_LIMIT];
    reference_model model = {.folder = folder};
    model.array_count = reference_lines(reference_path(folder, "index.txt", arena), arena, lines);
    reference_array *arrays;
    CHECK_OK(PEN_NEW(arena, model.array_count, &arrays));
    for (uint32_t i = 0; i < model.array_count; i++) {
        arrays[i] = reference_parse_array(lines[i]);
        if (strcmp(arrays[i].kind, "parameter") == 0) model.parameter_elements += arrays[i].count;
    }
    model.arrays = arrays;
    return model;
}

const float *reference_floats(const reference_model *model, const char *name, pen_arena *arena,
                              uint64_t *out_count) {
    const char *path = reference_path(model->folder, name, arena);
    if (access(path, R_OK) != 0) return NULL;
    pen_mapping mapping;
    pen_npy_header header;
    float *numbers;
    CHECK_OK(pen_mapping_open(path, &mapping));
    CHECK_OK(pen_npy_read_header(mapping.bytes, mapping.length, path, &header));
    CHECK(header.element == PEN_NPY_FLOAT32, "%s is not float32", path);
    CHECK_OK(PEN_NEW(arena, header.element_count, &numbers));
    memcpy(numbers, mapping.bytes + header.data_offset, header.data_bytes);
    pen_mapping_close(&mapping);
    *out_count = header.element_count;
    return numbers;
}

static uint32_t reference_cells(char *line, const char *cells[REFERENCE_CELLS_LIMIT]) {
    char *rest;
    uint32_t count = 0;
    for (char *cell = strtok_r(line, ",", &rest); cell != NULL && count < REFERENCE_CELLS_LIMIT;
         cell = strtok_r(NULL, ",", &rest)) {
        cells[count++] = cell;
    }
    return count;
}

const double *reference_column(const reference_model *model, const char *name, const char *column,
                               pen_arena *arena, uint32_t *out_count) {
    char *lines[REFERENCE_LINES_LIMIT];
    const char *cells[REFERENCE_CELLS_LIMIT];
    const uint32_t line_count =
        reference_lines(reference_path(model->folder, name, arena), arena, lines);
    CHECK(line_count > 0, "%s is empty", name);
    const uint32_t cell_count = reference_cells(lines[0], cells);
    uint32_t at = 0;
    while (at < cell_count && strcmp(cells[at], column) != 0) {
        at++;
    }
    CHECK(at < cell_count, "%s has no column %s", name, column);
    double *numbers;
    CHECK_OK(PEN_NEW(arena, line_count, &numbers));
    for (uint32_t i = 1; i < line_count; i++) {
        CHECK(reference_cells(lines[i], cells) == cell_count, "%s:%u", name, i + 1);
        numbers[i - 1] = strtod(cells[at], NULL);
    }
    *out_count = line_count - 1;
    return numbers;
}
