// Changes by chance to the pictures of a dataset, made each time that they are read for training.
//
// Each input that is a picture is changed, all of an example in the same way.
//
// Lifetime: from create to destroy; options and fields outlive it.
// Threads:  members of a team change different examples at once, each with a number of its own.
#ifndef PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_H
#define PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_H

#include "base/arena.h"
#include "scheduler/data/augment/augment_draw.h"
#include "scheduler/data/augment/augment_pixels.h"
#include "scheduler/data/dataset.h"

typedef struct pen_augment pen_augment;

// Looks at the numbers of a step, and whether it may be at this place of the list.
//   INVALID_INPUT  names it by its place
PEN_NODISCARD pen_status pen_augment_check_step(const pen_augment_step *step, uint32_t index);

// How the pixels of a picture lie: which of three dimensions counts channels is said by the
// options, else seen. Mean and deviation stay as they are.
//   INVALID_INPUT  none does; or a side is above PEN_IMAGE_SIDE_LIMIT
PEN_NODISCARD pen_status pen_augment_find_layout(const pen_dataset_options *options,
                                                 const pen_dataset_field *field,
                                                 pen_augment_layout *layout);

// For `member_count` threads.
//   INVALID_INPUT  no input is a picture, labels are, or a number is out of its range
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_augment_create(const pen_dataset_options *options,
                                            const pen_dataset_info *info, uint32_t member_count,
                                            pen_augment **out_augment);
// Accepts NULL.
void pen_augment_destroy(pen_augment *augment);

// The part that is cut from a picture before it is resized. `augment` may be NULL: all of it.
pen_augment_box pen_augment_find_crop(const pen_augment *augment, uint64_t epoch, uint64_t example,
                                      uint32_t width, uint32_t height);

// Example `example`, as the files number it, of input `input`.
//   INVALID_INPUT  a number is no colour; names the example
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_augment_apply(pen_augment *augment, uint32_t member, uint64_t epoch,
                                           uint64_t example, uint32_t input, float *values);

#endif // PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_H
