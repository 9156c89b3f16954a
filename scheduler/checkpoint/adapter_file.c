#include "scheduler/checkpoint/adapter_file.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/name_map.h"
#include "graph/passes/adapt_weights.h"

// A weight of W = [rows, columns] elements, to which scale * (left right) is added.
typedef struct adapter_sum {
    const float *left;  // [rows, rank]; NULL: nothing is added
    const float *right; // [rank, columns]
    uint64_t rows, columns, rank;
    double scale;
} adapter_sum;

typedef struct adapter_view {
    const pen_safetensors_source *source;
    uint32_t *places;  // [count] in the source
    adapter_sum *sums; // [count]
    double *row;       // as many as the most columns
    uint32_t count;
    const char **names;
    const pen_tensor_type **types;
} adapter_view;

static pen_status adapter_read(void *context, uint32_t index, uint64_t first, void *out_data,
                               uint64_t bytes) {
    const adapter_view *view = context;
    return view->source->read(view->source->context, view->places[index], first, out_data, bytes);
}

static pen_status adapter_view_new(const pen_safetensors_source *source, pen_arena *arena,
                                   adapter_view **out_view) {
    adapter_view *view;
    PEN_TRY(PEN_NEW(arena, 1, &view));
    view->source = source;
    PEN_TRY(PEN_NEW(arena, source->count, &view->places));
    PEN_TRY(PEN_NEW(arena, source->count, &view->sums));
    PEN_TRY(PEN_NEW(arena, source->count, &view->names));
    PEN_TRY(PEN_NEW(arena, source->count, &view->types));
    *out_view = view;
    return PEN_OK;
}

static void adapter_view_add(adapter_view *view, uint32_t place, const char *name) {
    view->places[view->count] = place;
    view->names[view->count] = name;
    view->types[view->count++] = view->source->types[place];
}

static pen_safetensors_source adapter_view_source(adapter_view *view, pen_safetensors_read read) {
    return (pen_safetensors_source){.count = view->count,
                                    .names = view->names,
                                    .types = view->types,
                                    .read = read,
                                    .context = view};
}

// ---- alone

pen_status pen_adapters_choose(const pen_safetensors_source *source, pen_arena *arena,
                               pen_safetensors_source *out_view) {
    adapter_view *view;
    PEN_TRY(adapter_view_new(source, arena, &view));
    for (uint32_t i = 0; i < source->count; i++) {
        const char *name;
        if (!pen_adapter_has_name(source->names[i])) continue;
        if (pen_adapter_is_scale(source->names[i])) continue;
        PEN_TRY(pen_arena_format(arena, &name, PEN_ADAPTERS_PREFIX "%s", source->names[i]));
        adapter_view_add(view, i, name);
    }
    if (view->count == 0) {
        return pen_error(PEN_NOT_FOUND, "there are no adapters: the training has no `adapt`");
    }
    *out_view = adapter_view_source(view, adapter_read);
    return PEN_OK;
}

// ---- merged

// Adds to elements from number `first` on, row by row.
static void adapter_add(const adapter_view *view, const adapter_sum *sum, uint64_t first,
                        uint64_t count, float *out) {
    while (count > 0) {
        const uint64_t row = first / sum->columns, column = first % sum->columns;
        const uint64_t width = pen_min_u64(sum->columns - column, count);
        memset(view->row, 0, width * sizeof *view->row);
        for (uint64_t k = 0; k < sum->rank; k++) {
            const double left = sum->left[row * sum->rank + k];
            const float *right = &sum->right[k * sum->columns + column];
            for (uint64_t c = 0; c < width; c++) {
                view->row[c] += left * right[c];
            }
        }
        for (uint64_t c = 0; c < width; c++) {
            out[c] = (float)(out[c] + sum->scale * view->row[c]);
        }
        first += width;
        count -= width;
        out += width;
    }
}

// Pieces have whole elements.
static pen_status adapter_read_merged(void *context, uint32_t index, uint64_t first, void *out_data,
                                      uint64_t bytes) {
    const adapter_view *view = context;
    const adapter_sum *sum = &view->sums[index];
    PEN_TRY(adapter_read(context, index, first, out_data, bytes));
    if (sum->left == NULL) return PEN_OK;
    adapter_add(view, sum, first / sizeof(float), bytes / sizeof(float), out_data);
    return PEN_OK;
}

static pen_status adapter_load(const adapter_view *view, uint32_t place, pen_arena *arena,
                               const float **out_data) {
    const pen_safetensors_source *source = view->source;
    const uint64_t bytes = pen_tensor_type_bytes(source->types[place]);
    char *data;
    PEN_TRY(PEN_NEW(arena, bytes / sizeof(float) * sizeof(float), &data));
    for (uint64_t at = 0; at < bytes; at += PEN_SAFETENSORS_PIECE_BYTES) {
        const uint64_t piece = pen_min_u64(PEN_SAFETENSORS_PIECE_BYTES, bytes - at);
        PEN_TRY(source->read(source->context, place, at, data + at, piece));
    }
    *out_data = (const float *)(const void *)data;
    return PEN_OK;
}

