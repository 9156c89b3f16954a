#include "scheduler/data/picture_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/system/long_read.h"
#include "base/system/machine.h"
#include "base/thread.h"
#include "scheduler/data/augment/augment.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/decode_team.h"
#include "scheduler/data/image/image_decode.h"
#include "scheduler/data/image/image_resize.h"
#include "scheduler/data/normalization.h"

#define PICTURE_SIDE_DEFAULT 224

// What decodes one picture at a time.
typedef struct picture_hand {
    pen_image_decoder *decoder;
    pen_image_resizer *resizer;
    float *planes; // with channels last: one picture, channels first; made when it is needed
} picture_hand;

struct pen_picture_reader {
    pen_picture_open open;
    const void *context;
    const pen_dataset *dataset;
    uint64_t elements;      // of a picture
    uint64_t channel_count; // with channels last; else 0
    pen_normalization normalization;
    pen_decode_team *team; // the dataset's
    picture_hand *hands;   // [hand_count], one for each member of the team
    uint32_t hand_count;
};

// What is to be read, shared by all hands.
typedef struct picture_reading {
    const pen_picture_reader *reader;
    const uint64_t *indices;
    float *pictures;
    pen_mutex lock;
    uint64_t failed;   // the first of those that could not be read; UINT64_MAX: none. Guarded by
    pen_status status; // lock, as why
} picture_reading;

// Channels first; they are turned when all else is known.
static pen_status picture_choose_shape(const pen_dataset_options *options,
                                       pen_dataset_field *input) {
    const int64_t channels = options->image_channels == 0 ? 3 : options->image_channels;
    const int64_t height =
        options->image_height == 0 ? PICTURE_SIDE_DEFAULT : options->image_height;
    const int64_t width = options->image_width == 0 ? height : options->image_width;
    if (channels != 1 && channels != 3) {
        return pen_error(PEN_INVALID_INPUT, "pictures of %" PRId64 " channels, expected 1 or 3",
                         channels);
    }
    if (height < 1 || width < 1 || height > PEN_IMAGE_SIDE_LIMIT || width > PEN_IMAGE_SIDE_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "pictures of %" PRId64 " x %" PRId64 " pixels, expected sides of 1 to %d",
                         width, height, PEN_IMAGE_SIDE_LIMIT);
    }
    input->rank = 3;
    input->shape[0] = channels;
    input->shape[1] = height;
    input->shape[2] = width;
    return pen_dataset_field_measure(input, "images");
}

// Pictures are made plane by plane, and turned at the end.
static void picture_set_channels_last(pen_picture_reader *reader, pen_dataset_field *input) {
    const uint64_t channels = (uint64_t)input->shape[0];
    input->shape[0] = input->shape[1];
    input->shape[1] = input->shape[2];
    input->shape[2] = (int64_t)channels;
    reader->channel_count = channels;
}

// As many threads as are asked for, or as there are cores.
static pen_status picture_find_team(pen_dataset *dataset, const pen_dataset_options *options) {
    pen_machine machine;
    uint64_t count = options->threads;
    if (dataset->team != NULL) return PEN_OK;
    if (count == 0) {
        PEN_TRY(pen_machine_detect(dataset->arena, &machine));
        count = pen_max_u64(machine.core_count_allowed, 1);
    }
    count = pen_min_u64(count, PEN_DECODE_THREADS_LIMIT);
    return pen_decode_team_create((uint32_t)count, &dataset->team);
}

static pen_status picture_make_hands(pen_picture_reader *reader, const pen_dataset_field *input) {
    const uint32_t count = pen_decode_team_member_count(reader->team);
    reader->hands = pen_memory_allocate(count, sizeof *reader->hands);
    if (reader->hands == NULL) return pen_error_out_of_memory();
    reader->hand_count = count;
    for (uint32_t h = 0; h < count; h++) {
        picture_hand *hand = &reader->hands[h];
        PEN_TRY(pen_image_decoder_create(&hand->decoder));
        PEN_TRY(pen_image_resizer_create((uint32_t)input->shape[2], (uint32_t)input->shape[1],
                                         (uint32_t)input->shape[0], &hand->resizer));
    }
    return PEN_OK;
}

static void picture_turn(const pen_picture_reader *reader, const float *planes, float *out_pixels) {
    const uint64_t channels = reader->channel_count;
    const uint64_t pixels = reader->elements / channels;
    for (uint64_t c = 0; c < channels; c++) {
        for (uint64_t p = 0; p < pixels; p++) {
            out_pixels[p * channels + c] = planes[c * pixels + p];
        }
    }
}

