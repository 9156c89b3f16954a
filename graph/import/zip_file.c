#include "graph/import/zip_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <zip.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/system/library.h"
#include "base/system/long_read.h"

#define ZIP_PACKING_LIMIT 1100 // deflate makes at most 1032 bytes of one
#define ZIP_BYTES_MINIMUM 22   // of an archive: the record at its end
#define ZIP_STEP (4u << 20)    // that is unpacked at once

// ---- libzip, loaded when it is needed

#define ZIP_FUNCTIONS(X)                                                                           \
    X(discard)                                                                                     \
    X(error_code_zip)                                                                              \
    X(error_fini)                                                                                  \
    X(error_init)                                                                                  \
    X(error_strerror)                                                                              \
    X(fclose)                                                                                      \
    X(file_strerror)                                                                               \
    X(fopen_index)                                                                                 \
    X(fread)                                                                                       \
    X(get_name)                                                                                    \
    X(get_num_entries)                                                                             \
    X(libzip_version)                                                                              \
    X(name_locate)                                                                                 \
    X(open_from_source)                                                                            \
    X(source_buffer_create)                                                                        \
    X(source_free)                                                                                 \
    X(stat_index)                                                                                  \
    X(stat_init)                                                                                   \
    X(strerror)

#define ZIP_MEMBER(name) __typeof__(&zip_##name) name;
#define ZIP_SYMBOL(name) "zip_" #name,
typedef struct zip_functions {
    ZIP_FUNCTIONS(ZIP_MEMBER)
} zip_functions;
static const char *const zip_symbols[] = {ZIP_FUNCTIONS(ZIP_SYMBOL)};
static const char *const zip_library_names[] = {"libzip.so.4", "libzip.so.5", NULL};

// Made once, and only read then.
static zip_functions libzip;

static pen_status zip_load(void) {
    static pen_library_once once;
    const pen_library wanted = {
        .purpose = "libzip, which reads zip archives (Debian 12's package libzip4)",
        .names = zip_library_names,
        .symbols = zip_symbols,
        .symbol_count = sizeof zip_symbols / sizeof *zip_symbols};
    return pen_library_load_once(&once, &wanted, &libzip);
}

// ---- archives

struct pen_zip {
    const char *name;
    size_t length;
    zip_t *archive;
    uint32_t count;
};

static pen_status zip_error(const char *name, zip_error_t *error, const char *what) {
    const bool no_memory = libzip.error_code_zip(error) == ZIP_ER_MEMORY;
    const pen_status status =
        no_memory ? pen_error_out_of_memory()
                  : pen_error(PEN_CORRUPT, "%s: '%.200s' cannot be read as a zip archive: %s", name,
                              what, libzip.error_strerror(error));
    libzip.error_fini(error);
    return status;
}

// The archive borrows the bytes: the mapping has to outlive it.
static pen_status zip_open_bytes(pen_zip *zip, const void *bytes) {
    zip_error_t error;
    if (zip->length < ZIP_BYTES_MINIMUM) {
        return pen_error(PEN_CORRUPT, "%s: %zu bytes are too few for a zip archive", zip->name,
                         zip->length);
    }
    libzip.error_init(&error);
    zip_source_t *source = libzip.source_buffer_create(bytes, zip->length, 0, &error);
    if (source == NULL) return zip_error(zip->name, &error, "");
    zip->archive = libzip.open_from_source(source, ZIP_RDONLY, &error);
    if (zip->archive == NULL) {
        libzip.source_free(source); // the archive would have taken it
        return zip_error(zip->name, &error, "");
    }
    libzip.error_fini(&error);
    const zip_int64_t count = libzip.get_num_entries(zip->archive, 0);
    if (count < 0 || count > PEN_ZIP_MEMBERS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s has %" PRId64 " members, at most %u can be",
                         zip->name, (int64_t)count, PEN_ZIP_MEMBERS_LIMIT);
    }
    zip->count = (uint32_t)count;
    return PEN_OK;
}

