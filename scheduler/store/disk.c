#include "scheduler/store/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system/failpoint.h"
#include "base/system/file.h"
#include "base/system/file_beneath.h"

bool pen_disk_is_at_fault(pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    return code == PEN_IO || code == PEN_NO_STORAGE || code == PEN_NOT_FOUND;
}

#define DISK_FILE_MODE 0666
#define DISK_FOLDER_MODE 0777

struct pen_disk_file {
    int handle;
    bool failed; // what was written may be lost: never synced again
    char path[];
};

// NULL: paths are those of the machine.
static const char *disk_root(const pen_disk *disk);

static pen_status disk_error(const pen_disk *disk, const char *what, const char *path) {
    const int reason = errno;
    const char *root = disk_root(disk);
    return pen_error(pen_file_error_code(reason), "cannot %s '%s%s%s': %s", what,
                     root == NULL ? "" : root, root == NULL ? "" : "/", path, strerror(reason));
}

static pen_status disk_file_error(const char *what, const pen_disk_file *file) {
    const int reason = errno;
    return pen_error(pen_file_error_code(reason), "cannot %s '%s': %s", what, file->path,
                     strerror(reason));
}

// ---- where a call is done

// A folder that is open, and a name in it.
typedef struct disk_place {
    int folder; // AT_FDCWD: `name` is a path of the machine
    const char *name;
    int flags; // of an open() of it
} disk_place;

// Beneath a folder each call finds its way anew, over no link.
static pen_status disk_enter(const pen_disk *disk, const char *path, disk_place *out_place) {
    const char *root = disk_root(disk), *slash = strrchr(path, '/');
    char parent[PATH_MAX] = ".";
    *out_place = (disk_place){.folder = AT_FDCWD, .name = path};
    if (root == NULL) return PEN_OK;
    const size_t length = slash == NULL ? 1 : (size_t)(slash - path);
    const char *name = slash == NULL ? path : slash + 1;
    if (length >= sizeof parent || name[0] == '\0' || strcmp(name, "..") == 0) {
        return pen_error(PEN_INVALID_INPUT, "found '%.200s', expected a name beneath '%s'", path,
                         root);
    }
    if (slash != NULL) memcpy(parent, path, length);
    parent[length] = '\0';
    PEN_TRY(pen_folder_open_beneath(root, parent, false, &out_place->folder));
    out_place->name = name;
    out_place->flags = O_NOFOLLOW;
    return PEN_OK;
}

static void disk_leave(const disk_place *place) {
    if (place->folder >= 0) close(place->folder);
}

// An open() that a signal does not break off.
static int disk_open(const disk_place *place, int flags) {
    int handle;
    do {
        handle =
            openat(place->folder, place->name, flags | place->flags | O_CLOEXEC, DISK_FILE_MODE);
    } while (handle < 0 && errno == EINTR);
    return handle;
}

// Whether a test wants the call to fail, as a damaged disk lets it.
static bool disk_fails(const char *place) {
    if (!PEN_FAILPOINT(place)) return false;
    errno = EIO;
    return true;
}

static pen_status disk_new_file(const pen_disk *disk, const char *path, pen_disk_file **out_file) {
    const char *root = disk_root(disk);
    const size_t head = root == NULL ? 0 : strlen(root) + 1, length = strlen(path) + 1;
    pen_disk_file *file = pen_memory_allocate(1, sizeof *file + head + length);
    if (file == NULL) return pen_error_out_of_memory();
    if (head > 0) memcpy(file->path, root, head - 1);
    if (head > 0) file->path[head - 1] = '/';
    memcpy(file->path + head, path, length);
    *out_file = file;
    return PEN_OK;
}

