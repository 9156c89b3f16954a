// Tables on a terminal: how wide texts are there.
#ifndef PEN_BASE_FORMAT_TEXT_COLUMNS_H
#define PEN_BASE_FORMAT_TEXT_COLUMNS_H

#include "base/text.h"

// Columns that a UTF-8 text takes on a terminal: two for each wide letter (of East Asian scripts,
// and pictures), none for marks that join the letter before, one for anything else.
size_t pen_text_columns(const char *text);
// Adds `added` and spaces up to `columns`.
void pen_text_add_column(pen_text *text, const char *added, size_t columns);

#endif // PEN_BASE_FORMAT_TEXT_COLUMNS_H
