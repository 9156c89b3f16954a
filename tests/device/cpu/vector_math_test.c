// The vector functions against the C library's in double, in units of the last place.
#include <math.h>

#include "device/cpu/kernels/loops/vector_math.h"
#include "tests/support/check.h"

static double vector_ulp(double at) {
    const float magnitude = (float)fabs(at);
    if (magnitude < 1.17549435e-38f) return 1.4012984643e-45;
    return (double)(nextafterf(magnitude, INFINITY) - magnitude);
}

static void vector_check(const char *name, float (*ours)(float), double (*exact)(double),
                         double ulps_limit, float low, float high) {
    // every binade alike: steps through the representable numbers, and evenly through the range
    double worst = 0;
    float worst_at = 0;
    for (int i = 0; i <= 400000; i++) {
        const float even = low + (high - low) * (float)i / 400000.0f;
        const float tiny = even * powf(2.0f, -(float)(i % 40));
        const float points[2] = {even, tiny};
        for (int k = 0; k < 2; k++) {
            if (points[k] < low || points[k] > high) continue;
            const double expected = exact((double)points[k]);
            if (fabs(expected) > 3.4e38 || fabs(expected) < 1.2e-38) continue;
            const double error = fabs((double)ours(points[k]) - expected) / vector_ulp(expected);
            if (error > worst) {
                worst = error;
                worst_at = points[k];
            }
        }
    }
    CHECK(worst <= ulps_limit, "%s is off by %g units at %.9g", name, worst, (double)worst_at);
}

static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double exact_softplus(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

static void functions_are_exact_to_two_units(void **state) {
    (void)state;
    vector_check("exp", vector_exp, exp, 2, -87, 88);
    vector_check("expm1", vector_expm1, expm1, 2, -15, 88);
    vector_check("log", vector_log, log, 2, 1e-37f, 1e37f);
    vector_check("log near 1", vector_log, log, 2, 0.5f, 2);
    vector_check("log1p", vector_log1p, log1p, 2, 0, 1e30f);
    vector_check("tanh", vector_tanh, tanh, 2, -12, 12);
    vector_check("sigmoid", vector_sigmoid, exact_sigmoid, 2.5, -80, 20);
    vector_check("softplus", vector_softplus, exact_softplus, 2, -80, 80);
    vector_check("erf", vector_erf, erf, 2, -6, 6);
}

static void special_values_are_kept(void **state) {
    (void)state;
    const float inf = INFINITY;
    assert_true(isnan(vector_exp(NAN)) && isnan(vector_log(NAN)) && isnan(vector_tanh(NAN)));
    assert_true(isnan(vector_sigmoid(NAN)) && isnan(vector_erf(NAN)) && isnan(vector_expm1(NAN)));
    assert_true(isnan(vector_log(-1.0f)) && isnan(vector_log(-inf)) && isnan(vector_softplus(NAN)));
    assert_true(vector_exp(-inf) == 0 && vector_exp(inf) == inf && vector_exp(0) == 1);
    assert_true(vector_exp(-103.0f) > 0 && vector_exp(-105.0f) == 0); // denormal results
    assert_true(vector_exp(88.7f) < inf && vector_exp(88.8f) == inf);
    assert_true(vector_expm1(inf) == inf && vector_expm1(-inf) == -1 && vector_expm1(0) == 0);
    assert_true(vector_log(0.0f) == -inf && vector_log(inf) == inf && vector_log(1.0f) == 0);
    CHECK(fabs((double)vector_log(1e-40f) - log(1e-40)) < 1e-4, "log(1e-40) is %g",
          (double)vector_log(1e-40f));
    assert_true(vector_tanh(inf) == 1 && vector_tanh(-inf) == -1 && vector_tanh(0) == 0);
    assert_true(vector_sigmoid(-inf) == 0 && vector_sigmoid(inf) == 1);
    assert_true(vector_erf(inf) == 1 && vector_erf(-inf) == -1 && vector_erf(0) == 0);
    assert_true(vector_softplus(inf) == inf && vector_softplus(-inf) == 0);
    assert_true(signbit(vector_tanh(-0.0f)) && signbit(vector_erf(-0.0f)));
}

PEN_TEST_MAIN(cmocka_unit_test(functions_are_exact_to_two_units),
              cmocka_unit_test(special_values_are_kept))
