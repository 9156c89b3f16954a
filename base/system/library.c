#include "base/system/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

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

pen_status pen_library_load(const pen_library *library, void *out_table) {
    void *handle = NULL;
    for (size_t i = 0; library->names[i] != NULL && handle == NULL; i++)
        handle = dlopen(library->names[i], RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        return pen_error(PEN_NOT_FOUND, "%s, cannot be loaded: %s", library->purpose, dlerror());
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
