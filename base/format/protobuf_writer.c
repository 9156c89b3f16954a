#include "base/format/protobuf_writer.h"

#include <string.h>

#include "base/format/protobuf_reader.h"

void pen_protobuf_writer_init(pen_protobuf_writer *writer, FILE *stream) {
    *writer = (pen_protobuf_writer){.stream = stream};
}

void pen_protobuf_writer_init_bytes(pen_protobuf_writer *writer, void *bytes, size_t size) {
    *writer = (pen_protobuf_writer){.bytes = bytes, .size = bytes != NULL ? size : 0};
}

static bool writer_only_counts(const pen_protobuf_writer *writer) {
    return writer->stream == NULL && writer->bytes == NULL;
}

static void writer_put(pen_protobuf_writer *writer, const void *bytes, size_t length) {
    const uint64_t at = writer->length;
    writer->length += length;
    if (at >= writer->size && writer->stream == NULL) return; // only counts
    if (length == 0 || writer->failed) return;
    if (writer->stream != NULL) {
        writer->failed = fwrite(bytes, 1, length, writer->stream) != length;
    } else {
        const size_t room = writer->size - (size_t)at;
        memcpy(writer->bytes + at, bytes, length < room ? length : room);
    }
}

static size_t writer_varint(uint8_t *out_bytes, uint64_t integer) {
    size_t length = 0;
    for (; integer >= 0x80; integer >>= 7) {
        out_bytes[length++] = (uint8_t)(integer | 0x80);
    }
    out_bytes[length++] = (uint8_t)integer;
    return length;
}

void pen_protobuf_write_varint(pen_protobuf_writer *writer, uint64_t integer) {
    uint8_t bytes[10];
    writer_put(writer, bytes, writer_varint(bytes, integer));
}

// A key and the number behind it: a value, or a length.
static void writer_pair(pen_protobuf_writer *writer, uint32_t number, pen_protobuf_wire wire,
                        uint64_t integer) {
    uint8_t bytes[20];
    size_t length = writer_varint(bytes, (uint64_t)number << 3 | (uint64_t)wire);
    length += writer_varint(bytes + length, integer);
    writer_put(writer, bytes, length);
}

static void writer_head(pen_protobuf_writer *writer, uint32_t number, uint64_t length) {
    writer_pair(writer, number, PEN_PROTOBUF_BYTES, length);
}

void pen_protobuf_write_int(pen_protobuf_writer *writer, uint32_t number, int64_t integer) {
    writer_pair(writer, number, PEN_PROTOBUF_VARINT, (uint64_t)integer);
}

void pen_protobuf_write_fixed(pen_protobuf_writer *writer, uint32_t number, uint64_t bits,
                              size_t size) {
    const pen_protobuf_wire wire = size == 8 ? PEN_PROTOBUF_FIXED64 : PEN_PROTOBUF_FIXED32;
    pen_protobuf_write_varint(writer, (uint64_t)number << 3 | (uint64_t)wire);
    writer_put(writer, &bits, size);
}

void pen_protobuf_write_float(pen_protobuf_writer *writer, uint32_t number, float single) {
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    pen_protobuf_write_fixed(writer, number, bits, sizeof bits);
}

void pen_protobuf_write_text(pen_protobuf_writer *writer, uint32_t number, const char *text) {
    pen_protobuf_write_bytes(writer, number, text, strlen(text));
}

void pen_protobuf_write_bytes(pen_protobuf_writer *writer, uint32_t number, const void *bytes,
                              uint64_t length) {
    static const uint8_t zeros[4096];
    writer_head(writer, number, length);
    if (bytes != NULL || writer_only_counts(writer)) {
        writer_put(writer, bytes, length); // counting looks at no byte
        return;
    }
    while (length > 0) {
        const size_t piece = length < sizeof zeros ? (size_t)length : sizeof zeros;
        writer_put(writer, zeros, piece);
        length -= piece;
    }
}

void pen_protobuf_write_made(pen_protobuf_writer *writer, uint32_t number, uint64_t length,
                             pen_protobuf_fill fill, const void *context) {
    uint64_t piece[512];
    writer_head(writer, number, length);
    if (writer_only_counts(writer)) {
        writer->length += length;
        return;
    }
    for (uint64_t first = 0; first < length; first += sizeof piece) {
        const uint64_t left = length - first;
        const uint64_t count = left < sizeof piece ? left : sizeof piece;
        fill(context, first, piece, count);
        writer_put(writer, piece, count);
    }
}

void pen_protobuf_write_hole(pen_protobuf_writer *writer, uint32_t number, uint64_t length) {
    writer_head(writer, number, length);
    writer->length += length;
}

void pen_protobuf_write_message(pen_protobuf_writer *writer, uint32_t number,
                                pen_protobuf_body body, const void *context) {
    pen_protobuf_writer counter;
    pen_protobuf_writer_init(&counter, NULL);
    body(&counter, context);
    writer_head(writer, number, counter.length);
    if (writer_only_counts(writer)) {
        writer->length += counter.length;
        return;
    }
    body(writer, context);
}

pen_status pen_protobuf_writer_finish(const pen_protobuf_writer *writer) {
    return writer->failed
               ? pen_error(PEN_IO, "cannot write: the system took fewer bytes than given")
               : PEN_OK;
}
