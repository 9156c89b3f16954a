#include "graph/import/pytorch/pt2_weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/integer.h"
#include "base/limits.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_json.h"
#include "graph/import/tensor_elements.h"

// The lists, and the folders of what they name.
typedef struct weights_list {
    const char *file;
    const char *folder;
    bool is_constant;
} weights_list;

static const weights_list weights_lists[] = {
    {"data/weights/model_weights_config.json", "data/weights", false},
    {"data/constants/model_constants_config.json", "data/constants", true},
};

// ---- where a tensor lies

// The bytes of its file that a tensor takes: from its first element to behind its last one.
typedef struct weights_extent {
    uint64_t first, end;
} weights_extent;

// The elements must lie in the file. Sizes are checked before they are multiplied.
static pen_status weights_find_extent(const pen_pt2_weight *tensor, weights_extent *out_extent) {
    const pen_pt2_tensor_meta *meta = &tensor->meta;
    const int64_t width = (int64_t)pen_element_bytes(meta->element);
    int64_t last = meta->storage_offset, step, end;
    bool fits = last >= 0, is_empty = false;
    for (uint32_t d = 0; d < meta->shape.rank && fits; d++) {
        if (meta->shape.dims[d] == 0) is_empty = true;
        if (meta->shape.dims[d] == 0 || meta->shape.dims[d] == 1) continue;
        fits = pen_i64_mul(meta->shape.dims[d] - 1, meta->strides[d], &step) &&
               pen_i64_add(last, step, &last);
    }
    if (is_empty) {
        *out_extent = (weights_extent){0, 0};
        return PEN_OK;
    }
    fits = fits && pen_i64_add(last, 1, &end) && pen_i64_mul(end, width, &end) &&
           (uint64_t)end <= tensor->entry->length;
    if (!fits) {
        char text[PEN_SHAPE_TEXT_BYTES];
        return pen_error(PEN_CORRUPT,
                         "%s%s from element %" PRId64 " on does not lie in file '%s' of the "
                         "archive, which has %" PRIu64 " bytes",
                         pen_pt2_element_name(meta->element_number),
                         pen_shape_format(&meta->shape, text), meta->storage_offset,
                         tensor->entry->name, tensor->entry->length);
    }
    *out_extent = (weights_extent){(uint64_t)meta->storage_offset * (uint64_t)width, (uint64_t)end};
    return PEN_OK;
}

static bool weights_is_same(const pen_pt2_tensor_meta *a, const pen_pt2_tensor_meta *b) {
    return a->element == b->element && a->storage_offset == b->storage_offset &&
           pen_shape_equal(&a->shape, &b->shape) &&
           memcmp(a->strides, b->strides, a->shape.rank * sizeof a->strides[0]) == 0;
}

// A tensor by where it lies.
typedef struct weights_place {
    weights_extent extent;
    const pen_pt2_weight *tensor;
} weights_place;

