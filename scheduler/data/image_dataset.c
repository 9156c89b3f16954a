// A folder of class folders of pictures: cats/1.jpg, cats/2.png, dogs/…. Classes are numbered in
// the order of their names, bytes compared, and so are the pictures of one. Names that begin with a
// point do not count. Files with other endings are left out, and counted so that the user is told;
// deeper folders, and pictures outside of class folders, are errors.

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/integer.h"
#include "base/system/file.h"
#include "scheduler/data/csv/csv_weights.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/image/image_decode.h"
#include "scheduler/data/picture_reader.h"

#define IMAGE_LIST_CAPACITY_FIRST 64

// Names, or paths, that grow in the arena; what growing leaves behind is at most as much again.
typedef struct image_list {
    const char **names;
    uint64_t count;
    uint64_t capacity;
} image_list;

typedef struct image_state {
    image_list classes;
    image_list paths; // of all pictures, a class after another
    uint64_t *starts; // [classes.count + 1] in paths
    uint64_t skipped_count;
    const char *skipped_path;
    bool skips_broken; // as was asked for
    pen_picture_reader *reader;
} image_state;

static pen_status image_list_add(image_list *list, const char *name, pen_arena *arena) {
    if (list->count == list->capacity) {
        const uint64_t capacity =
            list->capacity == 0 ? IMAGE_LIST_CAPACITY_FIRST : list->capacity * 2;
        const char **names;
        PEN_TRY(PEN_NEW(arena, capacity, &names));
        if (list->count > 0) memcpy(names, list->names, list->count * sizeof *names);
        list->names = names;
        list->capacity = capacity;
    }
    list->names[list->count++] = name;
    return PEN_OK;
}

static int image_compare_names(const void *left, const void *right) {
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static pen_status image_read_folder(DIR *folder, const char *path, pen_arena *arena,
                                    image_list *list) {
    for (;;) {
        const char *full;
        errno = 0;
        const struct dirent *entry = readdir(folder); // one thread has `folder`
        if (entry == NULL) break;
        if (entry->d_name[0] == '.') continue;
        PEN_TRY(pen_arena_format(arena, &full, "%s/%s", path, entry->d_name));
        PEN_TRY(image_list_add(list, full, arena));
    }
    if (errno == 0) return PEN_OK;
    return pen_error(PEN_IO, "cannot read the folder '%s': %s", path, strerror(errno));
}

// Adds the paths of what is in a folder, sorted among themselves.
static pen_status image_list_folder(const char *path, pen_arena *arena, image_list *list) {
    const uint64_t first = list->count;
    DIR *folder = opendir(path);
    if (folder == NULL) {
        const pen_status_code code = errno == ENOENT ? PEN_NOT_FOUND : PEN_IO;
        return pen_error(code, "cannot open the folder '%s': %s", path, strerror(errno));
    }
    const pen_status status = image_read_folder(folder, path, arena, list);
    closedir(folder);
    if (status == PEN_OK && list->count > first) {
        qsort(list->names + first, list->count - first, sizeof *list->names, image_compare_names);
    }
    return status;
}

static pen_status image_is_folder(const char *path, bool *out_is_folder) {
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return pen_error(PEN_IO, "cannot look at '%s': %s", path, strerror(errno));
    }
    *out_is_folder = S_ISDIR(facts.st_mode);
    return PEN_OK;
}

static void image_skip(image_state *state, const char *path) {
    if (state->skipped_count == 0) state->skipped_path = path;
    state->skipped_count += 1;
}

