#include "graph/import/tensorflow/bundle_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/checksum.h"
#include "base/format/protobuf_reader.h"
#include "base/limits.h"
#include "base/reserve.h"
#include "graph/import/tensorflow/graphdef_tensor.h"

// The file: blocks; an index of them, itself a block; a footer of two handles and a magic number.
// A block: entries (shared, unshared, length as varints; the rest of the key; the value), restart
// points, their count; behind it a byte for compression and a checksum.
enum {
    TABLE_FOOTER_BYTES = 48,
    TABLE_TRAILER_BYTES = 5,
    ENTRY_DTYPE = 1,
    ENTRY_SHAPE = 2,
    ENTRY_SHARD = 3,
    ENTRY_OFFSET = 4,
    ENTRY_SIZE = 5,
    ENTRY_CHECKSUM = 6,
    ENTRY_SLICES = 7,
    HEADER_SHARDS = 1,
    HEADER_ENDIANNESS = 2,
};
#define TABLE_MAGIC 0xdb4775248b80fb57u

typedef struct table_block {
    const uint8_t *bytes;
    size_t length; // of the entries
} table_block;

typedef struct table_cursor {
    table_block block;
    size_t at;
    char key[PEN_NAME_BYTES_LIMIT + 1];
    size_t key_length;
    const uint8_t *value;
    size_t value_length;
} table_cursor;

static uint32_t table_unmask(uint32_t masked) {
    const uint32_t turned = masked - 0xa282ead8u;
    return turned >> 17 | turned << 15;
}

static uint32_t table_fixed32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static bool table_varint(const uint8_t *bytes, size_t length, size_t *at, uint64_t *out_number) {
    uint64_t number = 0;
    for (uint32_t shift = 0; shift < 64 && *at < length; shift += 7) {
        const uint8_t byte = bytes[(*at)++];
        number |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *out_number = number;
            return true;
        }
    }
    return false;
}

// ---- blocks

// A block is checked by bounds and checksum before anything in it is believed.
static pen_status table_open_block(const uint8_t *bytes, size_t length, uint64_t offset,
                                   uint64_t size, table_block *out_block) {
    if (offset > length || size > length - offset || length - offset - size < TABLE_TRAILER_BYTES ||
        size < 4) {
        return pen_error(PEN_CORRUPT,
                         "a block of %" PRIu64 " bytes from byte %" PRIu64 " on, of %zu", size,
                         offset, length);
    }
    const uint8_t *block = bytes + offset;
    const uint32_t expected = table_unmask(table_fixed32(block + size + 1));
    if (pen_checksum(block, size + 1) != expected) {
        return pen_error(PEN_CORRUPT, "the block at byte %" PRIu64 " has another checksum", offset);
    }
    if (block[size] != 0) {
        return pen_error(PEN_UNSUPPORTED, "the block at byte %" PRIu64 " is compressed (kind %d)",
                         offset, (int)block[size]);
    }
    const uint64_t restarts = table_fixed32(block + size - 4);
    if (restarts > (size - 4) / 4) {
        return pen_error(PEN_CORRUPT,
                         "the block at byte %" PRIu64 " has %" PRIu64 " restart points in %" PRIu64
                         " bytes",
                         offset, restarts, size);
    }
    *out_block = (table_block){block, (size_t)(size - 4 - 4 * restarts)};
    return PEN_OK;
}

