#include "graph/import/stored_zip.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/integer.h"
#include "base/limits.h"
#include "base/sets/order.h"
#include "base/system/long_read.h"

// The records of a zip archive: the marks they begin with, and their lengths without what varies.
#define ZIP_LOCAL_MARK 0x04034b50u
#define ZIP_LOCAL_BYTES 30u
#define ZIP_LOCAL_CHECKSUM 14u // its place
#define ZIP_BEHIND_MARK 0x08074b50u
#define ZIP_CENTRAL_MARK 0x02014b50u
#define ZIP_CENTRAL_BYTES 46u
#define ZIP_CENTRAL_CHECKSUM 16u
#define ZIP_END_MARK 0x06054b50u
#define ZIP_END_BYTES 22u
#define ZIP_END64_MARK 0x06064b50u
#define ZIP_END64_BYTES 56u
#define ZIP_LOCATOR_MARK 0x07064b50u
#define ZIP_LOCATOR_BYTES 20u
#define ZIP_COMMENT_LIMIT 65535u
#define ZIP_WIDE_TAG 1u // the extra field with sizes of 64 bits

#define ZIP_STEP (16u << 20) // bytes that are summed up at once

#define ZIP_FLAG_ENCRYPTED 1u
#define ZIP_FLAG_SIZES_BEHIND 8u // checksum and sizes stand behind the contents

// Where the central directory is, and how many entries it has.
typedef struct zip_end {
    uint64_t offset;
    uint64_t length;
    uint64_t count;
} zip_end;

static uint64_t zip_read(const uint8_t *at, uint32_t width) {
    uint64_t number = 0;
    for (uint32_t i = width; i-- > 0;) {
        number = number << 8 | at[i];
    }
    return number;
}

static uint32_t zip_16(const uint8_t *at) {
    return (uint32_t)zip_read(at, 2);
}

static uint32_t zip_32(const uint8_t *at) {
    return (uint32_t)zip_read(at, 4);
}

// Whether `need` bytes at `offset` are within `length`.
static bool zip_holds(uint64_t length, uint64_t offset, uint64_t need) {
    return offset <= length && need <= length - offset;
}

uint32_t pen_stored_zip_checksum(uint32_t before, const void *bytes, uint64_t length) {
    return (uint32_t)crc32_z(before, bytes, length);
}

// ---- the end of the archive

// Large archives have their numbers in a record of their own, which stands before the end.
static pen_status zip_read_wide_end(const pen_stored_zip *archive, uint64_t end_at, zip_end *end) {
    if (end_at < ZIP_LOCATOR_BYTES) return PEN_OK;
    const uint8_t *locator = archive->bytes + end_at - ZIP_LOCATOR_BYTES;
    if (zip_32(locator) != ZIP_LOCATOR_MARK) return PEN_OK;
    const uint64_t at = zip_read(locator + 8, 8);
    if (!zip_holds(archive->length, at, ZIP_END64_BYTES) ||
        zip_32(archive->bytes + at) != ZIP_END64_MARK) {
        return pen_error(
            PEN_CORRUPT,
            "the zip archive's end points to byte %" PRIu64 ", where no such record is", at);
    }
    const uint8_t *wide = archive->bytes + at;
    *end = (zip_end){.offset = zip_read(wide + 48, 8),
                     .length = zip_read(wide + 40, 8),
                     .count = zip_read(wide + 32, 8)};
    return PEN_OK;
}

// Whether the record that ends an archive is at `at`: the comment behind it goes to the file's end.
// Other archives may lie within, with ends of their own.
static bool zip_is_end(const pen_stored_zip *archive, uint64_t at) {
    return zip_32(archive->bytes + at) == ZIP_END_MARK &&
           at + ZIP_END_BYTES + zip_16(archive->bytes + at + 20) == archive->length;
}

