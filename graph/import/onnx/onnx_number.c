#include "graph/import/onnx/onnx_number.h"

#include <math.h>
#include <string.h>

double pen_onnx_number_read(pen_element_type element, const void *data) {
    union {
        float f;
        double d;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } bits = {.u64 = 0};
    memcpy(&bits, data, pen_element_bytes(element));
    switch (element) {
    case PEN_FLOAT32:
        return (double)bits.f;
    case PEN_FLOAT64:
        return bits.d;
    case PEN_INT8:
        return (double)bits.i8;
    case PEN_INT16:
        return (double)bits.i16;
    case PEN_INT32:
        return (double)bits.i32;
    case PEN_INT64:
        return (double)bits.i64;
    case PEN_BOOL:
    case PEN_UINT8:
        return (double)bits.u8;
    case PEN_UINT16:
        return (double)bits.u16;
    case PEN_UINT32:
        return (double)bits.u32;
    case PEN_UINT64:
        return (double)bits.u64;
    case PEN_FLOAT16: {
        const int exponent = bits.u16 >> 10 & 31;
        const double fraction = (double)(bits.u16 & 1023) / 1024;
        const double sign = bits.u16 >> 15 != 0 ? -1 : 1;
        if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
        return sign * (exponent == 0 ? ldexp(fraction, -14) : ldexp(1 + fraction, exponent - 15));
    }
    case PEN_BFLOAT16:
        bits.u32 <<= 16;
        return (double)bits.f;
    case PEN_ELEMENT_UNKNOWN:
    case PEN_ELEMENT_TYPE_COUNT:
        break;
    }
    return 0;
}

static uint16_t number_half(double number) {
    const uint16_t sign = signbit(number) ? 0x8000 : 0;
    const double size = fabs(number);
    if (isnan(number)) return 0x7e00;
    if (size >= 65520) return sign | 0x7c00; // rounds to infinity
    int exponent;
    frexp(size, &exponent);                                     // size in [0.5, 1) * 2^exponent
    if (exponent < -13) exponent = -13;                         // subnormal: the step stays 2^-24
    const double steps = nearbyint(ldexp(size, 11 - exponent)); // of 2^(exponent - 11)
    const int bits = (int)steps + (exponent + 13) * 1024;       // 1024 steps an exponent
    return (uint16_t)(sign | bits);
}

static uint16_t number_brain(double number) {
    const float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (isnan(number)) return 0x7fc0;
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

void pen_onnx_number_write(pen_element_type element, double number,
                           uint8_t out_bytes[PEN_ONNX_NUMBER_BYTES]) {
    memset(out_bytes, 0, PEN_ONNX_NUMBER_BYTES);
    if (element == PEN_FLOAT64) {
        memcpy(out_bytes, &number, sizeof number);
    } else if (element == PEN_FLOAT32) {
        const float single = (float)number;
        memcpy(out_bytes, &single, sizeof single);
    } else if (element == PEN_FLOAT16 || element == PEN_BFLOAT16) {
        const uint16_t bits = element == PEN_FLOAT16 ? number_half(number) : number_brain(number);
        memcpy(out_bytes, &bits, sizeof bits);
    } else if (element == PEN_UINT64 && number >= 0x1p63) {
        const uint64_t integer = number < 0x1p64 ? (uint64_t)number : UINT64_MAX;
        memcpy(out_bytes, &integer, sizeof integer);
    } else {
        const double within = fmax(-0x1p63, fmin(number, 0x1.fffffffffffffp62)); // no NaN left
        const int64_t integer = (int64_t)within;
        memcpy(out_bytes, &integer, pen_element_bytes(element));
    }
}