static int weights_order(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

// By file, then by bytes; those that are the same come one behind the other, the first that the
// lists have in front.
static int weights_compare(const void *left, const void *right) {
    const weights_place *a = left, *b = right;
    const pen_pt2_tensor_meta *x = &a->tensor->meta, *y = &b->tensor->meta;
    int order = weights_order(a->tensor->entry->offset, b->tensor->entry->offset);
    if (order == 0) order = weights_order(a->extent.first, b->extent.first);
    if (order == 0) order = weights_order(a->extent.end, b->extent.end);
    if (order == 0) order = weights_order(x->element, y->element);
    if (order == 0) order = weights_order((uint64_t)x->storage_offset, (uint64_t)y->storage_offset);
    if (order == 0) order = weights_order(x->shape.rank, y->shape.rank);
    for (uint32_t d = 0; d < x->shape.rank && order == 0; d++) {
        order = weights_order((uint64_t)x->shape.dims[d], (uint64_t)y->shape.dims[d]);
        if (order == 0) order = weights_order((uint64_t)x->strides[d], (uint64_t)y->strides[d]);
    }
    return order != 0 ? order : weights_order((uintptr_t)a->tensor, (uintptr_t)b->tensor);
}

// How far tensors of a file reach that begin before, and those of them that are trained.
typedef struct weights_reach {
    const weights_place *any, *trained; // NULL: none
} weights_reach;

static const weights_place *weights_farther(const weights_place *a, const weights_place *b) {
    return a == NULL || a->extent.end < b->extent.end ? b : a;
}

static bool weights_overlaps(const weights_place *before, const weights_place *place) {
    return before != NULL && before->tensor->entry == place->tensor->entry &&
           place->extent.first < before->extent.end && place->extent.first < place->extent.end;
}

// Tensors that share bytes without being the same one would be trained apart.
static pen_status weights_check_apart(const weights_reach *reach, const weights_place *place,
                                      bool is_trained) {
    const weights_place *before = is_trained ? reach->any : reach->trained;
    if (!weights_overlaps(before, place)) return PEN_OK;
    return pen_error(PEN_CORRUPT,
                     "tensor '%.100s' shares bytes of file '%s' of the archive with '%.100s', and "
                     "is not the same tensor",
                     place->tensor->name, place->tensor->entry->name, before->tensor->name);
}

// Tied weights are one tensor under two names: all are put in order by where they lie, and each is
// held against those that reach farthest before it.
static pen_status weights_find_same(pen_pt2_weights *weights, pen_arena *arena) {
    weights_place *places;
    weights_reach reach = {NULL, NULL};
    PEN_TRY(PEN_NEW(arena, weights->count, &places));
    for (uint32_t i = 0; i < weights->count; i++) {
        places[i].tensor = &weights->entries[i];
        PEN_TRY(weights_find_extent(places[i].tensor, &places[i].extent));
    }
    if (weights->count > 0) qsort(places, weights->count, sizeof *places, weights_compare);
    for (uint32_t i = 0, next; i < weights->count; i = next) {
        const pen_pt2_weight *first = places[i].tensor;
        bool is_trained = false;
        for (next = i; next < weights->count && places[next].tensor->entry == first->entry &&
                       weights_is_same(&places[next].tensor->meta, &first->meta);
             next++) {
            const uint32_t index = (uint32_t)(places[next].tensor - weights->entries);
            weights->entries[index].same_as = (uint32_t)(first - weights->entries);
            is_trained = is_trained || places[next].tensor->meta.requires_grad;
        }
        PEN_TRY(weights_check_apart(&reach, &places[i], is_trained));
        if (i > 0 && places[i - 1].tensor->entry != first->entry) reach = (weights_reach){0};
        reach.any = weights_farther(reach.any, &places[i]);
        if (is_trained) reach.trained = weights_farther(reach.trained, &places[i]);
    }
    return PEN_OK;
}

// ---- the lists

// What is copied, or converted when it is asked for, may be larger than what is there, by strides
// of 0 and by names for the same bytes: only so much.
static pen_status weights_count_copies(const pen_stored_zip *archive,
                                       const pen_pt2_weights *weights) {
    const uint64_t limit = 2 * (uint64_t)archive->length + PEN_SPLAT_BYTES_LIMIT;
    uint64_t total = 0;
    for (uint32_t i = 0; i < weights->count; i++) {
        const pen_pt2_weight *tensor = &weights->entries[i];
        const bool is_plain =
            tensor->meta.is_contiguous && tensor->type.element == tensor->stored.element;
        if (tensor->same_as != i || is_plain) continue;
        const uint64_t bytes = pen_tensor_type_bytes(&tensor->type);
        if (bytes > limit - total) {
            return pen_error(PEN_CORRUPT,
                             "tensors up to '%.100s' have more than %" PRIu64
                             " bytes as they are needed, and the archive has %zu",
                             tensor->name, limit, archive->length);
        }
        total += bytes;
    }
    return PEN_OK;
}

static pen_status weights_check_size(pen_pt2_weight *tensor) {
    const pen_pt2_tensor_meta *meta = &tensor->meta;
    for (uint32_t d = 0; d < meta->shape.rank; d++) {
        if (meta->shape.dims[d] >= 0 && meta->strides[d] >= 0) continue;
        return pen_error(PEN_CORRUPT, "size %u of it is no number", d);
    }
    if (!meta->is_strided || meta->element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "it is %s%s, which Penstock has not",
                         meta->is_strided ? "of type " : "a sparse tensor of type ",
                         pen_pt2_element_name(meta->element_number));
    }
    tensor->stored = (pen_tensor_type){meta->element, meta->shape};
    tensor->type = (pen_tensor_type){pen_pt2_element_of(meta->element_number, true), meta->shape};
    return pen_tensor_type_check(&tensor->type);
}