// The next entry; *out_more becomes false when there is none.
static pen_status table_next(table_cursor *cursor, bool *out_more) {
    const table_block *block = &cursor->block;
    uint64_t shared, unshared, length;
    *out_more = cursor->at < block->length;
    if (!*out_more) return PEN_OK;
    if (!table_varint(block->bytes, block->length, &cursor->at, &shared) ||
        !table_varint(block->bytes, block->length, &cursor->at, &unshared) ||
        !table_varint(block->bytes, block->length, &cursor->at, &length)) {
        return pen_error(PEN_CORRUPT, "an entry ends too early");
    }
    const size_t left = block->length - cursor->at;
    if (shared > cursor->key_length || unshared > PEN_NAME_BYTES_LIMIT - shared ||
        unshared > left || length > left - unshared) {
        return pen_error(PEN_CORRUPT,
                         "an entry shares %" PRIu64 " bytes of a key of %zu, and has "
                         "%" PRIu64 " and %" PRIu64 " bytes of %zu",
                         shared, cursor->key_length, unshared, length, left);
    }
    memcpy(cursor->key + shared, block->bytes + cursor->at, (size_t)unshared);
    cursor->key_length = (size_t)(shared + unshared);
    cursor->key[cursor->key_length] = '\0';
    cursor->value = block->bytes + cursor->at + unshared;
    cursor->value_length = (size_t)length;
    cursor->at += (size_t)(unshared + length);
    return PEN_OK;
}

// ---- entries

typedef struct table_reader {
    const uint8_t *bytes;
    size_t length;
    pen_arena *arena;
    pen_bundle *bundle;
    uint32_t capacity;
    size_t name_bytes;
    uint64_t blocks_end; // of those read so far
    bool has_header;
} table_reader;

// The entry with an empty key says how many files hold contents.
static pen_status table_read_header(table_reader *reader, const table_cursor *cursor) {
    pen_protobuf_reader message;
    int64_t shards = 0, endianness = 0;
    pen_protobuf_init(&message, cursor->value, cursor->value_length);
    while (true) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        if (field.number == HEADER_SHARDS) PEN_TRY(pen_protobuf_int(&message, &field, &shards));
        if (field.number == HEADER_ENDIANNESS) {
            PEN_TRY(pen_protobuf_int(&message, &field, &endianness));
        }
    }
    if (endianness != 0) return pen_error(PEN_UNSUPPORTED, "its numbers are big-endian");
    if (shards < 1 || shards > PEN_EXTERNAL_FILES_LIMIT) {
        return pen_error(PEN_CORRUPT, "it has %" PRId64 " shards; from 1 to %d are possible",
                         shards, PEN_EXTERNAL_FILES_LIMIT);
    }
    reader->bundle->shard_count = (uint32_t)shards;
    reader->has_header = true;
    return PEN_OK;
}

static pen_status table_read_type(const pen_protobuf_reader *message,
                                  const pen_protobuf_field *field, pen_bundle_entry *entry) {
    pen_protobuf_reader shape;
    bool is_known;
    PEN_TRY(pen_protobuf_open(message, field, &shape));
    PEN_TRY(pen_graphdef_shape_read(&shape, &entry->type.shape, &is_known));
    return is_known ? PEN_OK : pen_error(PEN_CORRUPT, "a tensor without a shape");
}

// Unknown fields are passed over, as protobuf wants it.
static pen_status table_read_entry_fields(pen_protobuf_reader *message, pen_bundle_entry *entry) {
    while (true) {
        pen_protobuf_field field;
        int64_t integer = 0;
        PEN_TRY(pen_protobuf_next(message, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == ENTRY_SHAPE) {
            PEN_TRY(table_read_type(message, &field, entry));
            continue;
        }
        if (field.number == ENTRY_SLICES) entry->is_sliced = true;
        if (field.number == ENTRY_CHECKSUM && field.wire == PEN_PROTOBUF_FIXED32) {
            entry->checksum = (uint32_t)field.integer;
        }
        if (field.number > ENTRY_SIZE) continue;
        PEN_TRY(pen_protobuf_int(message, &field, &integer));
        if (integer < 0) return pen_error(PEN_CORRUPT, "a place or size is %" PRId64, integer);
        if (field.number == ENTRY_DTYPE) entry->data_type = integer;
        if (field.number == ENTRY_SHARD) entry->shard = (uint32_t)integer;
        if (field.number == ENTRY_OFFSET) entry->offset = (uint64_t)integer;
        if (field.number == ENTRY_SIZE) entry->size = (uint64_t)integer;
    }
}

static pen_status table_grow(table_reader *reader) {
    pen_bundle *bundle = reader->bundle;
    if (bundle->count < reader->capacity) return PEN_OK;
    if (bundle->count >= PEN_SAFETENSORS_COUNT_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "it has more than %u tensors",
                         PEN_SAFETENSORS_COUNT_LIMIT);
    }
    return PEN_RESERVE(reader->arena, &bundle->entries, bundle->count, &reader->capacity, 16);
}

