// The contract of this folder towards datasets: which changes are made to pictures that are trained
// on. Chance decides about each example anew in each epoch.
//
// Threads: plain data.
#ifndef PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_OPTIONS_H
#define PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define PEN_AUGMENT_STEPS_LIMIT 16
#define PEN_AUGMENT_PADDING_LIMIT 4096
#define PEN_MIX_ALPHA_LEAST 0.01
#define PEN_MIX_ALPHA_MOST 100
#define PEN_MIX_CLASSES_LIMIT 1000000

typedef enum pen_augment_kind {
    PEN_AUGMENT_RANDOM_CROP,         // moved by up to `padding` pixels; `fill` comes in
    PEN_AUGMENT_RANDOM_RESIZED_CROP, // a part of it, made as large as it was
    PEN_AUGMENT_HORIZONTAL_FLIP,
    PEN_AUGMENT_VERTICAL_FLIP,
    PEN_AUGMENT_COLOR_JITTER,
    PEN_AUGMENT_RANDOM_ERASING, // a part of it becomes `fill`
} pen_augment_kind;

// One change. Each kind reads those members that its comment or theirs names.
typedef struct pen_augment_step {
    pen_augment_kind kind;
    double probability; // of flips and erasing
    int64_t padding;    // pixels at each side, 1 to PEN_AUGMENT_PADDING_LIMIT
    double fill;        // of crops: before the mean is subtracted; of erasing: behind all else
    double scale_low;   // least and most area of the part, of that of the picture
    double scale_high;
    double ratio_low; // least and most width / height of it
    double ratio_high;
    double brightness; // factors are between 1 - this and 1 + this
    double contrast;
    double saturation;
    double maximum; // of colours, before the mean is subtracted
} pen_augment_step;

// How examples of a batch are mixed, two and two. Both alphas 0: not at all.
typedef struct pen_mix_rule {
    double mixup;         // alpha of the Beta distribution of shares; 0: not done
    double cutmix;        // the same; with both, each batch has one of them, by chance
    double probability;   // of a batch to be mixed
    uint32_t class_count; // labels are indices of so many classes; 0: as the data knows, or numbers
} pen_mix_rule;

static inline bool pen_mix_is_wished(const pen_mix_rule *rule) {
    return rule->mixup > 0 || rule->cutmix > 0;
}

#endif // PEN_SCHEDULER_DATA_AUGMENT_AUGMENT_OPTIONS_H
