#include "graph/element.h"

#include <math.h>
#include <string.h>

typedef struct element_row {
    const char *name;
    size_t bytes;
} element_row;

static const element_row element_rows[PEN_ELEMENT_TYPE_COUNT] = {
    [PEN_ELEMENT_UNKNOWN] = {"unknown", 0},
    [PEN_FLOAT32] = {"float32", 4},
    [PEN_FLOAT64] = {"float64", 8},
    [PEN_FLOAT16] = {"float16", 2},
    [PEN_BFLOAT16] = {"bfloat16", 2},
    [PEN_INT8] = {"int8", 1},
    [PEN_INT16] = {"int16", 2},
    [PEN_INT32] = {"int32", 4},
    [PEN_INT64] = {"int64", 8},
    [PEN_UINT8] = {"uint8", 1},
    [PEN_UINT16] = {"uint16", 2},
    [PEN_UINT32] = {"uint32", 4},
    [PEN_UINT64] = {"uint64", 8},
    [PEN_BOOL] = {"bool", 1},
};

size_t pen_element_bytes(pen_element_type element) {
    return element_rows[element].bytes;
}

const char *pen_element_name(pen_element_type element) {
    return element_rows[element].name;
}

pen_status pen_element_find(const char *name, pen_element_type *out_element) {
    for (int i = PEN_FLOAT32; i < PEN_ELEMENT_TYPE_COUNT; i++) {
        if (strcmp(element_rows[i].name, name) == 0) {
            *out_element = (pen_element_type)i;
            return PEN_OK;
        }
    }
    return pen_error(PEN_NOT_FOUND,
                     "no element type is called '%s'; there are float32, float64, float16, "
                     "bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool",
                     name);
}

bool pen_element_is_float(pen_element_type element) {
    return pen_element_is_in(element, PEN_ELEMENTS_FLOAT);
}
bool pen_element_is_half(pen_element_type element) {
    return pen_element_is_in(element, PEN_ELEMENTS_HALF);
}
bool pen_element_is_trained(pen_element_type element) {
    return pen_element_is_in(element, PEN_ELEMENTS_TRAINED);
}
bool pen_element_is_integer(pen_element_type element) {
    return pen_element_is_in(element, PEN_ELEMENTS_SIGNED_INTEGER | PEN_ELEMENTS_UNSIGNED);
}
bool pen_element_is_signed(pen_element_type element) {
    return pen_element_is_in(element, PEN_ELEMENTS_SIGNED);
}

// ---- floating types of 16 bits

static double element_half_to_double(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int mantissa = bits & 1023;
    double number;
    if (exponent == 31) {
        number = mantissa != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        number = ldexp(mantissa, -24);
    } else {
        number = ldexp(mantissa + 1024, exponent - 25);
    }
    return bits & 0x8000 ? -number : number;
}

static uint16_t element_double_to_half(double number) {
    const uint16_t sign = signbit(number) ? 0x8000 : 0;
    if (isnan(number)) return (uint16_t)(sign | 0x7e00);
    const double magnitude = fabs(number);
    if (magnitude >= 65520.0) return (uint16_t)(sign | 0x7c00); // rounds to infinity
    int exponent;
    frexp(magnitude, &exponent); // magnitude = m * 2^exponent, m in [0.5, 1)
    if (magnitude == 0 || exponent < -13) exponent = -13; // subnormal: the step stays 2^-24
    const double scaled = nearbyint(ldexp(magnitude, 11 - exponent)); // in [0, 2048]
    // 1024 steps an exponent; a mantissa rounded up to 2048 carries into it by the addition
    return (uint16_t)(sign | (uint16_t)((exponent + 13) * 1024 + (int)scaled));
}

