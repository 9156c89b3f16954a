#include "scheduler/store/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/failpoint.h"
#include "base/system/file.h"

#define DISK_FILE_MODE 0666
#define DISK_FOLDER_MODE 0777

struct pen_disk_file {
    int handle;
    bool failed; // what was written may be lost: never synced again
    char path[];
};

static pen_status disk_error(const char *what, const char *path) {
    const int reason = errno;
    return pen_error(pen_file_error_code(reason), "cannot %s '%s': %s", what, path,
                     strerror(reason));
}

// An open() that a signal does not break off.
static int disk_open(const char *path, int flags) {
    int handle;
    do {
        handle = open(path, flags | O_CLOEXEC, DISK_FILE_MODE);
    } while (handle < 0 && errno == EINTR);
    return handle;
}

// Whether a test wants the call to fail, as a damaged disk lets it.
static bool disk_fails(const char *place) {
    if (!PEN_FAILPOINT(place)) return false;
    errno = EIO;
    return true;
}

// A new file, also where one of that name is there: another record may be linked to the old one's
// contents.
static pen_status disk_create(pen_disk *disk, const char *path, pen_disk_file **out_file) {
    (void)disk;
    const size_t length = strlen(path) + 1;
    pen_disk_file *file = pen_memory_allocate(1, sizeof *file + length);
    if (file == NULL) return pen_error_out_of_memory();
    memcpy(file->path, path, length);
    // of what is there under that name nothing may change: it may have another name, too
    if (unlink(path) != 0 && errno != ENOENT) {
        const pen_status status = disk_error("replace", path);
        pen_memory_free(file);
        return status;
    }
    file->handle = disk_fails("disk.created") ? -1 : disk_open(path, O_WRONLY | O_CREAT | O_EXCL);
    if (file->handle < 0) {
        const pen_status status = disk_error("create", path);
        pen_memory_free(file);
        return status;
    }
    *out_file = file;
    return PEN_OK;
}

static pen_status disk_append(pen_disk_file *file, const void *bytes, uint64_t count) {
    const char *at = bytes;
    while (count > 0) {
        const ssize_t written = disk_fails("disk.written") ? -1 : write(file->handle, at, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            file->failed = true;
            return disk_error("write", file->path);
        }
        at += written;
        count -= (uint64_t)written;
    }
    return PEN_OK;
}

static pen_status disk_sync(pen_disk_file *file) {
    if (file->failed) {
        return pen_error(PEN_NO_STORAGE, "cannot sync '%s': writing it failed before", file->path);
    }
    if (!disk_fails("disk.synced") && fsync(file->handle) == 0) return PEN_OK;
    file->failed = true;
    return disk_error("sync", file->path);
}

static void disk_close(pen_disk_file *file) {
    if (file == NULL) return;
    close(file->handle); // nothing is kept that was not synced
    pen_memory_free(file);
}

static pen_status disk_publish(pen_disk *disk, const char *from, const char *to,
                               bool *out_is_taken) {
    (void)disk;
    *out_is_taken = false;
    if (!disk_fails("disk.published") && link(from, to) == 0) return PEN_OK;
    if (errno != EEXIST) return disk_error("create", to);
    *out_is_taken = true;
    return PEN_OK;
}

static pen_status disk_rename(pen_disk *disk, const char *from, const char *to) {
    (void)disk;
    return !disk_fails("disk.renamed") && rename(from, to) == 0 ? PEN_OK
                                                                : disk_error("rename to", to);
}

static pen_status disk_remove(pen_disk *disk, const char *path) {
    (void)disk;
    return unlink(path) == 0 ? PEN_OK : disk_error("remove", path);
}

static pen_status disk_sync_path(pen_disk *disk, const char *path) {
    (void)disk;
    const int handle = disk_open(path, O_RDONLY | O_NONBLOCK);
    if (handle < 0) return disk_error("open", path);
    const pen_status status = fsync(handle) == 0 ? PEN_OK : disk_error("sync", path);
    close(handle);
    return status;
}

static pen_status disk_size(pen_disk *disk, const char *path, uint64_t *out_bytes) {
    (void)disk;
    struct stat about;
    if (stat(path, &about) != 0) return disk_error("read", path);
    if (!S_ISREG(about.st_mode)) return pen_error(PEN_IO, "'%s' is no file", path);
    *out_bytes = (uint64_t)about.st_size;
    return PEN_OK;
}

