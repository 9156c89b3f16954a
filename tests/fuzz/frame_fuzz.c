// libFuzzer: envelopes between peers. The first byte says into how many pieces the rest is cut.
#include <stdlib.h>
#include <string.h>

#include "scheduler/transport/wire_format.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_PIECES 8

// Reads what a span covers, wherever it lies.
static void fuzz_touch(pen_wire_pieces pieces, pen_wire_span span, uint64_t limit) {
    if (span.count > limit) abort();
    uint8_t *copy = malloc(span.count != 0 ? span.count : 1);
    pen_wire_copy(pieces, span, copy);
    const uint8_t *there = pen_wire_find(pieces, span);
    if (there != NULL && span.count != 0 && memcmp(there, copy, span.count) != 0) abort();
    free(copy);
    char text[PEN_WIRE_TEXT_LIMIT];
    pen_wire_copy_text(pieces, span, text, sizeof text);
    if (strlen(text) >= sizeof text) abort();
}

static void fuzz_chunk(pen_wire_pieces pieces, const pen_wire_chunk *chunk) {
    fuzz_touch(pieces, chunk->payload, PEN_TRANSPORT_CHUNK_BYTES);
    if (!chunk->has_frame) return;
    const pen_frame *frame = &chunk->frame;
    if (frame->kind > PEN_FRAME_BLOB || frame->type.element >= PEN_ELEMENT_TYPE_COUNT) abort();
    if (frame->type.shape.rank > PEN_RANK_LIMIT || frame->bytes > PEN_TENSOR_BYTES_LIMIT) abort();
    // what was read is written the same way, and read the same way again
    uint8_t head[PEN_WIRE_HEAD_LIMIT];
    pen_wire_envelope again;
    const pen_wire_piece piece = {head, pen_wire_write_chunk(frame, chunk->position, 1, 0, head)};
    if (!fuzz_works(pen_wire_read((pen_wire_pieces){&piece, 1}, &again))) return;
    if (again.chunk.frame.bytes != frame->bytes || again.chunk.position != chunk->position ||
        !pen_tensor_type_equal(&again.chunk.frame.type, &frame->type)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_wire_piece pieces[FUZZ_PIECES];
    uint8_t *memory[FUZZ_PIECES];
    if (size == 0) return 0;
    const size_t count = data[0] % FUZZ_PIECES + 1;
    for (size_t i = 0; i < count; i++) {
        const size_t from = 1 + (size - 1) * i / count, to = 1 + (size - 1) * (i + 1) / count;
        memory[i] = malloc(to - from + (to == from)); // alone, so that each overrun is seen
        memcpy(memory[i], data + from, to - from);
        pieces[i] = (pen_wire_piece){memory[i], to - from};
    }
    const pen_wire_pieces all = {pieces, count};
    pen_wire_envelope envelope;
    const bool is_read = fuzz_reads(pen_wire_read(all, &envelope));
    if (is_read && envelope.kind == PEN_WIRE_CHUNK) fuzz_chunk(all, &envelope.chunk);
    if (is_read && envelope.kind == PEN_WIRE_MESSAGE) {
        fuzz_touch(all, envelope.message, PEN_TRANSPORT_MESSAGE_LIMIT);
    }
    if (is_read && envelope.kind == PEN_WIRE_INTRODUCTION) {
        fuzz_touch(all, envelope.introduction.job, PEN_WIRE_TEXT_LIMIT);
    }
    if (is_read && envelope.kind == PEN_WIRE_FAREWELL) {
        fuzz_touch(all, envelope.farewell.reason, PEN_WIRE_ENVELOPE_LIMIT);
    }
    for (size_t i = 0; i < count; i++)
        free(memory[i]);
    return 0;
}
