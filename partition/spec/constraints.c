#include "partition/spec/constraints.h"

pen_status pen_constraints_blame(const pen_constraints *constraints, const void *field,
                                 pen_status status) {
    if (constraints->source == NULL) return status;
    return pen_option_blame(constraints->source, field, status);
}
