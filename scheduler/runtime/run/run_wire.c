#include "scheduler/runtime/run/run_wire.h"

#include <string.h>

#define WIRE_FIGURES_HEAD 32 // bytes
#define WIRE_DEVICE_FIGURES 24

static void wire_put(unsigned char **cursor, uint64_t number, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        *(*cursor)++ = (unsigned char)(number >> 8 * i);
    }
}

static uint64_t wire_get(const unsigned char **cursor, uint32_t bytes) {
    uint64_t number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        number |= (uint64_t) * (*cursor)++ << 8 * i;
    }
    return number;
}

static void wire_put_double(unsigned char **cursor, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    wire_put(cursor, bits, 8);
}

static double wire_get_double(const unsigned char **cursor) {
    const uint64_t bits = wire_get(cursor, 8);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

// ---- figures of a round

void pen_round_figures_encode(const pen_round_figures *figures, uint32_t count,
                              unsigned char *out_bytes) {
    unsigned char *cursor = out_bytes;
    for (uint32_t i = 0; i < count; i++) {
        wire_put(&cursor, figures[i].device, 4);
        wire_put_double(&cursor, figures[i].start_seconds);
        wire_put_double(&cursor, figures[i].end_seconds);
        wire_put_double(&cursor, figures[i].busy_seconds);
    }
}

pen_status pen_round_figures_count(size_t length, uint32_t *out_count) {
    *out_count = (uint32_t)(length / PEN_ROUND_FIGURES_BYTES);
    if (length % PEN_ROUND_FIGURES_BYTES == 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "figures of %zu bytes", length);
}

pen_round_figures pen_round_figures_decode(const unsigned char *bytes, uint32_t index) {
    const unsigned char *cursor = bytes + (size_t)index * PEN_ROUND_FIGURES_BYTES;
    pen_round_figures figures = {.device = (uint32_t)wire_get(&cursor, 4)};
    figures.start_seconds = wire_get_double(&cursor);
    figures.end_seconds = wire_get_double(&cursor);
    figures.busy_seconds = wire_get_double(&cursor);
    return figures;
}

// ---- figures of a process

pen_status pen_run_figures_encode(const pen_run_inquiry_figures *figures,
                                  const pen_run_device_figures *devices, uint32_t count,
                                  pen_arena *arena, const void **out_bytes,
                                  uint64_t *out_byte_count) {
    unsigned char *bytes, *cursor;
    *out_byte_count = WIRE_FIGURES_HEAD + (uint64_t)count * WIRE_DEVICE_FIGURES;
    PEN_TRY(PEN_NEW(arena, *out_byte_count, &bytes));
    cursor = bytes;
    wire_put(&cursor, figures->process, 8);
    wire_put(&cursor, figures->process_bytes, 8);
    wire_put(&cursor, figures->trace_lost, 8);
    wire_put(&cursor, figures->sent_bytes, 8);
    for (uint32_t i = 0; i < count; i++) {
        wire_put(&cursor, devices[i].device, 8);
        wire_put(&cursor, devices[i].bytes, 8);
        wire_put_double(&cursor, devices[i].wait_seconds);
    }
    *out_bytes = bytes;
    return PEN_OK;
}

pen_status pen_run_figures_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                                  pen_run_inquiry_figures *out_figures,
                                  const pen_run_device_figures **out_devices, uint32_t *out_count) {
    const unsigned char *cursor = bytes;
    pen_run_device_figures *devices;
    if (byte_count < WIRE_FIGURES_HEAD ||
        (byte_count - WIRE_FIGURES_HEAD) % WIRE_DEVICE_FIGURES != 0) {
        return pen_error(PEN_CORRUPT, "figures of %llu bytes", (unsigned long long)byte_count);
    }
    out_figures->process = wire_get(&cursor, 8);
    out_figures->process_bytes = wire_get(&cursor, 8);
    out_figures->trace_lost = wire_get(&cursor, 8);
    out_figures->sent_bytes = wire_get(&cursor, 8);
    *out_count = (uint32_t)((byte_count - WIRE_FIGURES_HEAD) / WIRE_DEVICE_FIGURES);
    PEN_TRY(PEN_NEW(arena, *out_count, &devices));
    for (uint32_t i = 0; i < *out_count; i++) {
        devices[i].device = wire_get(&cursor, 8);
        devices[i].bytes = wire_get(&cursor, 8);
        devices[i].wait_seconds = wire_get_double(&cursor);
    }
    *out_devices = devices;
    return PEN_OK;
}

// ---- what was sent

pen_status pen_run_sent_encode(const pen_run_sent *sent, uint32_t count, pen_arena *arena,
                               const void **out_bytes, uint64_t *out_byte_count) {
    unsigned char *bytes, *cursor;
    *out_byte_count = (uint64_t)count * PEN_RUN_SENT_BYTES;
    PEN_TRY(PEN_NEW(arena, *out_byte_count, &bytes));
    cursor = bytes;
    for (uint32_t i = 0; i < count; i++) {
        wire_put(&cursor, sent[i].form, 4);
        wire_put(&cursor, sent[i].channel, 4);
        wire_put(&cursor, sent[i].sequence, 8);
        wire_put(&cursor, sent[i].checksum, 8);
    }
    *out_bytes = bytes;
    return PEN_OK;
}

pen_status pen_run_sent_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                               const pen_run_sent **out_sent, uint32_t *out_count) {
    const unsigned char *cursor = bytes;
    pen_run_sent *sent;
    if (byte_count % PEN_RUN_SENT_BYTES != 0) {
        return pen_error(PEN_CORRUPT, "a list of what was sent of %llu bytes",
                         (unsigned long long)byte_count);
    }
    *out_count = (uint32_t)(byte_count / PEN_RUN_SENT_BYTES);
    PEN_TRY(PEN_NEW(arena, *out_count, &sent));
    for (uint32_t i = 0; i < *out_count; i++) {
        sent[i].form = (uint32_t)wire_get(&cursor, 4);
        sent[i].channel = (uint32_t)wire_get(&cursor, 4);
        sent[i].sequence = wire_get(&cursor, 8);
        sent[i].checksum = wire_get(&cursor, 8);
        sent[i].is_sent = true;
    }
    *out_sent = sent;
    return PEN_OK;
}
