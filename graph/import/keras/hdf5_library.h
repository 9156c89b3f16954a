// libhdf5, loaded when it is needed. Its functions are called as `h5->H5Fopen(...)`, and its
// numbers read as `*h5->H5T_IEEE_F32LE_g`, which stand under those names in hdf5.h.
//
// Threads: pen_hdf5_library_load any; libhdf5 itself one at a time.
#ifndef PEN_GRAPH_IMPORT_KERAS_HDF5_LIBRARY_H
#define PEN_GRAPH_IMPORT_KERAS_HDF5_LIBRARY_H

#define H5_USE_110_API // of newer versions, what 1.10 had
#include <hdf5.h>

#include "base/status.h"

#define PEN_HDF5_FUNCTIONS(X)                                                                      \
    X(H5Aclose)                                                                                    \
    X(H5Aget_space)                                                                                \
    X(H5Aget_type)                                                                                 \
    X(H5Aiterate2)                                                                                 \
    X(H5Aopen)                                                                                     \
    X(H5Aread)                                                                                     \
    X(H5Dclose)                                                                                    \
    X(H5Dget_create_plist)                                                                         \
    X(H5Dget_offset)                                                                               \
    X(H5Dget_space)                                                                                \
    X(H5Dget_type)                                                                                 \
    X(H5Dopen2)                                                                                    \
    X(H5Dread)                                                                                     \
    X(H5Dvlen_reclaim)                                                                             \
    X(H5Eclear2)                                                                                   \
    X(H5Eset_auto2)                                                                                \
    X(H5Ewalk2)                                                                                    \
    X(H5Fopen)                                                                                     \
    X(H5Gget_info)                                                                                 \
    X(H5Iget_type)                                                                                 \
    X(H5Literate)                                                                                  \
    X(H5Oclose)                                                                                    \
    X(H5Oopen)                                                                                     \
    X(H5PLset_loading_state)                                                                       \
    X(H5Pclose)                                                                                    \
    X(H5Pcreate)                                                                                   \
    X(H5Pget_chunk)                                                                                \
    X(H5Pget_external_count)                                                                       \
    X(H5Pget_filter2)                                                                              \
    X(H5Pget_layout)                                                                               \
    X(H5Pget_nfilters)                                                                             \
    X(H5Pset_fapl_core)                                                                            \
    X(H5Pset_file_image)                                                                           \
    X(H5Pset_file_image_callbacks)                                                                 \
    X(H5Sclose)                                                                                    \
    X(H5Screate_simple)                                                                            \
    X(H5Sget_simple_extent_dims)                                                                   \
    X(H5Sget_simple_extent_ndims)                                                                  \
    X(H5Sget_simple_extent_npoints)                                                                \
    X(H5Sselect_hyperslab)                                                                         \
    X(H5Tclose)                                                                                    \
    X(H5Tequal)                                                                                    \
    X(H5Tget_class)                                                                                \
    X(H5Tget_fields)                                                                               \
    X(H5Tget_order)                                                                                \
    X(H5Tget_sign)                                                                                 \
    X(H5Tget_size)                                                                                 \
    X(H5Tget_strpad)                                                                               \
    X(H5Tis_variable_str)                                                                          \
    X(H5dont_atexit)                                                                               \
    X(H5get_libversion)                                                                            \
    X(H5open)

#define PEN_HDF5_NUMBERS(X)                                                                        \
    X(H5P_CLS_FILE_ACCESS_ID_g)                                                                    \
    X(H5T_IEEE_F32LE_g)                                                                            \
    X(H5T_IEEE_F64LE_g)                                                                            \
    X(H5T_STD_I8LE_g)                                                                              \
    X(H5T_STD_I16LE_g)                                                                             \
    X(H5T_STD_I32LE_g)                                                                             \
    X(H5T_STD_I64LE_g)                                                                             \
    X(H5T_STD_U8LE_g)                                                                              \
    X(H5T_STD_U16LE_g)                                                                             \
    X(H5T_STD_U32LE_g)                                                                             \
    X(H5T_STD_U64LE_g)

typedef struct pen_hdf5_library {
#define PEN_HDF5_MEMBER(name) __typeof__(&name) name;
    PEN_HDF5_FUNCTIONS(PEN_HDF5_MEMBER)
    PEN_HDF5_NUMBERS(PEN_HDF5_MEMBER)
#undef PEN_HDF5_MEMBER
} pen_hdf5_library;

// Loads it once, ready for use: it prints nothing, and loads no code that a file names.
//   NOT_FOUND  there is none, or one of another version than that of hdf5.h
PEN_NODISCARD pen_status pen_hdf5_library_load(const pen_hdf5_library **out_library);

#endif // PEN_GRAPH_IMPORT_KERAS_HDF5_LIBRARY_H
