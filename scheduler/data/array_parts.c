#include "scheduler/data/array_parts.h"

#include <inttypes.h>
#include <string.h>

// What is known of the first part holds for the others, whose own are data, path and count alone.
static pen_status parts_join(pen_array_parts *parts, uint64_t example_bytes, pen_arena *arena) {
    parts->example_bytes = example_bytes;
    PEN_TRY(PEN_NEW(arena, (size_t)parts->count + 1, &parts->starts));
    for (uint32_t i = 0; i < parts->count; i++) {
        parts->starts[i + 1] = parts->starts[i] + (uint64_t)parts->sources[i].shape[0];
    }
    return PEN_OK;
}

// Rows of one array are alike, whichever file they are in.
static pen_status parts_check(const pen_array_parts *parts) {
    const pen_array_source *first = &parts->sources[0];
    for (uint32_t i = 1; i < parts->count; i++) {
        const pen_array_source *source = &parts->sources[i];
        if (source->element != first->element) {
            return pen_error(PEN_INVALID_INPUT, "'%s' has elements of %s, but '%s' has %s",
                             source->path, pen_npy_element_name(source->element), first->path,
                             pen_npy_element_name(first->element));
        }
        if (source->rank == first->rank &&
            (source->rank < 2 || memcmp(source->shape + 1, first->shape + 1,
                                        (source->rank - 1) * sizeof *source->shape) == 0)) {
            continue;
        }
        return pen_error(PEN_INVALID_INPUT,
                         "the examples of '%s' have another shape than those of '%s'", source->path,
                         first->path);
    }
    return PEN_OK;
}

pen_status pen_array_parts_open_inputs(pen_array_parts *parts, const pen_dataset_options *options,
                                       pen_dataset_element wanted, pen_arena *arena,
                                       pen_dataset_field *field) {
    const pen_array_source *first = &parts->sources[0];
    PEN_TRY(pen_array_source_open_inputs(&parts->sources[0], options, wanted, false, arena, field));
    PEN_TRY(parts_check(parts));
    for (uint32_t i = 1; i < parts->count; i++) {
        pen_array_source *source = &parts->sources[i];
        const pen_array_source own = *source;
        *source = *first;
        source->path = own.path;
        source->data = own.data;
        source->shape[0] = own.shape[0];
    }
    return parts_join(parts, field->bytes, arena);
}

pen_status pen_array_parts_open_labels(pen_array_parts *parts, pen_dataset_element wanted,
                                       pen_arena *arena, pen_dataset_field *field) {
    const char *name = field->name;
    for (uint32_t i = parts->count; i-- > 0;) { // the first is what the field is of
        *field = (pen_dataset_field){.name = name};
        PEN_TRY(pen_array_source_open_labels(&parts->sources[i], wanted, field));
    }
    PEN_TRY(parts_check(parts));
    return parts_join(parts, field->bytes, arena);
}

uint64_t pen_array_parts_count(const pen_array_parts *parts) {
    return parts->starts[parts->count];
}

// The part that has example `index`.
static uint32_t parts_find(const pen_array_parts *parts, uint64_t index) {
    uint32_t low = 0, high = parts->count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (parts->starts[middle] <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

void pen_array_parts_read(const pen_array_parts *parts, const uint64_t *indices, uint64_t count,
                          void *out_elements) {
    if (parts->count == 1) {
        pen_array_source_read(&parts->sources[0], indices, count, out_elements);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t part = parts_find(parts, indices[i]);
        const uint64_t index = indices[i] - parts->starts[part];
        pen_array_source_read(&parts->sources[part], &index, 1,
                              (char *)out_elements + i * parts->example_bytes);
    }
}