// What is no picture is passed over and counted, but a folder within a class is refused: it would
// mean that classes are one level deeper.
static pen_status image_list_class(image_state *state, const char *path, pen_arena *arena) {
    const uint64_t first = state->paths.count;
    uint64_t kept = first;
    PEN_TRY(image_list_folder(path, arena, &state->paths));
    for (uint64_t i = first; i < state->paths.count; i++) {
        const char *name = state->paths.names[i];
        bool is_folder = false;
        if (pen_image_is_named(pen_path_name(name))) {
            state->paths.names[kept++] = name;
            continue;
        }
        PEN_TRY(image_is_folder(name, &is_folder));
        if (is_folder) {
            return pen_error(
                PEN_UNSUPPORTED,
                "'%s' is a folder, expected pictures (" PEN_IMAGE_ENDINGS ") of the class", name);
        }
        image_skip(state, name);
    }
    state->paths.count = kept;
    if (kept > first) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the class folder '%s' has no pictures (" PEN_IMAGE_ENDINGS ")", path);
}

// Leaves the folders of what is in the root.
static pen_status image_keep_folders(image_state *state) {
    image_list *classes = &state->classes;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < classes->count; i++) {
        const char *path = classes->names[i];
        bool is_folder;
        PEN_TRY(image_is_folder(path, &is_folder));
        if (is_folder) {
            classes->names[kept++] = path;
        } else if (pen_image_is_named(pen_path_name(path))) {
            return pen_error(PEN_INVALID_INPUT,
                             "'%s' is not in the folder of a class, expected one for each class",
                             path);
        } else {
            image_skip(state, path);
        }
    }
    classes->count = kept;
    return PEN_OK;
}

static pen_status image_list_all(image_state *state, const char *root, pen_arena *arena) {
    PEN_TRY(image_list_folder(root, arena, &state->classes));
    PEN_TRY(image_keep_folders(state));
    const uint64_t class_count = state->classes.count;
    if (class_count == 0 || class_count > INT32_MAX) {
        return pen_error(PEN_INVALID_INPUT, "'%s' has %" PRIu64 " class folders, expected some",
                         root, class_count);
    }
    PEN_TRY(PEN_NEW(arena, class_count + 1, &state->starts));
    for (uint64_t i = 0; i < class_count; i++) {
        PEN_TRY(image_list_class(state, state->classes.names[i], arena));
        state->classes.names[i] = pen_path_name(state->classes.names[i]);
        state->starts[i + 1] = state->paths.count;
    }
    return PEN_OK;
}

// ---- weights

// The table has names as they are beneath the root: cats/1.jpg, or cats for all that have no line
// of their own. Each picture must have one, and each line its picture.
static pen_status image_weigh_class(image_state *state, uint64_t class_index, size_t root_length,
                                    const char *table, pen_csv_weights *weights, float *out) {
    const char *class_name = state->classes.names[class_index];
    pen_csv_weight *whole = pen_csv_weights_find(weights, class_name);
    if (whole != NULL) whole->is_used = true;
    for (uint64_t i = state->starts[class_index]; i < state->starts[class_index + 1]; i++) {
        const char *name = state->paths.names[i] + root_length + 1;
        pen_csv_weight *own = pen_csv_weights_find(weights, name);
        if (own != NULL) own->is_used = true;
        const pen_csv_weight *weight = own != NULL ? own : whole;
        if (weight == NULL) {
            return pen_error(PEN_INVALID_INPUT,
                             "'%s' has no weight for '%s', expected a line for each picture, or "
                             "for its class: '%s,1' or '%s,1'",
                             table, name, name, class_name);
        }
        out[i] = weight->weight;
    }
    return PEN_OK;
}

// Whether a class or a picture is called so beneath the root.
static bool image_has(const image_state *state, size_t root_length, const char *name) {
    for (uint64_t c = 0; name != NULL && c < state->classes.count; c++)
        if (strcmp(state->classes.names[c], name) == 0) return true;
    for (uint64_t i = 0; name != NULL && i < state->paths.count; i++)
        if (strcmp(state->paths.names[i] + root_length + 1, name) == 0) return true;
    return false;
}