// The end is looked for from behind, as far as a comment may reach.
static pen_status zip_find_end(const pen_stored_zip *archive, zip_end *out_end) {
    const uint8_t *bytes = archive->bytes;
    const uint64_t length = archive->length;
    if (length < 4 || zip_32(bytes) != ZIP_LOCAL_MARK) {
        return pen_error(PEN_CORRUPT, "it is no zip archive, which this file is to be");
    }
    uint64_t at = length < ZIP_END_BYTES ? 0 : length - ZIP_END_BYTES;
    const uint64_t last = at > ZIP_COMMENT_LIMIT ? at - ZIP_COMMENT_LIMIT : 0;
    while (at > last && !zip_is_end(archive, at)) {
        at--;
    }
    if (length < ZIP_END_BYTES || !zip_is_end(archive, at)) {
        return pen_error(PEN_CORRUPT,
                         "the zip archive has no end: %" PRIu64 " bytes are there, and the list of "
                         "its files, which comes last, is not among them",
                         length);
    }
    *out_end = (zip_end){.offset = zip_32(bytes + at + 16),
                         .length = zip_32(bytes + at + 12),
                         .count = zip_16(bytes + at + 10)};
    PEN_TRY(zip_read_wide_end(archive, at, out_end));
    if (!zip_holds(at, out_end->offset, out_end->length)) {
        return pen_error(PEN_CORRUPT,
                         "the zip archive's list of files is at bytes %" PRIu64 " to %" PRIu64
                         ", and its end at byte %" PRIu64,
                         out_end->offset, out_end->offset + out_end->length, at);
    }
    return PEN_OK;
}

// ---- entries

// Sizes and places that do not fit into 32 bits stand in an extra field, those that do not fit in
// this order.
static pen_status zip_read_wide_sizes(const uint8_t *central, pen_stored_zip_entry *entry) {
    const uint8_t *at = central + ZIP_CENTRAL_BYTES + zip_16(central + 28);
    const uint8_t *end = at + zip_16(central + 30);
    uint64_t stored = zip_32(central + 20);
    while (end - at >= 4) {
        const uint8_t *field = at + 4;
        const uint32_t length = zip_16(at + 2);
        if (end - field < (ptrdiff_t)length) break;
        at = field + length;
        if (zip_16(field - 4) != ZIP_WIDE_TAG) continue;
        uint64_t *const wide[] = {&entry->length, &stored, &entry->header_offset};
        for (size_t i = 0; i < 3 && at - field >= 8; i++) {
            if (*wide[i] != UINT32_MAX) continue;
            *wide[i] = zip_read(field, 8);
            field += 8;
        }
    }
    if (stored == entry->length) return PEN_OK;
    return pen_error(PEN_CORRUPT, "it has %" PRIu64 " bytes stored as %" PRIu64, entry->length,
                     stored);
}

// The header in front of the contents says what the list says, and tells where the contents begin.
static pen_status zip_check_local(const pen_stored_zip *archive, const char *whole_name,
                                  pen_stored_zip_entry *entry) {
    if (!zip_holds(archive->length, entry->header_offset, ZIP_LOCAL_BYTES) ||
        zip_32(archive->bytes + entry->header_offset) != ZIP_LOCAL_MARK) {
        return pen_error(PEN_CORRUPT, "no file begins at byte %" PRIu64 ", as the list says",
                         entry->header_offset);
    }
    const uint8_t *local = archive->bytes + entry->header_offset;
    const uint32_t name_length = zip_16(local + 26);
    entry->offset = entry->header_offset + ZIP_LOCAL_BYTES + name_length + zip_16(local + 28);
    if (!zip_holds(archive->length, entry->offset, entry->length)) {
        return pen_error(PEN_CORRUPT,
                         "its %" PRIu64 " bytes at byte %" PRIu64
                         " do not lie in the archive, which has %zu",
                         entry->length, entry->offset, archive->length);
    }
    if (name_length != strlen(whole_name) ||
        memcmp(local + ZIP_LOCAL_BYTES, whole_name, name_length) != 0) {
        return pen_error(PEN_CORRUPT, "it has another name at byte %" PRIu64, entry->header_offset);
    }
    if ((zip_16(local + 6) & ZIP_FLAG_SIZES_BEHIND) != 0) return PEN_OK;
    const bool is_wide = zip_32(local + 22) == UINT32_MAX;
    if (zip_32(local + ZIP_LOCAL_CHECKSUM) == entry->checksum &&
        (is_wide || zip_32(local + 22) == entry->length)) {
        return PEN_OK;
    }
    return pen_error(PEN_CORRUPT, "its size or checksum is another at byte %" PRIu64,
                     entry->header_offset);
}

