// Whether libhdf5 lives through a file.
//
// libhdf5 trusts what it reads: files that are damaged, or made for it, can crash it. So everything
// that we would read of a file is read in a process of its own before.
//
// Threads: any.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_PROBE_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_PROBE_H

#include <stddef.h>

#include "base/status.h"

// `name` stands for the file in messages. Errors that libhdf5 gives are left for who reads it.
//   CORRUPT      it crashes libhdf5, or keeps it busy for longer than its size lets expect
//   UNAVAILABLE  the system refused another process
PEN_NODISCARD pen_status pen_hdf5_probe(const char *name, const void *bytes, size_t length);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_PROBE_H
