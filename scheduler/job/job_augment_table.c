// The keys of an item of `data.augment`.

#include "scheduler/data/augment/augment.h"
#include "scheduler/job/job_table.h"

#define JOB_PROBABILITY(standard)                                                                  \
    PEN_OPTION_AS("probability", NUMBER, pen_job_augment, step.probability,                        \
                  "of an example to be changed", PEN_OPTION_RANGE(0, 1), .default_text = standard)
#define JOB_PART(member, text)                                                                     \
    PEN_OPTION(LIST, pen_job_augment, member, text, .item = &job_##member##_item,                  \
               .count_minimum = 2, .count_maximum = 2)
#define JOB_STRENGTH(member, text)                                                                 \
    PEN_OPTION_AS(#member, NUMBER, pen_job_augment, step.member, text, PEN_OPTION_RANGE(0, 100),   \
                  .default_text = "0")
#define JOB_FILL(text)                                                                             \
    PEN_OPTION_AS("fill", NUMBER, pen_job_augment, step.fill, text, PEN_OPTION_RANGE(-1e30, 1e30), \
                  .default_text = "0")

static const pen_option_field job_scale_item = {
    .kind = PEN_OPTION_NUMBER, .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(1)};
static const pen_option_field job_ratio_item = {.kind = PEN_OPTION_NUMBER,
                                                PEN_OPTION_RANGE(1e-3, 1e3)};

static const pen_option_field job_random_crop_fields[] = {
    PEN_OPTION_AS("padding", INTEGER, pen_job_augment, step.padding,
                  "pixels at each side that the picture moves by, at most",
                  PEN_OPTION_RANGE(1, PEN_AUGMENT_PADDING_LIMIT), .default_text = "4"),
    JOB_FILL("what comes in at the sides, before the mean is subtracted"),
};
static const pen_option_field job_resized_crop_fields[] = {
    JOB_PART(scale, "least and most area of the part; else 0.08 and 1"),
    JOB_PART(ratio, "least and most width / height of it; else 3/4 and 4/3"),
};
static const pen_option_field job_flip_fields[] = {JOB_PROBABILITY("0.5")};
static const pen_option_field job_jitter_fields[] = {
    JOB_STRENGTH(brightness, "colours are multiplied by 1 - this to 1 + this"),
    JOB_STRENGTH(contrast, "the same of their distance from the picture's mean gray"),
    JOB_STRENGTH(saturation, "the same of their distance from the pixel's gray"),
    PEN_OPTION_AS("maximum", NUMBER, pen_job_augment, step.maximum,
                  "brightest colour, once it is scaled and before the mean is subtracted",
                  .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(1e30),
                  .default_text = "1"),
};
static const pen_option_field job_erasing_fields[] = {
    JOB_PROBABILITY("0.5"),
    JOB_PART(scale, "least and most area of the part; else 0.02 and 0.33"),
    JOB_PART(ratio, "least and most width / height of it; else 0.3 and 3.3"),
    JOB_FILL("what the part becomes, behind all else that is done to inputs"),
};

