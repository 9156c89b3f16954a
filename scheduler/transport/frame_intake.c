#include "scheduler/transport/frame_intake.h"

#include <inttypes.h>

#include "base/integer.h"
#include "base/memory.h"

// Position and size must be exactly what comes next, before a byte is copied.
pen_status pen_frame_intake_judge(const pen_frame_intake *intake, const pen_wire_chunk *chunk,
                                  uint64_t count, uint64_t piece_bytes,
                                  const pen_frame **out_frame) {
    if (!chunk->has_frame && !intake->is_receiving) {
        return pen_error(PEN_CORRUPT, "a chunk belongs to no frame");
    }
    if (chunk->has_frame && intake->is_receiving) {
        return pen_error(PEN_CORRUPT, "a frame begins within another");
    }
    const pen_frame *frame = chunk->has_frame ? &chunk->frame : &intake->frame;
    const uint64_t position = chunk->has_frame ? 0 : intake->position;
    if (chunk->position != position || count != pen_min_u64(frame->bytes - position, piece_bytes)) {
        return pen_error(PEN_CORRUPT,
                         "a chunk has %" PRIu64 " bytes from %" PRIu64
                         " on, where the frame of %" PRIu64 " bytes is at %" PRIu64,
                         count, chunk->position, frame->bytes, position);
    }
    *out_frame = frame;
    return PEN_OK;
}

// The memory is the user's, and checksums are kept in room that is used again.
pen_status pen_frame_intake_begin(pen_frame_intake *intake, const pen_transport_events *events,
                                  uint32_t peer, const pen_frame *frame) {
    const uint32_t chunk_count = pen_frame_chunk_count(frame->bytes);
    pen_memory_place place = pen_memory_place_at(NULL);
    void *memory;
    PEN_ASSERT(!intake->is_receiving);
    PEN_TRY(events->begin(events->context, peer, frame, &place));
    PEN_TRY(pen_memory_place_reach(place, &memory));
    if (intake->checksum_limit < chunk_count) {
        pen_memory_free(intake->checksums);
        intake->checksums = pen_memory_allocate(chunk_count, sizeof *intake->checksums);
        intake->checksum_limit = intake->checksums != NULL ? chunk_count : 0;
        if (intake->checksums == NULL) return pen_error_out_of_memory();
    }
    intake->is_receiving = true;
    intake->frame = *frame;
    intake->memory = memory;
    intake->position = 0;
    intake->sum = 0;
    intake->is_compared = true;
    return PEN_OK;
}

uint8_t *pen_frame_intake_memory(const pen_frame_intake *intake) {
    PEN_ASSERT(intake->is_receiving);
    return intake->memory + intake->position;
}

bool pen_frame_intake_add(pen_frame_intake *intake, uint64_t count, uint32_t checksum) {
    PEN_ASSERT(intake->is_receiving && count <= intake->frame.bytes - intake->position);
    if (count != 0) intake->checksums[intake->position / PEN_TRANSPORT_CHUNK_BYTES] = checksum;
    intake->position += count;
    intake->is_receiving = intake->position != intake->frame.bytes;
    return !intake->is_receiving;
}

void pen_frame_intake_deinit(pen_frame_intake *intake) {
    pen_memory_free(intake->checksums);
    *intake = (pen_frame_intake){.is_receiving = false};
}