static pen_status zip_read_entry(pen_stored_zip *archive, const uint8_t *central,
                                 const char *whole_name, pen_stored_zip_entry *entry) {
    const uint32_t flags = zip_16(central + 8), method = zip_16(central + 10);
    if ((flags & ZIP_FLAG_ENCRYPTED) != 0) return pen_error(PEN_UNSUPPORTED, "it is encrypted");
    if (method != 0) {
        return pen_error(PEN_UNSUPPORTED,
                         "it is compressed (method %u), expected stored as it is: the archive was "
                         "packed again, so save the model anew",
                         method);
    }
    entry->checksum = zip_32(central + ZIP_CENTRAL_CHECKSUM);
    entry->length = zip_32(central + 24);
    entry->header_offset = zip_32(central + 42);
    PEN_TRY(zip_read_wide_sizes(central, entry));
    return zip_check_local(archive, whole_name, entry);
}

// Where a name goes on behind the folder; the whole name of what is in none, or in another.
static const char *zip_inner_name(const pen_stored_zip *archive, const char *whole_name) {
    const size_t length = strlen(archive->folder);
    const bool is_inside =
        strncmp(whole_name, archive->folder, length) == 0 && whole_name[length] == '/';
    return is_inside ? whole_name + length + 1 : whole_name;
}

// The folder is that of the first file.
static pen_status zip_note_folder(pen_stored_zip *archive, const char *whole_name) {
    const size_t length = strcspn(whole_name, "/");
    const bool is_there = whole_name[length] == '/';
    return pen_arena_copy_text(archive->index.arena, whole_name, is_there ? length : 0,
                               &archive->folder);
}

// The next entry of the list, at byte `*at`.
static pen_status zip_next(pen_stored_zip *archive, const zip_end *end, uint64_t *at,
                           pen_stored_zip_entry *entry) {
    const uint8_t *central = archive->bytes + *at;
    const uint64_t left = end->offset + end->length - *at;
    if (left < ZIP_CENTRAL_BYTES || zip_32(central) != ZIP_CENTRAL_MARK) {
        return pen_error(PEN_CORRUPT, "the zip archive's list of %" PRIu64 " files ends early",
                         end->count);
    }
    const uint32_t name_length = zip_16(central + 28);
    const uint64_t length =
        (uint64_t)ZIP_CENTRAL_BYTES + name_length + zip_16(central + 30) + zip_16(central + 32);
    const char *name = (const char *)(central + ZIP_CENTRAL_BYTES), *whole_name;
    if (length > left || memchr(name, 0, name_length) != NULL) {
        return pen_error(PEN_CORRUPT, "the zip archive's list of files has a damaged name");
    }
    PEN_TRY(pen_arena_copy_text(archive->index.arena, name, name_length, &whole_name));
    if (archive->folder == NULL) PEN_TRY(zip_note_folder(archive, whole_name));
    entry->name = zip_inner_name(archive, whole_name);
    entry->is_inside = entry->name != whole_name;
    entry->central_offset = *at;
    *at += length;
    return pen_status_add_context(zip_read_entry(archive, central, whole_name, entry),
                                  "in file '%.100s' of the archive", whole_name);
}

static pen_status zip_check_apart(const pen_stored_zip *archive, const zip_end *end) {
    pen_ranked *order;
    PEN_TRY(PEN_NEW(archive->index.arena, archive->count, &order));
    for (uint32_t i = 0; i < archive->count; i++) {
        order[i] = (pen_ranked){(double)archive->entries[i].header_offset, i};
    }
    pen_ranked_sort_up(order, archive->count);
    for (uint32_t i = 0; i < archive->count; i++) {
        const pen_stored_zip_entry *entry = &archive->entries[order[i].id];
        const pen_stored_zip_entry *next =
            i + 1 < archive->count ? &archive->entries[order[i + 1].id] : NULL;
        const uint64_t limit = next != NULL ? next->header_offset : end->offset;
        if (entry->offset + entry->length <= limit) continue;
        return pen_error(PEN_CORRUPT, "file '%.100s' of the archive lies over %s%.100s%s",
                         entry->name, next != NULL ? "file '" : "the list of files",
                         next != NULL ? next->name : "", next != NULL ? "'" : "");
    }
    return PEN_OK;
}

