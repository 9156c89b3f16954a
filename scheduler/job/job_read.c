#include "scheduler/job/job.h"

#include <math.h>
#include <string.h>

#include "base/format/quantity.h"
#include "base/format/yaml_reader.h"
#include "base/integer.h"
#include "device/reference/reference_evaluate.h"
#include "scheduler/job/job_level.h"
#include "scheduler/job/job_losses.h"
#include "scheduler/job/job_other.h"
#include "scheduler/job/job_table.h"

// `cluster` goes where `devices` and `links` go, so there is the one or the other.
static pen_status job_check_cluster(const pen_yaml_node *root, const pen_job *job) {
    const pen_yaml_node *other = pen_yaml_find(root, "devices");
    if (other == NULL) other = pen_yaml_find(root, "links");
    if (!job->has_cluster || other == NULL) return PEN_OK;
    return pen_yaml_blame(other->key, pen_error(PEN_INVALID_INPUT,
                                                "%s: found together with cluster, expected one of "
                                                "the two",
                                                other->key->text));
}

// Layers that are not those of a file are imported as they were read.
static const pen_yaml_node *job_find_layers(const pen_job *job) {
    const pen_yaml_node *model = pen_yaml_find(job->root, "model");
    const bool is_here = model != NULL && model->kind == PEN_YAML_MAPPING;
    const bool is_read = job->is_text || job->setting_count > 0;
    return is_here && is_read && job->model.layers.layers.count > 0 ? job->root : NULL;
}

pen_import_options pen_job_import_options(const pen_job *job) {
    const bool has_layers = job->model.layers.layers.count > 0;
    return (pen_import_options){
        .unfreeze = job->model.unfreeze,
        .use_device_strings = job->model.use_device_strings,
        .train_batch_norm = job->model.train_batch_norm,
        .widens_halves = true,
        .train_what_is_left = job->model.train_what_is_left,
        .batch_norm_momentum = job->model.batch_norm_momentum,
        .signature = job->model.signature,
        .outputs = has_layers ? NULL : job->model.layers.outputs.items,
        .output_count = has_layers ? 0 : job->model.layers.outputs.count,
        .input_shapes = job->model.input_shapes.items,
        .input_shape_count = job->model.input_shapes.count,
        .layers = job_find_layers(job),
        .evaluate = pen_reference_evaluate,
    };
}

// A model is in a file of its own, or written in layers: then its file is the one they are in.
static pen_status job_complete_model(pen_job *job) {
    const bool has_layers = job->model.layers.layers.count > 0;
    const bool has_file = job->model.file != NULL;
    const pen_yaml_node *node = pen_option_find_node(job->source, &job->model.layers);
    if (has_layers != has_file) {
        if (has_layers) job->model.file = node->line > 0 ? node->file : job->file; // 0: --set
        return PEN_OK;
    }
    return pen_yaml_blame(
        node,
        pen_error(PEN_INVALID_INPUT, "%s",
                  has_file ? "model: found both 'file' and 'layers', expected one of the two"
                           : "model: 'file' is missing, expected a path; or 'layers', a list"));
}

// One loss is a list of one.
static void job_complete_losses(pen_job_train *train) {
    train->loss.weight = 1;
    if (!train->has_losses) {
        train->losses = (pen_option_list){.items = &train->loss, .count = 1};
    }
}

// What is judged while the training runs needs data, and what is kept of it somebody who does.
static pen_status job_check_evaluation(const pen_job *job) {
    if (job->has_evaluation && !pen_job_data_can_evaluate(&job->data)) {
        return pen_job_blame(job, &job->evaluation,
                             pen_error(PEN_INVALID_INPUT,
                                       "evaluation: found, but no data to evaluate on, expected "
                                       "data.eval, or data.holdout, a fraction of data.train"));
    }
    if (!job->has_evaluation && job->train.learning_rate.kind == PEN_LEARNING_RATE_PLATEAU) {
        return pen_job_blame(job, &job->train.learning_rate,
                             pen_error(PEN_INVALID_INPUT,
                                       "train.learning_rate: found plateau, but no evaluations "
                                       "that decide, expected `evaluation: {every: 1 epoch}`"));
    }
    if (job->outputs.from != PEN_JOB_OUTPUTS_BEST) return PEN_OK;
    const bool is_kept = !job->evaluation.has_keep_best || job->evaluation.keep_best;
    if (job->has_evaluation && is_kept) return PEN_OK;
    return pen_job_blame(job, &job->outputs.from,
                         pen_error(PEN_INVALID_INPUT,
                                   "outputs.from: found best, but no evaluation that keeps it, "
                                   "expected `evaluation: {every: 1 epoch, keep_best: true}`"));
}

