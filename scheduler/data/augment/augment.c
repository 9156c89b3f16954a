#include "scheduler/data/augment/augment.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/data/augment/augment_pixels.h"
#include "scheduler/data/image/image_resize.h"

// What one thread works with.
typedef struct augment_member {
    float *scratch;                                             // [scratch_count]
    pen_image_resizer *resizers[PEN_DATASET_INPUT_COUNT_LIMIT]; // NULL: not needed yet
} augment_member;

struct pen_augment {
    pen_augment_step *steps; // [step_count]
    uint32_t step_count;
    uint64_t seed;
    uint32_t input_count;
    pen_augment_layout layouts[PEN_DATASET_INPUT_COUNT_LIMIT]; // 0 channels: no picture
    bool is_cut[PEN_DATASET_INPUT_COUNT_LIMIT];                // before it was resized
    uint64_t scratch_count;
    augment_member *members; // [member_count]
    uint32_t member_count;
};

static const char *const augment_names[] = {
    [PEN_AUGMENT_RANDOM_CROP] = "random_crop",
    [PEN_AUGMENT_RANDOM_RESIZED_CROP] = "random_resized_crop",
    [PEN_AUGMENT_HORIZONTAL_FLIP] = "horizontal_flip",
    [PEN_AUGMENT_VERTICAL_FLIP] = "vertical_flip",
    [PEN_AUGMENT_COLOR_JITTER] = "color_jitter",
    [PEN_AUGMENT_RANDOM_ERASING] = "random_erasing",
};

// ---- what is possible

static bool augment_has_parts(const pen_augment_step *step) {
    return step->kind == PEN_AUGMENT_RANDOM_RESIZED_CROP ||
           step->kind == PEN_AUGMENT_RANDOM_ERASING;
}

// Numbers may come from another process, so tables of keys are not enough.
pen_status pen_augment_check_step(const pen_augment_step *step, uint32_t index) {
    const bool is_crop = step->kind == PEN_AUGMENT_RANDOM_CROP;
    const bool is_jitter = step->kind == PEN_AUGMENT_COLOR_JITTER;
    bool is_good = (uint32_t)step->kind <= PEN_AUGMENT_RANDOM_ERASING;
    PEN_ASSERT(is_good);
    is_good = step->probability >= 0 && step->probability <= 1 && isfinite((float)step->fill);
    if (is_crop) {
        is_good = is_good && step->padding >= 1 && step->padding <= PEN_AUGMENT_PADDING_LIMIT;
    }
    if (augment_has_parts(step)) {
        is_good = is_good && step->scale_low > 0 && step->scale_low <= step->scale_high &&
                  step->scale_high <= 1 && step->ratio_low >= 1e-3 &&
                  step->ratio_low <= step->ratio_high && step->ratio_high <= 1e3;
    }
    if (is_jitter) {
        is_good = is_good && step->brightness >= 0 && step->contrast >= 0 &&
                  step->saturation >= 0 && isfinite((float)step->brightness) &&
                  isfinite((float)step->contrast) && isfinite((float)step->saturation) &&
                  step->maximum > 0 && isfinite((float)step->maximum);
    }
    if (!is_good) {
        return pen_error(PEN_INVALID_INPUT,
                         "augment[%" PRIu32 "]: %s has a number out of its range", index,
                         augment_names[step->kind]);
    }
    if (step->kind != PEN_AUGMENT_RANDOM_RESIZED_CROP || index == 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "augment[%" PRIu32
                     "]: found random_resized_crop, expected it first: it is cut from a picture "
                     "before that is resized",
                     index);
}

// Labels that lie as the pixels do would have to follow them.
static pen_status augment_check_labels(const pen_dataset_info *info) {
    for (uint32_t i = 0; info->labels != NULL && i < info->label_count; i++) {
        if (info->labels[i].rank < 2) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "augment: the labels have %" PRIu32
                         " dimensions, and would not follow what is done to pictures; expected a "
                         "class, or some numbers, for each example",
                         info->labels[i].rank);
    }
    return PEN_OK;
}

