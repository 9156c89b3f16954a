#include "scheduler/store/safetensors_header.h"

#include <string.h>

#include "base/format/json_writer.h"
#include "base/integer.h"

static const char *const header_names[PEN_ELEMENT_TYPE_COUNT] = {
    [PEN_ELEMENT_UNKNOWN] = "", [PEN_FLOAT32] = "F32", [PEN_FLOAT64] = "F64", [PEN_FLOAT16] = "F16",
    [PEN_BFLOAT16] = "BF16",    [PEN_INT8] = "I8",     [PEN_INT16] = "I16",   [PEN_INT32] = "I32",
    [PEN_INT64] = "I64",        [PEN_UINT8] = "U8",    [PEN_UINT16] = "U16",  [PEN_UINT32] = "U32",
    [PEN_UINT64] = "U64",       [PEN_BOOL] = "BOOL",
};

static const char *safetensors_element_name(pen_element_type element) {
    PEN_ASSERT(element < PEN_ELEMENT_TYPE_COUNT);
    return header_names[element];
}

pen_element_type pen_safetensors_element_find(const char *name) {
    for (uint32_t i = PEN_ELEMENT_UNKNOWN + 1; i < PEN_ELEMENT_TYPE_COUNT; i++) {
        if (strcmp(header_names[i], name) == 0) return (pen_element_type)i;
    }
    return PEN_ELEMENT_UNKNOWN;
}

static void header_write_item(pen_json_writer *json, const pen_safetensors_item *item,
                              uint64_t *offset) {
    pen_json_key_object(json, item->name);
    pen_json_key_text(json, "dtype", safetensors_element_name(item->type.element));
    pen_json_key_array(json, "shape");
    for (uint32_t d = 0; d < item->type.shape.rank; d++) {
        pen_json_integer(json, item->type.shape.dims[d]);
    }
    pen_json_end_array(json);
    pen_json_key_array(json, "data_offsets");
    pen_json_unsigned(json, *offset);
    *offset += pen_tensor_type_bytes(&item->type);
    pen_json_unsigned(json, *offset);
    pen_json_end_array(json);
    pen_json_end_object(json);
}

// Length, then JSON, padded to eight bytes as the format recommends, so that data can be mapped
// aligned.
pen_status pen_safetensors_header(const pen_safetensors_item *items, uint32_t count,
                                  pen_arena *arena, const char **out_bytes, uint64_t *out_count) {
    static const char no_length[sizeof(uint64_t)]; // written when it is known
    pen_text text;
    pen_json_writer json;
    uint64_t offset = 0;
    const char *whole;
    pen_text_init(&text, arena);
    pen_text_append(&text, no_length, sizeof no_length);
    pen_json_init_text(&json, &text, 0);
    pen_json_begin_object(&json);
    for (uint32_t i = 0; i < count; i++) {
        header_write_item(&json, &items[i], &offset);
    }
    pen_json_end_object(&json);
    PEN_TRY(pen_json_finish(&json));
    pen_text_append(&text, "       ", pen_align_up(text.length, 8) - text.length);
    PEN_TRY(pen_text_finish(&text, &whole));
    const uint64_t length = text.length - sizeof no_length;
    for (uint32_t i = 0; i < sizeof no_length; i++) {
        text.bytes[i] = (char)(unsigned char)(length >> (8 * i));
    }
    *out_bytes = text.bytes;
    *out_count = text.length;
    return PEN_OK;
}
