// The keys of a job file's `data`: kinds, ranges, defaults, help.

#include "scheduler/data/decode_team.h"
#include "scheduler/data/image/image_decode.h"
#include "scheduler/job/job_table.h"
#include "scheduler/job/job_words.h"

#define JOB_CHANNEL_COUNT_LIMIT 65536 // means and deviations
#define JOB_COLUMN_COUNT_LIMIT 2048   // of a query

static const pen_option_field job_weight_item = {
    .kind = PEN_OPTION_PATH,
    .help = "NPY file with a number for each example, or a pattern of several",
};
#define JOB_WEIGHTS_HELP "how much each example counts in the loss, in the order of the data"
#define JOB_WEIGHTS_FIELD(type, what)                                                              \
    PEN_OPTION(LIST, type, weights, JOB_WEIGHTS_HELP, .item = what, .is_list_optional = true,      \
               .count_minimum = 1, .count_maximum = PEN_DATA_FILES_LIMIT)
static const pen_option_field job_idx_fields[] = {
    PEN_OPTION(PATH, pen_job_idx, images, "IDX file of the inputs, may be .gz",
               .is_required = true),
    PEN_OPTION(PATH, pen_job_idx, labels, "IDX file of the labels, may be .gz"),
    JOB_WEIGHTS_FIELD(pen_job_idx, &job_weight_item),
    PEN_OPTION(TEXT, pen_job_idx, input, "the model's input that takes them, when it has several"),
};
static const pen_option_table job_idx_table = {PEN_OPTION_FIELDS(pen_job_idx, job_idx_fields)};

static const pen_option_field job_file_item = {
    .kind = PEN_OPTION_PATH,
    .help = "a file, or a pattern of several: part-*.npy",
};
static const pen_option_field job_array_item = {
    .kind = PEN_OPTION_LIST,
    .offset = offsetof(pen_job_array, files),
    .help = "NPY file; of several, each has some of the examples",
    .item = &job_file_item,
    .is_list_optional = true,
    .count_minimum = 1,
    .count_maximum = PEN_DATA_FILES_LIMIT,
};
static const pen_option_field job_npy_fields[] = {
    PEN_OPTION(MAP, pen_job_npy, inputs, "the NPY file of each input of the model",
               .is_required = true, .item = &job_array_item, .entry_bytes = sizeof(pen_job_array),
               .count_minimum = 1, .count_maximum = PEN_DATASET_INPUT_COUNT_LIMIT),
    PEN_OPTION_AS("labels", MAP, pen_job_npy, label_files,
                  "NPY file of the labels; of several, each by the name that a loss gives it",
                  .item = &job_array_item, .entry_bytes = sizeof(pen_job_array), .count_minimum = 1,
                  .count_maximum = PEN_DATASET_LABEL_COUNT_LIMIT,
                  .path_offset = offsetof(pen_job_npy, labels)),
    JOB_WEIGHTS_FIELD(pen_job_npy, &job_weight_item),
};
static const pen_option_table job_npy_table = {PEN_OPTION_FIELDS(pen_job_npy, job_npy_fields)};

static const pen_option_field job_text_item = {.kind = PEN_OPTION_TEXT};
static const pen_option_field job_name_item = {
    .kind = PEN_OPTION_LIST,
    .offset = offsetof(pen_job_array, files),
    .help = "name of an array; of several, each has some of the examples",
    .item = &job_text_item,
    .is_list_optional = true,
    .count_minimum = 1,
    .count_maximum = PEN_DATA_FILES_LIMIT,
};
static const pen_option_field job_arrays_fields[] = {
    PEN_OPTION(MAP, pen_job_npy, inputs, "the array of each input of the model",
               .is_required = true, .item = &job_name_item, .entry_bytes = sizeof(pen_job_array),
               .count_minimum = 1, .count_maximum = PEN_DATASET_INPUT_COUNT_LIMIT),
    PEN_OPTION_AS("labels", MAP, pen_job_npy, label_files,
                  "the array of the labels; of several, each by the name that a loss gives it",
                  .item = &job_name_item, .entry_bytes = sizeof(pen_job_array), .count_minimum = 1,
                  .count_maximum = PEN_DATASET_LABEL_COUNT_LIMIT,
                  .path_offset = offsetof(pen_job_npy, labels)),
    JOB_WEIGHTS_FIELD(pen_job_npy, &job_text_item),
};
static const pen_option_table job_arrays_table = {
    PEN_OPTION_FIELDS(pen_job_npy, job_arrays_fields)};