static pen_status job_check_adapters(const pen_job *job) {
    if (job->outputs.adapters == NULL || job->has_adapt) return PEN_OK;
    return pen_job_blame(job, &job->outputs.adapters,
                         pen_error(PEN_INVALID_INPUT,
                                   "outputs.adapters: found, but no adapters, expected `adapt: "
                                   "{lora: {nodes: PATTERN}}`"));
}

static pen_status job_check_balance(const pen_job *job) {
    if (job->data.balance == 0 || job->train.shuffle) return PEN_OK;
    return pen_job_blame(job, &job->data.balance,
                         pen_error(PEN_INVALID_INPUT,
                                   "data.balance: found class, which draws examples by chance, "
                                   "together with train.shuffle: false"));
}

// The labels of what is not masked must not count.
static pen_status job_check_mask(const pen_job *job, const pen_job_dataset *dataset) {
    const pen_job_loss *losses = job->train.losses.items;
    if (!dataset->tokens.has_mask) return PEN_OK;
    for (uint32_t i = 0; i < job->train.losses.count; i++) {
        if (losses[i].kind != PEN_LOSS_SOFTMAX_CROSS_ENTROPY) continue;
        if (losses[i].ignores && losses[i].ignore_index == PEN_TOKEN_UNMASKED) continue;
        return pen_job_blame(job, &dataset->tokens.mask,
                             pen_error(PEN_INVALID_INPUT,
                                       "mask: the labels of tokens that are not masked are %d, "
                                       "expected `ignore_index: %d` beside the loss",
                                       PEN_TOKEN_UNMASKED, PEN_TOKEN_UNMASKED));
    }
    return PEN_OK;
}

// Keys first, then what follows from several of them.
static pen_status job_from_root(const pen_job_origin *origin, const pen_yaml_node *root,
                                bool may_open_files, pen_arena *arena, const pen_job **out_job) {
    pen_job *job;
    const pen_option_settings settings = {.file = origin->path, .may_open_files = may_open_files};
    PEN_TRY(PEN_NEW(arena, 1, &job));
    for (uint32_t i = 0; i < origin->setting_count; i++) {
        PEN_TRY(
            pen_option_assign(&pen_job_table, root, origin->settings[i], &settings, arena, &root));
    }
    job->root = root;
    job->settings = origin->settings;
    job->setting_count = origin->setting_count;
    job->is_text = origin->text != NULL;
    job->arrays = origin->arrays;
    job->array_count = origin->array_count;
    PEN_TRY(pen_job_explain_other(
        origin, root, pen_option_read(&pen_job_table, root, &settings, arena, job, &job->source)));
    job->file = root->file;
    if (job->train.epochs == 0 && job->train.steps == 0) job->train.epochs = 1;
    job_complete_losses(&job->train);
    PEN_TRY(job_complete_model(job));
    PEN_TRY(job_check_cluster(root, job));
    PEN_TRY(job_check_evaluation(job));
    PEN_TRY(job_check_adapters(job));
    PEN_TRY(job_check_balance(job));
    PEN_TRY(pen_job_check_mix(job));
    PEN_TRY(job_check_mask(job, &job->data.train));
    PEN_TRY(job_check_mask(job, &job->data.eval));
    if (job->tls.ca == NULL) job->tls = origin->tls;
    job->cluster.uses_tls = job->tls.ca != NULL;
    job->cluster.tasks = origin->tasks;
    job->cluster.task_count = origin->task_count;
    job->cluster.uses_grpc_alone = job->pipeline.transport == PEN_JOB_TRANSPORT_GRPC;
    PEN_TRY(pen_cluster_spec_complete(&job->cluster, job->source, arena));
    PEN_TRY(pen_job_check_precision(job));
    PEN_TRY(pen_job_check_libraries(job));
    job->placement.constraints.source = job->source;
    *out_job = job;
    return PEN_OK;
}

