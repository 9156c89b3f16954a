#include "graph/import/zip_file.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <zip.h>

#include "base/limits.h"
#include "base/memory.h"

#define ZIP_PACKING_LIMIT 1100 // deflate makes at most 1032 bytes of one
#define ZIP_BYTES_MINIMUM 22   // of an archive: the record at its end

struct pen_zip {
    const char *name;
    size_t length;
    zip_t *archive;
    uint32_t count;
};

static pen_status zip_error(const char *name, zip_error_t *error, const char *what) {
    const bool no_memory = zip_error_code_zip(error) == ZIP_ER_MEMORY;
    const pen_status status =
        no_memory ? pen_error_out_of_memory()
                  : pen_error(PEN_CORRUPT, "%s: '%.200s' cannot be read as a zip archive: %s", name,
                              what, zip_error_strerror(error));
    zip_error_fini(error);
    return status;
}

static pen_status zip_open_bytes(pen_zip *zip, const void *bytes) {
    zip_error_t error;
    if (zip->length < ZIP_BYTES_MINIMUM) {
        return pen_error(PEN_CORRUPT, "%s: %zu bytes are too few for a zip archive", zip->name,
                         zip->length);
    }
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(bytes, zip->length, 0, &error);
    if (source == NULL) return zip_error(zip->name, &error, "");
    zip->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (zip->archive == NULL) {
        zip_source_free(source); // the archive would have taken it
        return zip_error(zip->name, &error, "");
    }
    zip_error_fini(&error);
    const zip_int64_t count = zip_get_num_entries(zip->archive, 0);
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
        zip_stat_init(&stat);
        if (zip_stat_index(zip->archive, i, 0, &stat) != 0) continue; // refused when it is read
        if ((stat.valid & ZIP_STAT_COMP_SIZE) == 0) continue;
        if (stat.comp_size > zip->length || total + stat.comp_size > zip->length) {
            return pen_error(PEN_CORRUPT, "%s: its members have more bytes than it has", zip->name);
        }
        total += stat.comp_size;
    }
    return PEN_OK;
}

pen_status pen_zip_open(const char *name, const void *bytes, size_t length, pen_zip **out_zip) {
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
    if (zip->archive != NULL) zip_discard(zip->archive);
    pen_memory_free(zip);
}

uint32_t pen_zip_count(const pen_zip *zip) {
    return zip->count;
}

const char *pen_zip_member_name(const pen_zip *zip, uint32_t index) {
    const char *name = zip_get_name(zip->archive, index, 0);
    return name != NULL ? name : "";
}

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

static pen_status zip_read_all(const pen_zip *zip, const char *member, zip_file_t *file,
                               uint8_t *bytes, uint64_t length) {
    uint64_t done = 0;
    uint8_t beyond;
    while (done < length) {
        const zip_int64_t got = zip_fread(file, bytes + done, length - done);
        if (got <= 0) break;
        done += (uint64_t)got;
    }
    // the end is where the checksum is compared
    if (done == length && zip_fread(file, &beyond, 1) == 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%s: '%.200s' is damaged: %s", zip->name, member,
                     zip_file_strerror(file));
}

pen_status pen_zip_read(const pen_zip *zip, const char *member, pen_arena *arena,
                        const uint8_t **out_bytes, size_t *out_length) {
    zip_stat_t stat;
    uint8_t *bytes;
    zip_stat_init(&stat);
    const zip_int64_t index = zip_name_locate(zip->archive, member, 0);
    if (index < 0) {
        return pen_error(PEN_NOT_FOUND, "%s has no member '%.200s'", zip->name, member);
    }
    if (zip_stat_index(zip->archive, (zip_uint64_t)index, 0, &stat) != 0) {
        return pen_error(PEN_CORRUPT, "%s: '%.200s' is damaged: %s", zip->name, member,
                         zip_strerror(zip->archive));
    }
    PEN_TRY(zip_check(zip, member, &stat));
    PEN_TRY(PEN_NEW(arena, stat.size + 1, &bytes));
    zip_file_t *file = zip_fopen_index(zip->archive, (zip_uint64_t)index, 0);
    if (file == NULL) {
        return pen_error(PEN_CORRUPT, "%s: '%.200s' is damaged: %s", zip->name, member,
                         zip_strerror(zip->archive));
    }
    const pen_status status = zip_read_all(zip, member, file, bytes, stat.size);
    zip_fclose(file);
    *out_bytes = bytes;
    *out_length = stat.size;
    return status;
}

const char *pen_zip_version(void) {
    return zip_libzip_version();
}