// Where the rows of a picture go: those of a part of it to the resizer.
typedef struct picture_rows {
    const pen_dataset *dataset;
    uint64_t index;
    pen_image_resizer *resizer;
    float *planes;
    pen_augment_box part;
    uint32_t row; // that comes next
} picture_rows;

static pen_status picture_begin(void *context, pen_image_size size) {
    picture_rows *rows = context;
    const pen_dataset *dataset = rows->dataset;
    rows->row = 0;
    rows->part = pen_augment_find_crop(dataset->is_changed ? dataset->augment : NULL,
                                       dataset->epoch, rows->index, size.width, size.height);
    return pen_image_resizer_begin(
        rows->resizer, (pen_image_size){rows->part.width, rows->part.height}, rows->planes);
}

static void picture_take_row(void *context, const uint8_t *pixels) {
    picture_rows *rows = context;
    const uint32_t row = rows->row++;
    if (row < rows->part.top || row >= rows->part.top + rows->part.height) return;
    pen_image_resizer_add(rows->resizer, pixels + (size_t)rows->part.left * 3);
}

static pen_status picture_decode(picture_hand *hand, const pen_picture_reader *reader,
                                 const pen_picture *picture, uint64_t index, float *out_picture) {
    const bool is_turned = reader->channel_count > 0;
    if (is_turned && hand->planes == NULL) {
        hand->planes = pen_memory_allocate(reader->elements, sizeof *hand->planes);
        if (hand->planes == NULL) return pen_error_out_of_memory();
    }
    float *planes = is_turned ? hand->planes : out_picture;
    picture_rows rows = {
        .dataset = reader->dataset, .index = index, .resizer = hand->resizer, .planes = planes};
    const pen_image_taker taker = {&rows, picture_begin, picture_take_row};
    PEN_TRY(
        pen_image_decode(hand->decoder, picture->bytes, picture->length, picture->name, &taker));
    pen_normalization_apply(&reader->normalization, planes);
    if (is_turned) picture_turn(reader, planes, out_picture);
    return PEN_OK;
}

static pen_status picture_read_one(picture_hand *hand, const pen_picture_reader *reader,
                                   uint64_t index, float *out_picture) {
    pen_picture picture = {0};
    PEN_TRY(reader->open(reader->context, index, &picture));
    const pen_status status = picture_decode(hand, reader, &picture, index, out_picture);
    pen_mapping_close(&picture.file);
    return status;
}

// Of several pictures that cannot be read the first is told, whichever hand had it.
static void picture_note_failure(picture_reading *reading, uint64_t place, pen_status take_status) {
    pen_mutex_lock(&reading->lock);
    const bool is_first = place < reading->failed;
    const pen_status other = is_first ? reading->status : take_status;
    if (is_first) {
        reading->failed = place;
        reading->status = take_status;
    }
    pen_mutex_unlock(&reading->lock);
    pen_status_ignore(other, "one before it could not be read either");
}

static bool picture_read_place(void *context, uint32_t member, uint64_t place) {
    picture_reading *reading = context;
    const pen_picture_reader *reader = reading->reader;
    const pen_status status =
        picture_read_one(&reader->hands[member], reader, reading->indices[place],
                         reading->pictures + place * reader->elements);
    if (status == PEN_OK) return true;
    picture_note_failure(reading, place, status);
    return false; // those before it were begun
}

// Each thread takes the next picture, so that large ones hold nobody up.
pen_status pen_picture_reader_read(pen_picture_reader *reader, const uint64_t *indices,
                                   uint64_t count, float *out_pictures) {
    picture_reading reading = {
        .reader = reader, .indices = indices, .pictures = out_pictures, .failed = UINT64_MAX};
    pen_mutex_init(&reading.lock);
    pen_decode_team_run(reader->team, count, picture_read_place, &reading);
    pen_mutex_deinit(&reading.lock);
    return reading.status;
}

// ---- broken pictures

#define PICTURE_CHECKED_AT_ONCE 512

// Pictures that are looked at, some at a time.
typedef struct picture_check {
    const pen_picture_reader *reader;
    uint64_t first;
    pen_status found[PICTURE_CHECKED_AT_ONCE];
} picture_check;

static pen_status picture_ignore_size(void *context, pen_image_size size) {
    (void)context;
    (void)size;
    return PEN_OK;
}

static void picture_ignore_row(void *context, const uint8_t *pixels) {
    (void)context;
    (void)pixels;
}

static bool picture_check_place(void *context, uint32_t member, uint64_t place) {
    static const pen_image_taker taker = {NULL, picture_ignore_size, picture_ignore_row};
    picture_check *check = context;
    const pen_picture_reader *reader = check->reader;
    pen_picture picture = {0};
    pen_status status = reader->open(reader->context, check->first + place, &picture);
    if (status == PEN_OK) {
        status = pen_image_decode(reader->hands[member].decoder, picture.bytes, picture.length,
                                  picture.name, &taker);
        pen_mapping_close(&picture.file);
    }
    check->found[place] = status;
    return true;
}

