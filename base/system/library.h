// Libraries that are loaded when something needs them, so that who does not need them neither has
// them in memory nor must have them installed.
//
// Threads: any. A library that was loaded stays.
#ifndef PEN_BASE_SYSTEM_LIBRARY_H
#define PEN_BASE_SYSTEM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct pen_library {
    const char *purpose;        // "libzip, which reads zip archives"
    const char *const *names;   // [..., NULL] file names, the first that is found is taken
    const char *const *symbols; // [symbol_count]
    size_t symbol_count;
} pen_library;

// Puts the address of each symbol, in order, into `out_table`: a struct of `symbol_count` pointers.
//   NOT_FOUND  there is no such library, or it lacks a symbol
PEN_NODISCARD pen_status pen_library_load(const pen_library *library, void *out_table);

// Whether a library that threads share was loaded. Zeros: nobody has asked.
typedef struct pen_library_once {
    bool was_tried;
    pen_status status;
} pen_library_once;

// As pen_library_load by the first that asks; all others get what it got. The table, which is only
// read then, is the same in all calls, as `once` is.
PEN_NODISCARD pen_status pen_library_load_once(pen_library_once *once, const pen_library *library,
                                               void *table);

// The same for what this machine may do without.
//   UNSUPPORTED  there is no such library, or it lacks a symbol
PEN_NODISCARD pen_status pen_library_find_once(pen_library_once *once, const pen_library *library,
                                               void *table);

#endif // PEN_BASE_SYSTEM_LIBRARY_H