static const char *const job_categories[] = {
    [PEN_DATASET_CATEGORIES_NONE] = "none",
    [PEN_DATASET_CATEGORIES_ONE_HOT] = "one_hot",
    [PEN_DATASET_CATEGORIES_INDEX] = "index",
    NULL,
};
static const char *const job_unknown[] = {"error", "own", NULL};
static const pen_option_field job_csv_fields[] = {
    PEN_OPTION(PATH, pen_job_csv, file, "CSV file, a line an example", .is_required = true),
    PEN_OPTION(TEXT, pen_job_csv, label_column,
               "name of the column with the labels, or its index from 0; -1 is the last; words "
               "are classes in their order"),
    PEN_OPTION(TEXT, pen_job_csv, weight_column,
               "column, named likewise, that says how much each row counts in the loss"),
    PEN_OPTION(BOOL, pen_job_csv, header,
               "whether the first line has names; found out when not given",
               .present_offset = offsetof(pen_job_csv, header_is_given)),
    PEN_OPTION(TEXT, pen_job_csv, delimiter, "the character between columns", .default_text = ","),
    PEN_OPTION(CHOICE, pen_job_csv, categories,
               "what columns of words become: a number for each word, one of them 1, or the index "
               "of the word",
               .choices = job_categories, .default_text = "none"),
    PEN_OPTION(CHOICE, pen_job_csv, unknown,
               "what words are that the training's file has not: an error, or a category of theirs",
               .choices = job_unknown, .default_text = "error"),
    PEN_OPTION(SCALAR, pen_job_csv, missing,
               "what empty fields are: error, the mean of their column, or a number",
               .default_text = "error"),
    PEN_OPTION(TEXT, pen_job_csv, input,
               "the model's input that takes the columns, when it has several"),
};

static pen_status job_check_missing(const pen_job_csv *csv, const pen_option_source *source) {
    pen_dataset_missing missing;
    double value;
    if (pen_job_parse_missing(csv->missing, &missing, &value)) return PEN_OK;
    return pen_option_blame(source, &csv->missing,
                            pen_error(PEN_INVALID_INPUT,
                                      "missing: found \"%.20s\", expected error, mean, or a number",
                                      csv->missing));
}

static pen_status job_check_csv(const void *object, const pen_option_source *source) {
    const pen_job_csv *csv = object;
    const char delimiter = csv->delimiter[0];
    PEN_TRY(job_check_missing(csv, source));
    if (csv->delimiter[1] == '\0' && (unsigned char)delimiter < 0x80 && delimiter != '\n' &&
        delimiter != '"') {
        return PEN_OK;
    }
    return pen_option_blame(source, &csv->delimiter,
                            pen_error(PEN_INVALID_INPUT,
                                      "delimiter: found \"%.20s\", expected one ASCII character "
                                      "that is neither a quote nor a line end",
                                      csv->delimiter));
}

static const pen_option_table job_csv_table = {
    PEN_OPTION_FIELDS(pen_job_csv, job_csv_fields),
    .check = job_check_csv,
};

static const pen_option_field job_side_item = {
    .kind = PEN_OPTION_INTEGER,
    .minimum = PEN_OPTION_FROM(1),
    .maximum = PEN_OPTION_TO(PEN_IMAGE_SIDE_LIMIT),
};
static const char *const job_image_formats[] = {"channels_first", "channels_last", NULL};
// How pictures are made examples, as formats of such have it.
#define JOB_PICTURE_FIELDS(type)                                                                   \
    PEN_OPTION(LIST, type, size, "side in pixels, or [height, width]", .item = &job_side_item,     \
               .is_list_optional = true, .count_minimum = 1, .count_maximum = 2,                   \
               .default_text = "224"),                                                             \
        PEN_OPTION(INTEGER, type, channels, "1 for gray, 3 for colour", PEN_OPTION_RANGE(1, 3),    \
                   .default_text = "3"),                                                           \
        PEN_OPTION(CHOICE, type, data_format,                                                      \
                   "whether the model takes channels before or behind height and width",           \
                   .choices = job_image_formats, .default_text = "channels_first")