static bool augment_counts_channels(int64_t size) {
    return size == 1 || size == 3 || size == 4;
}

// One channel, three or four are dimensions that cannot be a side; of both, the first counts.
pen_status pen_augment_find_layout(const pen_dataset_options *options,
                                   const pen_dataset_field *field, pen_augment_layout *layout) {
    const int64_t *shape = field->picture;
    const bool may_be_first = augment_counts_channels(shape[0]);
    const bool may_be_last = augment_counts_channels(shape[2]);
    const bool is_last = may_be_last && (options->channels_last || !may_be_first);
    if (!may_be_first && !is_last) {
        return pen_error(PEN_INVALID_INPUT,
                         "augment: examples of '%s' have the shape [%" PRId64 ", %" PRId64
                         ", %" PRId64 "], expected 1, 3 or 4 channels, first or last",
                         field->name, shape[0], shape[1], shape[2]);
    }
    const uint64_t sizes[3] = {(uint64_t)shape[0], (uint64_t)shape[1], (uint64_t)shape[2]};
    if (pen_max_u64(pen_max_u64(sizes[0], sizes[1]), sizes[2]) > PEN_IMAGE_SIDE_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "augment: '%s' has a side above %d", field->name,
                         PEN_IMAGE_SIDE_LIMIT);
    }
    const uint32_t first = is_last ? 0 : 1;
    layout->channels = (uint32_t)sizes[is_last ? 2 : 0];
    layout->height = (uint32_t)sizes[first];
    layout->width = (uint32_t)sizes[first + 1];
    layout->channel_stride = is_last ? 1 : sizes[1] * sizes[2];
    layout->row_stride = is_last ? sizes[1] * sizes[2] : sizes[2];
    layout->pixel_stride = is_last ? sizes[2] : 1;
    layout->element_count = field->element_count;
    return PEN_OK;
}

// Colours can be found again where each channel has one mean and deviation.
static pen_status augment_set_normalization(const pen_dataset_options *options,
                                            const pen_dataset_field *field,
                                            pen_augment_layout *layout) {
    layout->is_normalized = options->mean_count > 0 || options->deviation_count > 0;
    for (uint32_t c = 0; c < layout->channels; c++) {
        layout->mean[c] = 0;
        layout->deviation[c] = 1;
        const uint32_t m = options->mean_count > 1 ? c : 0;
        const uint32_t d = options->deviation_count > 1 ? c : 0;
        if (m < options->mean_count) layout->mean[c] = (float)options->mean[m];
        if (d < options->deviation_count) layout->deviation[c] = (float)options->deviation[d];
    }
    const bool is_apart = options->mean_count > 1 || options->deviation_count > 1;
    if (!is_apart || layout->channel_stride != 1 || field->is_decoded || layout->channels == 1) {
        return PEN_OK;
    }
    return pen_error(PEN_UNSUPPORTED,
                     "augment: '%s' has its channels last, and a mean or std for each row; "
                     "expected one for all",
                     field->name);
}

static pen_status augment_check_colours(const pen_augment *augment, const pen_dataset_field *field,
                                        const pen_augment_layout *layout) {
    for (uint32_t s = 0; s < augment->step_count; s++) {
        const bool has_colours = augment->steps[s].kind == PEN_AUGMENT_COLOR_JITTER;
        const bool is_resized = augment->steps[s].kind == PEN_AUGMENT_RANDOM_RESIZED_CROP;
        if ((!has_colours && !is_resized) || layout->channels != 4) continue;
        return pen_error(PEN_UNSUPPORTED,
                         "augment[%" PRIu32 "]: '%s' has 4 channels, %s takes 1 or 3", s,
                         field->name, augment_names[augment->steps[s].kind]);
    }
    return PEN_OK;
}

