// Fuzzes the conversions of PyTorch's operators: any operator with any arguments gives nodes or an
// error. Changes are within nodes, so that a text stays what a `.pt2` file has.

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "graph/import/pytorch/pt2_mapping.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_json.h"

#define FUZZ_TARGET_BYTES 128

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    fuzz_read_pt2_text(bytes, length);
    return 0;
}

static const char fuzz_graph[] =
    "{\"as_graph\":{\"name\":\"g\",\"graph\":{\"inputs\":[],\"outputs\":[],"
    "\"nodes\":[],\"tensor_values\":{}}}}";

static const char *const fuzz_values[] = {"{\"as_none\":true}",
                                          "{\"as_int\":0}",
                                          "{\"as_int\":-1}",
                                          "{\"as_int\":3}",
                                          "{\"as_int\":9223372036854775807}",
                                          "{\"as_int\":-9223372036854775808}",
                                          "{\"as_int\":2147483648}",
                                          "{\"as_int\":1048576}",
                                          "{\"as_ints\":[]}",
                                          "{\"as_ints\":[1]}",
                                          "{\"as_ints\":[0,-1]}",
                                          "{\"as_ints\":[1,2,3,4,5,6,7,8,9]}",
                                          "{\"as_ints\":[0,0,0]}",
                                          "{\"as_ints\":[-1,-1,4611686018427387904]}",
                                          "{\"as_float\":0.5}",
                                          "{\"as_float\":1e300}",
                                          "{\"as_float\":\"NaN\"}",
                                          "{\"as_float\":\"-Infinity\"}",
                                          "{\"as_int\":\"Infinity\"}",
                                          "{\"as_floats\":[2.0,0.0]}",
                                          "{\"as_bool\":true}",
                                          "{\"as_bool\":false}",
                                          "{\"as_bools\":[true,false]}",
                                          "{\"as_string\":\"\"}",
                                          "{\"as_string\":\"mean\"}",
                                          "{\"as_strings\":[\"i\",\"i\"]}",
                                          "{\"as_scalar_type\":7}",
                                          "{\"as_scalar_type\":12}",
                                          "{\"as_scalar_type\":9}",
                                          "{\"as_tensors\":[]}",
                                          "{\"as_optional_tensors\":[{\"as_none\":true}]}",
                                          "{\"as_sym_int\":{\"as_int\":2}}",
                                          "{\"as_sym_ints\":[{\"as_int\":2},{\"as_name\":\"s\"}]}",
                                          "{\"as_tensor\":{\"as_graph\":{}}}",
                                          "{\"as_tensor\":{\"as_none\":true}}",
                                          fuzz_graph,
                                          "{\"as_device\":{\"type\":\"cpu\"}}",
                                          "0",
                                          "1",
                                          "-1",
                                          "-2",
                                          "2",
                                          "8",
                                          "9",
                                          "64",
                                          "65535",
                                          "-9223372036854775808",
                                          "9223372036854775807",
                                          "4294967296",
                                          "0.0",
                                          "-0.5",
                                          "1e-320",
                                          "\"\"",
                                          "true",
                                          NULL};

// Any operator there is, half of the time as it works in place.
static const char *fuzz_value_of(const char *key, uint32_t drawn) {
    static char text[FUZZ_TARGET_BYTES];
    uint32_t count = 0;
    if (strcmp(key, "target") != 0) return NULL;
    while (pen_pt2_mapping_at(count) != NULL) {
        count++;
    }
    const char *target = pen_pt2_mapping_at(drawn % count)->target;
    const char *dot = strrchr(target, '.');
    const bool in_place = drawn / count % 2 == 1 && dot != NULL;
    const int length = dot == NULL ? 0 : (int)(dot - target);
    snprintf(text, sizeof text, "\"torch.ops.%.*s%s%s\"", length, target, in_place ? "_" : "",
             target + length);
    return text;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    static const char *const keys[] = {"nodes", NULL};
    static const fuzz_json_scope arguments = {
        .keys = keys, .values = fuzz_values, .value_of = fuzz_value_of};
    return fuzz_change_json(bytes, length, limit, seed, &arguments);
}