// Each picture gets its weight; a line that is of no picture is a slip of the pen, the first one
// too.
static pen_status image_weigh(pen_dataset *dataset, const pen_dataset_options *options,
                              pen_csv_weights *weights) {
    image_state *state = dataset->state;
    for (uint64_t c = 0; c < state->classes.count; c++) {
        PEN_TRY(image_weigh_class(state, c, strlen(options->path), options->weight_table, weights,
                                  dataset->weights));
    }
    if (image_has(state, strlen(options->path), weights->head)) {
        return pen_status_at_position(
            pen_error(PEN_INVALID_INPUT, "the weight of '%s' is no number", weights->head),
            options->weight_table, 1, 1);
    }
    for (uint64_t i = 0; i < weights->count; i++) {
        const pen_csv_weight *weight = &weights->items[i];
        if (weight->is_used) continue;
        return pen_status_at_position(
            pen_error(PEN_INVALID_INPUT,
                      "'%s' is no picture of the folder '%s', and none of its classes",
                      weight->name, options->path),
            options->weight_table, (uint32_t)pen_min_u64(weight->line, UINT32_MAX), 1);
    }
    return PEN_OK;
}

// Of all pictures that are listed: those that are left out later take theirs with them.
static pen_status image_read_weights(pen_dataset *dataset, const pen_dataset_options *options) {
    const image_state *state = dataset->state;
    const char *path = options->weight_table, *source;
    pen_csv_weights weights;
    pen_mapping file = {0};
    pen_arena *scratch; // names go when each picture has its number
    if (path == NULL) return PEN_OK;
    PEN_TRY(pen_arena_copy_text(dataset->arena, path, strlen(path), &source));
    dataset->info.example_count = state->paths.count;
    PEN_TRY(pen_dataset_make_weights(dataset, source));
    PEN_TRY(pen_status_add_context(pen_mapping_open(path, &file), "while reading the weights"));
    const pen_csv_text text = {file.bytes, file.length, path};
    pen_status status = pen_arena_create(&scratch);
    if (status == PEN_OK) {
        status = pen_csv_weights_read(&text, scratch, &weights);
        if (status == PEN_OK) status = image_weigh(dataset, options, &weights);
        pen_arena_destroy(scratch);
    }
    pen_mapping_close(&file);
    return status;
}

// ---- broken pictures

// Places that another process found are not trusted.
static pen_status image_take_known(pen_dataset *dataset, const pen_dataset_options *options,
                                   uint64_t count) {
    uint64_t *broken;
    PEN_TRY(PEN_NEW(dataset->arena, options->broken_count, &broken));
    for (uint32_t i = 0; i < options->broken_count; i++) {
        broken[i] = options->broken[i];
        if (broken[i] < count && (i == 0 || broken[i] > broken[i - 1])) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "picture %" PRIu64 " of %" PRIu64 " is said to be broken", broken[i],
                         count);
    }
    dataset->info.broken = broken;
    dataset->info.broken_count = options->broken_count;
    return PEN_OK;
}

// Broken pictures go from the list before examples are counted, so all else stays as without them.
static pen_status image_leave_out(image_state *state, pen_dataset *dataset,
                                  const pen_dataset_options *options) {
    pen_dataset_info *info = &dataset->info;
    const uint64_t count = state->paths.count;
    uint64_t kept = 0, next = 0;
    if (!options->skips_broken) return PEN_OK;
    if (options->broken_is_known) {
        PEN_TRY(image_take_known(dataset, options, count));
    } else {
        PEN_TRY(pen_picture_reader_find_broken(state->reader, count, dataset->arena, info));
    }
    for (uint64_t c = 0, i = 0; c < state->classes.count; c++) {
        const uint64_t end = state->starts[c + 1], first = kept;
        for (; i < end; i++) {
            if (next < info->broken_count && info->broken[next] == i) {
                next++;
            } else {
                if (dataset->weights != NULL) dataset->weights[kept] = dataset->weights[i];
                state->paths.names[kept++] = state->paths.names[i];
            }
        }
        state->starts[c + 1] = kept;
        if (kept > first) continue;
        return pen_error(PEN_INVALID_INPUT, "all pictures of the class '%s' are broken: %s",
                         state->classes.names[c],
                         info->broken_text == NULL ? "" : info->broken_text);
    }
    state->paths.count = kept;
    return PEN_OK;
}

