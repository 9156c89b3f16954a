#include "graph/import/keras/hdf5_library.h"

#include <pthread.h>
#include <stdio.h>

#include "base/system/library.h"
#include "graph/import/keras/hdf5_version.h"

// The numbers in the names of libraries are those of their interfaces: 103 of 1.10, 200 of 1.12,
// 310 of 1.14. Debian builds with and without MPI have names of their own.
static const char *const library_names[] = {"libhdf5_serial.so.103",
                                            "libhdf5.so.103",
                                            "libhdf5_serial.so.200",
                                            "libhdf5.so.200",
                                            "libhdf5_serial.so.310",
                                            "libhdf5.so.310",
                                            NULL};

#define LIBRARY_TEXT(name) #name
#define LIBRARY_SYMBOL(name) LIBRARY_TEXT(name), // what the name stands for in this version
static const char *const library_symbols[] = {PEN_HDF5_FUNCTIONS(LIBRARY_SYMBOL)
                                                  PEN_HDF5_NUMBERS(LIBRARY_SYMBOL)};

// Made once, and only read then.
static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static pen_hdf5_library library;
static pen_status library_status;
static char library_version[32] = "not found";

static pen_status library_prepare(void) {
    unsigned parts[3] = {0};
    const pen_library wanted = {
        .purpose = "libhdf5, which reads HDF5 files (Debian 12's package libhdf5-103-1)",
        .names = library_names,
        .symbols = library_symbols,
        .symbol_count = sizeof library_symbols / sizeof *library_symbols};
    PEN_TRY(pen_library_load(&wanted, &library));
    if (library.H5dont_atexit() < 0 || library.H5open() < 0 ||
        library.H5get_libversion(&parts[0], &parts[1], &parts[2]) < 0 ||
        library.H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0 || library.H5PLset_loading_state(0) < 0) {
        return pen_error(PEN_NOT_FOUND, "%s, does not start", wanted.purpose);
    }
    snprintf(library_version, sizeof library_version, "%u.%u.%u", parts[0], parts[1], parts[2]);
    if (parts[0] == H5_VERS_MAJOR && parts[1] == H5_VERS_MINOR) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "%s, is %s, expected %d.%d", wanted.purpose, library_version,
                     H5_VERS_MAJOR, H5_VERS_MINOR);
}

static void library_load(void) {
    library_status = library_prepare();
}

pen_status pen_hdf5_library_load(const pen_hdf5_library **out_library) {
    (void)pthread_once(&library_once, library_load);
    if (library_status != PEN_OK) {
        return pen_error(PEN_NOT_FOUND, "%s", pen_status_message(library_status));
    }
    *out_library = &library;
    return PEN_OK;
}

const char *pen_hdf5_version(void) {
    (void)pthread_once(&library_once, library_load);
    return library_version;
}
