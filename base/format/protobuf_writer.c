#include "base/format/protobuf_writer.h"

#include <string.h>

#include "base/format/protobuf_reader.h"

void pen_protobuf_writer_init(pen_protobuf_writer *writer, FILE *stream) {
    *writer = (pen_protobuf_writer){.stream = stream};
}

static void writer_put(pen_protobuf_writer *writer, const void *bytes, size_t length) {
    writer->length += length;
    if (writer->stream == NULL || length == 0 || writer->failed) return;
    writer->failed = fwrite(bytes, 1, length, writer->stream) != length;
}

static void writer_varint(pen_protobuf_writer *writer, uint64_t integer) {
    uint8_t bytes[10];
    size_t length = 0;
    for (; integer >= 0x80; integer >>= 7) {
        bytes[length++] = (uint8_t)(integer | 0x80);
    }
    bytes[length++] = (uint8_t)integer;
    writer_put(writer, bytes, length);
}

static void writer_key(pen_protobuf_writer *writer, uint32_t number, pen_protobuf_wire wire) {
    writer_varint(writer, (uint64_t)number << 3 | (uint64_t)wire);
}

void pen_protobuf_write_int(pen_protobuf_writer *writer, uint32_t number, int64_t integer) {
    writer_key(writer, number, PEN_PROTOBUF_VARINT);
    writer_varint(writer, (uint64_t)integer);
}

void pen_protobuf_write_float(pen_protobuf_writer *writer, uint32_t number, float single) {
    writer_key(writer, number, PEN_PROTOBUF_FIXED32);
    writer_put(writer, &single, sizeof single);
}

void pen_protobuf_write_double(pen_protobuf_writer *writer, uint32_t number, double real) {
    writer_key(writer, number, PEN_PROTOBUF_FIXED64);
    writer_put(writer, &real, sizeof real);
}

void pen_protobuf_write_text(pen_protobuf_writer *writer, uint32_t number, const char *text) {
    pen_protobuf_write_bytes(writer, number, text, strlen(text));
}

void pen_protobuf_write_bytes(pen_protobuf_writer *writer, uint32_t number, const void *bytes,
                              uint64_t length) {
    static const uint8_t zeros[4096];
    writer_key(writer, number, PEN_PROTOBUF_BYTES);
    writer_varint(writer, length);
    if (bytes != NULL || writer->stream == NULL) {
        writer_put(writer, bytes, length); // counting looks at no byte
        return;
    }
    while (length > 0) {
        const size_t piece = length < sizeof zeros ? (size_t)length : sizeof zeros;
        writer_put(writer, zeros, piece);
        length -= piece;
    }
}

void pen_protobuf_write_message(pen_protobuf_writer *writer, uint32_t number,
                                pen_protobuf_body body, const void *context) {
    pen_protobuf_writer counter;
    pen_protobuf_writer_init(&counter, NULL);
    body(&counter, context);
    writer_key(writer, number, PEN_PROTOBUF_BYTES);
    writer_varint(writer, counter.length);
    if (writer->stream == NULL) {
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
