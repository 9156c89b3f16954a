#include "scheduler/data/augment/augment_draw.h"

#include <math.h>

#define DRAW_BLOCKS 64     // of an example
#define DRAW_TRIES 10      // at a box
#define DRAW_TRY_NUMBERS 4 // that each takes: area, ratio, left, top
#define DRAW_POWER_BITS 24 // of an exponent

pen_augment_dice pen_augment_dice_of(uint64_t seed, uint64_t epoch, uint32_t step,
                                     uint64_t example) {
    return (pen_augment_dice){.key = {seed, pen_random_stream("augment", epoch, step)},
                              .first = example * DRAW_BLOCKS};
}

double pen_augment_uniform(pen_augment_dice dice, uint32_t k) {
    uint32_t numbers[4];
    pen_random_block(dice.key, dice.first + k / 2, numbers);
    const uint32_t *two = numbers + 2 * (k % 2);
    return (double)((uint64_t)two[0] << 21 | two[1] >> 11) * 0x1p-53;
}

uint32_t pen_augment_below(pen_augment_dice dice, uint32_t k, uint32_t limit) {
    return (uint32_t)(pen_augment_uniform(dice, k) * limit);
}

static double draw_between(pen_augment_dice dice, uint32_t k, double low, double high) {
    return low + pen_augment_uniform(dice, k) * (high - low);
}

double pen_augment_power(double base, double exponent) {
    const double whole = floor(exponent);
    const uint32_t part = (uint32_t)((exponent - whole) * (double)(1u << DRAW_POWER_BITS));
    double root = base, square = base;
    double power = 1;
    for (uint32_t bit = 1u << (DRAW_POWER_BITS - 1); bit > 0; bit /= 2) {
        root = sqrt(root);
        if ((part & bit) != 0) power *= root;
    }
    for (uint32_t left = (uint32_t)whole; left > 0; left /= 2) {
        if (left % 2 == 1) power *= square;
        square *= square;
    }
    return power;
}

// low * (high / low) ^ u, so that the logarithm is uniform.
static double draw_ratio(pen_augment_dice dice, uint32_t k, const pen_augment_step *step) {
    const double u = pen_augment_uniform(dice, k);
    return step->ratio_low * pen_augment_power(step->ratio_high / step->ratio_low, u);
}

static double draw_round(double value) {
    return floor(value + 0.5);
}

// A try at a box that starts at number `k`. `margin` is what must be left of each side.
static bool draw_try(const pen_augment_step *step, pen_augment_dice dice, uint32_t k,
                     uint32_t margin, pen_augment_box whole, pen_augment_box *out_box) {
    const double area = (double)whole.width * whole.height *
                        draw_between(dice, k, step->scale_low, step->scale_high);
    const double ratio = draw_ratio(dice, k + 1, step);
    const double width = draw_round(sqrt(area * ratio));
    const double height = draw_round(sqrt(area / ratio));
    if (!(width >= 1 && width + margin <= whole.width)) return false;
    if (!(height >= 1 && height + margin <= whole.height)) return false;
    out_box->width = (uint32_t)width;
    out_box->height = (uint32_t)height;
    out_box->left = pen_augment_below(dice, k + 2, whole.width - out_box->width + 1);
    out_box->top = pen_augment_below(dice, k + 3, whole.height - out_box->height + 1);
    return true;
}

// The largest part whose ratio is allowed.
static pen_augment_box draw_middle(const pen_augment_step *step, pen_augment_box whole) {
    const double ratio = (double)whole.width / whole.height;
    pen_augment_box box = whole;
    if (ratio < step->ratio_low) {
        box.height =
            (uint32_t)fmax(1, fmin(draw_round(whole.width / step->ratio_low), whole.height));
    } else if (ratio > step->ratio_high) {
        box.width =
            (uint32_t)fmax(1, fmin(draw_round(whole.height * step->ratio_high), whole.width));
    }
    box.left = (whole.width - box.width) / 2;
    box.top = (whole.height - box.height) / 2;
    return box;
}

pen_augment_box pen_augment_draw_crop(const pen_augment_step *step, pen_augment_dice dice,
                                      uint32_t width, uint32_t height) {
    const pen_augment_box whole = {.width = width, .height = height};
    pen_augment_box box;
    for (uint32_t i = 0; i < DRAW_TRIES; i++) {
        if (draw_try(step, dice, i * DRAW_TRY_NUMBERS, 0, whole, &box)) return box;
    }
    return draw_middle(step, whole);
}

bool pen_augment_draw_erasing(const pen_augment_step *step, pen_augment_dice dice, uint32_t width,
                              uint32_t height, pen_augment_box *out_box) {
    const pen_augment_box whole = {.width = width, .height = height};
    if (!(pen_augment_uniform(dice, 0) < step->probability)) return false;
    for (uint32_t i = 0; i < DRAW_TRIES; i++) {
        if (draw_try(step, dice, 1 + i * DRAW_TRY_NUMBERS, 1, whole, out_box)) return true;
    }
    return false;
}