// Which inputs are pictures, and how they lie.
static pen_status augment_take_inputs(pen_augment *augment, const pen_dataset_options *options,
                                      const pen_dataset_info *info) {
    bool has_some = false;
    augment->input_count = info->input_count;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const pen_dataset_field *field = &info->inputs[i];
        pen_augment_layout *layout = &augment->layouts[i];
        if (field->picture[0] == 0 || field->element != PEN_DATASET_FLOAT32) continue;
        PEN_TRY(pen_augment_find_layout(options, field, layout));
        PEN_TRY(augment_set_normalization(options, field, layout));
        PEN_TRY(augment_check_colours(augment, field, layout));
        augment->is_cut[i] = field->is_decoded;
        augment->scratch_count = pen_max_u64(augment->scratch_count, field->element_count);
        has_some = true;
    }
    if (has_some) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "augment: no input is a picture, expected float32 of two or three dimensions "
                     "an example");
}

// ---- life

// All that is asked for is checked here, so that changes cannot fail but for what pictures hold.
static pen_status augment_prepare(pen_augment *augment, const pen_dataset_options *options,
                                  const pen_dataset_info *info, uint32_t member_count) {
    const uint32_t count = options->augment_count;
    if (count > PEN_AUGMENT_STEPS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "augment: %" PRIu32 " changes, expected at most %d",
                         count, PEN_AUGMENT_STEPS_LIMIT);
    }
    augment->steps = pen_memory_allocate(count, sizeof *augment->steps);
    augment->members = pen_memory_allocate(member_count, sizeof *augment->members);
    if (augment->steps == NULL || augment->members == NULL) return pen_error_out_of_memory();
    memcpy(augment->steps, options->augment, count * sizeof *augment->steps);
    augment->step_count = count;
    augment->member_count = member_count;
    augment->seed = options->seed;
    for (uint32_t s = 0; s < count; s++) {
        PEN_TRY(pen_augment_check_step(&augment->steps[s], s));
    }
    PEN_TRY(augment_check_labels(info));
    PEN_TRY(augment_take_inputs(augment, options, info));
    for (uint32_t m = 0; m < member_count; m++) {
        augment_member *member = &augment->members[m];
        member->scratch = pen_memory_allocate(augment->scratch_count, sizeof *member->scratch);
        if (member->scratch == NULL) return pen_error_out_of_memory();
    }
    return PEN_OK;
}

pen_status pen_augment_create(const pen_dataset_options *options, const pen_dataset_info *info,
                              uint32_t member_count, pen_augment **out_augment) {
    pen_augment *augment = pen_memory_allocate(1, sizeof *augment);
    if (augment == NULL) return pen_error_out_of_memory();
    const pen_status status = augment_prepare(augment, options, info, member_count);
    if (status != PEN_OK) {
        pen_augment_destroy(augment);
        return status;
    }
    *out_augment = augment;
    return PEN_OK;
}

void pen_augment_destroy(pen_augment *augment) {
    if (augment == NULL) return;
    for (uint32_t m = 0; m < augment->member_count; m++) {
        for (uint32_t i = 0; i < augment->input_count; i++) {
            pen_image_resizer_destroy(augment->members[m].resizers[i]);
        }
        pen_memory_free(augment->members[m].scratch);
    }
    pen_memory_free(augment->members);
    pen_memory_free(augment->steps);
    pen_memory_free(augment);
}

// ---- changes

pen_augment_box pen_augment_find_crop(const pen_augment *augment, uint64_t epoch, uint64_t example,
                                      uint32_t width, uint32_t height) {
    if (augment == NULL || augment->steps[0].kind != PEN_AUGMENT_RANDOM_RESIZED_CROP) {
        return (pen_augment_box){.width = width, .height = height};
    }
    const pen_augment_dice dice = pen_augment_dice_of(augment->seed, epoch, 0, example);
    return pen_augment_draw_crop(&augment->steps[0], dice, width, height);
}