// A pickle is refused before anything else is asked of it.
static pen_status weights_read_one(const pen_stored_zip *archive, const weights_list *list,
                                   const json_t *from, pen_arena *arena, pen_pt2_weight *tensor) {
    const char *path, *whole;
    const json_t *meta;
    PEN_TRY(pen_pt2_json_name(from, "path_name", arena, &path));
    PEN_TRY(pen_arena_format(arena, &whole, "%s/%s", list->folder, path));
    tensor->is_constant = list->is_constant;
    tensor->is_parameter = json_is_true(json_object_get(from, "is_param"));
    if (json_is_true(json_object_get(from, "use_pickle"))) {
        return pen_error(PEN_UNSUPPORTED,
                         "it is a pickle, which is a program and is never read: save it as a plain "
                         "tensor");
    }
    PEN_TRY(pen_pt2_json_get(from, "tensor_meta", JSON_OBJECT, &meta));
    PEN_TRY(pen_pt2_json_tensor(meta, arena, &tensor->meta));
    tensor->entry = pen_stored_zip_find(archive, whole);
    if (tensor->entry == NULL) {
        return pen_error(PEN_NOT_FOUND, "the archive has no file '%s'", whole);
    }
    return weights_check_size(tensor);
}

// The list of the file is bounded, and added to what is there.
static pen_status weights_read_config(const pen_stored_zip *archive, const weights_list *list,
                                      const json_t *root, pen_arena *arena,
                                      pen_pt2_weights *weights) {
    const json_t *config;
    PEN_TRY(pen_pt2_json_get(root, "config", JSON_OBJECT, &config));
    const uint64_t count = (uint64_t)weights->count + json_object_size(config);
    pen_pt2_weight *entries;
    if (count > PEN_SAFETENSORS_COUNT_LIMIT) {
        return pen_error(PEN_CORRUPT, "there are more than %u tensors",
                         PEN_SAFETENSORS_COUNT_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, count, &entries));
    if (weights->count > 0) memcpy(entries, weights->entries, weights->count * sizeof *entries);
    weights->entries = entries;
    json_t *whole = (json_t *)(uintptr_t)config;
    for (void *at = json_object_iter(whole); at != NULL; at = json_object_iter_next(whole, at)) {
        const char *key = json_object_iter_key(at);
        pen_pt2_weight *tensor = &entries[weights->count];
        PEN_TRY(pen_arena_copy_text(arena, key, strlen(key), &tensor->name));
        if (pen_name_map_find(&weights->index, key) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_CORRUPT, "tensor '%.100s' is there twice", key);
        }
        PEN_TRY(pen_name_map_add(&weights->index, tensor->name, weights->count));
        weights_extent extent;
        pen_status status =
            weights_read_one(archive, list, json_object_iter_value(at), arena, tensor);
        if (status == PEN_OK) status = weights_find_extent(tensor, &extent);
        PEN_TRY(pen_status_add_context(status, "in tensor '%.100s'", key));
        weights->count++;
        if (!list->is_constant && pen_element_is_half(tensor->meta.element)) {
            weights->widened_count++;
        }
    }
    return PEN_OK;
}