static pen_status image_find_picture(const void *context, uint64_t index,
                                     pen_picture *out_picture) {
    const image_state *state = context;
    const char *path = state->paths.names[index];
    PEN_TRY(pen_mapping_open(path, &out_picture->file));
    out_picture->bytes = out_picture->file.bytes;
    out_picture->length = out_picture->file.length;
    snprintf(out_picture->name, sizeof out_picture->name, "%s", path);
    return PEN_OK;
}

// Only names are read now; pictures are decoded when they are needed. Classes are numbered by their
// folders' names in order.
static pen_status image_open(pen_dataset *dataset, const pen_dataset_options *options) {
    pen_arena *arena = dataset->arena;
    image_state *state;
    pen_dataset_field *input, *labels;
    const char *source;
    if (options->path == NULL) return pen_error(PEN_INVALID_INPUT, "format images needs a folder");
    PEN_TRY(PEN_NEW(arena, 1, &state));
    dataset->state = state;
    state->skips_broken = options->skips_broken;
    PEN_TRY(pen_arena_copy_text(arena, options->path, strlen(options->path), &source));
    PEN_TRY(pen_dataset_add_single_input(dataset, options, &input));
    PEN_TRY(pen_picture_reader_create(options, image_find_picture, state, dataset, input,
                                      &state->reader));
    PEN_TRY(image_list_all(state, options->path, arena));
    PEN_TRY(image_read_weights(dataset, options));
    PEN_TRY(image_leave_out(state, dataset, options));
    PEN_TRY(PEN_NEW(arena, 1, &labels));
    labels->name = "labels";
    labels->element = PEN_DATASET_INT64;
    PEN_TRY(pen_dataset_field_measure(labels, "labels"));
    pen_dataset_set_labels(dataset, labels, source);
    dataset->info.example_count = state->paths.count;
    dataset->info.class_count = (uint32_t)state->classes.count;
    dataset->info.class_names = state->classes.names;
    dataset->info.skipped_count = state->skipped_count;
    dataset->info.skipped_path = state->skipped_path;
    return PEN_OK;
}

// The class whose range of paths has `index`.
static int64_t image_find_class(const image_state *state, uint64_t index) {
    uint64_t low = 0, high = state->classes.count;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (state->starts[middle] <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (int64_t)low;
}

// A broken picture ends a training that may have come far: what would have helped is said.
static pen_status image_add_remedy(const image_state *state, pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    if (state->skips_broken || (code != PEN_CORRUPT && code != PEN_UNSUPPORTED)) return status;
    return pen_status_add_context(
        status, "with `on_error: skip` beside `format: images`, broken pictures are left out");
}

static pen_status image_dataset_read(pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                                     void *const *out_inputs, void *const *out_labels) {
    image_state *state = dataset->state;
    int64_t *classes = out_labels[0];
    if (out_inputs[0] != NULL) {
        PEN_TRY(image_add_remedy(
            state, pen_picture_reader_read(state->reader, indices, count, out_inputs[0])));
    }
    for (uint64_t i = 0; classes != NULL && i < count; i++) {
        classes[i] = image_find_class(state, indices[i]);
    }
    return PEN_OK;
}

static void image_close(pen_dataset *dataset) {
    image_state *state = dataset->state;
    if (state != NULL) pen_picture_reader_destroy(state->reader);
}

const pen_dataset_format pen_dataset_format_images = {
    .name = "images",
    .open = image_open,
    .read = image_dataset_read,
    .close = image_close,
};
