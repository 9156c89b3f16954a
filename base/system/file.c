#include "base/system/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/failpoint.h"

#define FILE_NAME_ATTEMPTS 100
#define FILE_READ_BYTES_FIRST 4096

struct pen_file {
    FILE *stream;
    char *path;      // the final name
    char *temporary; // the name until then
    bool committed;
};

// What a fuller, broken or distant disk says is worth another try later, unlike a wrong path.
pen_status_code pen_file_error_code(int error_number) {
    switch (error_number) {
    case ENOENT:
    case ENOTDIR:
        return PEN_NOT_FOUND;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: // a limit that an administrator can lift
    case EROFS: // also what a disk becomes that fails
    case EIO:
    case ENXIO:
    case ENODEV:
    case ESTALE: // of network folders, as those below
    case ETIMEDOUT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENOTCONN:
    case EREMOTEIO:
        return PEN_NO_STORAGE;
    default:
        return PEN_IO;
    }
}

static pen_status file_error(const char *doing, const char *path, int error_number) {
    return pen_error(pen_file_error_code(error_number), "cannot %s '%s': %s", doing, path,
                     strerror(error_number));
}

// Regular files alone: a device may have no end, and a pipe without a writer waits for one. So it
// is opened without waiting, before it is known what it is.
static pen_status file_open_to_read(const char *path, int *out_descriptor, struct stat *out_about) {
    if (PEN_FAILPOINT("file.opened")) return file_error("read", path, EIO);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return file_error("open", path, errno);
    pen_status status = PEN_OK;
    if (fstat(descriptor, out_about) != 0) {
        status = file_error("open", path, errno);
    } else if (S_ISDIR(out_about->st_mode)) {
        status = pen_error(PEN_IO, "cannot open '%s': it is a folder, expected a file", path);
    } else if (!S_ISREG(out_about->st_mode)) {
        status = pen_error(PEN_IO, "cannot open '%s': it is a pipe or a device, not a regular file",
                           path);
    }
    if (status != PEN_OK) {
        close(descriptor);
        return status;
    }
    *out_descriptor = descriptor;
    return PEN_OK;
}

// An empty file cannot be mapped: it gets an address that is valid and no bytes.
pen_status pen_mapping_open(const char *path, pen_mapping *out_mapping) {
    static const uint8_t nothing[1] = {0};
    int descriptor = -1;
    struct stat about;
    PEN_TRY(file_open_to_read(path, &descriptor, &about));
    pen_status status = PEN_OK;
    pen_mapping mapping = {
        .bytes = nothing, .file_device = about.st_dev, .file_number = about.st_ino};
    if (about.st_size > 0) {
        mapping.length = (size_t)about.st_size;
        void *bytes = mmap(NULL, mapping.length, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED) status = file_error("map", path, errno);
        mapping.bytes = bytes;
    }
    close(descriptor); // the mapping keeps the file
    if (status == PEN_OK) *out_mapping = mapping;
    return status;
}

static void mapping_advise(const pen_mapping *mapping, int advice) {
    if (mapping->length == 0) return;
    union {
        const uint8_t *read_only;
        void *memory;
    } bytes = {.read_only = mapping->bytes};              // madvise wants it without const
    (void)madvise(bytes.memory, mapping->length, advice); // advice alone
}

void pen_mapping_read_ahead(const pen_mapping *mapping, bool may_read_ahead) {
    mapping_advise(mapping, may_read_ahead ? MADV_NORMAL : MADV_RANDOM);
}

void pen_mapping_forget(const pen_mapping *mapping) {
    mapping_advise(mapping, MADV_DONTNEED);
}

void pen_mapping_close(pen_mapping *mapping) {
    if (mapping->length > 0) {
        union {
            const uint8_t *read_only;
            void *memory;
        } bytes = {.read_only = mapping->bytes}; // munmap wants it without const
        PEN_ASSERT(munmap(bytes.memory, mapping->length) == 0);
    }
    *mapping = (pen_mapping){0};
}

bool pen_mapping_is_of(const pen_mapping *mapping, const char *path) {
    struct stat about;
    return mapping->bytes != NULL && stat(path, &about) == 0 &&
           about.st_dev == mapping->file_device && about.st_ino == mapping->file_number;
}