static double element_brain_to_double(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

static uint16_t element_double_to_brain(double number) {
    const float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (isnan(number)) return (uint16_t)(bits >> 16 | 0x40);
    // double rounding (to float, then here) is accepted: bfloat16 is storage only
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

// ---- bytes

// The bits of an element of `bytes`, above them zeros. Sizes stand as constants so that no call of
// memcpy remains: reference kernels come here for every element.
static uint64_t element_load(const void *elements, int64_t index, size_t bytes) {
    const char *at = (const char *)elements + (uint64_t)index * bytes;
    uint64_t bits = 0;
    if (bytes == 8) {
        memcpy(&bits, at, 8);
    } else if (bytes == 4) {
        memcpy(&bits, at, 4);
    } else if (bytes == 2) {
        memcpy(&bits, at, 2);
    } else {
        memcpy(&bits, at, 1);
    }
    return bits;
}

static void element_store(void *elements, int64_t index, size_t bytes, uint64_t bits) {
    char *at = (char *)elements + (uint64_t)index * bytes;
    if (bytes == 8) {
        memcpy(at, &bits, 8);
    } else if (bytes == 4) {
        memcpy(at, &bits, 4);
    } else if (bytes == 2) {
        memcpy(at, &bits, 2);
    } else {
        memcpy(at, &bits, 1);
    }
}

// As a double, which holds every element exactly but integers above 2^53.
double pen_element_read(pen_element_type element, const void *elements, int64_t index) {
    const size_t bytes = element_rows[element].bytes;
    PEN_ASSERT(bytes > 0);
    if (!pen_element_is_in(element, PEN_ELEMENTS_FLOAT)) {
        const int64_t integer = pen_element_read_int(element, elements, index);
        return element == PEN_UINT64 ? (double)(uint64_t)integer : (double)integer;
    }
    const uint64_t bits = element_load(elements, index, bytes);
    if (bytes == 4) {
        float single;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    }
    if (bytes == 8) {
        double number;
        memcpy(&number, &bits, sizeof number);
        return number;
    }
    return element == PEN_FLOAT16 ? element_half_to_double((uint16_t)bits)
                                  : element_brain_to_double((uint16_t)bits);
}

// Beyond int64, C leaves the conversion undefined: it ends there.
static uint64_t element_integer_of(pen_element_type element, double number) {
    if (element == PEN_BOOL) return number != 0;
    if (element == PEN_UINT64 && number >= 0x1p63 && number < 0x1p64) return (uint64_t)number;
    if (number >= 0x1p63) return INT64_MAX;
    if (number < -0x1p63) return (uint64_t)INT64_MIN;
    return isnan(number) ? 0 : (uint64_t)(int64_t)number;
}

void pen_element_write(pen_element_type element, void *elements, int64_t index, double number) {
    const size_t bytes = element_rows[element].bytes;
    PEN_ASSERT(bytes > 0);
    uint64_t bits = 0;
    if (!pen_element_is_in(element, PEN_ELEMENTS_FLOAT)) {
        bits = element_integer_of(element, number);
    } else if (bytes == 4) {
        const float single = (float)number;
        memcpy(&bits, &single, sizeof single);
    } else if (bytes == 8) {
        memcpy(&bits, &number, sizeof number);
    } else {
        bits = element == PEN_FLOAT16 ? element_double_to_half(number)
                                      : element_double_to_brain(number);
    }
    element_store(elements, index, bytes, bits);
}

int64_t pen_element_read_int(pen_element_type element, const void *elements, int64_t index) {
    const size_t bytes = element_rows[element].bytes;
    PEN_ASSERT(bytes > 0);
    if (pen_element_is_in(element, PEN_ELEMENTS_FLOAT)) {
        return (int64_t)pen_element_read(element, elements, index);
    }
    const uint64_t bits = element_load(elements, index, bytes);
    if (!pen_element_is_in(element, PEN_ELEMENTS_SIGNED_INTEGER)) return (int64_t)bits;
    const unsigned unused = 64 - 8 * (unsigned)bytes; // the sign is copied into the bits above
    return (int64_t)(bits << unused) >> unused;
}

void pen_element_write_int(pen_element_type element, void *elements, int64_t index,
                           int64_t number) {
    if (pen_element_is_in(element, PEN_ELEMENTS_FLOAT)) {
        pen_element_write(element, elements, index, (double)number);
        return;
    }
    const uint64_t bits = element == PEN_BOOL ? number != 0 : (uint64_t)number;
    element_store(elements, index, element_rows[element].bytes, bits);
}

void pen_element_convert(pen_element_type from, const void *elements, int64_t first, int64_t count,
                         pen_element_type to, void *out_elements) {
    const size_t bytes = pen_element_bytes(from);
    if (from == to) {
        memcpy(out_elements, (const char *)elements + (size_t)first * bytes, (size_t)count * bytes);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        pen_element_write(to, out_elements, i, pen_element_read(from, elements, first + i));
}
