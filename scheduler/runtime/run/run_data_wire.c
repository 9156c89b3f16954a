#include "scheduler/runtime/run/run_data.h"

#include "scheduler/data/decode_team.h"

#define RUN_DATA_CHANNELS 1024 // of normalization

#define FILE_ROW(kind, number, member, ...)                                                        \
    PEN_RECORD_ROW(kind, number, #member, pen_dataset_input, member, __VA_ARGS__)
#define DATA(kind, number, member, ...)                                                            \
    PEN_RECORD_ROW(kind, number, #member, pen_run_data, options.member, __VA_ARGS__)
#define OWN(number, member, ...)                                                                   \
    PEN_RECORD_ROW(NUMBER, number, #member, pen_run_data, member, __VA_ARGS__)
#define REALS(number, member, count)                                                               \
    PEN_RECORD_LIST_ROW(ITEMS, FIXED, number, #member, pen_run_data, options.member,               \
                        options.count, NULL, .is_real = true, .limit = RUN_DATA_CHANNELS)
#define FILES(number, member, count)                                                               \
    PEN_RECORD_LIST_ROW(ITEMS, MESSAGE, number, #member, pen_run_data, options.member,             \
                        options.count, NULL, .record = &file_record,                               \
                        .limit = PEN_DATA_FILES_LIMIT)

static const pen_record_field file_fields[] = {
    FILE_ROW(NAME, 1, name, "of the graph's input, or of the labels"),
    FILE_ROW(NAME, 2, path, NULL),
    FILE_ROW(NUMBER, 3, element, "0 as in the file, 1 float32, 2 int64",
             .limit = PEN_DATASET_INT64),
};
static const pen_record file_record = {.name = "RunFile", PEN_RECORD_FIELDS(file_fields)};

#define TARGET(kind, number, member, ...)                                                          \
    PEN_RECORD_ROW(kind, number, #member, pen_dataset_target, member, __VA_ARGS__)
static const pen_record_field target_fields[] = {
    TARGET(NAME, 1, labels, "their name; empty: the only ones"),
    TARGET(NUMBER, 2, has_classes, "the labels are class indices"),
    TARGET(NUMBER, 3, ignores, NULL),
    TARGET(SIGNED, 4, ignore_index, "of targets that do not count"),
};
static const pen_record target_record = {.name = "RunTarget", PEN_RECORD_FIELDS(target_fields)};

#define STEP(kind, number, member, ...)                                                            \
    PEN_RECORD_ROW(kind, number, #member, pen_augment_step, member, __VA_ARGS__)
#define STEP_REAL(number, member) STEP(FIXED, number, member, NULL, .is_real = true)
static const pen_record_field step_fields[] = {
    STEP(NUMBER, 1, kind,
         "0 random crop, 1 random resized crop, 2 and 3 horizontal and vertical flip, 4 color "
         "jitter, 5 random erasing",
         .limit = PEN_AUGMENT_RANDOM_ERASING),
    STEP_REAL(2, probability),
    STEP(SIGNED, 3, padding, "pixels"),
    STEP_REAL(4, fill),
    STEP_REAL(5, scale_low),
    STEP_REAL(6, scale_high),
    STEP_REAL(7, ratio_low),
    STEP_REAL(8, ratio_high),
    STEP_REAL(9, brightness),
    STEP_REAL(10, contrast),
    STEP_REAL(11, saturation),
    STEP_REAL(12, maximum),
};
static const pen_record step_record = {.name = "RunAugment", PEN_RECORD_FIELDS(step_fields)};

static const pen_record_field data_fields[] = {
    DATA(NAME, 1, format, "\"npy\"", .is_required = true),
    DATA(NAME, 2, path, NULL),
    DATA(NAME, 3, labels, "file of the only labels"),
    FILES(4, label_files, label_file_count),
    DATA(NAME, 5, input_name, NULL),
    FILES(6, inputs, input_count),
    DATA(NUMBER, 7, label_element, "as of files", .limit = PEN_DATASET_INT64),
    DATA(FIXED, 8, scale, NULL, .is_real = true),
    REALS(9, mean, mean_count),
    REALS(10, deviation, deviation_count),
    DATA(NUMBER, 11, flatten, NULL),
    DATA(SIGNED, 12, image_height, NULL),
    DATA(SIGNED, 13, image_width, NULL),
    DATA(SIGNED, 14, image_channels, NULL),
    DATA(NUMBER, 15, channels_last, NULL),
    DATA(NAME, 16, label_column, NULL),
    DATA(NUMBER, 17, header, "0 found out, 1 yes, 2 no", .limit = PEN_DATASET_HEADER_NO),
    OWN(18, delimiter, "a byte; 0: a comma", .limit = 127),
    DATA(NUMBER, 19, sequence, "tokens of an example"),
    DATA(NUMBER, 20, stride, NULL),
    DATA(NUMBER, 21, token_element, NULL, .limit = PEN_TOKEN_INT64),
    DATA(FIXED, 22, holdout, "fraction held out", .is_real = true),
    DATA(NUMBER, 23, part, "0 what is left, 1 what is held out", .limit = PEN_DATASET_PART_EVAL),
    PEN_RECORD_ROW(NUMBER, 24, "holdout_seed", pen_run_data, options.seed, NULL),
    DATA(NUMBER, 25, example_limit, NULL),
    OWN(26, shuffle, NULL),
    OWN(27, seed, "of the order"),
    OWN(28, count, "examples that the coordinator has"),
    OWN(29, fingerprint, "of them"),
    DATA(NAME, 31, connection, "of a database, without a password"),
    DATA(NAME, 32, query, NULL),
    DATA(NAME, 33, partition, "column that rows are ordered by"),
    DATA(NAME, 34, cache, "folder of what was read of it"),
    DATA(NUMBER, 35, byte_element, "0 pictures, else 1 and more: bool, uint8, ..., float64",
         .limit = PEN_NPY_FLOAT64 + 1),
    PEN_RECORD_LIST_ROW(ITEMS, SIGNED, 36, "byte_shape", pen_run_data, options.byte_shape,
                        options.byte_rank, NULL, .limit = PEN_RANK_LIMIT - 1),
    FILES(37, shards, shard_count),
    DATA(NUMBER, 38, threads, "that decode pictures at once; 0: cores",
         .limit = PEN_DECODE_THREADS_LIMIT),
    PEN_RECORD_LIST_ROW(ITEMS, MESSAGE, 30, "targets", pen_run_data, options.targets,
                        options.target_count, "what losses take of the labels",
                        .record = &target_record, .limit = PEN_LOSSES_LIMIT),
    DATA(NAME, 40, words_path, "csv: of the words and means that it takes; empty: its own"),
    DATA(NUMBER, 41, categories, "0 none, 1 one_hot, 2 index",
         .limit = PEN_DATASET_CATEGORIES_INDEX),
    DATA(NUMBER, 42, unknown_is_own, NULL),
    DATA(NUMBER, 43, missing, "0 an error, 1 the mean, 2 missing_value",
         .limit = PEN_DATASET_MISSING_VALUE),
    DATA(FIXED, 44, missing_value, NULL, .is_real = true),
    DATA(NUMBER, 45, skips_broken, "pictures"),
    PEN_RECORD_LIST_ROW(ITEMS, NUMBER, 46, "broken", pen_run_data, options.broken,
                        options.broken_count, "that are left out, of all files", .is_packed = true,
                        .limit = PEN_DATASET_BROKEN_LIMIT),
    DATA(NUMBER, 47, broken_is_known, "they are all"),
    DATA(NAME, 48, weight_column, "csv, sql, webdataset: that is no input"),
    PEN_RECORD_LIST_ROW(ITEMS, MESSAGE, 39, "augment", pen_run_data, options.augment,
                        options.augment_count, "changes of pictures, in their order",
                        .record = &step_record, .limit = PEN_AUGMENT_STEPS_LIMIT),
};
const pen_record pen_run_data_record = {
    .name = "RunData",
    .help = "What a worker reads by itself. Paths are absolute.",
    PEN_RECORD_FIELDS(data_fields),
};
