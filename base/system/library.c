#include "base/system/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_TROUBLE_BYTES 512u

static pen_status library_take_symbols(const pen_library *library, void *handle, void *table) {
    for (size_t i = 0; i < library->symbol_count; i++) {
        // functions come out of dlsym as data pointers; POSIX lets the bytes be taken over
        void *symbol = dlsym(handle, library->symbols[i]);
        if (symbol == NULL) {
            return pen_error(PEN_NOT_FOUND, "%s, is of a version without '%s'", library->purpose,
                             library->symbols[i]);
        }
        memcpy((char *)table + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return PEN_OK;
}

// Why a file was not loaded: that of one which is there but is broken, or lacks another, before
// that of one which is not there.
static void library_keep_trouble(const char *name, char *trouble, size_t size) {
    const char *told = dlerror();
    const bool is_absent = strncmp(told, name, strlen(name)) == 0 &&
                           strstr(told, ": cannot open shared object file") != NULL;
    if (trouble[0] == 0 || !is_absent) (void)snprintf(trouble, size, "%s", told);
}

pen_status pen_library_load(const pen_library *library, void *out_table) {
    char trouble[LIBRARY_TROUBLE_BYTES] = "";
    void *handle = NULL;
    for (size_t i = 0; library->names[i] != NULL && handle == NULL; i++) {
        handle = dlopen(library->names[i], RTLD_LAZY | RTLD_LOCAL);
        if (handle == NULL) library_keep_trouble(library->names[i], trouble, sizeof trouble);
    }
    if (handle == NULL) {
        return pen_error(PEN_NOT_FOUND, "%s, cannot be loaded: %s", library->purpose, trouble);
    }
    const pen_status status = library_take_symbols(library, handle, out_table);
    if (status != PEN_OK) (void)dlclose(handle);
    return status;
}

pen_status pen_library_load_once(pen_library_once *once, const pen_library *library, void *table) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&lock);
    if (!once->was_tried) once->status = pen_library_load(library, table);
    once->was_tried = true;
    (void)pthread_mutex_unlock(&lock);
    if (once->status == PEN_OK) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "%s", pen_status_message(once->status));
}

pen_status pen_library_find_once(pen_library_once *once, const pen_library *library, void *table) {
    const pen_status status = pen_library_load_once(once, library, table);
    if (status == PEN_OK) return PEN_OK;
    const pen_status told = pen_error(PEN_UNSUPPORTED, "%s", pen_status_message(status));
    pen_status_ignore(status, "told as what cannot be done here");
    return told;
}
