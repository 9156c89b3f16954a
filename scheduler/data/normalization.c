#include "scheduler/data/normalization.h"

#include <inttypes.h>
#include <math.h>

static pen_status normalization_copy(const char *what, const double *values, uint32_t count,
                                     uint64_t channel_count, pen_arena *arena,
                                     const float **out_values) {
    *out_values = NULL;
    if (count == 0) return PEN_OK;
    float *copy;
    PEN_TRY(PEN_NEW(arena, channel_count, &copy));
    for (uint64_t i = 0; i < channel_count; i++) {
        copy[i] = (float)values[count == 1 ? 0 : i];
        if (!isfinite(copy[i])) {
            return pen_error(PEN_INVALID_INPUT, "%s %" PRIu64 " is not a finite float32", what, i);
        }
    }
    *out_values = copy;
    return PEN_OK;
}

static pen_status normalization_make_table(pen_normalization *normalization, pen_arena *arena) {
    float *table;
    PEN_TRY(PEN_NEW(arena, normalization->channel_count * 256, &table));
    pen_normalization one = *normalization;
    one.channel_size = 256;
    for (uint64_t i = 0; i < one.channel_count * 256; i++)
        table[i] = (float)(i % 256);
    pen_normalization_apply(&one, table);
    normalization->table = table;
    return PEN_OK;
}

static pen_status normalization_check_count(const pen_dataset_options *options,
                                            const pen_dataset_field *field, uint64_t channels,
                                            bool is_mean) {
    const uint32_t count = is_mean ? options->mean_count : options->deviation_count;
    if (count <= 1 || count == channels) return PEN_OK;
    const bool is_named = field->name[0] != '\0';
    const pen_status status =
        pen_error(PEN_INVALID_INPUT,
                  "%s: found %" PRIu32 " values, but examples%s%s%s have %" PRIu64
                  " channel%s, expected one value, or one for each channel",
                  is_mean ? "mean" : "std", count, is_named ? " of '" : "", field->name,
                  is_named ? "'" : "", channels, channels == 1 ? "" : "s");
    if (options->blame_normalization == NULL) return status;
    return options->blame_normalization(options->blame_context, is_mean, status);
}

// Mean and deviation are one number for all, or one for each channel. For bytes a table of 256
// results takes the place of arithmetic.
pen_status pen_normalization_init(pen_normalization *normalization,
                                  const pen_dataset_options *options,
                                  const pen_dataset_field *field, double default_scale, bool bytes,
                                  pen_arena *arena) {
    const uint64_t channels = field->rank == 0 ? 1 : (uint64_t)field->shape[0];
    const uint32_t mean_count = options->mean_count;
    const uint32_t deviation_count = options->deviation_count;
    PEN_TRY(normalization_check_count(options, field, channels, true));
    PEN_TRY(normalization_check_count(options, field, channels, false));
    const bool apart = mean_count > 1 || deviation_count > 1;
    *normalization = (pen_normalization){
        .scale = options->scale == 0 ? default_scale : options->scale,
        .channel_count = apart ? channels : 1,
        .channel_size = apart ? field->element_count / channels : field->element_count,
    };
    if (!isfinite(normalization->scale)) {
        return pen_error(PEN_INVALID_INPUT, "scale is not finite");
    }
    PEN_TRY(normalization_copy("mean", options->mean, mean_count, normalization->channel_count,
                               arena, &normalization->mean));
    PEN_TRY(normalization_copy("deviation", options->deviation, deviation_count,
                               normalization->channel_count, arena, &normalization->deviation));
    for (uint64_t i = 0; deviation_count > 0 && i < normalization->channel_count; i++) {
        if (normalization->deviation[i] == 0) {
            return pen_error(PEN_INVALID_INPUT, "deviation %" PRIu64 " is 0", i);
        }
    }
    return bytes ? normalization_make_table(normalization, arena) : PEN_OK;
}

// Each step goes over all values by vectors, and rounds as one value after another would.
static void normalization_apply_channel(const pen_normalization *normalization, uint64_t channel,
                                        float *values) {
    const uint64_t count = normalization->channel_size;
    const double scale = normalization->scale;
    if (scale != 1) {
#pragma omp simd
        for (uint64_t i = 0; i < count; i++)
            values[i] = (float)((double)values[i] * scale);
    }
    if (normalization->mean != NULL) {
        const float mean = normalization->mean[channel];
#pragma omp simd
        for (uint64_t i = 0; i < count; i++)
            values[i] -= mean;
    }
    if (normalization->deviation != NULL) {
        const float deviation = normalization->deviation[channel];
#pragma omp simd
        for (uint64_t i = 0; i < count; i++)
            values[i] /= deviation;
    }
}

void pen_normalization_apply(const pen_normalization *normalization, float *values) {
    for (uint64_t c = 0; c < normalization->channel_count; c++) {
        normalization_apply_channel(normalization, c, values + c * normalization->channel_size);
    }
}

void pen_normalization_convert_bytes(const pen_normalization *normalization, const uint8_t *bytes,
                                     float *out_values) {
    const uint64_t count = normalization->channel_size;
    for (uint64_t c = 0; c < normalization->channel_count; c++) {
        const float *table = normalization->table + c * 256;
        const uint8_t *from = bytes + c * count;
        float *to = out_values + c * count;
        for (uint64_t i = 0; i < count; i++)
            to[i] = table[from[i]];
    }
}