// Reads up to `size` bytes; fewer only at the end of the file.
static pen_status file_fill(int descriptor, const char *path, char *bytes, size_t size,
                            size_t *out_length) {
    size_t length = 0;
    while (length < size) {
        const ssize_t count = read(descriptor, bytes + length, size - length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return file_error("read", path, errno);
        if (count == 0) break;
        length += (size_t)count;
    }
    *out_length = length;
    return PEN_OK;
}

// Reads into buffers of four times the size each. The arena keeps the smaller ones, which are a
// third of the last at most.
static pen_status file_read_all(int descriptor, const char *path, size_t bytes_limit,
                                pen_arena *arena, const char **out_bytes, size_t *out_length) {
    char *bytes = NULL;
    size_t length = 0;
    // Sizes told by the system are not trusted (/proc says 0): read until it ends.
    for (size_t capacity = FILE_READ_BYTES_FIRST;; capacity *= 4) {
        if (capacity > bytes_limit) capacity = bytes_limit + 1;
        char *larger;
        PEN_TRY(PEN_NEW(arena, capacity + 1, &larger));
        if (length > 0) memcpy(larger, bytes, length);
        bytes = larger;
        size_t count = 0;
        PEN_TRY(file_fill(descriptor, path, bytes + length, capacity - length, &count));
        length += count;
        if (length > bytes_limit) {
            return pen_error(PEN_INVALID_INPUT, "'%s' is longer than %zu bytes, the most allowed",
                             path, bytes_limit);
        }
        if (length < capacity) break;
    }
    bytes[length] = '\0';
    *out_bytes = bytes;
    *out_length = length;
    return PEN_OK;
}

pen_status pen_file_read(const char *path, size_t bytes_limit, pen_arena *arena,
                         const char **out_bytes, size_t *out_length) {
    PEN_ASSERT(bytes_limit < SIZE_MAX / 8);
    int descriptor = -1;
    struct stat about;
    PEN_TRY(file_open_to_read(path, &descriptor, &about));
    const pen_status status =
        file_read_all(descriptor, path, bytes_limit, arena, out_bytes, out_length);
    close(descriptor);
    return status;
}

static void file_free(pen_file *file) {
    pen_memory_free(file->path);
    pen_memory_free(file->temporary);
    pen_memory_free(file);
}

// The permissions are those of any new file (0666 less the umask), which mkstemp would not give.
static int file_open_beside(pen_file *file, size_t temporary_bytes) {
    for (unsigned attempt = 0; attempt < FILE_NAME_ATTEMPTS; attempt++) {
        snprintf(file->temporary, temporary_bytes, "%s.%ld-%u.part", file->path, (long)getpid(),
                 attempt);
        const int descriptor =
            open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

// The file gets its name when it is whole (pen_file_commit), so that a reader, or a crash, never
// sees half of it. Pipes and devices have no beside.
pen_status pen_file_create_beside(const char *path, pen_file **out_file) {
    struct stat about;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
        return pen_error(PEN_IO, "cannot write '%s': it is there and not a regular file", path);
    }
    if (PEN_FAILPOINT("file.created")) return file_error("write", path, ENOSPC);
    pen_file *file = pen_memory_allocate(1, sizeof *file);
    if (file == NULL) return pen_error_out_of_memory();
    const size_t path_bytes = strlen(path) + 1;
    const size_t temporary_bytes = path_bytes + 40;
    file->path = pen_memory_allocate(path_bytes, 1);
    file->temporary = pen_memory_allocate(temporary_bytes, 1);
    if (file->path == NULL || file->temporary == NULL) {
        file_free(file);
        return pen_error_out_of_memory();
    }
    memcpy(file->path, path, path_bytes);
    const int descriptor = file_open_beside(file, temporary_bytes);
    if (descriptor < 0) {
        const int error_number = errno;
        file_free(file);
        return file_error("write", path, error_number);
    }
    file->stream = fdopen(descriptor, "wb");
    if (file->stream == NULL) {
        close(descriptor);
        unlink(file->temporary);
        file_free(file);
        return pen_error_out_of_memory();
    }
    *out_file = file;
    return PEN_OK;
}

pen_status pen_file_write(pen_file *file, const void *bytes, size_t length) {
    if (PEN_FAILPOINT("file.written")) return file_error("write", file->path, EIO);
    if (length == 0 || fwrite(bytes, 1, length, file->stream) == length) return PEN_OK;
    return file_error("write", file->path, errno);
}

FILE *pen_file_stream(pen_file *file) {
    return file->stream;
}

// The rename is only durable once the folder is.
static pen_status file_sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[4096] = ".";
    if (slash != NULL) {
        const size_t length = slash == path ? 1 : (size_t)(slash - path);
        if (length >= sizeof folder) return file_error("sync the folder of", path, ENAMETOOLONG);
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return file_error("sync the folder of", path, errno);
    pen_status status = PEN_OK;
    // some file systems have no sync for folders and say EINVAL
    if (fsync(descriptor) != 0 && errno != EINVAL) {
        status = file_error("sync the folder of", path, errno);
    }
    close(descriptor);
    return status;
}

pen_status pen_file_commit(pen_file *file) {
    PEN_ASSERT(!file->committed);
    errno = 0;
    if (fflush(file->stream) != 0 || ferror(file->stream) != 0) {
        return file_error("write", file->path, errno != 0 ? errno : EIO);
    }
    if (PEN_FAILPOINT("file.synced")) return file_error("sync", file->path, EIO);
    if (fsync(fileno(file->stream)) != 0) return file_error("sync", file->path, errno);
    if (rename(file->temporary, file->path) != 0) return file_error("rename to", file->path, errno);
    file->committed = true;
    return file_sync_folder(file->path);
}

pen_status pen_file_close(pen_file *file) {
    if (file == NULL) return PEN_OK;
    pen_status status = PEN_OK;
    // after a commit everything is on the disk, and without one nothing is kept
    (void)fclose(file->stream);
    if (!file->committed && unlink(file->temporary) != 0) {
        status = file_error("remove", file->temporary, errno);
    }
    file_free(file);
    return status;
}

pen_status pen_file_write_text(const char *path, const char *text) {
    pen_file *file = NULL;
    pen_status status = pen_file_create_beside(path, &file);
    if (status == PEN_OK) status = pen_file_write(file, text, strlen(text));
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

pen_status pen_file_check_writable(const char *path) {
    pen_file *file = NULL;
    PEN_TRY(pen_file_create_beside(path, &file));
    return pen_file_close(file);
}

static pen_status file_create_folder(const char *path) {
    struct stat about;
    if (mkdir(path, (mode_t)0777) == 0) return PEN_OK;
    const int error_number = errno;
    if (stat(path, &about) != 0) return file_error("create the folder", path, error_number);
    if (S_ISDIR(about.st_mode)) return PEN_OK;
    return pen_error(PEN_IO, "cannot create the folder '%s': it is there and not a folder", path);
}

pen_status pen_folder_create(const char *path, pen_arena *arena) {
    for (const char *at = strchr(path + (path[0] == '/'), '/'); at != NULL;
         at = strchr(at + 1, '/')) {
        const char *parent;
        PEN_TRY(pen_arena_copy_text(arena, path, (size_t)(at - path), &parent));
        PEN_TRY(file_create_folder(parent));
    }
    return file_create_folder(path);
}

// The folder that a path is in, or would be in.
static pen_status folder_find_above(const char *path, pen_arena *arena, const char **out_above) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0) return pen_arena_copy_text(arena, ".", 1, out_above);
    return pen_arena_copy_text(arena, path, length, out_above);
}

// Of a path that is not there yet, the disk is that of the nearest folder above it that is.
pen_status pen_path_find_room(const char *path, pen_arena *arena, pen_path_room *out_room) {
    struct statvfs about;
    struct stat folder;
    while (statvfs(path, &about) != 0 || stat(path, &folder) != 0) {
        const int error_number = errno;
        const char *above;
        PEN_TRY(folder_find_above(path, arena, &above));
        if (error_number != ENOENT || strcmp(above, path) == 0) {
            return file_error("look at the disk of", path, error_number);
        }
        path = above;
    }
    uint64_t bytes;
    // a file system that counts no blocks does not say
    if (about.f_blocks == 0 ||
        __builtin_mul_overflow((uint64_t)about.f_bavail, (uint64_t)about.f_frsize, &bytes)) {
        bytes = UINT64_MAX;
    }
    *out_room = (pen_path_room){.bytes = bytes, .disk = folder.st_dev};
    return PEN_OK;
}

void pen_folder_remove(const char *path, uint32_t depth) {
    DIR *list = opendir(path);
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        char inner[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(dirfd(list), entry->d_name, 0) == 0 || depth == 0) continue;
        const int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length > 0 && length < PATH_MAX) pen_folder_remove(inner, depth - 1);
    }
    if (list != NULL) (void)closedir(list);
    (void)rmdir(path);
}