static const char *const job_on_error[] = {"stop", "skip", NULL};
static const pen_option_field job_images_fields[] = {
    PEN_OPTION(PATH, pen_job_images, folder,
               "folder with a folder of pictures (" PEN_IMAGE_KINDS ") for each class",
               .is_required = true),
    JOB_PICTURE_FIELDS(pen_job_images),
    PEN_OPTION(
        CHOICE, pen_job_images, on_error,
        "at a broken picture; skip: all are decoded at first, and these left out and counted",
        .choices = job_on_error, .default_text = "stop"),
    PEN_OPTION(PATH, pen_job_images, weights,
               "CSV file of how much each picture counts in the loss: cats/1.jpg,2, or of a class: "
               "cats,0.5"),
    PEN_OPTION(TEXT, pen_job_images, input,
               "the model's input that takes them, when it has several"),
};

static pen_status job_check_channels(const int64_t *channels, const pen_option_source *source) {
    if (*channels != 2) return PEN_OK;
    return pen_option_blame(
        source, channels,
        pen_error(PEN_INVALID_INPUT, "channels: found 2, expected 1 (gray) or 3 (colour)"));
}

static pen_status job_check_images(const void *object, const pen_option_source *source) {
    const pen_job_images *images = object;
    return job_check_channels(&images->channels, source);
}

static const pen_option_table job_images_table = {
    PEN_OPTION_FIELDS(pen_job_images, job_images_fields),
    .check = job_check_images,
};

static const pen_option_field job_column_name_item = {.kind = PEN_OPTION_TEXT,
                                                      .help = "name of a column"};
static const pen_option_field job_column_item = {
    .kind = PEN_OPTION_LIST,
    .offset = offsetof(pen_job_array, files),
    .help = "a column of numbers, of arrays, or of bytes; or several of numbers, which become one "
            "array",
    .item = &job_column_name_item,
    .is_list_optional = true,
    .count_minimum = 1,
    .count_maximum = JOB_COLUMN_COUNT_LIMIT,
};
static const char *const job_byte_elements[] = {"auto",   "bool",    "uint8",   "int8",
                                                "uint16", "int16",   "uint32",  "int32",
                                                "int64",  "float32", "float64", NULL};
static const pen_option_field job_length_item = {
    .kind = PEN_OPTION_INTEGER,
    .minimum = PEN_OPTION_FROM(1),
};
static const pen_option_field job_sql_fields[] = {
    PEN_OPTION(TEXT, pen_job_sql, connection,
               "postgresql://user@host:port/name, with the password in PGPASSWORD or ~/.pgpass; or "
               "sqlite:FILE",
               .is_required = true),
    PEN_OPTION(TEXT, pen_job_sql, query, "a SELECT that gives a row an example",
               .is_required = true),
    PEN_OPTION_AS("inputs", MAP, pen_job_sql, columns.inputs,
                  "the column of each input of the model", .is_required = true,
                  .item = &job_column_item, .entry_bytes = sizeof(pen_job_array),
                  .count_minimum = 1, .count_maximum = PEN_DATASET_INPUT_COUNT_LIMIT),
    PEN_OPTION_AS("labels", MAP, pen_job_sql, columns.label_files,
                  "the column of the labels; of several, each by the name that a loss gives it",
                  .item = &job_column_item, .entry_bytes = sizeof(pen_job_array),
                  .count_minimum = 1, .count_maximum = PEN_DATASET_LABEL_COUNT_LIMIT,
                  .path_offset = offsetof(pen_job_sql, columns.labels)),
    PEN_OPTION_AS("weights", TEXT, pen_job_sql, weights,
                  "the column that says how much each row counts in the loss"),
    PEN_OPTION(TEXT, pen_job_sql, partition,
               "a column with another whole number in each row: rows come in its order, whoever "
               "reads them"),
    PEN_OPTION(
        PATH, pen_job_sql, cache,
        "folder that keeps what was read; else penstock-cache, beside the checkpoints or the "
        "job"),
    PEN_OPTION(BOOL, pen_job_sql, refresh, "read the query anew in each command, though it is kept",
               .default_text = "false"),
    PEN_OPTION(CHOICE, pen_job_sql, element,
               "the numbers that bytes are, little-endian; auto: bytes are " PEN_IMAGE_KINDS
               " files",
               .choices = job_byte_elements, .default_text = "auto"),
    PEN_OPTION(LIST, pen_job_sql, shape, "of an example whose numbers are in bytes",
               .item = &job_length_item, .is_list_optional = true, .count_minimum = 1,
               .count_maximum = PEN_RANK_LIMIT - 1),
    JOB_PICTURE_FIELDS(pen_job_sql),
};

