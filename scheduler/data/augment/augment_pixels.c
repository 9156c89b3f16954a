#include "scheduler/data/augment/augment_pixels.h"

#include <string.h>

#define PIXELS_JITTERS 3
#define PIXELS_ROUNDING 0.001f // of colours that were scaled

static float *pixels_row(const pen_augment_layout *layout, float *values, uint32_t channel,
                         uint32_t y) {
    return values + channel * layout->channel_stride + y * layout->row_stride;
}

// The picture is copied, and each pixel taken from where it comes from.
void pen_augment_move(const pen_augment_layout *layout, const pen_augment_step *step,
                      pen_augment_dice dice, float *values, float *scratch) {
    const uint32_t padding = (uint32_t)step->padding;
    const int64_t down = (int64_t)pen_augment_below(dice, 0, 2 * padding + 1) - padding;
    const int64_t right = (int64_t)pen_augment_below(dice, 1, 2 * padding + 1) - padding;
    const int64_t width = layout->width;
    memcpy(scratch, values, layout->element_count * sizeof *values);
    for (uint32_t c = 0; c < layout->channels; c++) {
        const float fill = ((float)step->fill - layout->mean[c]) / layout->deviation[c];
        for (uint32_t y = 0; y < layout->height; y++) {
            const int64_t from_y = y + down;
            const bool is_row = from_y >= 0 && from_y < layout->height;
            const float *from = pixels_row(layout, scratch, c, is_row ? (uint32_t)from_y : 0);
            float *to = pixels_row(layout, values, c, y);
            for (int64_t x = 0; x < width; x++) {
                const int64_t from_x = x + right;
                const bool is_there = is_row && from_x >= 0 && from_x < width;
                to[(uint64_t)x * layout->pixel_stride] =
                    is_there ? from[(uint64_t)from_x * layout->pixel_stride] : fill;
            }
        }
    }
}

static void pixels_swap(float *left, float *right) {
    const float kept = *left;
    *left = *right;
    *right = kept;
}

void pen_augment_flip_horizontal(const pen_augment_layout *layout, float *values) {
    for (uint32_t c = 0; c < layout->channels; c++) {
        for (uint32_t y = 0; y < layout->height; y++) {
            float *row = pixels_row(layout, values, c, y);
            for (uint32_t x = 0; x < layout->width / 2; x++) {
                pixels_swap(&row[x * layout->pixel_stride],
                            &row[(layout->width - 1 - x) * layout->pixel_stride]);
            }
        }
    }
}

void pen_augment_flip_vertical(const pen_augment_layout *layout, float *values) {
    for (uint32_t c = 0; c < layout->channels; c++) {
        for (uint32_t y = 0; y < layout->height / 2; y++) {
            float *upper = pixels_row(layout, values, c, y);
            float *lower = pixels_row(layout, values, c, layout->height - 1 - y);
            for (uint32_t x = 0; x < layout->width; x++) {
                pixels_swap(&upper[x * layout->pixel_stride], &lower[x * layout->pixel_stride]);
            }
        }
    }
}

static float pixels_clamp(float value, float maximum) {
    if (value < 0) return 0;
    return value > maximum ? maximum : value;
}

// How bright a pixel is to the eye, as torchvision weighs it.
static float pixels_gray(const pen_augment_layout *layout, const float *pixel) {
    if (layout->channels < 3) return pixel[0];
    return 0.2989f * pixel[0] + 0.587f * pixel[layout->channel_stride] +
           0.114f * pixel[2 * layout->channel_stride];
}

static float *pixels_at(const pen_augment_layout *layout, float *values, uint32_t y, uint32_t x) {
    return values + y * layout->row_stride + x * layout->pixel_stride;
}

// Each colour between itself and what it is blended with: black, the mean of the picture's grays,
// or its own pixel's gray.
static void pixels_blend(const pen_augment_layout *layout, float *values, float factor,
                         const float *other, float maximum) {
    const float rest = 1 - factor;
    for (uint32_t y = 0; y < layout->height; y++) {
        for (uint32_t x = 0; x < layout->width; x++) {
            float *pixel = pixels_at(layout, values, y, x);
            const float with = other == NULL ? pixels_gray(layout, pixel) : *other;
            for (uint32_t c = 0; c < layout->channels; c++) {
                float *value = &pixel[c * layout->channel_stride];
                *value = pixels_clamp(factor * *value + rest * with, maximum);
            }
        }
    }
}