// The count of files is bounded by the list that is there, before memory is taken for it.
pen_status pen_stored_zip_read(const void *bytes, size_t length, pen_arena *arena,
                               pen_stored_zip *out_archive) {
    pen_stored_zip archive = {.bytes = bytes, .length = length};
    zip_end end;
    pen_stored_zip_entry *entries;
    pen_name_map_init(&archive.index, arena);
    PEN_TRY(zip_find_end(&archive, &end));
    if (end.count > PEN_ZIP_MEMBERS_LIMIT || end.count > end.length / ZIP_CENTRAL_BYTES) {
        return pen_error(end.count > PEN_ZIP_MEMBERS_LIMIT ? PEN_INVALID_INPUT : PEN_CORRUPT,
                         "the zip archive says that it has %" PRIu64 " files in a list of %" PRIu64
                         " bytes; at most %u are possible",
                         end.count, end.length, PEN_ZIP_MEMBERS_LIMIT);
    }
    PEN_TRY(PEN_NEW(arena, end.count, &entries));
    uint64_t at = end.offset;
    for (uint32_t i = 0; i < end.count; i++) {
        PEN_TRY(zip_next(&archive, &end, &at, &entries[i]));
        if (pen_name_map_find(&archive.index, entries[i].name) != PEN_NAME_MAP_NONE) {
            return pen_error(PEN_CORRUPT, "the zip archive has two files '%.100s'",
                             entries[i].name);
        }
        PEN_TRY(pen_name_map_add(&archive.index, entries[i].name, i));
    }
    archive.entries = entries;
    archive.count = (uint32_t)end.count;
    PEN_TRY(zip_check_apart(&archive, &end));
    *out_archive = archive;
    return PEN_OK;
}

const pen_stored_zip_entry *pen_stored_zip_find(const pen_stored_zip *archive, const char *name) {
    const uint32_t index = pen_name_map_find(&archive->index, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &archive->entries[index];
}

// The whole name was copied, and the name is a part of the copy.
const char *pen_stored_zip_whole_name(const pen_stored_zip *archive,
                                      const pen_stored_zip_entry *entry) {
    return entry->is_inside ? entry->name - strlen(archive->folder) - 1 : entry->name;
}

static pen_status zip_sum(const pen_stored_zip *archive, const pen_stored_zip_entry *entry,
                          uint32_t *out_sum) {
    pen_long_read progress;
    pen_status status = PEN_OK;
    uint32_t sum = 0;
    pen_long_read_begin(&progress, "reading", entry->name, entry->length);
    for (uint64_t at = 0; at < entry->length && status == PEN_OK; at += ZIP_STEP) {
        sum = pen_stored_zip_checksum(sum, archive->bytes + entry->offset + at,
                                      pen_min_u64(entry->length - at, ZIP_STEP));
        status = pen_long_read_at(&progress, at);
    }
    pen_long_read_end(&progress);
    *out_sum = sum;
    return status;
}

pen_status pen_stored_zip_open(const pen_stored_zip *archive, const char *name,
                               const pen_stored_zip_entry **out_entry) {
    const pen_stored_zip_entry *entry = pen_stored_zip_find(archive, name);
    if (entry == NULL) {
        return pen_error(PEN_NOT_FOUND, "the archive has no file '%s'", name);
    }
    uint32_t found;
    PEN_TRY(zip_sum(archive, entry, &found));
    if (found != entry->checksum) {
        return pen_error(PEN_CORRUPT, "file '%s' of the archive has checksum %08x, expected %08x",
                         name, found, entry->checksum);
    }
    *out_entry = entry;
    return PEN_OK;
}

uint32_t pen_stored_zip_checksum_places(const pen_stored_zip *archive,
                                        const pen_stored_zip_entry *entry,
                                        uint64_t out_places[PEN_STORED_ZIP_CHECKSUM_PLACES]) {
    const uint8_t *local = archive->bytes + entry->header_offset;
    uint64_t place = entry->header_offset + ZIP_LOCAL_CHECKSUM;
    if ((zip_16(local + 6) & ZIP_FLAG_SIZES_BEHIND) != 0) {
        place = entry->offset + entry->length; // the list of files follows, so there are bytes
        if (zip_32(archive->bytes + place) == ZIP_BEHIND_MARK) place += 4;
    }
    out_places[0] = entry->central_offset + ZIP_CENTRAL_CHECKSUM;
    if (zip_32(archive->bytes + place) != entry->checksum) return 1;
    out_places[1] = place;
    return 2;
}
