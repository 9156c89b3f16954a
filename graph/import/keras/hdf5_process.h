// The process that reads an HDF5 file with libhdf5.
//
// libhdf5 trusts what it reads: files that are damaged, or made for it, can crash it or keep it
// busy for ever. So it is loaded and used in a process of its own alone, forked from ours, which
// tells us what it finds (hdf5_stream.h), and whose crash is an error about the file. It can open
// no file, no connection and no program (base/system/sandbox.h), so that whoever makes it run his
// code has nothing to reach.
//
// Lifetime: a process lives until it is ended, and borrows the bytes and the name.
// Threads:  a process, one at a time; any number of them.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_PROCESS_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_PROCESS_H

#include <stddef.h>

#include "base/status.h"
#include "graph/import/keras/hdf5_stream.h"

typedef struct pen_hdf5_process pen_hdf5_process;

// `name` stands for the file in messages.
//   UNAVAILABLE    the system refused another process
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_hdf5_process_start(const char *name, const void *bytes, size_t length,
                                                pen_hdf5_process **out_process);

// What it says. Reading gives
//   CORRUPT   it crashed, or took longer than the size of the file lets expect
//   DEADLINE  it says nothing
pen_hdf5_source pen_hdf5_process_source(pen_hdf5_process *process);

// Ends it, wherever it is. Accepts NULL.
void pen_hdf5_process_end(pen_hdf5_process *process);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_PROCESS_H
