#include "base/format/text_columns.h"

#include <string.h>

typedef struct column_range {
    uint32_t first;
    uint32_t last;
} column_range;

// Blocks of Unicode whose letters are two columns wide.
static const column_range column_wide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};
static const column_range column_joined[] = {
    {0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
};

static bool column_is_in(uint32_t letter, const column_range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (letter >= ranges[i].first && letter <= ranges[i].last) return true;
    }
    return false;
}

static uint32_t column_decode(const unsigned char *bytes, size_t length) {
    if (length <= 1) return bytes[0];
    uint32_t letter = bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        letter = letter << 6 | (bytes[i] & 0x3Fu);
    }
    return letter;
}

size_t pen_text_columns(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text), columns = 0;
    while (left > 0) {
        size_t length = pen_text_sequence_length(at, left);
        if (length == 0) length = 1; // no UTF-8: a sign in its place
        const uint32_t letter = column_decode(at, length);
        at += length;
        left -= length;
        if (column_is_in(letter, column_joined, sizeof column_joined / sizeof *column_joined)) {
            continue;
        }
        const bool is_wide =
            column_is_in(letter, column_wide, sizeof column_wide / sizeof *column_wide);
        columns += is_wide ? 2 : 1;
    }
    return columns;
}

void pen_text_add_column(pen_text *text, const char *added, size_t columns) {
    pen_text_add(text, added);
    for (size_t i = pen_text_columns(added); i < columns; i++) {
        pen_text_add(text, " ");
    }
}
