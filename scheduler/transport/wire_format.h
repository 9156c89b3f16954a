// The bytes between two peers: the envelopes of penstock.proto beside this file.
//
// Written are only heads: the payload of a chunk and the text of a message are the last field of
// their envelope, so they follow from wherever they lie. Read is from pieces, as they came from
// the network, without putting them together; spans say where in them something lies.
//
// Nothing that was read is trusted: what does not fit the format, or is above a limit, is CORRUPT.
// Fields that are not known are skipped. Nothing is allocated.
#ifndef PEN_SCHEDULER_TRANSPORT_WIRE_FORMAT_H
#define PEN_SCHEDULER_TRANSPORT_WIRE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/record/record.h"
#include "base/status.h"
#include "scheduler/transport/link_session.h"
#include "scheduler/transport/transport.h"

#define PEN_WIRE_METHOD "/penstock.Penstock/Exchange"
#define PEN_WIRE_VERSION 2u

#define PEN_WIRE_HEAD_LIMIT 256u  // bytes of any head that is written
#define PEN_WIRE_TEXT_LIMIT 1024u // bytes of a job's name, or a reason; longer ones are cut
// Bytes of any envelope that is taken.
#define PEN_WIRE_ENVELOPE_LIMIT ((uint64_t)(1 << 20) + 4096)

typedef pen_protobuf_piece pen_wire_piece;
typedef struct pen_wire_pieces {  // one behind the other
    const pen_wire_piece *pieces; // [count]
    size_t count;
} pen_wire_pieces;

typedef pen_record_span pen_wire_span;

typedef enum pen_wire_kind {
    PEN_WIRE_NOTHING, // acknowledges alone, or is of a later version
    PEN_WIRE_INTRODUCTION,
    PEN_WIRE_MESSAGE,
    PEN_WIRE_CHUNK,
    PEN_WIRE_FAREWELL,
} pen_wire_kind;

// Which link a stream belongs to, and how far that is.
typedef struct pen_wire_stream {
    uint64_t session; // what the speaker drew for the link; 0: it does not outlive the stream
    uint64_t resumes; // what the other end drew, when the link was there before; else 0
    pen_link_ack received;
} pen_wire_stream;

// Where the speaker takes rings for this link's frames (ring_lanes.h); all 0: nowhere.
typedef struct pen_wire_ring {
    uint64_t host;
    uint64_t socket;
    uint64_t token;
} pen_wire_ring;

typedef struct pen_wire_introduction {
    uint32_t version;
    uint32_t peer;   // who speaks
    uint32_t callee; // whom it wants to reach
    uint64_t generation;
    uint64_t incarnation;
    uint32_t level; // of kernels
    pen_wire_span job;
    pen_wire_stream stream;
    pen_wire_ring ring;
} pen_wire_introduction;

typedef struct pen_wire_chunk {
    bool has_frame; // true for the first chunk of each frame
    pen_frame frame;
    uint64_t position; // of the payload in the frame's
    uint32_t checksum; // of the payload
    pen_wire_span payload;
} pen_wire_chunk;

typedef struct pen_wire_farewell {
    uint32_t code; // pen_wire_code_read
    pen_wire_span reason;
} pen_wire_farewell;

typedef struct pen_wire_envelope {
    uint64_t number; // of the message, or the frame of the chunk; 0: none
    bool has_ack;
    pen_link_ack ack;
    pen_wire_kind kind; // which of the following counts
    pen_wire_introduction introduction;
    pen_wire_span message;
    pen_wire_chunk chunk;
    pen_wire_farewell farewell;
} pen_wire_envelope;

extern const pen_record pen_wire_envelope_record;

// Reads one envelope. CORRUPT
PEN_NODISCARD pen_status pen_wire_read(pen_wire_pieces pieces, pen_wire_envelope *out_envelope);

// Copies a span of what was read: out_bytes [span.count].
void pen_wire_copy(pen_wire_pieces pieces, pen_wire_span span, void *out_bytes);
// The span where it lies, if it lies in one piece; NULL otherwise.
const uint8_t *pen_wire_find(pen_wire_pieces pieces, pen_wire_span span);
// As a text that may be printed, cut to `size` with the 0 behind it.
void pen_wire_copy_text(pen_wire_pieces pieces, pen_wire_span span, char *out_text, size_t size);

// Each writes a head of at most PEN_WIRE_HEAD_LIMIT bytes and returns its length. Behind it belong
// the job's name (at most PEN_WIRE_TEXT_LIMIT bytes), the message, the payload, the reason.
size_t pen_wire_write_introduction(const pen_introduction *self, uint32_t callee,
                                   const pen_wire_stream *stream, const pen_wire_ring *ring,
                                   size_t job_bytes, uint8_t *out_head);
// Goes before the head of a message or chunk (then with its number), or alone.
size_t pen_wire_write_numbers(uint64_t number, const pen_link_ack *ack, uint8_t *out_head);
size_t pen_wire_write_message(uint64_t count, uint8_t *out_head);
// `frame` for the first chunk, NULL for others.
size_t pen_wire_write_chunk(const pen_frame *frame, uint64_t position, uint32_t checksum,
                            uint64_t count, uint8_t *out_head);
size_t pen_wire_write_farewell(pen_status_code code, size_t reason_bytes, uint8_t *out_head);

#endif // PEN_SCHEDULER_TRANSPORT_WIRE_FORMAT_H
