// Pictures as examples: decoded, resized and normalized, several at once.
//
// Where the bytes of a picture come from, a file or a part of one, its format knows.
//
// Lifetime: from create to destroy; the dataset's arena and its team of threads outlive it.
// Threads:  one thread at a time reads, of one dataset; the dataset's team decodes.
#ifndef PEN_SCHEDULER_DATA_PICTURE_READER_H
#define PEN_SCHEDULER_DATA_PICTURE_READER_H

#include "base/arena.h"
#include "base/system/file.h"
#include "scheduler/data/dataset.h"

#define PEN_PICTURE_NAME_BYTES 512

// The bytes of one picture, and what messages call it.
typedef struct pen_picture {
    const uint8_t *bytes;
    size_t length;
    pen_mapping file; // closed when the picture was read; all zero: none
    char name[PEN_PICTURE_NAME_BYTES];
} pen_picture;

// Gives picture `index`. Called by several threads at once.
typedef pen_status (*pen_picture_open)(const void *context, uint64_t index,
                                       pen_picture *out_picture);

typedef struct pen_picture_reader pen_picture_reader;

// Makes `field` that of pictures, as the options of images say. The first of a dataset makes its
// team.
//   INVALID_INPUT  sides or channels that pictures cannot have; normalization does not fit
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_picture_reader_create(const pen_dataset_options *options,
                                                   pen_picture_open open, const void *context,
                                                   pen_dataset *dataset, pen_dataset_field *field,
                                                   pen_picture_reader **out_reader);

// Accepts NULL.
void pen_picture_reader_destroy(pen_picture_reader *reader);

// Reads `count` pictures, one after another, to `out_pictures`. Of several that cannot be read the
// first is told. As pen_picture_open, pen_image_decode
PEN_NODISCARD pen_status pen_picture_reader_read(pen_picture_reader *reader,
                                                 const uint64_t *indices, uint64_t count,
                                                 float *out_pictures);

// Decodes pictures 0 to `count` - 1, and finds those that are damaged, or of a kind that is not
// read: their places, ascending, and what the first of them is. Memory is the arena's.
//   INVALID_INPUT  more than PEN_DATASET_BROKEN_LIMIT are
//   IO, CANCELLED, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_picture_reader_find_broken(pen_picture_reader *reader, uint64_t count,
                                                        pen_arena *arena, pen_dataset_info *info);

// Whether somebody waits for what is read of the dataset. Until then its pictures are decoded by
// threads that leave the cores to all others. Any thread may say so.
void pen_picture_hurry(const pen_dataset *dataset, bool hurries);

#endif // PEN_SCHEDULER_DATA_PICTURE_READER_H
