// Opening a file whose name somebody else chose, without ever leaving a given folder.
//
// Linux 5.6 can promise that in one call (openat2). Older kernels, and sandboxes that refuse the
// call, get the same promise by opening one component after another, following no link.

#include "base/system/file_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
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

// ---- folders

static pen_status folder_refuse(const char *root, const char *name) {
    return pen_error(PEN_INVALID_INPUT,
                     "found the folder '%.200s', expected a name beneath '%s', without '..'", name,
                     root);
}

static bool folder_is_named(const char *name) {
    for (const char *part = name;; part++) {
        const size_t length = strcspn(part, "/");
        if (length == 0 || length > NAME_MAX) return false;
        if (strncmp(part, "..", length) == 0) return false; // also "."
        part += length;
        if (*part == '\0') return true;
    }
}

static pen_status folder_error(const char *what, const char *root, const char *name,
                               int error_number) {
    if (error_number == ELOOP || error_number == ENOTDIR) {
        return pen_error(PEN_INVALID_INPUT,
                         "'%s' in '%s' is, or leads over, something else than "
                         "a folder",
                         name, root);
    }
    return pen_error(pen_file_error_code(error_number), "cannot %s the folder '%s' in '%s': %s",
                     what, name, root, strerror(error_number));
}

// The folder `part` of the folder `at`, made first if it is wanted; its name is durable then. -1
// and errno on failure.
static int folder_step(int at, const char *part, bool makes) {
    if (makes && mkdirat(at, part, 0777) == 0) {
        if (fsync(at) != 0) return -1;
    } else if (makes && errno != EEXIST) {
        return -1;
    }
    return openat(at, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

// One part after another, and none over a link: what lies between cannot be exchanged for a way out
// meanwhile, for each is opened in the one that is open.
pen_status pen_folder_open_beneath(const char *root, const char *name, bool makes,
                                   int *out_folder) {
    const bool is_root = strcmp(name, ".") == 0;
    if (!is_root && !folder_is_named(name)) return folder_refuse(root, name);
    int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return pen_error(pen_file_error_code(errno), "cannot open the folder '%s': %s", root,
                         strerror(errno));
    }
    for (const char *part = name; !is_root && *part != '\0';) {
        char one[NAME_MAX + 1];
        const size_t length = strcspn(part, "/");
        memcpy(one, part, length);
        one[length] = '\0';
        const int next = folder_step(at, one, makes);
        const int error_number = errno;
        close(at);
        if (next < 0) return folder_error(makes ? "make" : "open", root, name, error_number);
        at = next;
        part += length + (part[length] == '/');
    }
    *out_folder = at;
    return PEN_OK;
}

// ---- paths

// The system resolves what is there: one name more is left off until it is.
pen_status pen_path_resolve(const char *path, pen_arena *arena, const char **out_path) {
    char start[PATH_MAX], found[PATH_MAX];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length -= 1;
    if (length >= sizeof start) return pen_error(PEN_IO, "the path '%.60s…' is too long", path);
    memcpy(start, path, length);
    start[length] = '\0';
    for (;;) {
        const size_t used = strlen(start);
        if (realpath(used == 0 ? (path[0] == '/' ? "/" : ".") : start, found) != NULL) {
            size_t first = used;
            while (first < length && path[first] == '/')
                first += 1;
            const bool has_slash = strcmp(found, "/") == 0 || first == length;
            return pen_arena_format(arena, out_path, "%s%s%.*s", found, has_slash ? "" : "/",
                                    (int)(length - first), path + first);
        }
        if (used == 0 || (errno != ENOENT && errno != ENOTDIR)) {
            return pen_error(PEN_IO, "cannot find '%s': %s", path, strerror(errno));
        }
        char *slash = strrchr(start, '/');
        *(slash == NULL ? start : slash) = '\0';
    }
}

const char *pen_path_find_beneath(const char *root, const char *path) {
    size_t length = strlen(root);
    if (length == 0 || strncmp(path, root, length) != 0) return NULL;
    if (path[length] == '\0') return ".";
    if (root[length - 1] == '/') length -= 1; // "/" itself
    if (path[length] != '/') return NULL;
    return path[length + 1] == '\0' ? "." : path + length + 1;
}
