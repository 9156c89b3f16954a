// The members of a tar file that is in memory (ustar, pax, GNU).
//
// Threads: any; functions share nothing.
#ifndef PEN_SCHEDULER_DATA_TAR_TAR_ARCHIVE_H
#define PEN_SCHEDULER_DATA_TAR_TAR_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A plain file of the archive. Until the next one.
typedef struct pen_tar_member {
    const char *name;
    uint64_t offset; // in the archive; offset + length is within it
    uint64_t length;
} pen_tar_member;

typedef pen_status (*pen_tar_visit)(void *context, const pen_tar_member *member);

// Calls `visit` for each plain file, in their order; folders and links are passed over. Messages
// name `path`.
//   NOT_FOUND    libarchive is not installed
//   CORRUPT      not a tar file, or cut off
//   UNSUPPORTED  a member with holes
//   else         what `visit` returns
PEN_NODISCARD pen_status pen_tar_walk(const uint8_t *bytes, size_t length, const char *path,
                                      pen_tar_visit visit, void *context);

// The version of libarchive, "3.6.2", or "not found". Loads it. Good until the thread asks again.
const char *pen_libarchive_version(void);

#endif // PEN_SCHEDULER_DATA_TAR_TAR_ARCHIVE_H