#define JOB_AUGMENT_TABLE(name)                                                                    \
    static const pen_option_table job_##name##_table = {                                           \
        PEN_OPTION_FIELDS(pen_job_augment, job_##name##_fields)}
JOB_AUGMENT_TABLE(random_crop);
JOB_AUGMENT_TABLE(resized_crop);
JOB_AUGMENT_TABLE(flip);
JOB_AUGMENT_TABLE(jitter);
JOB_AUGMENT_TABLE(erasing);

#define JOB_AUGMENT(name, fields, text)                                                            \
    { .key = name, .kind = PEN_OPTION_MAPPING, .help = text, .table = &job_##fields##_table }
static const pen_option_field job_augment_fields[] = {
    [PEN_AUGMENT_RANDOM_CROP] =
        JOB_AUGMENT("random_crop", random_crop, "moved by some pixels, and filled"),
    [PEN_AUGMENT_RANDOM_RESIZED_CROP] = JOB_AUGMENT(
        "random_resized_crop", resized_crop, "a part of it, made as large as all pictures are"),
    [PEN_AUGMENT_HORIZONTAL_FLIP] = JOB_AUGMENT("horizontal_flip", flip, "left becomes right"),
    [PEN_AUGMENT_VERTICAL_FLIP] = JOB_AUGMENT("vertical_flip", flip, "top becomes bottom"),
    [PEN_AUGMENT_COLOR_JITTER] =
        JOB_AUGMENT("color_jitter", jitter, "brightness, contrast and saturation are changed"),
    [PEN_AUGMENT_RANDOM_ERASING] = JOB_AUGMENT("random_erasing", erasing, "a part is filled"),
};
static const pen_option_table job_augment_table = {
    PEN_OPTION_FIELDS(pen_job_augment, job_augment_fields),
    .chosen_offset = offsetof(pen_job_augment, step.kind),
};
const pen_option_field pen_job_augment_item = {.kind = PEN_OPTION_ONE_OF,
                                               .table = &job_augment_table};

#define JOB_ALPHA(member, text)                                                                    \
    PEN_OPTION(NUMBER, pen_job_mix, member, text,                                                  \
               PEN_OPTION_RANGE(PEN_MIX_ALPHA_LEAST, PEN_MIX_ALPHA_MOST))
static const pen_option_field job_mix_fields[] = {
    JOB_ALPHA(mixup,
              "alpha: each example becomes a mean of two, with a share of Beta(alpha, alpha)"),
    JOB_ALPHA(cutmix, "alpha: a box of each picture becomes that of another, with such a share of "
                      "the area; with both, each batch has one of them"),
    PEN_OPTION(NUMBER, pen_job_mix, probability, "of a batch to be mixed", PEN_OPTION_RANGE(0, 1),
               .default_text = "1"),
    PEN_OPTION(INTEGER, pen_job_mix, classes,
               "how many there are, of labels that are class indices; folders of pictures say it "
               "themselves",
               PEN_OPTION_RANGE(2, PEN_MIX_CLASSES_LIMIT)),
};

static pen_status job_check_mix_keys(const void *object, const pen_option_source *source) {
    const pen_job_mix *mix = object;
    if (mix->mixup > 0 || mix->cutmix > 0) return PEN_OK;
    return pen_option_blame(
        source, mix,
        pen_error(PEN_INVALID_INPUT, "mix: found neither mixup nor cutmix, expected one, or both"));
}

const pen_option_table pen_job_mix_table = {
    PEN_OPTION_FIELDS(pen_job_mix, job_mix_fields),
    .check = job_check_mix_keys,
};

// The targets of losses over classes are no indices any more.
pen_status pen_job_check_mix(const pen_job *job) {
    const pen_job_loss *losses = job->train.losses.items;
    if (!job->data.has_mix) return PEN_OK;
    for (uint32_t i = 0; i < job->train.losses.count; i++) {
        if (!pen_loss_is_over_classes(losses[i].kind) || losses[i].has_probabilities) continue;
        return pen_job_blame(job, &job->data.mix,
                             pen_error(PEN_INVALID_INPUT,
                                       "data.mix: labels become probabilities of all classes, "
                                       "expected `loss: softmax_cross_entropy` with "
                                       "`probabilities: true`"));
    }
    return PEN_OK;
}

static void job_set_part(const pen_option_list *list, double low, double high, double *out_low,
                         double *out_high) {
    const double *numbers = list->items;
    *out_low = list->count == 2 ? numbers[0] : low;
    *out_high = list->count == 2 ? numbers[1] : high;
}

static pen_status job_check_part(const pen_job *job, const pen_option_list *list, const char *key) {
    const double *numbers = list->items;
    if (list->count != 2 || numbers[0] <= numbers[1]) return PEN_OK;
    return pen_job_blame(job, list,
                         pen_error(PEN_INVALID_INPUT,
                                   "%s: found [%g, %g], expected the least, then the most", key,
                                   numbers[0], numbers[1]));
}

// torchvision's defaults stand where nothing is written.
pen_status pen_job_get_augment(const pen_job *job, pen_arena *arena, pen_dataset_options *options) {
    const pen_option_list *list = &job->data.augment;
    const pen_job_augment *items = list->items;
    pen_augment_step *steps;
    PEN_TRY(PEN_NEW(arena, list->count, &steps));
    for (uint32_t i = 0; i < list->count; i++) {
        const bool is_erasing = items[i].step.kind == PEN_AUGMENT_RANDOM_ERASING;
        PEN_TRY(job_check_part(job, &items[i].scale, "scale"));
        PEN_TRY(job_check_part(job, &items[i].ratio, "ratio"));
        steps[i] = items[i].step;
        job_set_part(&items[i].scale, is_erasing ? 0.02 : 0.08, is_erasing ? 0.33 : 1,
                     &steps[i].scale_low, &steps[i].scale_high);
        job_set_part(&items[i].ratio, is_erasing ? 0.3 : 3.0 / 4, is_erasing ? 3.3 : 4.0 / 3,
                     &steps[i].ratio_low, &steps[i].ratio_high);
        PEN_TRY(pen_job_blame(job, list, pen_augment_check_step(&steps[i], i)));
    }
    options->augment = steps;
    options->augment_count = list->count;
    return PEN_OK;
}