pen_status pen_job_open(const pen_job_origin *origin, pen_arena *arena, const pen_job **out_job) {
    const pen_yaml_node *root;
    if (origin->text == NULL) {
        PEN_TRY(pen_job_check_name(origin->path));
        PEN_TRY(pen_yaml_read(origin->path, arena, &root));
    } else {
        PEN_TRY(pen_yaml_parse(origin->path, origin->text, strlen(origin->text), arena, &root));
    }
    return job_from_root(origin, root, true, arena, out_job);
}

pen_status pen_job_read(const char *path, pen_arena *arena, const pen_job **out_job) {
    return pen_job_open(&(pen_job_origin){.path = path}, arena, out_job);
}

pen_status pen_job_parse(const char *path, const char *bytes, size_t length, pen_arena *arena,
                         const pen_job **out_job) {
    const pen_yaml_node *root;
    PEN_TRY(pen_yaml_parse(path, bytes, length, arena, &root));
    return job_from_root(&(pen_job_origin){.path = path}, root, false, arena, out_job);
}

pen_status pen_job_blame(const pen_job *job, const void *field, pen_status status) {
    return pen_option_blame(job->source, field, status);
}

// An address within the dataset at which nothing was read, so that the whole is blamed: files of a
// format that was not chosen.
static const void *job_dataset_whole(const pen_job_dataset *dataset) {
    return dataset->format == PEN_JOB_IDX ? (const void *)&dataset->csv : &dataset->idx;
}

// Where a dataset's inputs and labels are written, by its format.
static const struct {
    size_t inputs, labels; // in a pen_job_dataset; at that of labels is a text
} job_places[] = {
    [PEN_JOB_IDX] = {offsetof(pen_job_dataset, idx.images), offsetof(pen_job_dataset, idx.labels)},
    [PEN_JOB_NPY] = {offsetof(pen_job_dataset, npy.inputs), offsetof(pen_job_dataset, npy.labels)},
    [PEN_JOB_CSV] = {offsetof(pen_job_dataset, csv.file),
                     offsetof(pen_job_dataset, csv.label_column)},
    [PEN_JOB_IMAGES] = {offsetof(pen_job_dataset, images.folder),
                        offsetof(pen_job_dataset, images.folder)},
    [PEN_JOB_TEXT] = {offsetof(pen_job_dataset, text.file), offsetof(pen_job_dataset, text.file)},
    [PEN_JOB_TOKENS] = {offsetof(pen_job_dataset, tokens.file),
                        offsetof(pen_job_dataset, tokens.file)},
    [PEN_JOB_SQL] = {offsetof(pen_job_dataset, sql.columns.inputs),
                     offsetof(pen_job_dataset, sql.columns.labels)},
    [PEN_JOB_WEBDATASET] = {offsetof(pen_job_dataset, webdataset.parts.inputs),
                            offsetof(pen_job_dataset, webdataset.parts.labels)},
    [PEN_JOB_ARRAYS] = {offsetof(pen_job_dataset, arrays.inputs),
                        offsetof(pen_job_dataset, arrays.labels)},
};

const pen_option_list *pen_job_dataset_labels(const pen_job_dataset *dataset) {
    if (dataset->format == PEN_JOB_SQL) return &dataset->sql.columns.label_files;
    return dataset->format == PEN_JOB_ARRAYS ? &dataset->arrays.label_files
                                             : &dataset->npy.label_files;
}