static const pen_option_field job_shard_item = {
    .kind = PEN_OPTION_PATH,
    .help = "a tar file, also compressed by gzip, or a pattern of several: train-*.tar",
};
static const pen_option_field job_part_name_item = {.kind = PEN_OPTION_TEXT,
                                                    .help = "name behind the first point"};
static const pen_option_field job_part_item = {
    .kind = PEN_OPTION_LIST,
    .offset = offsetof(pen_job_array, files),
    .help = "what the members are called behind the first point: jpg; of several, whichever is "
            "there",
    .item = &job_part_name_item,
    .is_list_optional = true,
    .count_minimum = 1,
    .count_maximum = 16,
};
static const pen_option_field job_webdataset_fields[] = {
    PEN_OPTION(LIST, pen_job_webdataset, shards, "the tar files, in order", .is_required = true,
               .item = &job_shard_item, .is_list_optional = true, .count_minimum = 1,
               .count_maximum = PEN_DATA_FILES_LIMIT),
    PEN_OPTION_AS("inputs", MAP, pen_job_webdataset, parts.inputs,
                  "the part of an example that each input of the model takes", .is_required = true,
                  .item = &job_part_item, .entry_bytes = sizeof(pen_job_array), .count_minimum = 1,
                  .count_maximum = PEN_DATASET_INPUT_COUNT_LIMIT),
    PEN_OPTION_AS("labels", TEXT, pen_job_webdataset, parts.labels,
                  "the part that is the number of a class as text: cls"),
    PEN_OPTION(TEXT, pen_job_webdataset, weights,
               "the part that says as text how much an example counts in the loss: weight; or "
               "json:KEY, a number of the object in the part json"),
    PEN_OPTION(PATH, pen_job_webdataset, cache,
               "folder of the index; else penstock-cache, beside the checkpoints or the job"),
    JOB_PICTURE_FIELDS(pen_job_webdataset),
};

static pen_status job_check_webdataset(const void *object, const pen_option_source *source) {
    const pen_job_webdataset *webdataset = object;
    return job_check_channels(&webdataset->channels, source);
}

static const pen_option_table job_webdataset_table = {
    PEN_OPTION_FIELDS(pen_job_webdataset, job_webdataset_fields),
    .check = job_check_webdataset,
};

static pen_status job_check_sql(const void *object, const pen_option_source *source) {
    const pen_job_sql *sql = object;
    PEN_TRY(job_check_channels(&sql->channels, source));
    if (sql->shape.count == 0 || sql->element != 0) return PEN_OK;
    return pen_option_blame(source, &sql->shape,
                            pen_error(PEN_INVALID_INPUT,
                                      "shape: found without element, expected both: it is that of "
                                      "numbers in bytes"));
}

static const pen_option_table job_sql_table = {
    PEN_OPTION_FIELDS(pen_job_sql, job_sql_fields),
    .check = job_check_sql,
};

// How examples lie in a row of tokens, as formats of such have it.
#define JOB_SEQUENCE_FIELDS(type)                                                                  \
    PEN_OPTION(INTEGER, type, sequence,                                                            \
               "tokens of an example; its labels are the tokens behind each",                      \
               PEN_OPTION_RANGE(1, PEN_SEQUENCE_LIMIT), .is_required = true),                      \
        PEN_OPTION(INTEGER, type, stride,                                                          \
                   "tokens from the beginning of one example to that of the next; else sequence",  \
                   PEN_OPTION_RANGE(1, INT32_MAX)),                                                \
        PEN_OPTION(TEXT, type, input, "the model's input that takes them, when it has several")