// Members may not share bytes, so that all together are not more than can be made of the archive.
static pen_status zip_check_total(const pen_zip *zip) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < zip->count; i++) {
        zip_stat_t stat;
        libzip.stat_init(&stat);
        if (libzip.stat_index(zip->archive, i, 0, &stat) != 0) continue; // refused when it is read
        if ((stat.valid & ZIP_STAT_COMP_SIZE) == 0) continue;
        if (stat.comp_size > zip->length || total + stat.comp_size > zip->length) {
            return pen_error(PEN_CORRUPT, "%s: its members have more bytes than it has", zip->name);
        }
        total += stat.comp_size;
    }
    return PEN_OK;
}

pen_status pen_zip_open(const char *name, const void *bytes, size_t length, pen_zip **out_zip) {
    PEN_TRY(zip_load());
    pen_zip *zip = pen_memory_allocate(1, sizeof *zip);
    if (zip == NULL) return pen_error_out_of_memory();
    *zip = (pen_zip){.name = name, .length = length};
    pen_status status = zip_open_bytes(zip, bytes);
    if (status == PEN_OK) status = zip_check_total(zip);
    if (status != PEN_OK) {
        pen_zip_close(zip);
        return status;
    }
    *out_zip = zip;
    return PEN_OK;
}

void pen_zip_close(pen_zip *zip) {
    if (zip == NULL) return;
    if (zip->archive != NULL) libzip.discard(zip->archive);
    pen_memory_free(zip);
}

uint32_t pen_zip_count(const pen_zip *zip) {
    return zip->count;
}

const char *pen_zip_member_name(const pen_zip *zip, uint32_t index) {
    const char *name = libzip.get_name(zip->archive, index, 0);
    return name != NULL ? name : "";
}

// A member that claims more bytes than deflate can pack into its size is refused before room is
// made for it.
static pen_status zip_check(const pen_zip *zip, const char *member, const zip_stat_t *stat) {
    const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if ((stat->valid & wanted) != wanted) {
        return pen_error(PEN_CORRUPT, "%s does not say how large '%.200s' is", zip->name, member);
    }
    if ((stat->valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && stat->encryption_method != ZIP_EM_NONE) {
        return pen_error(PEN_UNSUPPORTED, "%s: '%.200s' is encrypted", zip->name, member);
    }
    if (stat->comp_method != ZIP_CM_STORE && stat->comp_method != ZIP_CM_DEFLATE) {
        return pen_error(PEN_UNSUPPORTED,
                         "%s: '%.200s' is packed by method %u; stored (0) and deflated (8) members "
                         "are possible",
                         zip->name, member, stat->comp_method);
    }
    const bool is_stored = stat->comp_method == ZIP_CM_STORE;
    if (stat->comp_size <= zip->length &&
        (is_stored ? stat->size == stat->comp_size
                   : stat->size / ZIP_PACKING_LIMIT <= stat->comp_size)) {
        return PEN_OK;
    }
    return pen_error(PEN_CORRUPT,
                     "%s: '%.200s' is to have %" PRIu64 " bytes, more than its %" PRIu64
                     " bytes in an archive of %zu can be",
                     zip->name, member, (uint64_t)stat->size, (uint64_t)stat->comp_size,
                     zip->length);
}

static pen_status zip_damaged(const pen_zip *zip, const char *member, zip_file_t *file) {
    return pen_error(PEN_CORRUPT, "%s: '%.200s' is damaged: %s", zip->name, member,
                     libzip.file_strerror(file));
}

// Steps are small enough for a user who wants to stop.
static pen_status zip_read_all(const pen_zip *zip, const char *member, zip_file_t *file,
                               uint8_t *bytes, uint64_t length) {
    uint64_t done = 0;
    uint8_t beyond;
    pen_long_read progress;
    pen_status status = PEN_OK;
    pen_long_read_begin(&progress, "unpacking", zip->name, length);
    while (done < length && status == PEN_OK) {
        const zip_int64_t got =
            libzip.fread(file, bytes + done, pen_min_u64(length - done, ZIP_STEP));
        if (got <= 0) break;
        done += (uint64_t)got;
        status = pen_long_read_at(&progress, done);
    }
    pen_long_read_end(&progress);
    PEN_TRY(status);
    // the end is where the checksum is compared
    if (done == length && libzip.fread(file, &beyond, 1) == 0) return PEN_OK;
    return zip_damaged(zip, member, file);
}

// Where a member is in the archive, and how large.
static pen_status zip_find(const pen_zip *zip, const char *member, zip_uint64_t *out_index,
                           zip_stat_t *out_stat) {
    libzip.stat_init(out_stat);
    const zip_int64_t index = libzip.name_locate(zip->archive, member, 0);
    if (index < 0) {
        return pen_error(PEN_NOT_FOUND, "%s has no member '%.200s'", zip->name, member);
    }
    *out_index = (zip_uint64_t)index;
    if (libzip.stat_index(zip->archive, *out_index, 0, out_stat) != 0) {
        return pen_error(PEN_CORRUPT, "%s: '%.200s' is damaged: %s", zip->name, member,
                         libzip.strerror(zip->archive));
    }
    return zip_check(zip, member, out_stat);
}

static pen_status zip_open_member(const pen_zip *zip, const char *member, zip_uint64_t index,
                                  zip_file_t **out_file) {
    *out_file = libzip.fopen_index(zip->archive, index, 0);
    if (*out_file != NULL) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%s: '%.200s' is damaged: %s", zip->name, member,
                     libzip.strerror(zip->archive));
}