// Labels that are not written are the whole dataset's matter.
static const void *job_dataset_place(const pen_job_dataset *dataset, pen_job_data_part what) {
    const char *base = (const char *)dataset;
    const void *labels = base + job_places[dataset->format].labels;
    if (what == PEN_JOB_DATA_INPUTS) return base + job_places[dataset->format].inputs;
    if (what == PEN_JOB_DATA_LABELS && pen_job_dataset_labels(dataset)->count > 0) {
        return pen_job_dataset_labels(dataset);
    }
    const bool is_written = *(const char *const *)labels != NULL;
    return what == PEN_JOB_DATA_LABELS && is_written ? labels : job_dataset_whole(dataset);
}

// Evaluation without a dataset of its own takes what is held out of the other.
const pen_job_dataset *pen_job_find_dataset(const pen_job *job, pen_dataset_part part) {
    return part == PEN_DATASET_PART_EVAL && job->data.has_eval ? &job->data.eval : &job->data.train;
}

pen_status pen_job_blame_data(const pen_job *job, pen_dataset_part part, pen_job_data_part what,
                              pen_status status) {
    const pen_job_dataset *dataset = pen_job_find_dataset(job, part);
    return pen_job_blame(job, job_dataset_place(dataset, what), status);
}

bool pen_job_parse_missing(const char *text, pen_dataset_missing *out_missing, double *out_value) {
    *out_value = 0;
    *out_missing =
        strcmp(text, "error") == 0 ? PEN_DATASET_MISSING_ERROR : PEN_DATASET_MISSING_MEAN;
    if (*out_missing == PEN_DATASET_MISSING_ERROR || strcmp(text, "mean") == 0) return true;
    *out_missing = PEN_DATASET_MISSING_VALUE;
    return pen_number_parse(text, out_value) && isfinite((float)*out_value);
}

// Words have the numbers that they have in the training, so its table says which there are.
static void job_set_csv(const pen_job *job, const pen_job_csv *csv, pen_dataset_options *options) {
    const pen_job_data *data = &job->data;
    options->format = "csv";
    options->categories = csv->categories;
    options->unknown_is_own = csv->unknown == 1;
    (void)pen_job_parse_missing(csv->missing, &options->missing, &options->missing_value);
    if (data->has_train && data->train.format == PEN_JOB_CSV && csv != &data->train.csv) {
        options->words_path = data->train.csv.file;
        if (csv->label_column == NULL) options->words_label_column = data->train.csv.label_column;
    }
    options->path = csv->file;
    options->input_name = csv->input;
    options->label_column = csv->label_column;
    options->weight_column = csv->weight_column;
    options->delimiter = csv->delimiter[0];
    if (csv->header_is_given) {
        options->header = csv->header ? PEN_DATASET_HEADER_YES : PEN_DATASET_HEADER_NO;
    }
}

static void job_set_pictures(const pen_option_list *size, int64_t channels, unsigned data_format,
                             pen_dataset_options *options) {
    const int64_t *sides = size->items;
    options->image_height = sides[0];
    options->image_width = sides[size->count - 1];
    options->image_channels = channels;
    options->channels_last = data_format == 1;
}

static void job_set_images(const pen_job_images *images, pen_dataset_options *options) {
    options->format = "images";
    options->path = images->folder;
    options->skips_broken = images->on_error == 1;
    options->weight_table = images->weights;
    options->input_name = images->input;
    job_set_pictures(&images->size, images->channels, images->data_format, options);
}

static void job_set_text(const pen_job_text *text, pen_dataset_options *options) {
    options->format = "text";
    options->path = text->file;
    options->input_name = text->input;
    options->sequence = (uint64_t)text->sequence;
    options->stride = (uint64_t)text->stride;
}

static pen_status job_set_tokens(const pen_job_tokens *tokens, pen_arena *arena,
                                 pen_dataset_options *options) {
    pen_token_mask *mask;
    options->format = "tokens";
    options->path = tokens->file;
    options->input_name = tokens->input;
    options->token_element = tokens->element;
    options->sequence = (uint64_t)tokens->sequence;
    options->stride = (uint64_t)tokens->stride;
    if (!tokens->has_mask) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, 1, &mask));
    *mask = tokens->mask.rule;
    mask->keep = tokens->mask.keep.items;
    mask->keep_count = tokens->mask.keep.count;
    options->mask = mask;
    return PEN_OK;
}

