#include "scheduler/data/tar/tar_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/system/library.h"

#define TAR_BLOCK_BYTES 512

// ---- libarchive, loaded when it is needed

#define TAR_FUNCTIONS(X)                                                                           \
    X(entry_filetype)                                                                              \
    X(entry_pathname)                                                                              \
    X(entry_size)                                                                                  \
    X(error_string)                                                                                \
    X(read_data_block)                                                                             \
    X(read_free)                                                                                   \
    X(read_new)                                                                                    \
    X(read_next_header)                                                                            \
    X(read_open_memory)                                                                            \
    X(read_support_format_tar)                                                                     \
    X(version_number)

#define TAR_MEMBER(name) __typeof__(&archive_##name) name;
#define TAR_SYMBOL(name) "archive_" #name,
typedef struct tar_functions {
    TAR_FUNCTIONS(TAR_MEMBER)
} tar_functions;
static const char *const tar_symbols[] = {TAR_FUNCTIONS(TAR_SYMBOL)};
static const char *const tar_library_names[] = {"libarchive.so.13", NULL};

// Made once, and only read then.
static tar_functions libarchive;

static pen_status tar_load(void) {
    static pen_library_once once;
    const pen_library wanted = {
        .purpose = "libarchive, which reads tar files (Debian 12's package libarchive13)",
        .names = tar_library_names,
        .symbols = tar_symbols,
        .symbol_count = sizeof tar_symbols / sizeof *tar_symbols};
    return pen_library_load_once(&once, &wanted, &libarchive);
}

// ---- members

typedef struct tar_walk {
    struct archive *archive;
    const uint8_t *bytes;
    size_t length;
    const char *path;
} tar_walk;

static pen_status tar_broken(const tar_walk *walk) {
    const char *why = libarchive.error_string(walk->archive);
    return pen_error(PEN_CORRUPT, "'%s' cannot be read as a tar file: %s", walk->path,
                     why == NULL ? "it is damaged" : why);
}

// The library lends its own view of the bytes, which is of ours: so they are found, not copied.
static pen_status tar_find(const tar_walk *walk, pen_tar_member *member) {
    const void *block;
    size_t count;
    la_int64_t place;
    member->offset = 0;
    if (member->length == 0) return PEN_OK;
    if (libarchive.read_data_block(walk->archive, &block, &count, &place) != ARCHIVE_OK) {
        return tar_broken(walk);
    }
    const uintptr_t first = (uintptr_t)walk->bytes, found = (uintptr_t)block;
    if (place != 0 || found < first || found - first >= walk->length) {
        return pen_error(PEN_UNSUPPORTED, "'%s': the member '%s' has holes", walk->path,
                         member->name);
    }
    member->offset = found - first;
    if (member->length <= walk->length - member->offset) return PEN_OK;
    return pen_error(PEN_CORRUPT,
                     "'%s' is cut off: '%s' has %" PRIu64 " bytes, and %" PRIu64 " are left",
                     walk->path, member->name, member->length, walk->length - member->offset);
}

static pen_status tar_visit_all(const tar_walk *walk, pen_tar_visit visit, void *context) {
    for (;;) {
        struct archive_entry *entry;
        const int code = libarchive.read_next_header(walk->archive, &entry);
        if (code == ARCHIVE_EOF) return PEN_OK;
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return tar_broken(walk);
        if (libarchive.entry_filetype(entry) != S_IFREG) continue;
        const la_int64_t size = libarchive.entry_size(entry);
        pen_tar_member member = {.name = libarchive.entry_pathname(entry)};
        if (member.name == NULL || size < 0) return tar_broken(walk);
        member.length = (uint64_t)size;
        PEN_TRY(tar_find(walk, &member));
        PEN_TRY(visit(context, &member));
    }
}

pen_status pen_tar_walk(const uint8_t *bytes, size_t length, const char *path, pen_tar_visit visit,
                        void *context) {
    tar_walk walk = {.bytes = bytes, .length = length, .path = path};
    PEN_TRY(tar_load());
    if (length < TAR_BLOCK_BYTES) {
        return pen_error(PEN_CORRUPT, "'%s' has %zu bytes, too few for a tar file", path, length);
    }
    walk.archive = libarchive.read_new();
    if (walk.archive == NULL) return pen_error_out_of_memory();
    pen_status status;
    if (libarchive.read_support_format_tar(walk.archive) != ARCHIVE_OK ||
        libarchive.read_open_memory(walk.archive, bytes, length) != ARCHIVE_OK) {
        status = tar_broken(&walk);
    } else {
        status = tar_visit_all(&walk, visit, context);
    }
    (void)libarchive.read_free(walk.archive);
    return status;
}

const char *pen_libarchive_version(void) {
    static _Thread_local char text[24];
    const pen_status status = tar_load();
    pen_status_ignore(status, "which is what is asked");
    if (status != PEN_OK) return "not found";
    const int version = libarchive.version_number(); // 3006002 is 3.6.2
    snprintf(text, sizeof text, "%d.%d.%d", version / 1000000, version / 1000 % 1000,
             version % 1000);
    return text;
}