static const pen_option_field job_text_fields[] = {
    PEN_OPTION(PATH, pen_job_text, file, "any file, may be .gz; each byte is a token",
               .is_required = true),
    JOB_SEQUENCE_FIELDS(pen_job_text),
};
static const pen_option_table job_text_table = {PEN_OPTION_FIELDS(pen_job_text, job_text_fields)};

static const char *const job_token_elements[] = {
    [PEN_TOKEN_AUTO] = "auto",     [PEN_TOKEN_UINT8] = "uint8", [PEN_TOKEN_INT8] = "int8",
    [PEN_TOKEN_UINT16] = "uint16", [PEN_TOKEN_INT16] = "int16", [PEN_TOKEN_UINT32] = "uint32",
    [PEN_TOKEN_INT32] = "int32",   [PEN_TOKEN_INT64] = "int64", NULL,
};
static const pen_option_field job_mask_token = {.kind = PEN_OPTION_INTEGER,
                                                PEN_OPTION_RANGE(0, UINT32_MAX)};
static const pen_option_field job_mask_fields[] = {
    PEN_OPTION_AS("token", INTEGER, pen_job_mask, rule.token, "that stands for what is masked",
                  PEN_OPTION_RANGE(0, UINT32_MAX), .is_required = true),
    PEN_OPTION_AS("vocabulary", INTEGER, pen_job_mask, rule.vocabulary,
                  "how many tokens there are, to choose any other from",
                  PEN_OPTION_RANGE(1, UINT32_MAX), .is_required = true),
    PEN_OPTION_AS("probability", NUMBER, pen_job_mask, rule.probability,
                  "of a token to be chosen: of these 80 % are masked, 10 % become others",
                  .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(1),
                  .default_text = "0.15"),
    PEN_OPTION(LIST, pen_job_mask, keep, "tokens that are never chosen, as those between sentences",
               .item = &job_mask_token, .count_maximum = 64, .is_list_optional = true),
};
static const pen_option_table job_mask_table = {PEN_OPTION_FIELDS(pen_job_mask, job_mask_fields)};

static const pen_option_field job_tokens_fields[] = {
    PEN_OPTION(PATH, pen_job_tokens, file,
               "NPY file of one dimension, or little-endian numbers without a header",
               .is_required = true),
    PEN_OPTION(CHOICE, pen_job_tokens, element,
               "the numbers in the file; auto: what NPY says, else uint16",
               .choices = job_token_elements, .default_text = "auto"),
    JOB_SEQUENCE_FIELDS(pen_job_tokens),
    PEN_OPTION(MAPPING, pen_job_tokens, mask,
               "labels are tokens of the example that are masked in it, as BERT has it, and not "
               "those behind each",
               .present_offset = offsetof(pen_job_tokens, has_mask), .table = &job_mask_table),
};
static const pen_option_table job_tokens_table = {
    PEN_OPTION_FIELDS(pen_job_tokens, job_tokens_fields)};