// Rows and columns of a tensor that is read as a matrix, its first dimension apart.
typedef struct adapter_matrix {
    uint64_t rows, columns;
} adapter_matrix;

static bool adapter_as_matrix(const pen_tensor_type *type, adapter_matrix *out) {
    const pen_shape *shape = &type->shape;
    if (type->element != PEN_FLOAT32 || shape->rank < 2) return false;
    out->rows = (uint64_t)shape->dims[0];
    out->columns = (uint64_t)pen_shape_count(shape, 1, shape->rank);
    return out->rows > 0 && out->columns > 0;
}

static bool adapter_fits(adapter_matrix left, adapter_matrix right, adapter_matrix weight) {
    return left.rows == weight.rows && right.columns == weight.columns &&
           left.columns == right.rows;
}

// The places of what belongs to a weight, or PEN_NAME_MAP_NONE.
typedef struct adapter_places {
    uint32_t a, b, scale;
} adapter_places;

static uint32_t adapter_find(const pen_name_map *names, const char *weight, const char *end) {
    char name[PEN_NAME_BYTES_LIMIT + sizeof PEN_ADAPTER_A];
    (void)snprintf(name, sizeof name, "%.*s%s", (int)pen_adapter_stem(weight), weight, end);
    return pen_name_map_find(names, name);
}

// Which of the two adapters stands left follows from their shapes: one order alone fits.
static pen_status adapter_prepare(adapter_view *view, uint32_t index, const adapter_places *places,
                                  pen_arena *arena) {
    const pen_tensor_type *const *types = view->source->types;
    adapter_sum *sum = &view->sums[index];
    adapter_matrix a, b, weight;
    const float *scale;
    const bool are_matrices = adapter_as_matrix(types[places->a], &a) &&
                              adapter_as_matrix(types[places->b], &b) &&
                              adapter_as_matrix(view->types[index], &weight);
    const bool b_first = are_matrices && adapter_fits(b, a, weight);
    const bool is_scale = pen_tensor_type_bytes(types[places->scale]) == sizeof(float);
    if (!are_matrices || !is_scale || (!b_first && !adapter_fits(a, b, weight))) {
        return pen_error(PEN_CORRUPT, "the adapters of '%s' have not its shape",
                         view->names[index]);
    }
    PEN_TRY(adapter_load(view, b_first ? places->b : places->a, arena, &sum->left));
    PEN_TRY(adapter_load(view, b_first ? places->a : places->b, arena, &sum->right));
    PEN_TRY(adapter_load(view, places->scale, arena, &scale));
    sum->rows = weight.rows;
    sum->columns = weight.columns;
    sum->rank = b_first ? a.rows : b.rows;
    sum->scale = *scale;
    return PEN_OK;
}

// Weights without adapters are read as they are. Where there are no adapters at all, so is the
// whole source.
pen_status pen_adapters_merge(const pen_safetensors_source *source, pen_arena *arena,
                              pen_safetensors_source *out_view) {
    adapter_view *view;
    pen_name_map names;
    uint64_t columns = 1;
    uint32_t sum_count = 0;
    pen_name_map_init(&names, arena);
    PEN_TRY(adapter_view_new(source, arena, &view));
    for (uint32_t i = 0; i < source->count; i++) {
        if (!pen_adapter_has_name(source->names[i])) adapter_view_add(view, i, source->names[i]);
        PEN_TRY(pen_name_map_add(&names, source->names[i], i));
    }
    *out_view = *source;
    if (view->count == source->count) return PEN_OK;
    for (uint32_t i = 0; i < view->count; i++) {
        const adapter_places places = {adapter_find(&names, view->names[i], PEN_ADAPTER_A),
                                       adapter_find(&names, view->names[i], PEN_ADAPTER_B),
                                       adapter_find(&names, view->names[i], PEN_ADAPTER_SCALE)};
        if (places.a == PEN_NAME_MAP_NONE || places.b == PEN_NAME_MAP_NONE ||
            places.scale == PEN_NAME_MAP_NONE) {
            continue;
        }
        PEN_TRY(adapter_prepare(view, i, &places, arena));
        columns = pen_max_u64(columns, view->sums[i].columns);
        sum_count += 1;
    }
    if (view->count + 3 * sum_count != source->count) {
        return pen_error(PEN_CORRUPT, "there are adapters without their weight, or part of them");
    }
    PEN_TRY(PEN_NEW(arena, columns, &view->row));
    *out_view = adapter_view_source(view, adapter_read_merged);
    return PEN_OK;
}