// What is no fault of the picture ends the search.
static pen_status picture_note_broken(uint64_t place, pen_status take_status, pen_arena *arena,
                                      uint64_t *broken, pen_dataset_info *info) {
    const pen_status_code code = pen_status_get_code(take_status);
    char text[PEN_PICTURE_NAME_BYTES + 256];
    if (code != PEN_CORRUPT && code != PEN_UNSUPPORTED) return take_status;
    snprintf(text, sizeof text, "%s", pen_status_message(take_status));
    pen_status_ignore(take_status, "the picture is left out, and counted");
    if (info->broken_count == PEN_DATASET_BROKEN_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "more than %d pictures are broken: %s",
                         PEN_DATASET_BROKEN_LIMIT, info->broken_text);
    }
    broken[info->broken_count++] = place;
    if (info->broken_count > 1) return PEN_OK;
    return pen_arena_copy_text(arena, text, strlen(text), &info->broken_text);
}

// After an error what else was found is let go.
static pen_status picture_take_found(picture_check *check, uint64_t count, pen_arena *arena,
                                     uint64_t *broken, pen_dataset_info *info) {
    pen_status status = PEN_OK;
    for (uint64_t i = 0; i < count; i++) {
        const pen_status found = check->found[i];
        if (found == PEN_OK) continue;
        if (status == PEN_OK) {
            status = picture_note_broken(check->first + i, found, arena, broken, info);
        } else {
            pen_status_ignore(found, "one before it ended the search");
        }
    }
    return status;
}

pen_status pen_picture_reader_find_broken(pen_picture_reader *reader, uint64_t count,
                                          pen_arena *arena, pen_dataset_info *info) {
    picture_check check = {.reader = reader};
    pen_long_read progress;
    pen_status status = PEN_OK;
    uint64_t *broken;
    PEN_TRY(PEN_NEW(arena, pen_min_u64(count, PEN_DATASET_BROKEN_LIMIT), &broken));
    pen_long_read_begin(&progress, "looking at", "pictures", count);
    while (check.first < count && status == PEN_OK) {
        const uint64_t now = pen_min_u64(count - check.first, PICTURE_CHECKED_AT_ONCE);
        pen_decode_team_run(reader->team, now, picture_check_place, &check);
        status = picture_take_found(&check, now, arena, broken, info);
        check.first += now;
        if (status == PEN_OK) status = pen_long_read_look(&progress, check.first);
    }
    pen_long_read_end(&progress);
    info->broken = broken;
    return status;
}

static pen_status picture_prepare(pen_picture_reader *reader, const pen_dataset_options *options,
                                  pen_dataset *dataset, pen_dataset_field *field) {
    PEN_TRY(picture_choose_shape(options, field));
    PEN_TRY(pen_normalization_init(&reader->normalization, options, field, 1.0 / 255, false,
                                   dataset->arena));
    PEN_TRY(picture_find_team(dataset, options));
    reader->team = dataset->team;
    PEN_TRY(picture_make_hands(reader, field));
    reader->elements = field->element_count;
    reader->dataset = dataset;
    field->is_decoded = true;
    if (options->channels_last) picture_set_channels_last(reader, field);
    pen_dataset_field_flatten(field, options);
    return PEN_OK;
}

pen_status pen_picture_reader_create(const pen_dataset_options *options, pen_picture_open open,
                                     const void *context, pen_dataset *dataset,
                                     pen_dataset_field *field, pen_picture_reader **out_reader) {
    pen_picture_reader *reader = pen_memory_allocate(1, sizeof *reader);
    if (reader == NULL) return pen_error_out_of_memory();
    reader->open = open;
    reader->context = context;
    const pen_status status = picture_prepare(reader, options, dataset, field);
    if (status != PEN_OK) {
        pen_picture_reader_destroy(reader);
        return status;
    }
    *out_reader = reader;
    return PEN_OK;
}

void pen_picture_reader_destroy(pen_picture_reader *reader) {
    if (reader == NULL) return;
    for (uint32_t h = 0; h < reader->hand_count; h++) {
        pen_image_decoder_destroy(reader->hands[h].decoder);
        pen_image_resizer_destroy(reader->hands[h].resizer);
        pen_memory_free(reader->hands[h].planes);
    }
    pen_memory_free(reader->hands);
    pen_memory_free(reader);
}

void pen_picture_hurry(const pen_dataset *dataset, bool hurries) {
    pen_decode_team_hurry(dataset->team, hurries);
}