static pen_status weights_read_list(const pen_stored_zip *archive, const weights_list *list,
                                    pen_arena *arena, pen_pt2_weights *weights) {
    const pen_stored_zip_entry *entry;
    json_t *root;
    if (list->is_constant && pen_stored_zip_find(archive, list->file) == NULL) return PEN_OK;
    PEN_TRY(pen_stored_zip_open(archive, list->file, &entry));
    PEN_TRY(pen_json_load(list->file, archive->bytes + entry->offset, entry->length, PEN_CORRUPT,
                          &root));
    const pen_status status = weights_read_config(archive, list, root, arena, weights);
    json_decref(root);
    return pen_status_add_context(status, "in file '%s' of the archive", list->file);
}

pen_status pen_pt2_weights_read(const pen_stored_zip *archive, pen_arena *arena,
                                pen_pt2_weights *out_weights) {
    *out_weights = (pen_pt2_weights){0};
    pen_name_map_init(&out_weights->index, arena);
    for (size_t i = 0; i < sizeof weights_lists / sizeof weights_lists[0]; i++) {
        PEN_TRY(weights_read_list(archive, &weights_lists[i], arena, out_weights));
    }
    PEN_TRY(weights_find_same(out_weights, arena));
    return weights_count_copies(archive, out_weights);
}

pen_pt2_weight *pen_pt2_weights_find(const pen_pt2_weights *weights, const char *name) {
    const uint32_t index = pen_name_map_find(&weights->index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &weights->entries[index];
}

// ---- contents

// Goes on to the next element in the order of rows: `index` counts up like the hand of a clock.
// Returns its place in the file's contents.
static int64_t weights_next(const pen_pt2_tensor_meta *meta, int64_t index[PEN_RANK_LIMIT],
                            int64_t at) {
    for (uint32_t d = meta->shape.rank; d-- > 0;) {
        if (meta->shape.dims[d] == 1) continue; // its stride may be any
        at += meta->strides[d];
        if (++index[d] < meta->shape.dims[d]) break;
        at -= index[d] * meta->strides[d];
        index[d] = 0;
    }
    return at;
}

static void weights_copy(const pen_pt2_weight *tensor, const uint8_t *from, uint8_t *to) {
    const int64_t count = pen_shape_element_count(&tensor->stored.shape);
    const size_t width = pen_element_bytes(tensor->stored.element);
    int64_t index[PEN_RANK_LIMIT] = {0}, at = tensor->meta.storage_offset;
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * width, from + (size_t)at * width, width);
        at = weights_next(&tensor->meta, index, at);
    }
}

void pen_pt2_weight_store(const pen_pt2_weight *weight, pen_element_type from, const void *data,
                          void *out_contents) {
    const pen_pt2_tensor_meta *meta = &weight->meta;
    const int64_t count = pen_shape_element_count(&meta->shape);
    const size_t width = pen_element_bytes(meta->element);
    uint8_t *contents = out_contents;
    int64_t index[PEN_RANK_LIMIT] = {0}, at = meta->storage_offset;
    if (meta->is_contiguous) {
        contents += (size_t)at * width;
        pen_element_convert(from, data, 0, count, meta->element, contents);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        pen_element_convert(from, data, i, 1, meta->element, contents + (size_t)at * width);
        at = weights_next(meta, index, at);
    }
}

// Contents are borrowed wherever they lie as they are needed.
pen_status pen_pt2_weights_data(const pen_stored_zip *archive, pen_pt2_weight *entry,
                                pen_arena *arena, const void **out_data) {
    const uint8_t *from = archive->bytes + entry->entry->offset;
    const size_t width = pen_element_bytes(entry->meta.element);
    const uint64_t bytes = pen_tensor_type_bytes(&entry->stored);
    const void *plain = ""; // without elements it may begin anywhere
    uint8_t *copy;
    *out_data = entry->data;
    if (entry->data != NULL) return PEN_OK;
    if (bytes > 0 && entry->meta.is_contiguous) {
        plain = from + (size_t)entry->meta.storage_offset * width;
    } else if (bytes > 0) {
        PEN_TRY(PEN_NEW(arena, bytes, &copy));
        weights_copy(entry, from, copy);
        plain = copy;
    }
    PEN_TRY(pen_tensor_borrow(&entry->stored, plain, arena, &entry->data));
    *out_data = entry->data;
    return PEN_OK;
}
