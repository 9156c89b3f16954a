#include "scheduler/launched/task_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/log.h"
#include "base/system/failpoint.h"
#include "base/system/file.h"

#define FOLDER_MODE 0700
#define FOLDER_PATH_BYTES 4096

static pen_status folder_make(const char *path) {
    if (mkdir(path, FOLDER_MODE) == 0 || errno == EEXIST) return PEN_OK;
    return pen_error(errno == ENOENT ? PEN_NOT_FOUND : PEN_IO, "cannot make the folder '%s': %s",
                     path, strerror(errno));
}

// Keys lie in it, and whoever may write to it may send tasks to another address.
static pen_status folder_check_private(const char *path) {
    struct stat about;
    if (lstat(path, &about) != 0) {
        return pen_error(PEN_IO, "cannot look at the folder '%s': %s", path, strerror(errno));
    }
    const unsigned mode = (unsigned)about.st_mode & 0777u;
    if (S_ISDIR(about.st_mode) && about.st_uid == geteuid() && (mode & 077u) == 0) return PEN_OK;
    return pen_error(
        PEN_INVALID_INPUT,
        "%s: found %s of user %u with mode %04o, expected a folder of this user, %u, "
        "that nobody else may enter (chmod 700), for the keys that tasks make for each "
        "other; or `tls: {ca, cert, key}` in the job, or --insecure",
        path, S_ISDIR(about.st_mode) ? "a folder" : "something else", (unsigned)about.st_uid, mode,
        (unsigned)geteuid());
}

pen_status pen_task_folder_open(const char *checkpoints, const char *verb, const char *start,
                                bool must_be_private, pen_arena *arena,
                                pen_task_folder *out_folder) {
    const char *shared, *path;
    PEN_TRY(pen_folder_create(checkpoints, arena));
    PEN_TRY(pen_arena_format(arena, &shared, "%s/launched", checkpoints));
    PEN_TRY(folder_make(shared));
    if (must_be_private) PEN_TRY(folder_check_private(shared));
    PEN_TRY(pen_arena_format(arena, &path, "%s/%s%s%s", shared, verb, start == NULL ? "" : "-",
                             start == NULL ? "" : start));
    PEN_TRY(folder_make(path));
    if (must_be_private) PEN_TRY(folder_check_private(path));
    *out_folder = (pen_task_folder){.path = path};
    return PEN_NEW(arena, PEN_TASK_DAMAGES, &out_folder->said);
}

const char *pen_task_folder_name(uint64_t rank, char out_name[PEN_TASK_FILE_BYTES]) {
    snprintf(out_name, PEN_TASK_FILE_BYTES, "task.%04u", (unsigned)rank);
    return out_name;
}

static pen_status folder_path(const pen_task_folder *folder, const char *name,
                              char out_path[FOLDER_PATH_BYTES]) {
    const int length = snprintf(out_path, FOLDER_PATH_BYTES, "%s/%s", folder->path, name);
    if (length > 0 && length < FOLDER_PATH_BYTES) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "the path of '%.200s…' is longer than %d bytes",
                     folder->path, FOLDER_PATH_BYTES);
}

pen_status pen_task_folder_write(const pen_task_folder *folder, const char *name,
                                 const pen_task_record *record) {
    char path[FOLDER_PATH_BYTES];
    uint8_t bytes[PEN_TASK_RECORD_BYTES_LIMIT];
    pen_file *file = NULL;
    const size_t length = pen_task_record_encode(record, bytes);
    PEN_TRY(folder_path(folder, name, path));
    pen_task_watch_ask(folder->watch);
    pen_status status = pen_file_create_beside(path, &file);
    if (status == PEN_OK) status = pen_file_write(file, bytes, length);
    if (status == PEN_OK) status = pen_file_commit(file);
    status = pen_status_join(status, pen_file_close(file));
    pen_task_watch_answer(folder->watch);
    return status;
}