static pen_status disk_read_all(int handle, const char *path, uint64_t offset, char *out,
                                uint64_t count) {
    while (count > 0) {
        const ssize_t got = pread(handle, out, count, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error("read", path);
        if (got == 0) {
            return pen_error(PEN_CORRUPT, "'%s' ends at byte %llu, %llu bytes too early", path,
                             (unsigned long long)offset, (unsigned long long)count);
        }
        out += got;
        offset += (uint64_t)got;
        count -= (uint64_t)got;
    }
    return PEN_OK;
}

static pen_status disk_read(pen_disk *disk, const char *path, uint64_t offset, void *out,
                            uint64_t count) {
    (void)disk;
    // a pipe that nobody writes to, under a record's name, is no wait without end
    const int handle = disk_open(path, O_RDONLY | O_NONBLOCK);
    if (handle < 0) return disk_error("read", path);
    struct stat about;
    pen_status status = PEN_OK;
    if (fstat(handle, &about) != 0) {
        status = disk_error("read", path);
    } else if (!S_ISREG(about.st_mode)) {
        status = pen_error(PEN_IO, "cannot read '%s': it is not a regular file", path);
    } else {
        status = disk_read_all(handle, path, offset, out, count);
    }
    close(handle);
    return status;
}

static int disk_compare(const void *left, const void *right) {
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

// Sorted, for the system's order is none; limited, for the folder may be anything.
static pen_status disk_list_open(DIR *folder, const char *path, uint32_t limit, pen_arena *arena,
                                 const char ***out_names, uint32_t *out_count) {
    const char **names = NULL;
    uint32_t count = 0, room = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL && errno != 0) return disk_error("list", path);
        if (entry == NULL) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (count == limit) {
            return pen_error(PEN_CORRUPT, "'%s' has more than %u files", path, limit);
        }
        if (count == room) {
            const char **larger;
            room = room == 0 ? 64 : 2 * room;
            PEN_TRY(PEN_NEW(arena, room, &larger));
            if (count > 0) memcpy(larger, names, count * sizeof *names);
            names = larger;
        }
        PEN_TRY(pen_arena_copy_text(arena, entry->d_name, strlen(entry->d_name), &names[count++]));
    }
    if (count > 0) qsort(names, count, sizeof *names, disk_compare);
    *out_names = names;
    *out_count = count;
    return PEN_OK;
}

static pen_status disk_list(pen_disk *disk, const char *folder, uint32_t limit, pen_arena *arena,
                            const char *const **out_names, uint32_t *out_count) {
    (void)disk;
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL) return disk_error("list", folder);
    const char **names = NULL;
    const pen_status status = disk_list_open(open_folder, folder, limit, arena, &names, out_count);
    closedir(open_folder);
    *out_names = names;
    return status;
}

// Makes one folder, and makes its name durable in the folder it is in.
static pen_status disk_make_one(pen_disk *disk, char *path) {
    if (mkdir(path, DISK_FOLDER_MODE) != 0) {
        const int reason = errno;
        struct stat about;
        if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return PEN_OK;
        errno = reason;
        return disk_error("create the folder", path);
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL) return disk_sync_path(disk, ".");
    if (slash == path) return disk_sync_path(disk, "/");
    *slash = 0;
    const pen_status status = disk_sync_path(disk, path);
    *slash = '/';
    return status;
}

static pen_status disk_make_folder(pen_disk *disk, const char *path) {
    const size_t length = strlen(path);
    char *copy = pen_memory_allocate(length + 1, 1);
    if (copy == NULL) return pen_error_out_of_memory();
    memcpy(copy, path, length + 1);
    pen_status status = PEN_OK;
    for (size_t i = 1; i <= length && status == PEN_OK; i++) {
        if (copy[i] != '/' && copy[i] != 0) continue;
        if (copy[i - 1] == '/') continue;
        copy[i] = 0;
        status = disk_make_one(disk, copy);
        copy[i] = path[i];
    }
    pen_memory_free(copy);
    return status;
}

static const pen_disk_kind disk_of_machine = {
    .name = "machine",
    .create = disk_create,
    .append = disk_append,
    .sync = disk_sync,
    .close = disk_close,
    .publish = disk_publish,
    .rename = disk_rename,
    .remove = disk_remove,
    .sync_path = disk_sync_path,
    .size = disk_size,
    .read = disk_read,
    .list = disk_list,
    .make_folder = disk_make_folder,
};

pen_disk *pen_disk_of_machine(void) {
    static pen_disk disk = {.kind = &disk_of_machine}; // never written
    return &disk;
}
