// libFuzzer: a ring that another process filled, and the frames that are read from it. The first
// eight bytes are where the reader is (in units of 64 bytes) and how many are written; what follows
// lies there.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/transport/ring/ring_lanes_inside.h"
#include "scheduler/transport/ring/ring_memory.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_FRAME_BYTES ((uint64_t)1 << 20) // as a plan would say

typedef struct fuzz_reader {
    uint8_t *memory; // of the frame that is received
} fuzz_reader;

static pen_status fuzz_begin(void *context, uint32_t peer, const pen_frame *frame,
                             pen_memory_place *out_place) {
    fuzz_reader *reader = context;
    (void)peer;
    if (frame->bytes > FUZZ_FRAME_BYTES) return pen_error(PEN_INVALID_INPUT, "too large");
    free(reader->memory);
    reader->memory = malloc(frame->bytes + (frame->bytes == 0)); // so that each overrun is seen
    *out_place = pen_memory_place_at(reader->memory);
    return PEN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void *memory;
    uint32_t numbers[2];
    pen_ring ring;
    if (memory == NULL) {
        int descriptor;
        if (!fuzz_works(pen_ring_memory_create(&memory, &descriptor))) return 0;
        close(descriptor);
    }
    if (size < sizeof numbers) return 0;
    memcpy(numbers, data, sizeof numbers);
    data += sizeof numbers;
    size -= sizeof numbers;
    pen_ring_init(&ring, memory);
    ring.own = ring.other = numbers[0] * (uint64_t)64;
    uint8_t *first = ring.records + ring.own % PEN_RING_BYTES;
    size = size < PEN_RING_BYTES ? size : PEN_RING_BYTES;
    memcpy(first, data, size);
    atomic_store(&ring.control->written, ring.own + numbers[1]);

    fuzz_reader reader = {NULL};
    const pen_transport_events events = {.context = &reader, .begin = fuzz_begin};
    pen_frame_intake intake = {.is_receiving = false};
    for (bool is_there = true; is_there;) {
        pen_ring_record record;
        bool is_whole;
        if (!fuzz_reads(pen_ring_take(&ring, &record, &is_there)) || !is_there) break;
        if (!fuzz_reads(lane_take_record(&intake, &events, 1, &record, &is_whole))) break;
        (void)pen_ring_give(&ring, &record);
    }
    memset(first, 0, size); // for the next one
    pen_frame_intake_deinit(&intake);
    free(reader.memory);
    return 0;
}
