#include "graph/import/onnx/onnx_entry.h"

#include <string.h>

pen_status pen_onnx_entry_read(const pen_protobuf_reader *message, pen_onnx_entry *out_entry) {
    pen_protobuf_reader reader = *message;
    *out_entry = (pen_onnx_entry){{"", 0}, {"", 0}};
    while (true) {
        pen_protobuf_field field;
        const uint8_t *bytes;
        size_t length;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number > 2) continue;
        PEN_TRY(pen_protobuf_bytes(&reader, &field, &bytes, &length));
        const pen_onnx_text text = {length == 0 ? "" : (const char *)bytes, length};
        *(field.number == 1 ? &out_entry->key : &out_entry->value) = text;
    }
}

bool pen_onnx_text_is(pen_onnx_text text, const char *expected) {
    return text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0;
}

bool pen_onnx_entry_is(const pen_onnx_entry *entry, const char *key, const char *value) {
    return pen_onnx_text_is(entry->key, key) && pen_onnx_text_is(entry->value, value);
}
