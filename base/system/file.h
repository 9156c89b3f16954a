// Files: mapped for reading, or written beside and renamed into place.
//
// Errors name the path and give the system's reason. A missing file is NOT_FOUND; NO_STORAGE is a
// disk or place that may be there later: full, read-only, failing, or away; every other refusal IO.
//
// Threads: a file belongs to one thread at a time; a mapping may be read by all.
#ifndef PEN_BASE_SYSTEM_FILE_H
#define PEN_BASE_SYSTEM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/status.h"

// The code of a refusal: ENOENT and ENOTDIR are NOT_FOUND, what a later try may find mended is
// NO_STORAGE, all else IO.
pen_status_code pen_file_error_code(int error_number);

// A whole file, mapped read-only. A mapping that is all zero is empty and may be closed.
typedef struct pen_mapping {
    const uint8_t *bytes; // [length]; never NULL once opened
    size_t length;
    uint64_t file_device; // which file it is, for pen_mapping_is_of
    uint64_t file_number;
} pen_mapping;

// NOT_FOUND, IO. Whoever shortens the file while it is mapped kills the reader (SIGBUS), as with
// any mapped file.
PEN_NODISCARD pen_status pen_mapping_open(const char *path, pen_mapping *out_mapping);
void pen_mapping_close(pen_mapping *mapping);
// Whether `path` is, by whatever name, the file that is mapped. False when there is no such file.
bool pen_mapping_is_of(const pen_mapping *mapping, const char *path);
// Whether the system may read more of it than is looked at, as it does at first. Without that, a
// few looks at a large file do not read all of it.
void pen_mapping_read_ahead(const pen_mapping *mapping, bool may_read_ahead);
// Lets the system drop what was read of it from memory. It stays readable.
void pen_mapping_forget(const pen_mapping *mapping);

// Reads a small regular file whole into the arena, with a 0 behind it that does not count.
// NOT_FOUND, IO, OUT_OF_MEMORY; INVALID_INPUT when it is longer than `bytes_limit`.
PEN_NODISCARD pen_status pen_file_read(const char *path, size_t bytes_limit, pen_arena *arena,
                                       const char **out_bytes, size_t *out_length);

// A file being written: create_beside, write, commit, close.
typedef struct pen_file pen_file;

// Opens a new file in the folder of `path`, under another name. Nobody sees it as `path` before
// pen_file_commit, and without that pen_file_close removes it.
// NOT_FOUND (no such folder), IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_file_create_beside(const char *path, pen_file **out_file);

PEN_NODISCARD pen_status pen_file_write(pen_file *file, const void *bytes, size_t length);

// For fprintf and pen_json_init_file. Errors are kept and reported by pen_file_commit.
FILE *pen_file_stream(pen_file *file);

// Flushes, syncs, renames to `path` and syncs the folder. Once only. IO
PEN_NODISCARD pen_status pen_file_commit(pen_file *file);

// Releases it. Accepts NULL.
PEN_NODISCARD pen_status pen_file_close(pen_file *file);

// All of it, for a file that is one text. As each
PEN_NODISCARD pen_status pen_file_write_text(const char *path, const char *text);

// Whether a file could be created at `path` now: creates one beside it, and removes that. For
// finding out before hours of work. IO, NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_file_check_writable(const char *path);

// Makes a folder, and those it is in; it may be there. IO, NOT_FOUND, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_folder_create(const char *path, pen_arena *arena);

// Removes a folder with its files, and folders in it down to `depth` levels. What lies
// deeper, or may not be removed, stays, and the folder with it. Links are removed, not followed.
void pen_folder_remove(const char *path, uint32_t depth);

// `relative` as seen from the folder that `file` is in: absolute paths stay. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_path_beside(pen_arena *arena, const char *file, const char *relative,
                                         const char **out_path);

// The part of `path` behind the last '/'.
const char *pen_path_name(const char *path);

// Whether two paths lead to one file or folder, which need not be there yet (then its folder must
// be one, and its name).
bool pen_path_is_same(const char *a, const char *b);

// Whether the file or folder `inner` is in the folder `outer`, or deeper; both are there.
bool pen_path_is_within(const char *inner, const char *outer);

// What the disk of a file or folder has left for users, and which disk that is. Where nothing is
// there yet, that of the nearest folder above. NOT_FOUND, NO_STORAGE, IO, OUT_OF_MEMORY
typedef struct pen_path_room {
    uint64_t bytes;
    uint64_t disk; // equal for folders of one disk
} pen_path_room;
PEN_NODISCARD pen_status pen_path_find_room(const char *path, pen_arena *arena,
                                            pen_path_room *out_room);

#endif // PEN_BASE_SYSTEM_FILE_H
