// Files that a file from outside names.
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

#endif // PEN_BASE_SYSTEM_FILE_BENEATH_H
