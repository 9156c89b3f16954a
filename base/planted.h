// Mistakes that are planted for tests of the tests: the simulator must find each of them.
//
// In the product PEN_PLANTED(X) is the constant false, so that nothing of them is in it. A build
// with -DPEN_PLANTED_MISTAKES (make simulate-mistakes) has them, one at a time.
#ifndef PEN_BASE_PLANTED_H
#define PEN_BASE_PLANTED_H

extern const char *pen_planted_mistake; // the name of the one that is made; "": none

#ifdef PEN_PLANTED_MISTAKES
#include <string.h>
#define PEN_PLANTED(name) (strcmp(pen_planted_mistake, #name) == 0)
#else
#define PEN_PLANTED(name) 0
#endif

#endif // PEN_BASE_PLANTED_H