static const pen_option_field job_dataset_variants[] = {
    [PEN_JOB_IDX] = PEN_OPTION(MAPPING, pen_job_dataset, idx, "IDX files, as MNIST comes",
                               .table = &job_idx_table),
    [PEN_JOB_NPY] =
        PEN_OPTION(MAPPING, pen_job_dataset, npy,
                   "NumPy arrays, the first dimension counts examples", .table = &job_npy_table),
    [PEN_JOB_CSV] =
        PEN_OPTION(MAPPING, pen_job_dataset, csv, "numbers in a CSV file", .table = &job_csv_table),
    [PEN_JOB_IMAGES] =
        PEN_OPTION(MAPPING, pen_job_dataset, images,
                   "pictures (" PEN_IMAGE_KINDS "), labels by folder", .table = &job_images_table),
    [PEN_JOB_TEXT] = PEN_OPTION(MAPPING, pen_job_dataset, text,
                                "sequences of the bytes of a file, to predict the next",
                                .table = &job_text_table),
    [PEN_JOB_TOKENS] = PEN_OPTION(MAPPING, pen_job_dataset, tokens,
                                  "sequences of a file of tokens, to predict the next",
                                  .table = &job_tokens_table),
    [PEN_JOB_SQL] =
        PEN_OPTION(MAPPING, pen_job_dataset, sql,
                   "rows that a query gives, of PostgreSQL or SQLite", .table = &job_sql_table),
    [PEN_JOB_WEBDATASET] =
        PEN_OPTION(MAPPING, pen_job_dataset, webdataset, "tar files, as WebDataset has them",
                   .table = &job_webdataset_table),
    [PEN_JOB_ARRAYS] = PEN_OPTION(MAPPING, pen_job_dataset, arrays,
                                  "arrays in the memory of the program that opens the job",
                                  .table = &job_arrays_table),
};
static const char *const job_label_types[] = {
    [PEN_JOB_LABEL_AUTO] = "auto",
    [PEN_JOB_LABEL_INDEX] = "index",
    [PEN_JOB_LABEL_NUMBER] = "number",
    NULL,
};
static const pen_option_field job_dataset_fields[] = {
    PEN_OPTION(INTEGER, pen_job_dataset, limit, "use no more examples than so many",
               .minimum = PEN_OPTION_FROM(1)),
    PEN_OPTION(CHOICE, pen_job_dataset, label_type, "whether labels are class indices or numbers",
               .choices = job_label_types, .default_text = "auto"),
};
static const pen_option_table job_dataset_table = {
    PEN_OPTION_FIELDS(pen_job_dataset, job_dataset_fields),
    .tag = "format",
    .tag_help = "the kind of the files",
    PEN_OPTION_VARIANTS(job_dataset_variants),
    .chosen_offset = offsetof(pen_job_dataset, format),
    .tag_words = pen_job_format_words,
    .words = pen_job_dataset_words,
    .explain = pen_job_explain,
};

static const pen_option_field job_mean_item = {.kind = PEN_OPTION_NUMBER};
static const pen_option_field job_std_item = {
    .kind = PEN_OPTION_NUMBER,
    .minimum = PEN_OPTION_ABOVE(0),
};
static const pen_option_field job_normalize_fields[] = {
    PEN_OPTION(LIST, pen_job_normalize, mean, "subtracted, for all channels or for each",
               .item = &job_mean_item, .is_list_optional = true, .count_minimum = 1,
               .count_maximum = JOB_CHANNEL_COUNT_LIMIT),
    PEN_OPTION(LIST, pen_job_normalize, std, "divided by, for all channels or for each",
               .item = &job_std_item, .is_list_optional = true, .count_minimum = 1,
               .count_maximum = JOB_CHANNEL_COUNT_LIMIT),
    PEN_OPTION(NUMBER, pen_job_normalize, scale,
               "multiplied by, before the mean; 1/255 for bytes, else 1, when not given",
               .minimum = PEN_OPTION_ABOVE(0)),
};
static const pen_option_table job_normalize_table = {
    PEN_OPTION_FIELDS(pen_job_normalize, job_normalize_fields)};

static const char *const job_read_on[] = {
    [PEN_JOB_READ_ON_AUTO] = "auto",
    [PEN_JOB_READ_ON_WORKERS] = "workers",
    [PEN_JOB_READ_ON_COORDINATOR] = "coordinator",
    NULL,
};
static const char *const job_balances[] = {"none", "class", NULL};
static const pen_option_field job_data_fields[] = {
    PEN_OPTION(MAPPING, pen_job_data, train, "what is trained on",
               .present_offset = offsetof(pen_job_data, has_train), .table = &job_dataset_table,
               .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job_data, eval, "what is evaluated on",
               .present_offset = offsetof(pen_job_data, has_eval), .table = &job_dataset_table,
               .may_be_file = true),
    PEN_OPTION(MAPPING, pen_job_data, normalize, "inputs become (value * scale - mean) / std",
               .table = &job_normalize_table),
    PEN_OPTION(BOOL, pen_job_data, flatten, "give each example one dimension",
               .default_text = "false"),
    PEN_OPTION(LIST, pen_job_data, augment,
               "changes by chance of the pictures that are trained on, in their order",
               .item = &pen_job_augment_item, .is_list_optional = true,
               .count_maximum = PEN_AUGMENT_STEPS_LIMIT),
    PEN_OPTION(MAPPING, pen_job_data, mix,
               "examples of a batch that is trained on are mixed by chance",
               .present_offset = offsetof(pen_job_data, has_mix), .table = &pen_job_mix_table),
    PEN_OPTION(CHOICE, pen_job_data, balance,
               "class: examples that are trained on are drawn so that each class comes as often as "
               "any other",
               .choices = job_balances, .default_text = "none"),
    PEN_OPTION(CHOICE, pen_job_data, read_on, "who reads the examples of a training's microbatches",
               .choices = job_read_on, .default_text = "auto"),
    PEN_OPTION(INTEGER, pen_job_data, threads,
               "threads that decode pictures at once, in each process that reads; 0: as many as it "
               "has cores",
               PEN_OPTION_RANGE(0, PEN_DECODE_THREADS_LIMIT), .default_text = "0"),
    PEN_OPTION(NUMBER, pen_job_data, holdout,
               "fraction of train kept for evaluation, when there is no eval",
               .minimum = PEN_OPTION_FROM(0), .maximum = PEN_OPTION_BELOW(1), .default_text = "0"),
};

