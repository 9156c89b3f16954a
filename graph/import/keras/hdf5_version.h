// The contract of hdf5_library.c with those who do without <hdf5.h>: which libhdf5 there is.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_VERSION_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_VERSION_H

// Its version, "1.10.8", or "not found". Loads it. Threads: any.
const char *pen_hdf5_version(void);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_VERSION_H
