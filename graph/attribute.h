// Attributes of a node: what its op's schema (graph/op.h) has names for, and the model gives
// values.
//
// Lifetime: what a value points to lives as long as the graph, or, as given, for the call.
// Threads:  plain data.
#ifndef PEN_GRAPH_ATTRIBUTE_H
#define PEN_GRAPH_ATTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

typedef enum pen_attribute_kind {
    PEN_ATTRIBUTE_INT,
    PEN_ATTRIBUTE_FLOAT,
    PEN_ATTRIBUTE_TEXT,
    PEN_ATTRIBUTE_INTS,
    PEN_ATTRIBUTE_FLOATS,
} pen_attribute_kind;

typedef struct pen_attribute_value {
    bool present; // given, or filled from the default; false: optional and left out
    int64_t integer;
    double number;
    const char *text;
    uint32_t count;
    const int64_t *integers; // [count]
    const double *numbers;   // [count]
} pen_attribute_value;

// One attribute as given: the op's schema says which kind `name` must have.
typedef struct pen_attribute_given {
    const char *name;
    pen_attribute_kind kind;
    pen_attribute_value value; // `present` is ignored
} pen_attribute_given;

static inline pen_attribute_given pen_attribute_int(const char *name, int64_t integer) {
    return (pen_attribute_given){name, PEN_ATTRIBUTE_INT, {.integer = integer}};
}
static inline pen_attribute_given pen_attribute_float(const char *name, double number) {
    return (pen_attribute_given){name, PEN_ATTRIBUTE_FLOAT, {.number = number}};
}
static inline pen_attribute_given pen_attribute_text(const char *name, const char *text) {
    return (pen_attribute_given){name, PEN_ATTRIBUTE_TEXT, {.text = text}};
}
static inline pen_attribute_given pen_attribute_ints(const char *name, uint32_t count,
                                                     const int64_t *integers) {
    return (pen_attribute_given){name, PEN_ATTRIBUTE_INTS, {.count = count, .integers = integers}};
}

// Adds the number or, "1,2,3", the numbers; nothing of a TEXT. Floats have nine digits, which tell
// all float32 numbers apart.
void pen_attribute_add_numbers(pen_text *text, pen_attribute_kind kind,
                               const pen_attribute_value *value);

#endif // PEN_GRAPH_ATTRIBUTE_H