// Files of one input follow one another under its name.
static pen_status job_set_arrays(const pen_option_list *list, pen_arena *arena,
                                 const pen_dataset_input **out_files, uint32_t *out_count) {
    const pen_job_array *arrays = list->items;
    pen_dataset_input *files;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += arrays[i].files.count;
    PEN_TRY(PEN_NEW(arena, count, &files));
    *out_files = files;
    *out_count = count;
    for (uint32_t i = 0; i < list->count; i++) {
        const char *const *paths = arrays[i].files.items;
        for (uint32_t f = 0; f < arrays[i].files.count; f++) {
            *files++ = (pen_dataset_input){.name = arrays[i].name, .path = paths[f]};
        }
    }
    return PEN_OK;
}

// Each example has a weight in the losses, in files or arrays of their own.
static pen_status job_set_weights(const pen_option_list *list, pen_arena *arena,
                                  pen_dataset_options *options) {
    const char *const *paths = list->items;
    pen_dataset_input *files;
    PEN_TRY(PEN_NEW(arena, list->count, &files));
    for (uint32_t i = 0; i < list->count; i++)
        files[i] = (pen_dataset_input){.name = "weights", .path = paths[i]};
    options->weight_files = files;
    options->weight_file_count = list->count;
    return PEN_OK;
}

static pen_status job_set_npy(const char *format, const pen_job_npy *npy, pen_arena *arena,
                              pen_dataset_options *options) {
    options->format = format;
    options->labels = npy->labels;
    PEN_TRY(job_set_arrays(&npy->inputs, arena, &options->inputs, &options->input_count));
    PEN_TRY(job_set_weights(&npy->weights, arena, options));
    return job_set_arrays(&npy->label_files, arena, &options->label_files,
                          &options->label_file_count);
}

// Where what was read is kept: beside the checkpoints, where those who go on with a training look.
static pen_status job_set_cache(const pen_job *job, const char *cache, pen_arena *arena,
                                pen_dataset_options *options) {
    const char *beside = job->checkpoint.dir != NULL ? job->checkpoint.dir : job->file;
    options->cache = cache;
    if (cache != NULL) return PEN_OK;
    return pen_path_beside(arena, beside, "penstock-cache", &options->cache);
}

// The file of a database is beside the job, as all paths are.
static pen_status job_set_sql(const pen_job *job, const pen_job_sql *sql, pen_arena *arena,
                              pen_dataset_options *options) {
    static const char file[] = "sqlite:";
    PEN_TRY(job_set_npy("sql", &sql->columns, arena, options));
    options->connection = sql->connection;
    if (strncmp(sql->connection, file, sizeof file - 1) == 0) {
        const char *path;
        PEN_TRY(pen_path_beside(arena, job->file, sql->connection + sizeof file - 1, &path));
        PEN_TRY(pen_arena_format(arena, &options->connection, "%s%s", file, path));
    }
    options->query = sql->query;
    options->partition = sql->partition;
    options->weight_column = sql->weights;
    options->refresh = sql->refresh;
    options->byte_element = sql->element;
    options->byte_shape = sql->shape.items;
    options->byte_rank = sql->shape.count;
    job_set_pictures(&sql->size, sql->channels, sql->data_format, options);
    return job_set_cache(job, sql->cache, arena, options);
}

static pen_status job_set_webdataset(const pen_job *job, const pen_job_webdataset *webdataset,
                                     pen_arena *arena, pen_dataset_options *options) {
    const char *const *paths = webdataset->shards.items;
    pen_dataset_input *shards;
    PEN_TRY(job_set_npy("webdataset", &webdataset->parts, arena, options));
    PEN_TRY(PEN_NEW(arena, webdataset->shards.count, &shards));
    for (uint32_t i = 0; i < webdataset->shards.count; i++) {
        shards[i] = (pen_dataset_input){.name = "shards", .path = paths[i]};
    }
    options->shards = shards;
    options->shard_count = webdataset->shards.count;
    options->weight_column = webdataset->weights;
    job_set_pictures(&webdataset->size, webdataset->channels, webdataset->data_format, options);
    return job_set_cache(job, webdataset->cache, arena, options);
}

