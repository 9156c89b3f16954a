// Fuzzes what a `.pt2` file says of sizes: any shapes, strides, places in storage, formulas, ranges
// of symbols and lists of weights give a graph or an error.

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    fuzz_read_pt2_text(bytes, length);
    return 0;
}

static const char *const fuzz_values[] = {
    "{\"as_int\":0}",
    "{\"as_int\":1}",
    "{\"as_int\":-1}",
    "{\"as_int\":2}",
    "{\"as_int\":256}",
    "{\"as_int\":9223372036854775807}",
    "{\"as_int\":4611686018427387904}",
    "{\"as_int\":2147483648}",
    "{\"as_int\":67108864}",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "7",
    "255",
    "65536",
    "2147483647",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "{\"as_expr\":{\"expr_str\":\"Symbol('s0', positive=True, integer=True)\"}}",
    "{\"as_expr\":{\"expr_str\":\"Symbol('s77', positive=True, integer=True)\"}}",
    "{\"as_expr\":{\"expr_str\":\"Mul(Integer(2), Symbol('s77', integer=True))\"}}",
    "{\"as_expr\":{\"expr_str\":\"FloorDiv(Symbol('s77', integer=True), Integer(0))\"}}",
    "{\"as_expr\":{\"expr_str\":\"Mod(Symbol('s77', integer=True), Integer(0))\"}}",
    "{\"as_expr\":{\"expr_str\":\"Add(Integer(-9223372036854775808), Integer(-1))\"}}",
    "{\"as_expr\":{\"expr_str\":\"Max(Integer(1), Min(Symbol('s77'), Integer(4)), Integer(0))\"}}",
    "{\"as_expr\":{\"expr_str\":\"\"}}",
    "\"Symbol('s77')\"",
    "\"Integer(4)\"",
    "\"PythonMod(Integer(-7), Integer(-1))\"",
    "\"CleanDiv(Integer(7), Integer(2))\"",
    "[]",
    "[{\"as_int\":2}]",
    "[{\"as_int\":2},{\"as_int\":3}]",
    "{\"min_val\":0,\"max_val\":null}",
    "{\"min_val\":9,\"max_val\":-9}",
    "\"weight_0\"",
    "\"weight_1\"",
    "\"tensor_0\"",
    "true",
    "false",
    "null",
    "1e300",
    NULL};

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    static const char *const keys[] = {"tensor_values",
                                       "sym_int_values",
                                       "sym_float_values",
                                       "sym_bool_values",
                                       "range_constraints",
                                       "config",
                                       NULL};
    static const fuzz_json_scope sizes = {.keys = keys, .values = fuzz_values};
    return fuzz_change_json(bytes, length, limit, seed, &sizes);
}
