// Whether a device may use libraries of its maker that it finds on its machine, as cuBLAS for
// matrix products, instead of kernels of its own.
#ifndef PEN_BASE_LIBRARIES_H
#define PEN_BASE_LIBRARIES_H

typedef enum pen_libraries {
    PEN_LIBRARIES_NONE,
    PEN_LIBRARIES_AUTO,     // those that are found, and begin
    PEN_LIBRARIES_REQUIRED, // all; without one the device is not opened. A job has a device that
                            // uses them
    PEN_LIBRARIES_COUNT,
} pen_libraries;

// [PEN_LIBRARIES_COUNT + 1], the last NULL: "none", "auto", "required".
extern const char *const pen_libraries_names[];

#endif // PEN_BASE_LIBRARIES_H
