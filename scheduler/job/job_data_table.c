// The keys of a job file's `data`: kinds, ranges, defaults, help.

#include "scheduler/job/job_table.h"

#define JOB_CHANNEL_COUNT_LIMIT 65536 // means and deviations

static const pen_option_field job_idx_fields[] = {
    {.key = "images",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_idx, images),
     .is_required = true,
     .help = "IDX file of the inputs, may be .gz"},
    {.key = "labels",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_idx, labels),
     .help = "IDX file of the labels, may be .gz"},
    {.key = "input",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_idx, input),
     .help = "the model's input that takes them, when it has several"},
};
static const pen_option_table job_idx_table = {
    .size = sizeof(pen_job_idx),
    PEN_OPTION_FIELDS(job_idx_fields),
};

static const pen_option_field job_array_item = {
    .kind = PEN_OPTION_PATH,
    .offset = offsetof(pen_job_array, file),
    .help = "NPY file",
};
static const pen_option_field job_npy_fields[] = {
    {.key = "inputs",
     .kind = PEN_OPTION_MAP,
     .offset = offsetof(pen_job_npy, inputs),
     .is_required = true,
     .item = &job_array_item,
     .entry_bytes = sizeof(pen_job_array),
     .count_minimum = 1,
     .count_maximum = PEN_DATASET_INPUT_COUNT_LIMIT,
     .help = "the NPY file of each input of the model"},
    {.key = "labels",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_npy, labels),
     .help = "NPY file of the labels"},
};
static const pen_option_table job_npy_table = {
    .size = sizeof(pen_job_npy),
    PEN_OPTION_FIELDS(job_npy_fields),
};

static const pen_option_field job_csv_fields[] = {
    {.key = "file",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_csv, file),
     .is_required = true,
     .help = "CSV file, a line an example"},
    {.key = "label_column",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_csv, label_column),
     .help = "name of the column with the labels, or its index from 0; -1 is the last"},
    {.key = "header",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_csv, header),
     .present_offset = offsetof(pen_job_csv, header_is_given),
     .help = "whether the first line has names; found out when not given"},
    {.key = "delimiter",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_csv, delimiter),
     .default_text = ",",
     .help = "the character between columns"},
    {.key = "input",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_csv, input),
     .help = "the model's input that takes the columns, when it has several"},
};

static pen_status job_check_csv(const void *object, const pen_option_source *source) {
    const pen_job_csv *csv = object;
    const char delimiter = csv->delimiter[0];
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
    .size = sizeof(pen_job_csv),
    PEN_OPTION_FIELDS(job_csv_fields),
    .check = job_check_csv,
};

static const pen_option_field job_side_item = {
    .kind = PEN_OPTION_INTEGER,
    .minimum = PEN_OPTION_FROM(1),
    .maximum = PEN_OPTION_TO(PEN_IMAGE_SIDE_LIMIT),
};
static const char *const job_image_formats[] = {"channels_first", "channels_last", NULL};
static const pen_option_field job_images_fields[] = {
    {.key = "folder",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_images, folder),
     .is_required = true,
     .help = "folder with a folder of JPEG and PNG files for each class"},
    {.key = "size",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_images, size),
     .item = &job_side_item,
     .is_list_optional = true,
     .count_minimum = 1,
     .count_maximum = 2,
     .default_text = "224",
     .help = "side in pixels, or [height, width]"},
    {.key = "channels",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_images, channels),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(3),
     .default_text = "3",
     .help = "1 for gray, 3 for colour"},
    {.key = "data_format",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_images, data_format),
     .choices = job_image_formats,
     .default_text = "channels_first",
     .help = "whether the model takes channels before or behind height and width"},
    {.key = "input",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_images, input),
     .help = "the model's input that takes them, when it has several"},
};

static pen_status job_check_images(const void *object, const pen_option_source *source) {
    const pen_job_images *images = object;
    if (images->channels != 2) return PEN_OK;
    return pen_option_blame(
        source, &images->channels,
        pen_error(PEN_INVALID_INPUT, "channels: found 2, expected 1 (gray) or 3 (colour)"));
}