// A type that we do not know is no error until somebody asks for the variable.
static pen_status table_read_entry(table_reader *reader, const table_cursor *cursor) {
    pen_bundle *bundle = reader->bundle;
    pen_bundle_entry entry = {0};
    pen_protobuf_reader message;
    if (memchr(cursor->key, 0, cursor->key_length) != NULL) {
        return PEN_OK; // a slice of another tensor: nobody asks for it by this name
    }
    reader->name_bytes += cursor->key_length + 1;
    if (reader->name_bytes > PEN_SAFETENSORS_HEADER_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "its names are more than %u bytes",
                         PEN_SAFETENSORS_HEADER_LIMIT);
    }
    PEN_TRY(table_grow(reader));
    PEN_TRY(pen_arena_copy_text(reader->arena, cursor->key, cursor->key_length, &entry.name));
    if (pen_name_map_find(&bundle->names, entry.name) != PEN_NAME_MAP_NONE) {
        return pen_error(PEN_CORRUPT, "two tensors are called '%.100s'", entry.name);
    }
    pen_protobuf_init(&message, cursor->value, cursor->value_length);
    PEN_TRY(table_read_entry_fields(&message, &entry));
    entry.type.element = pen_graphdef_element_type(entry.data_type);
    if (entry.type.element != PEN_ELEMENT_UNKNOWN) PEN_TRY(pen_tensor_type_check(&entry.type));
    PEN_TRY(pen_name_map_add(&bundle->names, entry.name, bundle->count));
    bundle->entries[bundle->count++] = entry;
    return PEN_OK;
}

// Blocks must follow each other, so that a small file cannot make us read for ever.
static pen_status table_read_block(table_reader *reader, const table_cursor *index) {
    table_cursor cursor = {0};
    uint64_t offset, size;
    size_t at = 0;
    bool more;
    if (!table_varint(index->value, index->value_length, &at, &offset) ||
        !table_varint(index->value, index->value_length, &at, &size)) {
        return pen_error(PEN_CORRUPT, "an entry of the index of blocks ends too early");
    }
    PEN_TRY(table_open_block(reader->bytes, reader->length, offset, size, &cursor.block));
    if (offset < reader->blocks_end) { // else a small file is read over and over
        return pen_error(PEN_CORRUPT,
                         "the block at byte %" PRIu64 " is not behind the one before it, which "
                         "ends at byte %" PRIu64,
                         offset, reader->blocks_end);
    }
    reader->blocks_end = offset + size;
    while (true) {
        PEN_TRY(table_next(&cursor, &more));
        if (!more) return PEN_OK;
        PEN_TRY(pen_status_add_context(cursor.key_length == 0 ? table_read_header(reader, &cursor)
                                                              : table_read_entry(reader, &cursor),
                                       "in tensor '%.100s'", cursor.key));
    }
}

