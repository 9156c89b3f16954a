// Files and folders that somebody else named, within a folder of ours.
//
// Threads: any.
#ifndef PEN_BASE_SYSTEM_FILE_BENEATH_H
#define PEN_BASE_SYSTEM_FILE_BENEATH_H

#include "base/system/file.h"

// Maps the regular file `location` of the folder `folder`, where `location` was read from a file
// and is not trusted: it is relative, names no "..", no part of it is a symbolic link, and the file
// has no second name (hard link). `folder` is not empty.
//   INVALID_INPUT  it is something else
//   NOT_FOUND, IO
PEN_NODISCARD pen_status pen_mapping_open_beneath(const char *folder, const char *location,
                                                  pen_mapping *out_mapping);

// Opens the folder `name` of `root`, where `name` was said by somebody who is not trusted: "." for
// `root` itself, or names with '/' between them of which none is empty, "." or "..", and no part of
// it is a symbolic link. `makes`: those that are not there are made, and durable; not `root`. The
// caller closes *out_folder.
//   INVALID_INPUT  it is something else
//   NOT_FOUND, NO_STORAGE, IO
PEN_NODISCARD pen_status pen_folder_open_beneath(const char *root, const char *name, bool makes,
                                                 int *out_folder);

// `path` as the system sees it: absolute, and no part of it is a link. What is not there yet is
// taken as it is written. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_path_resolve(const char *path, pen_arena *arena,
                                          const char **out_path);
// Of two paths that are resolved, the name of `path` beneath `root`: "." for `root` itself. NULL:
// it is not beneath it.
const char *pen_path_find_beneath(const char *root, const char *path);

#endif // PEN_BASE_SYSTEM_FILE_BENEATH_H
