#include "scheduler/data/augment/augment_mix.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "scheduler/data/augment/augment.h"

#define MIX_FIRST_POINT 6 // number of chance
#define MIX_NUMBERS 128
#define MIX_POWER_MOST 1e300 // no number of chance may become infinite

struct pen_mix {
    pen_mix_rule rule;
    uint64_t seed;
    uint32_t input_count;
    uint32_t label_count;
    uint64_t input_elements[PEN_DATASET_INPUT_COUNT_LIMIT]; // of an example
    uint64_t label_elements[PEN_DATASET_LABEL_COUNT_LIMIT];
    pen_augment_layout layouts[PEN_DATASET_INPUT_COUNT_LIMIT]; // cutmix only
    float *last; // [of the largest field], the last example as it was
};

// ---- what is possible

static bool mix_is_alpha(double alpha) {
    return alpha == 0 || (alpha >= PEN_MIX_ALPHA_LEAST && alpha <= PEN_MIX_ALPHA_MOST);
}

// Whole numbers have no mean, and a box is of pictures alone.
static pen_status mix_take_inputs(pen_mix *mix, const pen_dataset_options *options,
                                  const pen_dataset_info *info) {
    mix->input_count = info->input_count;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const pen_dataset_field *field = &info->inputs[i];
        mix->input_elements[i] = field->element_count;
        if (field->element != PEN_DATASET_FLOAT32) {
            return pen_error(PEN_INVALID_INPUT,
                             "mix: the input '%s' has whole numbers, expected float32",
                             field->name);
        }
        if (mix->rule.cutmix == 0) continue;
        if (field->picture[0] == 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "mix: the input '%s' is no picture, expected two or three dimensions "
                             "an example for cutmix",
                             field->name);
        }
        PEN_TRY(pen_augment_find_layout(options, field, &mix->layouts[i]));
    }
    return PEN_OK;
}

static pen_status mix_take_labels(pen_mix *mix, const pen_dataset_info *info) {
    mix->label_count = info->labels == NULL ? 0 : info->label_count;
    for (uint32_t i = 0; i < mix->label_count; i++) {
        const pen_dataset_field *field = &info->labels[i];
        mix->label_elements[i] = field->element_count;
        if (field->element == PEN_DATASET_FLOAT32 && field->rank < 2) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "mix: found %s, expected a class, or some numbers, for each example",
                         field->element == PEN_DATASET_FLOAT32 ? "labels of two dimensions or more"
                                                               : "several labels");
    }
    return PEN_OK;
}

// ---- life

static pen_status mix_prepare(pen_mix *mix, const pen_dataset_options *options,
                              const pen_dataset_info *info) {
    const pen_mix_rule *rule = &options->mix;
    uint64_t most = 0;
    mix->rule = *rule;
    mix->seed = options->seed;
    if (!mix_is_alpha(rule->mixup) || !mix_is_alpha(rule->cutmix) ||
        !(rule->probability >= 0 && rule->probability <= 1)) {
        return pen_error(PEN_INVALID_INPUT, "mix: a number is out of its range");
    }
    PEN_TRY(mix_take_inputs(mix, options, info));
    PEN_TRY(mix_take_labels(mix, info));
    for (uint32_t i = 0; i < mix->input_count; i++)
        most = pen_max_u64(most, mix->input_elements[i]);
    for (uint32_t i = 0; i < mix->label_count; i++)
        most = pen_max_u64(most, mix->label_elements[i]);
    mix->last = pen_memory_allocate(most, sizeof *mix->last);
    return mix->last == NULL ? pen_error_out_of_memory() : PEN_OK;
}

pen_status pen_mix_create(const pen_dataset_options *options, const pen_dataset_info *info,
                          pen_mix **out_mix) {
    pen_mix *mix = pen_memory_allocate(1, sizeof *mix);
    if (mix == NULL) return pen_error_out_of_memory();
    const pen_status status = mix_prepare(mix, options, info);
    if (status != PEN_OK) {
        pen_mix_destroy(mix);
        return status;
    }
    *out_mix = mix;
    return PEN_OK;
}

void pen_mix_destroy(pen_mix *mix) {
    if (mix == NULL) return;
    pen_memory_free(mix->last);
    pen_memory_free(mix);
}

// ---- chance

// The square of the cosine of an angle by chance.
static double mix_draw_square(pen_augment_dice dice) {
    for (uint32_t k = MIX_FIRST_POINT; k + 1 < MIX_NUMBERS; k += 2) {
        const double x = 2 * pen_augment_uniform(dice, k) - 1;
        const double y = 2 * pen_augment_uniform(dice, k + 1) - 1;
        const double square = x * x + y * y;
        if (square > 0 && square <= 1) return x * x / square;
    }
    return 0.5;
}