pen_status pen_zip_measure(const pen_zip *zip, const char *member, pen_zip_size *out_size) {
    zip_uint64_t index;
    zip_stat_t stat;
    PEN_TRY(zip_find(zip, member, &index, &stat));
    *out_size = (pen_zip_size){.packed = stat.comp_size,
                               .bytes = stat.size,
                               .is_stored = stat.comp_method == ZIP_CM_STORE};
    return PEN_OK;
}

pen_status pen_zip_read_start(const pen_zip *zip, const char *member, void *out_bytes, size_t size,
                              size_t *out_count) {
    zip_uint64_t index;
    zip_stat_t stat;
    zip_file_t *file;
    PEN_TRY(zip_find(zip, member, &index, &stat));
    PEN_TRY(zip_open_member(zip, member, index, &file));
    const size_t wanted = pen_min_u64(size, stat.size);
    size_t done = 0;
    while (done < wanted) {
        const zip_int64_t got = libzip.fread(file, (uint8_t *)out_bytes + done, wanted - done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    const pen_status status = done == wanted ? PEN_OK : zip_damaged(zip, member, file);
    libzip.fclose(file);
    *out_count = done;
    return status;
}

// One byte more than the member is made, so that an empty one has an address.
pen_status pen_zip_read(const pen_zip *zip, const char *member, uint64_t bytes_limit,
                        pen_arena *arena, const uint8_t **out_bytes, size_t *out_length) {
    zip_uint64_t index;
    zip_stat_t stat;
    zip_file_t *file;
    uint8_t *bytes;
    PEN_TRY(zip_find(zip, member, &index, &stat));
    if (stat.size > bytes_limit) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: '%.200s' has %" PRIu64 " bytes, at most %" PRIu64 " can be",
                         zip->name, member, (uint64_t)stat.size, bytes_limit);
    }
    PEN_TRY(PEN_NEW(arena, stat.size + 1, &bytes));
    PEN_TRY(zip_open_member(zip, member, index, &file));
    const pen_status status = zip_read_all(zip, member, file, bytes, stat.size);
    libzip.fclose(file);
    *out_bytes = bytes;
    *out_length = stat.size;
    return status;
}

const char *pen_zip_version(void) {
    const pen_status status = zip_load();
    if (status == PEN_OK) return libzip.libzip_version();
    pen_status_ignore(status, "which is what is asked");
    return "not found";
}