static const pen_option_table job_images_table = {
    .size = sizeof(pen_job_images),
    PEN_OPTION_FIELDS(job_images_fields),
    .check = job_check_images,
};

// How examples lie in a row of tokens, as formats of such have it.
#define JOB_SEQUENCE_FIELDS(type)                                                                  \
    {.key = "sequence",                                                                            \
     .kind = PEN_OPTION_INTEGER,                                                                   \
     .offset = offsetof(type, sequence),                                                           \
     .minimum = PEN_OPTION_FROM(1),                                                                \
     .maximum = PEN_OPTION_TO(PEN_SEQUENCE_LIMIT),                                                 \
     .is_required = true,                                                                          \
     .help = "tokens of an example; its labels are the tokens behind each"},                       \
        {.key = "stride",                                                                          \
         .kind = PEN_OPTION_INTEGER,                                                               \
         .offset = offsetof(type, stride),                                                         \
         .minimum = PEN_OPTION_FROM(1),                                                            \
         .maximum = PEN_OPTION_TO(INT32_MAX),                                                      \
         .help = "tokens from the beginning of one example to that of the next; else sequence"},   \
    {                                                                                              \
        .key = "input", .kind = PEN_OPTION_TEXT, .offset = offsetof(type, input),                  \
        .help = "the model's input that takes them, when it has several"                           \
    }
static const pen_option_field job_text_fields[] = {
    {.key = "file",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_text, file),
     .is_required = true,
     .help = "any file, may be .gz; each byte is a token"},
    JOB_SEQUENCE_FIELDS(pen_job_text),
};
static const pen_option_table job_text_table = {
    .size = sizeof(pen_job_text),
    PEN_OPTION_FIELDS(job_text_fields),
};

static const char *const job_token_elements[] = {
    [PEN_TOKEN_AUTO] = "auto",     [PEN_TOKEN_UINT8] = "uint8", [PEN_TOKEN_INT8] = "int8",
    [PEN_TOKEN_UINT16] = "uint16", [PEN_TOKEN_INT16] = "int16", [PEN_TOKEN_UINT32] = "uint32",
    [PEN_TOKEN_INT32] = "int32",   [PEN_TOKEN_INT64] = "int64", NULL,
};
static const pen_option_field job_tokens_fields[] = {
    {.key = "file",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_tokens, file),
     .is_required = true,
     .help = "NPY file of one dimension, or little-endian numbers without a header"},
    {.key = "element",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_tokens, element),
     .choices = job_token_elements,
     .default_text = "auto",
     .help = "the numbers in the file; auto: what NPY says, else uint16"},
    JOB_SEQUENCE_FIELDS(pen_job_tokens),
};
static const pen_option_table job_tokens_table = {
    .size = sizeof(pen_job_tokens),
    PEN_OPTION_FIELDS(job_tokens_fields),
};