static double mix_draw_beta(pen_augment_dice dice, double alpha) {
    const double base = 1 / (1 - pen_augment_uniform(dice, 3));
    const double power = fmin(pen_augment_power(base, 1 / alpha), MIX_POWER_MOST);
    const double t = (power - 1) * mix_draw_square(dice);
    const double half = 0.5 * sqrt(t / (1 + t));
    return pen_augment_uniform(dice, 2) < 0.5 ? 0.5 - half : 0.5 + half;
}

pen_mix_share pen_mix_draw(const pen_mix *mix, uint64_t epoch, uint64_t batch) {
    const pen_mix_rule *rule = &mix->rule;
    const pen_augment_dice dice = {.key = {mix->seed, pen_random_stream("mix", epoch, batch)}};
    pen_mix_share share = {.is_mixed = pen_augment_uniform(dice, 0) < rule->probability};
    share.is_cut = rule->cutmix > 0 && (rule->mixup == 0 || pen_augment_uniform(dice, 1) < 0.5);
    share.own = mix_draw_beta(dice, share.is_cut ? rule->cutmix : rule->mixup);
    share.across = pen_augment_uniform(dice, 4);
    share.down = pen_augment_uniform(dice, 5);
    return share;
}

// ---- changes

// Each example takes from the one before it, so the last comes first, and is kept for the first.
static void mix_blend(pen_mix *mix, double own_share, uint64_t count, uint64_t each,
                      float *values) {
    const float own = (float)own_share, other = (float)(1 - own_share);
    memcpy(mix->last, values + (count - 1) * each, each * sizeof *values);
    for (uint64_t i = count; i > 0; i--) {
        float *row = values + (i - 1) * each;
        const float *before = i == 1 ? mix->last : row - each;
        for (uint64_t e = 0; e < each; e++) {
            row[e] = before[e] * other + row[e] * own;
        }
    }
}

// Sides are half as long as the share that is to come would make them, rounded down, to each side
// of the middle; what is beyond the picture is cut off.
static pen_augment_box mix_find_box(const pen_mix_share *share, const pen_augment_layout *layout) {
    const double part = 0.5 * sqrt(1 - share->own);
    const uint32_t x = (uint32_t)(share->across * layout->width);
    const uint32_t y = (uint32_t)(share->down * layout->height);
    const uint32_t half_width = (uint32_t)(part * layout->width);
    const uint32_t half_height = (uint32_t)(part * layout->height);
    const uint32_t left = x < half_width ? 0 : x - half_width;
    const uint32_t top = y < half_height ? 0 : y - half_height;
    const uint64_t right = pen_min_u64(layout->width, (uint64_t)x + half_width);
    const uint64_t bottom = pen_min_u64(layout->height, (uint64_t)y + half_height);
    return (pen_augment_box){.left = left,
                             .top = top,
                             .width = (uint32_t)right - left,
                             .height = (uint32_t)bottom - top};
}

static void mix_copy_box(const pen_augment_layout *layout, pen_augment_box box, const float *from,
                         float *to) {
    for (uint32_t c = 0; c < layout->channels; c++) {
        for (uint32_t y = 0; y < box.height; y++) {
            const uint64_t at = c * layout->channel_stride + (box.top + y) * layout->row_stride +
                                box.left * layout->pixel_stride;
            for (uint32_t x = 0; x < box.width; x++) {
                to[at + x * layout->pixel_stride] = from[at + x * layout->pixel_stride];
            }
        }
    }
}

static void mix_cut(pen_mix *mix, const pen_augment_layout *layout, pen_augment_box box,
                    uint64_t count, float *values) {
    const uint64_t each = layout->element_count;
    memcpy(mix->last, values + (count - 1) * each, each * sizeof *values);
    for (uint64_t i = count; i > 0; i--) {
        float *row = values + (i - 1) * each;
        mix_copy_box(layout, box, i == 1 ? mix->last : row - each, row);
    }
}

// Labels are mixed by the area that the first picture keeps.
void pen_mix_apply(pen_mix *mix, const pen_mix_share *share, uint64_t count, void *const *inputs,
                   void *const *labels) {
    double own = share->own;
    if (!share->is_mixed) return;
    if (share->is_cut) {
        const pen_augment_box box = mix_find_box(share, &mix->layouts[0]);
        own = 1 - (double)((uint64_t)box.width * box.height) /
                      (double)((uint64_t)mix->layouts[0].width * mix->layouts[0].height);
    }
    for (uint32_t i = 0; inputs != NULL && i < mix->input_count; i++) {
        const pen_augment_layout *layout = &mix->layouts[i];
        if (inputs[i] == NULL) continue;
        if (share->is_cut) {
            mix_cut(mix, layout, mix_find_box(share, layout), count, inputs[i]);
        } else {
            mix_blend(mix, own, count, mix->input_elements[i], inputs[i]);
        }
    }
    for (uint32_t i = 0; labels != NULL && i < mix->label_count; i++) {
        if (labels[i] != NULL) mix_blend(mix, own, count, mix->label_elements[i], labels[i]);
    }
}
