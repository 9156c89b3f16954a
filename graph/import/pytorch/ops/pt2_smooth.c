// Interpolation without aliases (antialias=True): where planes become smaller, each element is a
// sum over all that it covers. Along a dimension of `from` elements that becomes one of `to`, with
//   scale = from / to                        (or 1 / the scale given, or of the corners)
//   centre = scale (k + 1/2), width = radius max(scale, 1)
// element k is the sum of the elements j from centre - width to centre + width, weighed by
// filter((j - centre + 1/2) / max(scale, 1)) and made to add up to 1. Dimensions are independent.

#include <math.h>
#include <string.h>

#include "graph/import/pytorch/ops/pt2_spatial.h"
#include "graph/import/pytorch/pt2_mapping.h"

#define SMOOTH_LIMIT ((int64_t)1 << 24) // weights of a dimension

typedef struct smooth {
    int64_t from, to;
    double scale;
    bool is_cubic;
} smooth;

static double smooth_linear(double x) {
    return x < 1 ? 1 - x : 0;
}

// Keys' cubic with a = -1/2, unlike that of interpolation with aliases.
static double smooth_cubic(double x) {
    const double a = -0.5;
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static void smooth_fill(const smooth *s, double *weights) {
    const double stretch = fmax(s->scale, 1);
    const double width = (s->is_cubic ? 2 : 1) * stretch;
    for (int64_t k = 0; k < s->to; k++) {
        const double centre = s->scale * ((double)k + 0.5);
        const int64_t first = (int64_t)fmax(centre - width + 0.5, 0);
        const int64_t end = (int64_t)fmin(centre + width + 0.5, (double)s->from);
        double *row = weights + k * s->from, sum = 0;
        for (int64_t j = first; j < end; j++) {
            const double x = fabs(((double)j - centre + 0.5) / stretch);
            row[j] = s->is_cubic ? smooth_cubic(x) : smooth_linear(x);
            sum += row[j];
        }
        for (int64_t j = first; j < end && sum != 0; j++) {
            row[j] /= sum;
        }
    }
}

// Sizes are the file's, so what is made of them is bounded here.
static pen_status smooth_read(pen_pt2_draft *draft, const pen_pt2_spatial *spatial, uint32_t i,
                              smooth *out_work) {
    static const char *const names[] = {"scales_h", "scales_w"};
    const pen_shape *result = &pen_pt2_result_type(draft, 0)->shape;
    const pen_pt2_numbers factors = pen_pt2_floats(draft, "scale_factors");
    smooth s = {.from = spatial->sizes[i],
                .to = result->dims[result->rank - 2 + i],
                .is_cubic = strcmp(pen_pt2_op_name(draft), "cubic") == 0};
    double given = factors.count == 2 ? factors.numbers[i] : 0;
    if (s.from < 1 || s.to < 1 || s.to > SMOOTH_LIMIT / s.from) {
        return pen_pt2_refuse(draft, "its sizes are open, or too large");
    }
    if (factors.count == 0 && pen_pt2_has(draft, names[i])) {
        given = pen_pt2_float(draft, names[i], 0);
    }
    s.scale = given > 0 ? 1 / given : (double)s.from / (double)s.to;
    if (pen_pt2_bool(draft, "align_corners", false)) {
        s.scale = s.to > 1 ? (double)(s.from - 1) / (double)(s.to - 1) : 0;
    }
    *out_work = s;
    return PEN_OK;
}

static pen_status convert_smooth(pen_pt2_draft *draft) {
    pen_pt2_spatial spatial;
    PEN_TRY(pen_pt2_spatial_read(draft, "input", 2, &spatial));
    pen_value_id value = spatial.input;
    for (uint32_t i = 0; i < 2; i++) {
        smooth s = {0};
        double *weights;
        void *table = NULL;
        PEN_TRY(smooth_read(draft, &spatial, i, &s));
        PEN_TRY(pen_pt2_table(draft, s.to * s.from, sizeof *weights, &table));
        weights = table;
        smooth_fill(&s, weights);
        PEN_TRY(
            pen_pt2_spatial_mix(draft, 2, &(pen_pt2_mixture){i, s.to, s.from, weights}, &value));
    }
    return pen_pt2_spatial_set(draft, &spatial, 0, value);
}

#define ROW(aten, mode)                                                                            \
    { .target = "aten." aten, .op_name = mode, .convert = convert_smooth }

static const pen_pt2_mapping smooth_rows[] = {
    ROW("_upsample_bilinear2d_aa.default", "linear"),
    ROW("_upsample_bilinear2d_aa.vec", "linear"),
    ROW("_upsample_bicubic2d_aa.default", "cubic"),
    ROW("_upsample_bicubic2d_aa.vec", "cubic"),
};

PEN_PT2_FAMILY(pen_pt2_smooth_resizes, smooth_rows);
