#include "scheduler/runtime/run/run_wire.h"

#include "base/record/record.h"

#define ROW(type, member) PEN_RECORD_ROW(NUMBER, 0, #member, type, member, NULL)

static const pen_record_field round_fields[] = {
    ROW(pen_round_figures, device),      ROW(pen_round_figures, start_seconds),
    ROW(pen_round_figures, end_seconds), ROW(pen_round_figures, busy_seconds),
    ROW(pen_round_figures, applied),
};
static const pen_record_field process_fields[] = {
    ROW(pen_run_inquiry_figures, process),
    ROW(pen_run_inquiry_figures, process_bytes),
    ROW(pen_run_inquiry_figures, trace_lost),
    ROW(pen_run_inquiry_figures, sent_bytes),
};
static const pen_record_field device_fields[] = {
    ROW(pen_run_device_figures, device),
    ROW(pen_run_device_figures, bytes),
    ROW(pen_run_device_figures, wait_seconds),
};
static const pen_record_field sent_fields[] = {
    ROW(pen_run_sent, form),
    ROW(pen_run_sent, channel),
    ROW(pen_run_sent, sequence),
    ROW(pen_run_sent, checksum),
};
#define RECORD(words, type, fields)                                                                \
    { .name = words, .size = sizeof(type), PEN_RECORD_FIELDS(fields) }
static const pen_record round_record = RECORD("figures", pen_round_figures, round_fields);
static const pen_record process_record = RECORD("figures", pen_run_inquiry_figures, process_fields);
static const pen_record device_record = RECORD("figures", pen_run_device_figures, device_fields);
static const pen_record sent_record = RECORD("a list of what was sent", pen_run_sent, sent_fields);

// Items of one kind behind each other.
static void wire_pack(const pen_record *record, const void *items, uint32_t count,
                      unsigned char *out_bytes) {
    for (uint32_t i = 0; i < count; i++) {
        pen_record_pack(record, (const char *)items + i * record->size,
                        out_bytes + i * pen_record_packed_size(record));
    }
}

// Every bit of such an item is one of its members': nothing can be wrong in it.
static void wire_unpack(const pen_record *record, const unsigned char *bytes, uint32_t count,
                        void *out_items) {
    for (uint32_t i = 0; i < count; i++) {
        const pen_status status =
            pen_record_unpack(record, bytes + i * pen_record_packed_size(record),
                              (char *)out_items + i * record->size);
        PEN_ASSERT(status == PEN_OK);
    }
}

// How many items there are behind `head` bytes.
static pen_status wire_count(const pen_record *record, uint64_t length, uint64_t head,
                             uint32_t *out_count) {
    const size_t size = pen_record_packed_size(record);
    if (length < head || (length - head) % size != 0) {
        return pen_error(PEN_CORRUPT, "%s of %llu bytes", record->name, (unsigned long long)length);
    }
    *out_count = (uint32_t)((length - head) / size);
    return PEN_OK;
}

void pen_round_figures_encode(const pen_round_figures *figures, uint32_t count,
                              unsigned char *out_bytes) {
    wire_pack(&round_record, figures, count, out_bytes);
}

pen_status pen_round_figures_count(size_t length, uint32_t *out_count) {
    return wire_count(&round_record, length, 0, out_count);
}

pen_round_figures pen_round_figures_decode(const unsigned char *bytes, uint32_t index) {
    pen_round_figures figures;
    wire_unpack(&round_record, bytes + (size_t)index * PEN_ROUND_FIGURES_BYTES, 1, &figures);
    return figures;
}

pen_status pen_run_figures_encode(const pen_run_inquiry_figures *figures,
                                  const pen_run_device_figures *devices, uint32_t count,
                                  pen_arena *arena, const void **out_bytes,
                                  uint64_t *out_byte_count) {
    const size_t head = pen_record_packed_size(&process_record);
    unsigned char *bytes;
    *out_byte_count = head + count * pen_record_packed_size(&device_record);
    PEN_TRY(PEN_NEW(arena, *out_byte_count, &bytes));
    wire_pack(&process_record, figures, 1, bytes);
    wire_pack(&device_record, devices, count, bytes + head);
    *out_bytes = bytes;
    return PEN_OK;
}

pen_status pen_run_figures_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                                  pen_run_inquiry_figures *out_figures,
                                  const pen_run_device_figures **out_devices, uint32_t *out_count) {
    const size_t head = pen_record_packed_size(&process_record);
    pen_run_device_figures *devices;
    PEN_TRY(wire_count(&device_record, byte_count, head, out_count));
    PEN_TRY(PEN_NEW(arena, *out_count, &devices));
    wire_unpack(&process_record, bytes, 1, out_figures);
    wire_unpack(&device_record, (const unsigned char *)bytes + head, *out_count, devices);
    *out_devices = devices;
    return PEN_OK;
}

pen_status pen_run_sent_encode(const pen_run_sent *sent, uint32_t count, pen_arena *arena,
                               const void **out_bytes, uint64_t *out_byte_count) {
    unsigned char *bytes;
    *out_byte_count = count * pen_record_packed_size(&sent_record);
    PEN_TRY(PEN_NEW(arena, *out_byte_count, &bytes));
    wire_pack(&sent_record, sent, count, bytes);
    *out_bytes = bytes;
    return PEN_OK;
}

pen_status pen_run_sent_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                               const pen_run_sent **out_sent, uint32_t *out_count) {
    pen_run_sent *sent;
    PEN_TRY(wire_count(&sent_record, byte_count, 0, out_count));
    PEN_TRY(PEN_NEW(arena, *out_count, &sent));
    wire_unpack(&sent_record, bytes, *out_count, sent);
    for (uint32_t i = 0; i < *out_count; i++) {
        sent[i].is_sent = true;
    }
    *out_sent = sent;
    return PEN_OK;
}