// From the job's words for a format to the options of that format.
static pen_status job_set_files(const pen_job *job, const pen_job_dataset *dataset,
                                pen_arena *arena, pen_dataset_options *options) {
    switch (dataset->format) {
    case PEN_JOB_IDX:
        options->format = "idx";
        options->path = dataset->idx.images;
        options->labels = dataset->idx.labels;
        options->input_name = dataset->idx.input;
        return job_set_weights(&dataset->idx.weights, arena, options);
    case PEN_JOB_NPY:
        return job_set_npy("npy", &dataset->npy, arena, options);
    case PEN_JOB_ARRAYS:
        return job_set_npy("arrays", &dataset->arrays, arena, options);
    case PEN_JOB_SQL:
        return job_set_sql(job, &dataset->sql, arena, options);
    case PEN_JOB_WEBDATASET:
        return job_set_webdataset(job, &dataset->webdataset, arena, options);
    case PEN_JOB_CSV:
        job_set_csv(job, &dataset->csv, options);
        return PEN_OK;
    case PEN_JOB_IMAGES:
        job_set_images(&dataset->images, options);
        return PEN_OK;
    case PEN_JOB_TEXT:
        job_set_text(&dataset->text, options);
        return PEN_OK;
    case PEN_JOB_TOKENS:
        return job_set_tokens(&dataset->tokens, arena, options);
    }
    return PEN_OK;
}

static const pen_dataset_element job_label_elements[] = {
    [PEN_JOB_LABEL_AUTO] = PEN_DATASET_AUTO,
    [PEN_JOB_LABEL_INDEX] = PEN_DATASET_INT64,
    [PEN_JOB_LABEL_NUMBER] = PEN_DATASET_FLOAT32,
};

static pen_status job_blame_normalization(const void *context, bool is_mean, pen_status status) {
    const pen_job *job = context;
    const pen_job_normalize *normalize = &job->data.normalize;
    return pen_job_blame(job, is_mean ? (const void *)&normalize->mean : &normalize->std, status);
}

void pen_job_get_conversion(const pen_job *job, pen_dataset_options *out_options) {
    const pen_job_normalize *normalize = &job->data.normalize;
    *out_options = (pen_dataset_options){
        .scale = normalize->scale,
        .mean = normalize->mean.items,
        .mean_count = normalize->mean.count,
        .deviation = normalize->std.items,
        .deviation_count = normalize->std.count,
        .flatten = job->data.flatten,
        .blame_normalization = job_blame_normalization,
        .blame_context = job,
    };
}

// Evaluation data are those of `eval`, or the held out part of `train`, chosen by the same seed so
// that the two never overlap.
pen_status pen_job_get_dataset(const pen_job *job, pen_dataset_part part, pen_arena *arena,
                               pen_dataset_options *out_options) {
    const pen_job_data *data = &job->data;
    const bool is_eval = part == PEN_DATASET_PART_EVAL;
    if (is_eval ? !pen_job_data_can_evaluate(data) : !data->has_train) {
        return pen_job_blame(
            job, &data->has_eval,
            pen_error(PEN_NOT_FOUND, "data: '%s' is missing, expected a mapping with format, ...%s",
                      is_eval ? "eval" : "train",
                      is_eval ? "; or 'holdout', a fraction of 'train'" : ""));
    }
    const pen_job_dataset *dataset = pen_job_find_dataset(job, part);
    pen_dataset_options options;
    pen_job_get_conversion(job, &options);
    options.label_element = job_label_elements[dataset->label_type];
    options.threads = (uint32_t)data->threads;
    const bool is_held_out = is_eval && !data->has_eval;
    options.part = is_held_out ? PEN_DATASET_PART_EVAL : PEN_DATASET_PART_TRAIN;
    options.holdout = dataset == &data->train ? data->holdout : 0;
    options.seed = (uint64_t)job->train.seed;
    options.mix = (pen_mix_rule){.mixup = data->mix.mixup,
                                 .cutmix = data->mix.cutmix,
                                 .probability = data->mix.probability,
                                 .class_count = (uint32_t)data->mix.classes};
    options.example_limit = (uint64_t)dataset->limit;
    options.arrays = job->arrays;
    options.array_count = job->array_count;
    PEN_TRY(job_set_files(job, dataset, arena, &options));
    PEN_TRY(pen_job_get_targets(job, arena, &options.targets, &options.target_count));
    if (!is_eval) PEN_TRY(pen_job_get_augment(job, arena, &options));
    *out_options = options;
    return PEN_OK;
}

