// A frame that is being received piece by piece: whether a piece is the next one, and where it
// goes. For transports that carry frames as pieces with the heads of wire_format.h.
//
// Threads: an intake belongs to one at a time.
#ifndef PEN_SCHEDULER_TRANSPORT_FRAME_INTAKE_H
#define PEN_SCHEDULER_TRANSPORT_FRAME_INTAKE_H

#include "scheduler/transport/transport.h"
#include "scheduler/transport/wire_format.h"

typedef struct pen_frame_intake {
    bool is_receiving;
    pen_frame frame;
    uint8_t *memory; // where it is written
    uint64_t position;
    uint32_t *checksums; // [checksum_limit]
    uint32_t checksum_limit;
    // for who sums up while it copies
    uint32_t sum;     // of what was written of the chunk
    bool is_compared; // all chunks so far, which are as the sender says
} pen_frame_intake;

// Judges a piece of `count` bytes, all but the last of a frame having `piece_bytes`. *out_frame is
// the frame that it belongs to. Changes nothing. CORRUPT: it is not the next one
PEN_NODISCARD pen_status pen_frame_intake_judge(const pen_frame_intake *intake,
                                                const pen_wire_chunk *chunk, uint64_t count,
                                                uint64_t piece_bytes, const pen_frame **out_frame);
// Begins a frame: asks the user for memory. As events->begin; OUT_OF_MEMORY; UNSUPPORTED: the
// memory cannot be reached
PEN_NODISCARD pen_status pen_frame_intake_begin(pen_frame_intake *intake,
                                                const pen_transport_events *events, uint32_t peer,
                                                const pen_frame *frame);
// Where the next piece is to be written.
uint8_t *pen_frame_intake_memory(const pen_frame_intake *intake);
// A piece was written there. True: the frame is whole, and the user is to be told.
bool pen_frame_intake_add(pen_frame_intake *intake, uint64_t count, uint32_t checksum);
void pen_frame_intake_deinit(pen_frame_intake *intake);

#endif // PEN_SCHEDULER_TRANSPORT_FRAME_INTAKE_H