static const pen_option_field job_dataset_variants[] = {
    [PEN_JOB_IDX] = {.key = "idx",
                     .kind = PEN_OPTION_MAPPING,
                     .offset = offsetof(pen_job_dataset, idx),
                     .table = &job_idx_table,
                     .help = "IDX files, as MNIST comes"},
    [PEN_JOB_NPY] = {.key = "npy",
                     .kind = PEN_OPTION_MAPPING,
                     .offset = offsetof(pen_job_dataset, npy),
                     .table = &job_npy_table,
                     .help = "NumPy arrays, the first dimension counts examples"},
    [PEN_JOB_CSV] = {.key = "csv",
                     .kind = PEN_OPTION_MAPPING,
                     .offset = offsetof(pen_job_dataset, csv),
                     .table = &job_csv_table,
                     .help = "numbers in a CSV file"},
    [PEN_JOB_IMAGES] = {.key = "images",
                        .kind = PEN_OPTION_MAPPING,
                        .offset = offsetof(pen_job_dataset, images),
                        .table = &job_images_table,
                        .help = "JPEG and PNG files, labels by folder"},
    [PEN_JOB_TEXT] = {.key = "text",
                      .kind = PEN_OPTION_MAPPING,
                      .offset = offsetof(pen_job_dataset, text),
                      .table = &job_text_table,
                      .help = "sequences of the bytes of a file, to predict the next"},
    [PEN_JOB_TOKENS] = {.key = "tokens",
                        .kind = PEN_OPTION_MAPPING,
                        .offset = offsetof(pen_job_dataset, tokens),
                        .table = &job_tokens_table,
                        .help = "sequences of a file of tokens, to predict the next"},
};
static const char *const job_label_types[] = {
    [PEN_JOB_LABEL_AUTO] = "auto",
    [PEN_JOB_LABEL_INDEX] = "index",
    [PEN_JOB_LABEL_NUMBER] = "number",
    NULL,
};
static const pen_option_field job_dataset_fields[] = {
    {.key = "limit",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_job_dataset, limit),
     .minimum = PEN_OPTION_FROM(1),
     .help = "use no more examples than so many"},
    {.key = "label_type",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_dataset, label_type),
     .choices = job_label_types,
     .default_text = "auto",
     .help = "whether labels are class indices or numbers"},
};
static const pen_option_table job_dataset_table = {
    .size = sizeof(pen_job_dataset),
    PEN_OPTION_FIELDS(job_dataset_fields),
    .tag = "format",
    .tag_help = "the kind of the files",
    PEN_OPTION_VARIANTS(job_dataset_variants),
    .chosen_offset = offsetof(pen_job_dataset, format),
};

static const pen_option_field job_mean_item = {.kind = PEN_OPTION_NUMBER};
static const pen_option_field job_std_item = {
    .kind = PEN_OPTION_NUMBER,
    .minimum = PEN_OPTION_ABOVE(0),
};
static const pen_option_field job_normalize_fields[] = {
    {.key = "mean",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_normalize, mean),
     .item = &job_mean_item,
     .is_list_optional = true,
     .count_minimum = 1,
     .count_maximum = JOB_CHANNEL_COUNT_LIMIT,
     .help = "subtracted, for all channels or for each"},
    {.key = "std",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_normalize, std),
     .item = &job_std_item,
     .is_list_optional = true,
     .count_minimum = 1,
     .count_maximum = JOB_CHANNEL_COUNT_LIMIT,
     .help = "divided by, for all channels or for each"},
    {.key = "scale",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_normalize, scale),
     .minimum = PEN_OPTION_ABOVE(0),
     .help = "multiplied by, before the mean; 1/255 for bytes, else 1, when not given"},
};
static const pen_option_table job_normalize_table = {
    .size = sizeof(pen_job_normalize),
    PEN_OPTION_FIELDS(job_normalize_fields),
};

static const pen_option_field job_data_fields[] = {
    {.key = "train",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job_data, train),
     .present_offset = offsetof(pen_job_data, has_train),
     .table = &job_dataset_table,
     .may_be_file = true,
     .help = "what is trained on"},
    {.key = "eval",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job_data, eval),
     .present_offset = offsetof(pen_job_data, has_eval),
     .table = &job_dataset_table,
     .may_be_file = true,
     .help = "what is evaluated on"},
    {.key = "normalize",
     .kind = PEN_OPTION_MAPPING,
     .offset = offsetof(pen_job_data, normalize),
     .table = &job_normalize_table,
     .help = "inputs become (value * scale - mean) / std"},
    {.key = "flatten",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_data, flatten),
     .default_text = "false",
     .help = "give each example one dimension"},
    {.key = "holdout",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_data, holdout),
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_BELOW(1),
     .default_text = "0",
     .help = "fraction of train kept for evaluation, when there is no eval"},
};

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
    return PEN_OK;
}

const pen_option_table pen_job_data_table = {
    .size = sizeof(pen_job_data),
    PEN_OPTION_FIELDS(job_data_fields),
    .check = job_check_data,
};