pen_status pen_job_open_dataset(const pen_job *job, pen_dataset_part part, pen_arena *arena,
                                pen_dataset **out_dataset) {
    pen_dataset_options options;
    PEN_TRY(pen_job_get_dataset(job, part, arena, &options));
    const pen_status status =
        pen_job_blame_data(job, part, PEN_JOB_DATA_WHOLE, pen_dataset_open(&options, out_dataset));
    const bool is_train = pen_job_find_dataset(job, part) == &job->data.train;
    return pen_status_add_context(status, "while opening data.%s", is_train ? "train" : "eval");
}

static uint64_t job_interval_steps(pen_interval interval, uint64_t epoch_steps) {
    uint64_t steps;
    if (interval.unit == PEN_INTERVAL_STEPS) return interval.count;
    return pen_u64_mul(interval.count, epoch_steps, &steps) ? steps : UINT64_MAX;
}

static pen_learning_rate_curve job_rate_curve(const pen_job_learning_rate *rate, double base,
                                              uint64_t epoch_steps) {
    return (pen_learning_rate_curve){
        .kind = rate->kind,
        .base = base,
        .final = rate->kind == PEN_LEARNING_RATE_LINEAR ? rate->linear.final : rate->cosine.final,
        .every = job_interval_steps(rate->step.every, epoch_steps),
        .factor = rate->step.factor,
        .power = rate->polynomial.power,
        .cycle = rate->one_cycle,
    };
}

// A rate that is not chained is a chain of one.
pen_status pen_job_get_learning_rate(const pen_job *job, uint64_t epoch_steps,
                                     pen_learning_rate_options *out_options) {
    const pen_job_learning_rate *rate = &job->train.learning_rate;
    const double base = job->train.optimizer.lr;
    const bool is_chained = rate->kind == PEN_LEARNING_RATE_CHAINED;
    const pen_job_rate_piece *pieces = rate->chained.items;
    pen_learning_rate_options options = {
        .warmup = job_interval_steps(job->train.warmup, epoch_steps),
        .count = is_chained ? rate->chained.count : 1,
    };
    if (!is_chained) options.curves[0] = job_rate_curve(rate, base, epoch_steps);
    for (uint32_t i = 0; is_chained && i < options.count; i++) {
        pen_learning_rate_curve *curve = &options.curves[i];
        *curve = job_rate_curve(&pieces[i].schedule, pieces[i].scale * base, epoch_steps);
        if (pieces[i].has_length) curve->length = job_interval_steps(pieces[i].length, epoch_steps);
    }
    const pen_status status = pen_learning_rate_check(&options);
    if (status != PEN_OK) return pen_job_blame(job, rate, status);
    *out_options = options;
    return PEN_OK;
}

pen_optimizer_average pen_job_get_average(const pen_job *job, uint64_t epoch_steps) {
    const pen_job_average *average = &job->train.average;
    if (!job->train.has_average) return (pen_optimizer_average){0};
    return (pen_optimizer_average){.decay = average->decay,
                                   .from = job_interval_steps(average->from, epoch_steps)};
}

uint64_t pen_job_get_step_count(const pen_job *job, uint64_t epoch_steps) {
    const pen_interval epochs = {.count = (uint64_t)job->train.epochs, .unit = PEN_INTERVAL_EPOCHS};
    const uint64_t steps = (uint64_t)job->train.steps;
    if (job->train.epochs == 0) return steps;
    const uint64_t all = job_interval_steps(epochs, epoch_steps);
    return steps > 0 ? pen_min_u64(steps, all) : all;
}