// A new file, also where one of that name is there: another record may be linked to the old one's
// contents.
static pen_status disk_create(pen_disk *disk, const char *path, pen_disk_file **out_file) {
    disk_place place;
    pen_disk_file *file;
    PEN_TRY(disk_new_file(disk, path, &file));
    pen_status status = disk_enter(disk, path, &place);
    if (status != PEN_OK) {
        pen_memory_free(file);
        return status;
    }
    // of what is there under that name nothing may change: it may have another name, too
    if (unlinkat(place.folder, place.name, 0) != 0 && errno != ENOENT) {
        status = disk_file_error("replace", file);
    }
    if (status == PEN_OK) {
        file->handle =
            disk_fails("disk.created") ? -1 : disk_open(&place, O_WRONLY | O_CREAT | O_EXCL);
        if (file->handle < 0) status = disk_file_error("create", file);
    }
    disk_leave(&place);
    if (status != PEN_OK) {
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
            return disk_file_error("write", file);
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
    return disk_file_error("sync", file);
}

static void disk_close(pen_disk_file *file) {
    if (file == NULL) return;
    close(file->handle); // nothing is kept that was not synced
    pen_memory_free(file);
}

static pen_status disk_publish(pen_disk *disk, const char *from, const char *to,
                               bool *out_is_taken) {
    disk_place old, new;
    pen_status status = PEN_OK;
    *out_is_taken = false;
    PEN_TRY(disk_enter(disk, from, &old));
    status = disk_enter(disk, to, &new);
    if (status == PEN_OK) {
        if (disk_fails("disk.published") ||
            linkat(old.folder, old.name, new.folder, new.name, 0) != 0) {
            *out_is_taken = errno == EEXIST;
            if (errno != EEXIST) status = disk_error(disk, "create", to);
        }
        disk_leave(&new);
    }
    disk_leave(&old);
    return status;
}

static pen_status disk_rename(pen_disk *disk, const char *from, const char *to) {
    disk_place old, new;
    pen_status status = PEN_OK;
    PEN_TRY(disk_enter(disk, from, &old));
    status = disk_enter(disk, to, &new);
    if (status == PEN_OK) {
        if (disk_fails("disk.renamed") ||
            renameat(old.folder, old.name, new.folder, new.name) != 0) {
            status = disk_error(disk, "rename to", to);
        }
        disk_leave(&new);
    }
    disk_leave(&old);
    return status;
}

static pen_status disk_remove(pen_disk *disk, const char *path) {
    disk_place place;
    PEN_TRY(disk_enter(disk, path, &place));
    const pen_status status =
        unlinkat(place.folder, place.name, 0) == 0 ? PEN_OK : disk_error(disk, "remove", path);
    disk_leave(&place);
    return status;
}

static pen_status disk_sync_path(pen_disk *disk, const char *path) {
    disk_place place;
    pen_status status = PEN_OK;
    PEN_TRY(disk_enter(disk, path, &place));
    const int handle = disk_open(&place, O_RDONLY | O_NONBLOCK);
    if (handle < 0) {
        status = disk_error(disk, "open", path);
    } else {
        if (fsync(handle) != 0) status = disk_error(disk, "sync", path);
        close(handle);
    }
    disk_leave(&place);
    return status;
}

static pen_status disk_size(pen_disk *disk, const char *path, uint64_t *out_bytes) {
    struct stat about;
    disk_place place;
    pen_status status = PEN_OK;
    PEN_TRY(disk_enter(disk, path, &place));
    const int flags = place.flags != 0 ? AT_SYMLINK_NOFOLLOW : 0;
    if (fstatat(place.folder, place.name, &about, flags) != 0) {
        status = disk_error(disk, "read", path);
    } else if (!S_ISREG(about.st_mode)) {
        status = pen_error(PEN_IO, "'%s' is no file", path);
    } else {
        *out_bytes = (uint64_t)about.st_size;
    }
    disk_leave(&place);
    return status;
}

static pen_status disk_read_all(const pen_disk *disk, int handle, const char *path, uint64_t offset,
                                char *out, uint64_t count) {
    while (count > 0) {
        const ssize_t got = pread(handle, out, count, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error(disk, "read", path);
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

// A file beneath a folder that has a second name could be one of elsewhere.
static pen_status disk_read_open(const pen_disk *disk, int handle, const char *path,
                                 uint64_t offset, void *out, uint64_t count) {
    struct stat about;
    if (fstat(handle, &about) != 0) return disk_error(disk, "read", path);
    if (!S_ISREG(about.st_mode)) {
        return pen_error(PEN_IO, "cannot read '%s': it is not a regular file", path);
    }
    if (disk_root(disk) != NULL && about.st_nlink > 1) {
        return pen_error(PEN_IO, "cannot read '%s': it has other names (hard links)", path);
    }
    return disk_read_all(disk, handle, path, offset, out, count);
}

static pen_status disk_read(pen_disk *disk, const char *path, uint64_t offset, void *out,
                            uint64_t count) {
    disk_place place;
    PEN_TRY(disk_enter(disk, path, &place));
    // a pipe that nobody writes to, under a record's name, is no wait without end
    const int handle = disk_open(&place, O_RDONLY | O_NONBLOCK);
    const pen_status status = handle < 0 ? disk_error(disk, "read", path)
                                         : disk_read_open(disk, handle, path, offset, out, count);
    if (handle >= 0) close(handle);
    disk_leave(&place);
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
        if (entry == NULL && errno != 0) {
            return disk_error(pen_disk_of_machine(), "list", path);
        }
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
    const char **names = NULL;
    disk_place place;
    pen_status status;
    PEN_TRY(disk_enter(disk, folder, &place));
    const int handle = disk_open(&place, O_RDONLY | O_DIRECTORY);
    DIR *open_folder = handle < 0 ? NULL : fdopendir(handle);
    if (open_folder == NULL) {
        status = disk_error(disk, "list", folder);
        if (handle >= 0) close(handle);
    } else {
        status = disk_list_open(open_folder, folder, limit, arena, &names, out_count);
        closedir(open_folder);
    }
    disk_leave(&place);
    *out_names = names;
    return status;
}

// Makes one folder, and makes its name durable in the folder it is in.
static pen_status disk_make_one(char *path) {
    pen_disk *disk = pen_disk_of_machine();
    if (mkdir(path, DISK_FOLDER_MODE) != 0) {
        const int reason = errno;
        struct stat about;
        if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return PEN_OK;
        errno = reason;
        return disk_error(disk, "create the folder", path);
    }
    char *slash = strrchr(path, '/');
    if (slash == NULL) return disk_sync_path(disk, ".");
    if (slash == path) return disk_sync_path(disk, "/");
    *slash = 0;
    const pen_status status = disk_sync_path(disk, path);
    *slash = '/';
    return status;
}

static pen_status disk_make_path(const char *path) {
    const size_t length = strlen(path);
    char *copy = pen_memory_allocate(length + 1, 1);
    if (copy == NULL) return pen_error_out_of_memory();
    memcpy(copy, path, length + 1);
    pen_status status = PEN_OK;
    for (size_t i = 1; i <= length && status == PEN_OK; i++) {
        if (copy[i] != '/' && copy[i] != 0) continue;
        if (copy[i - 1] == '/') continue;
        copy[i] = 0;
        status = disk_make_one(copy);
        copy[i] = path[i];
    }
    pen_memory_free(copy);
    return status;
}

static pen_status disk_make_folder(pen_disk *disk, const char *path) {
    const char *root = disk_root(disk);
    int folder;
    if (root == NULL) return disk_make_path(path);
    PEN_TRY(disk_make_path(root));
    PEN_TRY(pen_folder_open_beneath(root, path, true, &folder));
    close(folder);
    return PEN_OK;
}

// ---- the kinds

#define DISK_CALLS                                                                                 \
    .create = disk_create, .append = disk_append, .sync = disk_sync, .close = disk_close,          \
    .publish = disk_publish, .rename = disk_rename, .remove = disk_remove,                         \
    .sync_path = disk_sync_path, .size = disk_size, .read = disk_read, .list = disk_list,          \
    .make_folder = disk_make_folder

static const pen_disk_kind disk_of_machine = {.name = "machine", DISK_CALLS};
static const pen_disk_kind disk_beneath = {.name = "beneath a folder", DISK_CALLS};

static const char *disk_root(const pen_disk *disk) {
    return disk->kind != &disk_beneath ? NULL : ((const pen_disk_beneath *)disk)->root;
}

pen_disk *pen_disk_of_machine(void) {
    static pen_disk disk = {.kind = &disk_of_machine}; // never written
    return &disk;
}

pen_status pen_disk_beneath_init(pen_disk_beneath *disk, const char *folder) {
    pen_arena *arena;
    const char *path = "";
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = pen_path_resolve(folder, arena, &path);
    if (status == PEN_OK && strlen(path) >= sizeof disk->root) {
        status = pen_error(PEN_INVALID_INPUT, "the path '%.60s…' has %zu bytes, at most %zu go",
                           path, strlen(path), sizeof disk->root - 1);
    }
    if (status == PEN_OK) {
        disk->disk.kind = &disk_beneath;
        memcpy(disk->root, path, strlen(path) + 1);
    }
    pen_arena_destroy(arena);
    return status;
}
