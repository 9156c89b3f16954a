#include "scheduler/data/picture_reader.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/system/machine.h"
#include "base/thread.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/image/image_decode.h"
#include "scheduler/data/image/image_resize.h"
#include "scheduler/data/normalization.h"

#define PICTURE_SIDE_DEFAULT 224
#define PICTURE_HANDS 4 // that decode at once, at most

// What decodes one picture at a time.
typedef struct picture_hand {
    pen_image_decoder *decoder;
    pen_image_resizer *resizer;
    float *planes;                   // with channels last: one picture, channels first; else NULL
    struct picture_reading *reading; // under way
} picture_hand;

struct pen_picture_reader {
    pen_picture_open open;
    const void *context;
    uint64_t elements;      // of a picture
    uint64_t channel_count; // with channels last; else 0
    pen_normalization normalization;
    picture_hand hands[PICTURE_HANDS]; // [hand_count], a thread each: the first is the caller's
    uint32_t hand_count;
};

// What is to be read, shared by all hands.
typedef struct picture_reading {
    const pen_picture_reader *reader;
    const uint64_t *indices;
    uint64_t count;
    float *pictures;
    atomic_uint_least64_t next;
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
static pen_status picture_set_channels_last(pen_picture_reader *reader, pen_dataset_field *input,
                                            pen_arena *arena) {
    const uint64_t channels = (uint64_t)input->shape[0];
    for (uint32_t h = 0; h < reader->hand_count; h++) {
        PEN_TRY(PEN_NEW(arena, input->element_count, &reader->hands[h].planes));
    }
    input->shape[0] = input->shape[1];
    input->shape[1] = input->shape[2];
    input->shape[2] = (int64_t)channels;
    reader->channel_count = channels;
    return PEN_OK;
}

// As many as there are cores.
static pen_status picture_make_hands(pen_picture_reader *reader, const pen_dataset_field *input,
                                     pen_arena *arena) {
    pen_machine machine;
    PEN_TRY(pen_machine_detect(arena, &machine));
    const uint32_t count =
        machine.core_count_allowed < PICTURE_HANDS ? machine.core_count_allowed : PICTURE_HANDS;
    for (uint32_t h = 0; h < count || h == 0; h++) {
        picture_hand *hand = &reader->hands[h];
        reader->hand_count = h + 1;
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

// Where the rows of a picture go: to the resizer.
typedef struct picture_rows {
    pen_image_resizer *resizer;
    float *planes;
} picture_rows;

static pen_status picture_begin(void *context, pen_image_size size) {
    const picture_rows *rows = context;
    return pen_image_resizer_begin(rows->resizer, size, rows->planes);
}

static void picture_take_row(void *context, const uint8_t *pixels) {
    const picture_rows *rows = context;
    pen_image_resizer_add(rows->resizer, pixels);
}

static pen_status picture_decode(const picture_hand *hand, const pen_picture_reader *reader,
                                 const pen_picture *picture, float *out_picture) {
    float *planes = hand->planes == NULL ? out_picture : hand->planes;
    picture_rows rows = {hand->resizer, planes};
    const pen_image_taker taker = {&rows, picture_begin, picture_take_row};
    PEN_TRY(
        pen_image_decode(hand->decoder, picture->bytes, picture->length, picture->name, &taker));
    pen_normalization_apply(&reader->normalization, planes);
    if (hand->planes != NULL) picture_turn(reader, planes, out_picture);
    return PEN_OK;
}

static pen_status picture_read_one(const picture_hand *hand, const pen_picture_reader *reader,
                                   uint64_t index, float *out_picture) {
    pen_picture picture = {0};
    PEN_TRY(reader->open(reader->context, index, &picture));
    const pen_status status = picture_decode(hand, reader, &picture, out_picture);
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

static void picture_run_hand(void *context) {
    const picture_hand *hand = context;
    picture_reading *reading = hand->reading;
    for (;;) {
        const uint64_t place = atomic_fetch_add(&reading->next, 1);
        if (place >= reading->count) return;
        const pen_status status =
            picture_read_one(hand, reading->reader, reading->indices[place],
                             reading->pictures + place * reading->reader->elements);
        if (status == PEN_OK) continue;
        atomic_store(&reading->next, reading->count); // those before it are under way
        picture_note_failure(reading, place, status);
    }
}

// Each hand takes the next picture, so that large ones hold nobody up. A thread that the system
// does not give is done without.
pen_status pen_picture_reader_read(pen_picture_reader *reader, const uint64_t *indices,
                                   uint64_t count, float *out_pictures) {
    pen_thread *threads[PICTURE_HANDS] = {NULL};
    picture_reading reading = {.reader = reader,
                               .indices = indices,
                               .count = count,
                               .pictures = out_pictures,
                               .failed = UINT64_MAX};
    pen_mutex_init(&reading.lock);
    for (uint32_t h = 0; h < reader->hand_count; h++) {
        reader->hands[h].reading = &reading;
        if (h == 0 || h >= count) continue;
        pen_status_ignore(
            pen_thread_create("penstock-decode", picture_run_hand, &reader->hands[h], &threads[h]),
            "the others read what it would have");
    }
    picture_run_hand(&reader->hands[0]);
    for (uint32_t h = 0; h < reader->hand_count; h++) {
        pen_thread_join(threads[h]);
    }
    pen_mutex_deinit(&reading.lock);
    return reading.status;
}

static pen_status picture_prepare(pen_picture_reader *reader, const pen_dataset_options *options,
                                  pen_arena *arena, pen_dataset_field *field) {
    PEN_TRY(picture_choose_shape(options, field));
    PEN_TRY(
        pen_normalization_init(&reader->normalization, options, field, 1.0 / 255, false, arena));
    PEN_TRY(picture_make_hands(reader, field, arena));
    reader->elements = field->element_count;
    if (options->channels_last) PEN_TRY(picture_set_channels_last(reader, field, arena));
    pen_dataset_field_flatten(field, options);
    return PEN_OK;
}

pen_status pen_picture_reader_create(const pen_dataset_options *options, pen_picture_open open,
                                     const void *context, pen_arena *arena,
                                     pen_dataset_field *field, pen_picture_reader **out_reader) {
    pen_picture_reader *reader = pen_memory_allocate(1, sizeof *reader);
    if (reader == NULL) return pen_error_out_of_memory();
    reader->open = open;
    reader->context = context;
    const pen_status status = picture_prepare(reader, options, arena, field);
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
    }
    pen_memory_free(reader);
}
