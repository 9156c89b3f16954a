#include "graph/import/onnx/onnx_place.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct place_entry {
    const char *key;
    const char *text;
} place_entry;

static void place_write_entry(pen_protobuf_writer *writer, const void *context) {
    const place_entry *entry = context;
    pen_protobuf_write_text(writer, 1, entry->key);
    pen_protobuf_write_text(writer, 2, entry->text);
}

void pen_onnx_write_place(pen_protobuf_writer *writer, const pen_node_place *place) {
    char stage[16];
    if (place == NULL) return;
    snprintf(stage, sizeof stage, "%" PRIu32, place->stage);
    const place_entry device = {PEN_ONNX_DEVICE_KEY, place->device};
    const place_entry number = {PEN_ONNX_STAGE_KEY, stage};
    pen_protobuf_write_message(writer, 9, place_write_entry, &device);
    pen_protobuf_write_message(writer, 9, place_write_entry, &number);
}
