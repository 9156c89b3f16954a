// Reads an HDF5 file with libhdf5 and says what is in it (hdf5_stream.h).
//
// Threads: none; runs in a process of its own (hdf5_process.h), which may crash.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_SERVE_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_SERVE_H

#include <stddef.h>

// Writes the catalogue into `socket`, then contents as they are asked for, until the other end is
// closed. `name` stands for the file in messages.
void pen_hdf5_serve(const char *name, const void *bytes, size_t length, int socket);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_SERVE_H