// Network file systems show a new file to those that ask for the folder's list.
static void folder_refresh(const pen_task_folder *folder) {
    DIR *list = opendir(folder->path);
    if (list != NULL) {
        (void)readdir(list);
        (void)closedir(list);
    }
}

// -1: it is not there.
static ssize_t folder_read_all(int fd, uint8_t bytes[PEN_TASK_RECORD_BYTES_LIMIT + 1]) {
    size_t length = 0;
    while (length <= PEN_TASK_RECORD_BYTES_LIMIT) {
        const ssize_t count = read(fd, bytes + length, PEN_TASK_RECORD_BYTES_LIMIT + 1 - length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        if (count == 0) break;
        length += (size_t)count;
    }
    return (ssize_t)length;
}

// Files are read several times a second: the same damage is told once. Where two of them fall on
// one place, the second takes the next; only where all places are taken is one told again.
static void folder_say_damage(const pen_task_folder *folder, const char *path, const void *bytes,
                              size_t length, pen_status damage) {
    const uint32_t sum = pen_checksum_continue(pen_checksum(path, strlen(path)), bytes, length) | 1;
    uint32_t tried = 0;
    for (uint32_t there = 0; tried < PEN_TASK_DAMAGES; tried++, there = 0) {
        atomic_uint *place = &folder->said[(sum / 2 + tried) % PEN_TASK_DAMAGES];
        if (atomic_compare_exchange_strong(place, &there, sum)) break;
        if (there == sum) return;
    }
    if (tried == PEN_TASK_DAMAGES) atomic_store(&folder->said[sum / 2 % PEN_TASK_DAMAGES], sum);
    pen_log(PEN_LOG_WARNING, "'%s' is damaged: %s; as if it were not there", path,
            pen_status_message(damage));
}

// The bytes of a file; *out_length -1: there is none.
static pen_status folder_ask(const pen_task_folder *folder, const char *path,
                             uint8_t bytes[PEN_TASK_RECORD_BYTES_LIMIT + 1], ssize_t *out_length) {
    (void)PEN_FAILPOINT("task.folder_asked");
    folder_refresh(folder);
    *out_length = -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return PEN_OK;
    if (fd < 0) return pen_error(PEN_IO, "cannot read '%s': %s", path, strerror(errno));
    *out_length = folder_read_all(fd, bytes);
    const int why = errno;
    close(fd);
    if (*out_length >= 0) return PEN_OK;
    return pen_error(PEN_IO, "cannot read '%s': %s", path, strerror(why));
}

// A file that was damaged is as good as none: whoever wrote it writes it again, or is gone.
pen_status pen_task_folder_read(const pen_task_folder *folder, const char *name,
                                pen_task_record *out_record, bool *out_is_there) {
    char path[FOLDER_PATH_BYTES];
    uint8_t bytes[PEN_TASK_RECORD_BYTES_LIMIT + 1];
    ssize_t length;
    *out_is_there = false;
    PEN_TRY(folder_path(folder, name, path));
    pen_task_watch_ask(folder->watch);
    pen_status status = folder_ask(folder, path, bytes, &length);
    pen_task_watch_answer(folder->watch);
    PEN_TRY(status);
    if (length < 0) return PEN_OK;
    status =
        length <= PEN_TASK_RECORD_BYTES_LIMIT
            ? pen_task_record_decode(bytes, (size_t)length, out_record)
            : pen_error(PEN_CORRUPT, "it is longer than %d bytes", PEN_TASK_RECORD_BYTES_LIMIT);
    *out_is_there = status == PEN_OK;
    if (status == PEN_OK) return PEN_OK;
    folder_say_damage(folder, path, bytes, (size_t)length, status);
    pen_status_ignore(status, "said");
    return PEN_OK;
}

// Two levels: of each task a folder with its certificate and key.
void pen_task_folder_forget_keys(const pen_task_folder *folder) {
    char path[FOLDER_PATH_BYTES];
    const pen_status status = folder_path(folder, "tls", path);
    if (status == PEN_OK) pen_folder_remove(path, 1);
    pen_status_ignore(status, "then there are no keys");
}
