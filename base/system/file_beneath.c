// Opening a file whose name somebody else chose, without ever leaving a given folder.
//
// Linux 5.6 can promise that in one call (openat2). Older kernels, and sandboxes that refuse the
// call, get the same promise by opening one component after another, following no link.

#include "base/system/file_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/system/file.h"

static pen_status beneath_error(const char *folder, const char *location, int error_number) {
    if (error_number == ELOOP || error_number == EXDEV) {
        return pen_error(PEN_INVALID_INPUT, "'%s' in '%s' is, or leads over, a symbolic link",
                         location, folder);
    }
    return pen_error(pen_file_error_code(error_number), "cannot open '%s' in '%s': %s", location,
                     folder, strerror(error_number));
}

static bool beneath_has_parent(const char *location) {
    for (const char *part = location; part != NULL; part = strchr(part, '/')) {
        if (part[0] == '/') part++;
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return true;
    }
    return false;
}

// Refuses locations that lead out of the folder before the kernel is asked. It refuses them again
// (openat2), which also stops links.
static pen_status beneath_check(const char *folder, const char *location) {
    if (folder[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT, "location '%s' has no folder that it is in", location);
    }
    if (location[0] == '\0') return pen_error(PEN_INVALID_INPUT, "the file's location is empty");
    if (location[0] == '/') {
        return pen_error(PEN_INVALID_INPUT,
                         "location '%s' is absolute, expected one relative to "
                         "the model's folder",
                         location);
    }
    if (beneath_has_parent(location)) {
        return pen_error(PEN_INVALID_INPUT,
                         "location '%s' has '..', expected one inside the "
                         "model's folder",
                         location);
    }
    if (strlen(location) >= PEN_LOCATION_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "a location is longer than %d bytes",
                         PEN_LOCATION_BYTES_LIMIT);
    }
    return PEN_OK;
}

// Opens component after component. -1 and errno on failure. O_NONBLOCK: a pipe must not hold us up
// before fstat says what it is.
static int beneath_walk(int folder, const char *location) {
    char part[PEN_LOCATION_BYTES_LIMIT];
    int at = dup(folder);
    while (at >= 0) {
        const size_t length = strcspn(location, "/");
        memcpy(part, location, length);
        part[length] = '\0';
        location += length + strspn(location + length, "/");
        const bool last = location[0] == '\0';
        const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
        const int next = openat(at, part, flags);
        const int error_number = errno;
        close(at);
        if (next < 0) errno = error_number;
        if (next < 0 || last) return next;
        at = next;
    }
    return -1;
}

static int beneath_open(int folder, const char *location) {
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    const long descriptor = syscall(SYS_openat2, folder, location, &how, sizeof how);
    if (descriptor >= 0) return (int)descriptor;
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return -1;
    return beneath_walk(folder, location);
}

// A file with a second name could be one of elsewhere that was linked into the folder, which no
// check of the path can see.
static pen_status beneath_map(int descriptor, const char *folder, const char *location,
                              pen_mapping *out_mapping) {
    static const uint8_t nothing[1] = {0};
    struct stat about;
    if (fstat(descriptor, &about) != 0) return beneath_error(folder, location, errno);
    if (!S_ISREG(about.st_mode)) {
        return pen_error(PEN_INVALID_INPUT, "'%s' in '%s' is not a regular file", location, folder);
    }
    if (about.st_nlink > 1) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' in '%s' has other names (hard links), maybe outside of the folder: "
                         "copy it",
                         location, folder);
    }
    pen_mapping mapping = {.bytes = nothing,
                           .length = (size_t)about.st_size,
                           .file_device = about.st_dev,
                           .file_number = about.st_ino};
    if (mapping.length > 0) {
        void *bytes = mmap(NULL, mapping.length, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED) return beneath_error(folder, location, errno);
        mapping.bytes = bytes;
    }
    *out_mapping = mapping;
    return PEN_OK;
}

pen_status pen_mapping_open_beneath(const char *folder, const char *location,
                                    pen_mapping *out_mapping) {
    PEN_TRY(beneath_check(folder, location));
    const int folder_descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_descriptor < 0) return beneath_error(folder, location, errno);
    const int descriptor = beneath_open(folder_descriptor, location);
    const int error_number = errno;
    close(folder_descriptor);
    if (descriptor < 0) return beneath_error(folder, location, error_number);
    const pen_status status = beneath_map(descriptor, folder, location, out_mapping);
    close(descriptor);
    return status;
}