static float pixels_mean_gray(const pen_augment_layout *layout, float *values) {
    double sum = 0;
    for (uint32_t y = 0; y < layout->height; y++) {
        for (uint32_t x = 0; x < layout->width; x++) {
            sum += (double)pixels_gray(layout, pixels_at(layout, values, y, x));
        }
    }
    return (float)(sum / ((double)layout->height * layout->width));
}

// Back to colours; returns false where one is none.
static bool pixels_restore(const pen_augment_layout *layout, float maximum, float *values,
                           float *out_value) {
    for (uint32_t c = 0; c < layout->channels; c++) {
        for (uint32_t y = 0; y < layout->height; y++) {
            float *row = pixels_row(layout, values, c, y);
            for (uint32_t x = 0; x < layout->width; x++) {
                float *value = &row[x * layout->pixel_stride];
                if (layout->is_normalized) *value = *value * layout->deviation[c] + layout->mean[c];
                *out_value = *value;
                if (*value < -PIXELS_ROUNDING * maximum) return false;
                if (*value > (1 + PIXELS_ROUNDING) * maximum) return false;
            }
        }
    }
    return true;
}

static void pixels_normalize(const pen_augment_layout *layout, float *values) {
    for (uint32_t c = 0; layout->is_normalized && c < layout->channels; c++) {
        for (uint32_t y = 0; y < layout->height; y++) {
            float *row = pixels_row(layout, values, c, y);
            for (uint32_t x = 0; x < layout->width; x++) {
                float *value = &row[x * layout->pixel_stride];
                *value = (*value - layout->mean[c]) / layout->deviation[c];
            }
        }
    }
}

static float pixels_factor(pen_augment_dice dice, uint32_t k, double strength) {
    const double low = strength > 1 ? 0 : 1 - strength;
    return (float)(low + pen_augment_uniform(dice, k) * (1 + strength - low));
}

// Numbers 0 to 2 are the factors, 3 and 4 the order: Fisher and Yates, from the end.
bool pen_augment_jitter(const pen_augment_layout *layout, const pen_augment_step *step,
                        pen_augment_dice dice, float *values, float *out_value) {
    const double strengths[PIXELS_JITTERS] = {step->brightness, step->contrast, step->saturation};
    const float maximum = (float)step->maximum, black = 0;
    uint32_t order[PIXELS_JITTERS] = {0, 1, 2};
    for (uint32_t i = PIXELS_JITTERS - 1; i > 0; i--) {
        const uint32_t other = pen_augment_below(dice, PIXELS_JITTERS + 2 - i, i + 1);
        const uint32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    if (!pixels_restore(layout, maximum, values, out_value)) return false;
    for (uint32_t i = 0; i < PIXELS_JITTERS; i++) {
        const uint32_t which = order[i];
        if (strengths[which] == 0 || (which == 2 && layout->channels < 3)) continue;
        const float factor = pixels_factor(dice, which, strengths[which]);
        const float gray = which == 1 ? pixels_mean_gray(layout, values) : 0;
        const float *others[PIXELS_JITTERS] = {&black, &gray, NULL};
        pixels_blend(layout, values, factor, others[which], maximum);
    }
    pixels_normalize(layout, values);
    return true;
}

void pen_augment_erase(const pen_augment_layout *layout, const pen_augment_step *step,
                       pen_augment_box box, float *values) {
    for (uint32_t c = 0; c < layout->channels; c++) {
        for (uint32_t y = box.top; y < box.top + box.height; y++) {
            float *row = pixels_row(layout, values, c, y);
            for (uint32_t x = box.left; x < box.left + box.width; x++) {
                row[x * layout->pixel_stride] = (float)step->fill;
            }
        }
    }
}
