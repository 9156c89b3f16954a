#include "base/system/build.h"

#ifndef PEN_BUILD // the Makefile says
#define PEN_BUILD "0"
#endif

const char *pen_build_name(void) {
    return PEN_VERSION "+" PEN_BUILD;
}