pen_status pen_path_beside(pen_arena *arena, const char *file, const char *relative,
                           const char **out_path) {
    const char *name = pen_path_name(file);
    if (relative[0] == '/' || name == file) {
        return pen_arena_copy_text(arena, relative, strlen(relative), out_path);
    }
    return pen_arena_format(arena, out_path, "%.*s%s", (int)(name - file), file, relative);
}

const char *pen_path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

// What the folder of a path is.
static bool path_stat_folder(const char *path, struct stat *about) {
    char folder[PATH_MAX] = ".";
    const size_t length = (size_t)(pen_path_name(path) - path);
    if (length >= sizeof folder) return false;
    if (length > 0) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    return stat(folder, about) == 0;
}

bool pen_path_is_same(const char *a, const char *b) {
    struct stat first, second;
    if (strcmp(a, b) == 0) return true;
    const bool is_there = stat(a, &first) == 0;
    if (is_there != (stat(b, &second) == 0)) return false;
    if (!is_there && (strcmp(pen_path_name(a), pen_path_name(b)) != 0 ||
                      !path_stat_folder(a, &first) || !path_stat_folder(b, &second))) {
        return false;
    }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool pen_path_is_within(const char *inner, const char *outer) {
    char a[PATH_MAX], b[PATH_MAX];
    if (realpath(inner, a) == NULL || realpath(outer, b) == NULL) return false;
    const size_t length = strcmp(b, "/") == 0 ? 0 : strlen(b);
    return strncmp(a, b, length) == 0 && a[length] == '/' && a[length + 1] != '\0';
}
