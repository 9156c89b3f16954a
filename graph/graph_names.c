// What roles and kinds are called.

#include "graph/graph.h"

const char *pen_role_name(pen_role role) {
    switch (role) {
    case PEN_ROLE_FORWARD:
        return "forward";
    case PEN_ROLE_BACKWARD_INPUT:
        return "backward_input";
    case PEN_ROLE_BACKWARD_WEIGHT:
        return "backward_weight";
    case PEN_ROLE_UPDATE:
        return "update";
    case PEN_ROLE_TRANSFER:
        return "transfer";
    }
    return "unknown";
}

const char *pen_value_kind_name(pen_value_kind kind) {
    switch (kind) {
    case PEN_VALUE_COMPUTED:
        return "computed";
    case PEN_VALUE_INPUT:
        return "input";
    case PEN_VALUE_SCALAR:
        return "scalar";
    case PEN_VALUE_PARAMETER:
        return "parameter";
    case PEN_VALUE_STATE:
        return "state";
    case PEN_VALUE_CONSTANT:
        return "constant";
    }
    return "unknown";
}

const char *pen_attribute_kind_name(pen_attribute_kind kind) {
    switch (kind) {
    case PEN_ATTRIBUTE_INT:
        return "an integer";
    case PEN_ATTRIBUTE_FLOAT:
        return "a number";
    case PEN_ATTRIBUTE_TEXT:
        return "a text";
    case PEN_ATTRIBUTE_INTS:
        return "a list of integers";
    case PEN_ATTRIBUTE_FLOATS:
        return "a list of numbers";
    }
    return "unknown";
}
