// Functions of one number. In backward functions v is x or y, as graph/ops/elementwise/unary_op.c
// says.

#include <math.h>

#include "device/reference/reference_map.h"

static double unary_neg(double x, const double *p) {
    (void)p;
    return -x;
}
static int64_t unary_neg_integer(int64_t x, bool is_signed) {
    (void)is_signed;
    return (int64_t)(0 - (uint64_t)x);
}
static double unary_sign(double x, const double *p) {
    (void)p;
    return isnan(x) ? x : (x > 0) - (x < 0);
}
static int64_t unary_sign_integer(int64_t x, bool is_signed) {
    return is_signed ? (x > 0) - (x < 0) : x != 0;
}
static double unary_floor(double x, const double *p) {
    (void)p;
    return floor(x);
}
static double unary_ceil(double x, const double *p) {
    (void)p;
    return ceil(x);
}
static double unary_round(double x, const double *p) {
    (void)p;
    return rint(x);
}
static double unary_abs(double x, const double *p) {
    (void)p;
    return fabs(x);
}
static double unary_abs_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * ((v > 0) - (v < 0));
}
static int64_t unary_abs_integer(int64_t x, bool is_signed) {
    return is_signed && x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}
static double unary_reciprocal(double x, const double *p) {
    (void)p;
    return 1 / x;
}
static double unary_reciprocal_backward(double dy, double v, const double *p) {
    (void)p;
    return -dy * v * v;
}
static double unary_exp(double x, const double *p) {
    (void)p;
    return exp(x);
}
static double unary_exp_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * v;
}
static double unary_log(double x, const double *p) {
    (void)p;
    return log(x);
}
static double unary_log_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / v;
}
static double unary_sqrt(double x, const double *p) {
    (void)p;
    return sqrt(x);
}
static double unary_sqrt_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / (2 * v);
}
static double unary_erf(double x, const double *p) {
    (void)p;
    return erf(x);
}
static double unary_erf_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * 1.12837916709551257390 * exp(-v * v); // 2 / sqrt(pi)
}
static double unary_sin(double x, const double *p) {
    (void)p;
    return sin(x);
}
static double unary_sin_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * cos(v);
}
static double unary_cos(double x, const double *p) {
    (void)p;
    return cos(x);
}
static double unary_cos_backward(double dy, double v, const double *p) {
    (void)p;
    return -dy * sin(v);
}
static double unary_tan(double x, const double *p) {
    (void)p;
    return tan(x);
}
static double unary_tan_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * (1 + v * v);
}
static double unary_asin(double x, const double *p) {
    (void)p;
    return asin(x);
}
static double unary_asin_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / sqrt(1 - v * v);
}
static double unary_acos(double x, const double *p) {
    (void)p;
    return acos(x);
}
static double unary_acos_backward(double dy, double v, const double *p) {
    (void)p;
    return -dy / sqrt(1 - v * v);
}
static double unary_atan(double x, const double *p) {
    (void)p;
    return atan(x);
}
static double unary_atan_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / (1 + v * v);
}
static double unary_sinh(double x, const double *p) {
    (void)p;
    return sinh(x);
}
static double unary_sinh_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * cosh(v);
}
static double unary_cosh(double x, const double *p) {
    (void)p;
    return cosh(x);
}
static double unary_cosh_backward(double dy, double v, const double *p) {
    (void)p;
    return dy * sinh(v);
}
static double unary_asinh(double x, const double *p) {
    (void)p;
    return asinh(x);
}
static double unary_asinh_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / sqrt(v * v + 1);
}
static double unary_acosh(double x, const double *p) {
    (void)p;
    return acosh(x);
}
static double unary_acosh_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / sqrt(v * v - 1);
}
static double unary_atanh(double x, const double *p) {
    (void)p;
    return atanh(x);
}
static double unary_atanh_backward(double dy, double v, const double *p) {
    (void)p;
    return dy / (1 - v * v);
}

static const reference_map unary_maps[] = {
    {"neg", unary_neg, NULL, unary_neg_integer, {NULL}},
    {"sign", unary_sign, NULL, unary_sign_integer, {NULL}},
    {"floor", unary_floor, NULL, NULL, {NULL}},
    {"ceil", unary_ceil, NULL, NULL, {NULL}},
    {"round", unary_round, NULL, NULL, {NULL}},
    {"abs", unary_abs, unary_abs_backward, unary_abs_integer, {NULL}},
    {"reciprocal", unary_reciprocal, unary_reciprocal_backward, NULL, {NULL}},
    {"exp", unary_exp, unary_exp_backward, NULL, {NULL}},
    {"log", unary_log, unary_log_backward, NULL, {NULL}},
    {"sqrt", unary_sqrt, unary_sqrt_backward, NULL, {NULL}},
    {"erf", unary_erf, unary_erf_backward, NULL, {NULL}},
    {"sin", unary_sin, unary_sin_backward, NULL, {NULL}},
    {"cos", unary_cos, unary_cos_backward, NULL, {NULL}},
    {"tan", unary_tan, unary_tan_backward, NULL, {NULL}},
    {"asin", unary_asin, unary_asin_backward, NULL, {NULL}},
    {"acos", unary_acos, unary_acos_backward, NULL, {NULL}},
    {"atan", unary_atan, unary_atan_backward, NULL, {NULL}},
    {"sinh", unary_sinh, unary_sinh_backward, NULL, {NULL}},
    {"cosh", unary_cosh, unary_cosh_backward, NULL, {NULL}},
    {"asinh", unary_asinh, unary_asinh_backward, NULL, {NULL}},
    {"acosh", unary_acosh, unary_acosh_backward, NULL, {NULL}},
    {"atanh", unary_atanh, unary_atanh_backward, NULL, {NULL}},
};

static pen_status unary_run(const pen_reference_call *call) {
    return reference_map_run(call, unary_maps, sizeof unary_maps / sizeof *unary_maps);
}

static const pen_reference_kernel unary_kernels[] = {
    {"neg", unary_run},
    {"sign", unary_run},
    {"floor", unary_run},
    {"ceil", unary_run},
    {"round", unary_run},
    {"abs", unary_run},
    {"abs_backward", unary_run},
    {"reciprocal", unary_run},
    {"reciprocal_backward", unary_run},
    {"exp", unary_run},
    {"exp_backward", unary_run},
    {"log", unary_run},
    {"log_backward", unary_run},
    {"sqrt", unary_run},
    {"sqrt_backward", unary_run},
    {"erf", unary_run},
    {"erf_backward", unary_run},
    {"sin", unary_run},
    {"sin_backward", unary_run},
    {"cos", unary_run},
    {"cos_backward", unary_run},
    {"tan", unary_run},
    {"tan_backward", unary_run},
    {"asin", unary_run},
    {"asin_backward", unary_run},
    {"acos", unary_run},
    {"acos_backward", unary_run},
    {"atan", unary_run},
    {"atan_backward", unary_run},
    {"sinh", unary_run},
    {"sinh_backward", unary_run},
    {"cosh", unary_run},
    {"cosh_backward", unary_run},
    {"asinh", unary_run},
    {"asinh_backward", unary_run},
    {"acosh", unary_run},
    {"acosh_backward", unary_run},
    {"atanh", unary_run},
    {"atanh_backward", unary_run},
};

const pen_reference_family pen_unary_reference = {unary_kernels,
                                                  sizeof unary_kernels / sizeof *unary_kernels};