// The footer names the index of blocks, which names the blocks of entries.
pen_status pen_bundle_read(const uint8_t *bytes, size_t length, pen_arena *arena,
                           pen_bundle *out_bundle) {
    table_reader reader = {.bytes = bytes, .length = length, .arena = arena, .bundle = out_bundle};
    table_cursor index = {0};
    uint64_t handles[4];
    size_t at = 0;
    bool more;
    *out_bundle = (pen_bundle){0};
    pen_name_map_init(&out_bundle->names, arena);
    const uint8_t *footer =
        length >= TABLE_FOOTER_BYTES ? bytes + length - TABLE_FOOTER_BYTES : NULL;
    const uint64_t magic =
        footer == NULL ? 0
                       : table_fixed32(footer + 40) | (uint64_t)table_fixed32(footer + 44) << 32;
    if (magic != TABLE_MAGIC) {
        return pen_error(PEN_CORRUPT, "the index of variables does not end as a table does");
    }
    for (int i = 0; i < 4; i++) {
        if (table_varint(footer, 40, &at, &handles[i])) continue;
        return pen_error(PEN_CORRUPT, "the footer of the index of variables ends too early");
    }
    PEN_TRY(table_open_block(bytes, length, handles[2], handles[3], &index.block));
    while (true) {
        PEN_TRY(table_next(&index, &more));
        if (!more) break;
        PEN_TRY(table_read_block(&reader, &index));
    }
    if (reader.has_header) return PEN_OK;
    return pen_error(PEN_CORRUPT, "the index of variables has no header");
}

const pen_bundle_entry *pen_bundle_find(const pen_bundle *bundle, const char *name) {
    const uint32_t index = pen_name_map_find(&bundle->names, name);
    return index == PEN_NAME_MAP_NONE ? NULL : &bundle->entries[index];
}

// ---- contents

static pen_status bundle_open_shard(const pen_bundle *bundle, uint32_t shard,
                                    pen_external_files *files, const char *prefix,
                                    const char **out_location, const pen_mapping **out_mapping) {
    PEN_TRY(pen_arena_format(files->arena, out_location, "%s.data-%05u-of-%05u", prefix, shard,
                             bundle->shard_count));
    return pen_external_files_open(files, *out_location, out_mapping);
}

pen_status pen_bundle_open_shards(const pen_bundle *bundle, pen_external_files *files,
                                  const char *prefix) {
    for (uint32_t shard = 0; bundle->count > 0 && shard < bundle->shard_count; shard++) {
        const char *location = "";
        const pen_mapping *mapping;
        PEN_TRY(pen_status_add_context(
            bundle_open_shard(bundle, shard, files, prefix, &location, &mapping),
            "shard %u of %u, of the contents of %u variables", shard, bundle->shard_count,
            bundle->count));
    }
    return PEN_OK;
}

// Borrowed from the mapped shard, after bounds and checksum are checked.
static pen_status bundle_contents(const pen_bundle *bundle, const pen_bundle_entry *entry,
                                  pen_external_files *files, const char *prefix,
                                  const void **out_data) {
    const char *location;
    const pen_mapping *shard;
    if (entry->type.element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "it is of type %s",
                         pen_graphdef_data_type_name(entry->data_type));
    }
    if (entry->is_sliced) return pen_error(PEN_UNSUPPORTED, "it is stored in slices");
    if (entry->shard >= bundle->shard_count || entry->size != pen_tensor_type_bytes(&entry->type)) {
        return pen_error(
            PEN_CORRUPT, "it has %" PRIu64 " bytes in shard %u of %u, expected %" PRIu64,
            entry->size, entry->shard, bundle->shard_count, pen_tensor_type_bytes(&entry->type));
    }
    PEN_TRY(bundle_open_shard(bundle, entry->shard, files, prefix, &location, &shard));
    if (entry->offset > shard->length || entry->size > shard->length - entry->offset) {
        return pen_error(PEN_CORRUPT,
                         "%" PRIu64 " bytes from byte %" PRIu64 " of '%s', which has %zu",
                         entry->size, entry->offset, location, shard->length);
    }
    const uint8_t *data = shard->bytes + entry->offset;
    if (pen_checksum(data, entry->size) != table_unmask(entry->checksum)) {
        return pen_error(PEN_CORRUPT, "its contents in '%s' have another checksum", location);
    }
    *out_data = data;
    return PEN_OK;
}

pen_status pen_bundle_contents(const pen_bundle *bundle, const pen_bundle_entry *entry,
                               pen_external_files *files, const char *prefix,
                               const void **out_data) {
    return pen_status_add_context(bundle_contents(bundle, entry, files, prefix, out_data),
                                  "in variable '%.100s'", entry->name);
}
