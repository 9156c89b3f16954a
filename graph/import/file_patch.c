#include "graph/import/file_patch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

// What has one checksum: an entry of an archive, or a whole file.
typedef struct patch_part {
    const pen_stored_zip_entry *entry;
    uint64_t offset, length;
    uint32_t first, count; // of the patches within
    uint32_t checksum;     // of the new contents
    bool is_known;         // the checksum, once they were made
} patch_part;

// A stretch of the file that changes: the contents of a part, or a checksum of them.
typedef struct patch_change {
    uint64_t offset;
    uint32_t part;
    bool is_checksum;
} patch_change;

typedef struct patcher {
    const pen_file_patches *patches;
    pen_arena *arena;
    patch_part *parts; // [part_count], in the order of the file
    uint32_t part_count;
    patch_change *changes; // [change_count], likewise
    uint32_t change_count;
    uint8_t *contents; // room for the longest patch
} patcher;

// ---- what changes

// Patches come in the order of the file, so those of an entry follow each other.
static pen_status patch_group(patcher *p) {
    const pen_file_patches *patches = p->patches;
    uint64_t longest = 1;
    PEN_TRY(PEN_NEW(p->arena, patches->count, &p->parts));
    for (uint32_t i = 0; i < patches->count; i++) {
        const pen_file_patch *patch = &patches->items[i];
        const pen_stored_zip_entry *entry = patch->entry;
        if (i == 0 || patches->items[i - 1].entry != entry) {
            p->parts[p->part_count++] =
                (patch_part){.entry = entry,
                             .offset = entry != NULL ? entry->offset : 0,
                             .length = entry != NULL ? entry->length : patches->length,
                             .first = i};
        }
        p->parts[p->part_count - 1].count++;
        if (patch->length > longest) longest = patch->length;
    }
    p->contents = pen_arena_allocate(p->arena, longest, 1, 64);
    return p->contents == NULL ? pen_error_out_of_memory() : PEN_OK;
}

static int patch_compare(const void *left, const void *right) {
    const patch_change *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static pen_status patch_find_changes(patcher *p) {
    const size_t limit = (size_t)p->part_count * (1 + PEN_STORED_ZIP_CHECKSUM_PLACES);
    PEN_TRY(PEN_NEW(p->arena, limit, &p->changes));
    for (uint32_t i = 0; i < p->part_count; i++) {
        const patch_part *part = &p->parts[i];
        p->changes[p->change_count++] = (patch_change){part->offset, i, false};
        if (part->entry == NULL) continue;
        uint64_t places[PEN_STORED_ZIP_CHECKSUM_PLACES];
        const uint32_t count = pen_stored_zip_checksum_places(p->patches->zip, part->entry, places);
        for (uint32_t c = 0; c < count; c++)
            p->changes[p->change_count++] = (patch_change){places[c], i, true};
    }
    qsort(p->changes, p->change_count, sizeof *p->changes, patch_compare);
    return PEN_OK;
}

// ---- writing

// Bytes of a part, to `out`, if any, and into its checksum.
static pen_status patch_put(patch_part *part, const uint8_t *bytes, uint64_t length,
                            pen_file *out) {
    part->checksum = pen_stored_zip_checksum(part->checksum, bytes, length);
    return out == NULL ? PEN_OK : pen_file_write(out, bytes, length);
}

static pen_status patch_make(patcher *p, patch_part *part, pen_file *out) {
    const pen_file_patches *patches = p->patches;
    uint64_t at = part->offset;
    part->checksum = 0;
    for (uint32_t i = part->first; i < part->first + part->count; i++) {
        const pen_file_patch *patch = &patches->items[i];
        PEN_TRY(patch_put(part, patches->bytes + at, patch->offset - at, out));
        memcpy(p->contents, patches->bytes + patch->offset, patch->length);
        patches->fill(patches->context, i, p->contents);
        PEN_TRY(patch_put(part, p->contents, patch->length, out));
        at = patch->offset + patch->length;
    }
    part->is_known = true;
    return patch_put(part, patches->bytes + at, part->offset + part->length - at, out);
}

// A checksum may stand in front of the contents: these are made twice then, rather than kept.
static pen_status patch_write_change(patcher *p, const patch_change *change, pen_file *out,
                                     uint64_t *out_end) {
    patch_part *part = &p->parts[change->part];
    uint8_t bytes[4];
    *out_end = part->offset + part->length;
    if (!change->is_checksum) return patch_make(p, part, out);
    if (!part->is_known) PEN_TRY(patch_make(p, part, NULL));
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(part->checksum >> 8 * i);
    *out_end = change->offset + sizeof bytes;
    return pen_file_write(out, bytes, sizeof bytes);
}

static pen_status patch_write(patcher *p, pen_file *out) {
    const pen_file_patches *patches = p->patches;
    uint64_t at = 0;
    for (uint32_t i = 0; i < p->change_count; i++) {
        const patch_change *change = &p->changes[i];
        PEN_TRY(pen_file_write(out, patches->bytes + at, change->offset - at));
        PEN_TRY(patch_write_change(p, change, out, &at));
    }
    return pen_file_write(out, patches->bytes + at, patches->length - at);
}

static pen_status patch_save(patcher *p, const char *path) {
    pen_file *file = NULL;
    PEN_TRY(patch_group(p));
    PEN_TRY(patch_find_changes(p));
    pen_status status = pen_file_create_beside(path, &file);
    if (status == PEN_OK) status = patch_write(p, file);
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

pen_status pen_file_patch_save(const pen_file_patches *patches, const char *path) {
    patcher p = {.patches = patches};
    PEN_TRY(pen_arena_create(&p.arena));
    const pen_status status = patch_save(&p, path);
    pen_arena_destroy(p.arena);
    return status;
}