// What follows from several keys.
static pen_status job_check_data(const void *object, const pen_option_source *source) {
    const pen_job_data *data = object;
    if (!data->has_train && !data->has_eval) {
        return pen_option_blame(
            source, data,
            pen_error(PEN_INVALID_INPUT, "data: found neither train nor eval, expected one"));
    }
    if (data->holdout > 0 && data->has_eval) {
        return pen_option_blame(source, &data->holdout,
                                pen_error(PEN_INVALID_INPUT,
                                          "data.holdout: found together with data.eval, expected "
                                          "one of the two"));
    }
    if (data->has_mix && data->has_train && pen_job_dataset_is_weighted(&data->train)) {
        return pen_option_blame(source, &data->mix,
                                pen_error(PEN_INVALID_INPUT,
                                          "data.mix: found together with weights of the examples, "
                                          "of which each would have two, expected one of the two"));
    }
    if (data->balance != 0 && data->read_on == PEN_JOB_READ_ON_WORKERS) {
        return pen_option_blame(source, &data->read_on,
                                pen_error(PEN_INVALID_INPUT,
                                          "data.read_on: found workers, which know no classes, "
                                          "together with data.balance, expected coordinator"));
    }
    if (data->has_mix && data->read_on == PEN_JOB_READ_ON_WORKERS) {
        return pen_option_blame(source, &data->read_on,
                                pen_error(PEN_INVALID_INPUT,
                                          "data.read_on: found workers, which have no whole batch, "
                                          "together with data.mix, expected coordinator"));
    }
    const bool has_mask = data->train.tokens.has_mask || data->eval.tokens.has_mask;
    if (has_mask && data->read_on == PEN_JOB_READ_ON_WORKERS) {
        return pen_option_blame(source, &data->read_on,
                                pen_error(PEN_INVALID_INPUT,
                                          "data.read_on: found workers, which mask nothing, "
                                          "together with a mask, expected coordinator"));
    }
    return PEN_OK;
}

const pen_option_table pen_job_data_table = {
    PEN_OPTION_FIELDS(pen_job_data, job_data_fields),
    .explain = pen_job_explain,
    .check = job_check_data,
};

// Each format has a key of its own for them, or none.
bool pen_job_dataset_is_weighted(const pen_job_dataset *dataset) {
    switch (dataset->format) {
    case PEN_JOB_IDX:
        return dataset->idx.weights.count > 0;
    case PEN_JOB_NPY:
        return dataset->npy.weights.count > 0;
    case PEN_JOB_ARRAYS:
        return dataset->arrays.weights.count > 0;
    case PEN_JOB_CSV:
        return dataset->csv.weight_column != NULL;
    case PEN_JOB_SQL:
        return dataset->sql.weights != NULL;
    case PEN_JOB_IMAGES:
        return dataset->images.weights != NULL;
    case PEN_JOB_WEBDATASET:
        return dataset->webdataset.weights != NULL;
    case PEN_JOB_TEXT:
    case PEN_JOB_TOKENS:
        break;
    }
    return false;
}

bool pen_job_data_is_weighted(const pen_job_data *data) {
    return (data->has_train && pen_job_dataset_is_weighted(&data->train)) ||
           (data->has_eval && pen_job_dataset_is_weighted(&data->eval));
}

bool pen_job_data_can_evaluate(const pen_job_data *data) {
    return data->has_eval || (data->has_train && data->holdout > 0);
}
