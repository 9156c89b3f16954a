#include "graph/wire/part_decoder.h"

#include "graph/graph.h"

pen_status pen_part_decode_uint(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                                uint32_t limit, const char *what, uint32_t *out_number) {
    int64_t number;
    PEN_TRY(pen_protobuf_int(reader, field, &number));
    if (number < 0 || number > limit) {
        return pen_protobuf_error(reader, "%s is %lld, expected 0 to %u", what, (long long)number,
                                  limit);
    }
    *out_number = (uint32_t)number;
    return PEN_OK;
}

pen_status pen_part_decode_uints(const pen_protobuf_reader *reader, const pen_protobuf_field *field,
                                 const char *what, uint32_t limit, uint32_t *numbers,
                                 uint32_t *count) {
    pen_protobuf_scalars scalars;
    PEN_TRY(pen_protobuf_scalars_open(reader, field, PEN_PROTOBUF_VARINT, &scalars));
    for (;;) {
        uint64_t bits;
        bool more;
        PEN_TRY(pen_protobuf_scalars_next(&scalars, &bits, &more));
        if (!more) return PEN_OK;
        if (*count == limit) return pen_protobuf_error(reader, "more than %u %s", limit, what);
        if (bits > UINT32_MAX)
            return pen_protobuf_error(reader, "a number of %s is too large", what);
        numbers[(*count)++] = (uint32_t)bits;
    }
}

pen_status pen_part_count_scalars(const pen_protobuf_reader *message, uint32_t number,
                                  pen_protobuf_wire wire, uint32_t *out_count) {
    pen_protobuf_reader reader = *message;
    uint64_t count = 0;
    for (;;) {
        pen_protobuf_field field;
        pen_protobuf_scalars scalars;
        uint64_t more;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number != number) continue;
        PEN_TRY(pen_protobuf_scalars_open(&reader, &field, wire, &scalars));
        PEN_TRY(pen_protobuf_scalars_count(&scalars, &more));
        count += more; // each takes a byte at least
    }
    *out_count = (uint32_t)count; // below PEN_PART_BYTES_LIMIT
    return PEN_OK;
}

pen_status pen_part_decode_position(const part_decoder *d, const pen_protobuf_reader *reader,
                                    const pen_protobuf_field *given, pen_source *out_source) {
    pen_protobuf_reader message;
    uint32_t numbers[5] = {0};
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        if (field.number > 4) continue;
        PEN_TRY(pen_part_decode_uint(&message, &field, UINT32_MAX, "a position",
                                     &numbers[field.number]));
    }
    if (numbers[1] == 0 || numbers[1] > d->file_count) {
        return pen_protobuf_error(reader, "a position in file %u of %u", numbers[1], d->file_count);
    }
    *out_source = (pen_source){.file = d->files[numbers[1] - 1],
                               .line = numbers[2],
                               .column = numbers[3],
                               .position = numbers[4]};
    return PEN_OK;
}
