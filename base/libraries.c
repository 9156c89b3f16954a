#include "base/libraries.h"

#include <stddef.h>

const char *const pen_libraries_names[] = {[PEN_LIBRARIES_NONE] = "none",
                                           [PEN_LIBRARIES_AUTO] = "auto",
                                           [PEN_LIBRARIES_REQUIRED] = "required",
                                           [PEN_LIBRARIES_COUNT] = NULL};