// The part is made as large as the picture, as files are when they are read.
static pen_status augment_resize(pen_augment *augment, uint32_t member_index, uint32_t input,
                                 pen_augment_box box, float *values) {
    const pen_augment_layout *layout = &augment->layouts[input];
    augment_member *member = &augment->members[member_index];
    pen_image_resizer **resizer = &member->resizers[input];
    if (*resizer == NULL) {
        PEN_TRY(pen_image_resizer_create(layout->width, layout->height, layout->channels, resizer));
    }
    PEN_TRY(pen_image_resizer_begin(*resizer, (pen_image_size){box.width, box.height},
                                    member->scratch));
    for (uint32_t y = 0; y < box.height; y++) {
        pen_image_resizer_add_colours(
            *resizer, values + (box.top + y) * layout->row_stride + box.left * layout->pixel_stride,
            layout->channel_stride, layout->pixel_stride);
    }
    const float *plane = member->scratch;
    for (uint32_t c = 0; c < layout->channels; c++) {
        for (uint32_t y = 0; y < layout->height; y++) {
            float *row = values + c * layout->channel_stride + y * layout->row_stride;
            for (uint32_t x = 0; x < layout->width; x++)
                row[x * layout->pixel_stride] = *plane++;
        }
    }
    return PEN_OK;
}

static pen_status augment_jitter(const pen_augment_layout *layout, const pen_augment_step *step,
                                 pen_augment_dice dice, uint64_t example, float *values) {
    float value;
    if (pen_augment_jitter(layout, step, dice, values, &value)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "color_jitter: example %" PRIu64
                     " (counted from 0) has the value %g, expected 0 to %g; say another maximum, "
                     "or a scale",
                     example, (double)value, step->maximum);
}

// What is changed, and by whom.
typedef struct augment_picture {
    uint32_t member;
    uint32_t input;
    uint64_t example;
    float *values;
} augment_picture;

// One change; each draws numbers of its own.
static pen_status augment_change(pen_augment *augment, const pen_augment_step *step,
                                 pen_augment_dice dice, const augment_picture *picture) {
    const pen_augment_layout *layout = &augment->layouts[picture->input];
    float *values = picture->values;
    const uint32_t width = layout->width, height = layout->height;
    pen_augment_box box;
    switch (step->kind) {
    case PEN_AUGMENT_RANDOM_CROP:
        pen_augment_move(layout, step, dice, values, augment->members[picture->member].scratch);
        return PEN_OK;
    case PEN_AUGMENT_RANDOM_RESIZED_CROP:
        if (augment->is_cut[picture->input]) return PEN_OK;
        box = pen_augment_draw_crop(step, dice, width, height);
        return augment_resize(augment, picture->member, picture->input, box, values);
    case PEN_AUGMENT_HORIZONTAL_FLIP:
        if (pen_augment_uniform(dice, 0) < step->probability) {
            pen_augment_flip_horizontal(layout, values);
        }
        return PEN_OK;
    case PEN_AUGMENT_VERTICAL_FLIP:
        if (pen_augment_uniform(dice, 0) < step->probability) {
            pen_augment_flip_vertical(layout, values);
        }
        return PEN_OK;
    case PEN_AUGMENT_COLOR_JITTER:
        return augment_jitter(layout, step, dice, picture->example, values);
    case PEN_AUGMENT_RANDOM_ERASING:
        if (pen_augment_draw_erasing(step, dice, width, height, &box)) {
            pen_augment_erase(layout, step, box, values);
        }
        return PEN_OK;
    }
    return PEN_OK;
}

pen_status pen_augment_apply(pen_augment *augment, uint32_t member, uint64_t epoch,
                             uint64_t example, uint32_t input, float *values) {
    if (augment->layouts[input].channels == 0) return PEN_OK;
    const augment_picture picture = {member, input, example, values};
    for (uint32_t s = 0; s < augment->step_count; s++) {
        const pen_augment_dice dice = pen_augment_dice_of(augment->seed, epoch, s, example);
        PEN_TRY(augment_change(augment, &augment->steps[s], dice, &picture));
    }
    return PEN_OK;
}
