#include "graph/attribute.h"

#include <inttypes.h>

// Dumps and keys of costs are compared as texts: what is written here stays as it is.
void pen_attribute_add_numbers(pen_text *text, pen_attribute_kind kind,
                               const pen_attribute_value *value) {
    switch (kind) {
    case PEN_ATTRIBUTE_INT:
        pen_text_print(text, "%" PRId64, value->integer);
        break;
    case PEN_ATTRIBUTE_FLOAT:
        pen_text_print(text, "%.9g", value->number);
        break;
    case PEN_ATTRIBUTE_TEXT:
        break;
    case PEN_ATTRIBUTE_INTS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_text_print(text, "%s%" PRId64, i > 0 ? "," : "", value->integers[i]);
        }
        break;
    case PEN_ATTRIBUTE_FLOATS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_text_print(text, "%s%.9g", i > 0 ? "," : "", value->numbers[i]);
        }
        break;
    }
}
