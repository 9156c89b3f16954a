#include "scheduler/transport/wire_code.h"

#include <stddef.h>

// The codes of gRPC that are nearest; each stands for one of ours.
static const struct {
    pen_status_code ours;
    uint32_t number;
} wire_codes[] = {
    {PEN_CODE_OK, 0},        {PEN_CANCELLED, 1},    {PEN_NO_STORAGE, 6},
    {PEN_INVALID_INPUT, 3},  {PEN_DEADLINE, 4},     {PEN_NOT_FOUND, 5},
    {PEN_OUT_OF_MEMORY, 8},  {PEN_DOES_NOT_FIT, 9}, {PEN_IO, 10},
    {PEN_NOT_FINITE, 11},    {PEN_UNSUPPORTED, 12}, {PEN_INTERNAL, 13},
    {PEN_UNAVAILABLE, 14},   {PEN_CORRUPT, 15},     {PEN_INVALID_INPUT, 7}, // permission denied
    {PEN_INVALID_INPUT, 16},                                                // unauthenticated
};

uint32_t pen_wire_code(pen_status_code code) {
    for (size_t i = 0; i < sizeof wire_codes / sizeof *wire_codes; i++) {
        if (wire_codes[i].ours == code) return wire_codes[i].number;
    }
    PEN_NEVER("every code has a number");
}

pen_status_code pen_wire_code_read(uint32_t number) {
    for (size_t i = 0; i < sizeof wire_codes / sizeof *wire_codes; i++) {
        if (wire_codes[i].number == number) return wire_codes[i].ours;
    }
    return PEN_UNAVAILABLE;
}
