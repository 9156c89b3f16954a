#include "scheduler/serve/infer_texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXTS_LINE_BYTES 1024
#define TEXTS_BEARER "Bearer "

pen_status pen_infer_check_model(const pen_served_model *model, const char *name) {
    if (strcmp(model->name, name) == 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "there is no model '%.100s' here, but '%.100s'", name,
                     model->name);
}

pen_status pen_infer_check_version(const pen_served_model *model, const char *version) {
    if (version[0] == '\0' || strcmp(version, PEN_INFER_VERSION) == 0) return PEN_OK;
    return pen_error(PEN_NOT_FOUND, "there is no version '%.100s' of model '%.100s', but '%s'",
                     version, model->name, PEN_INFER_VERSION);
}

pen_status pen_infer_check_filled(const pen_served_model *model, const bool *is_filled) {
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (is_filled[i]) continue;
        return pen_error(PEN_INVALID_INPUT, "input '%.100s' is missing, or its contents are",
                         model->inputs[i].name);
    }
    return PEN_OK;
}

// Of the context only the first line, which names what the node reads: the others say where it ran,
// with addresses that are not for callers.
pen_status pen_infer_blame_rows(uint64_t first_row, pen_status take_status) {
    char text[TEXTS_LINE_BYTES], start[96] = "";
    pen_status_format(take_status, text, sizeof text);
    const char *context = strchr(text, '\n');
    context = context == NULL ? "" : context + strspn(context, "\n ");
    const int length = (int)strcspn(context, "\n");
    if (first_row > 0) {
        snprintf(start, sizeof start, "; positions are counted from row %" PRIu64 " of the request",
                 first_row);
    }
    const pen_status status =
        pen_error(PEN_INVALID_INPUT, "%s%s%.*s%s", pen_status_message(take_status),
                  length == 0 ? "" : ", ", length, context, start);
    pen_status_ignore(take_status, "it is in the other");
    return status;
}

// What a caller can do something about has a code of its own; all else is our fault.
pen_infer_codes pen_infer_codes_of(pen_status_code code) {
    switch (code) {
    case PEN_CODE_OK:
        return (pen_infer_codes){200, 0};
    case PEN_INVALID_INPUT:
    case PEN_CORRUPT:
        return (pen_infer_codes){400, 3};
    case PEN_NOT_FOUND:
        return (pen_infer_codes){404, 5};
    case PEN_UNSUPPORTED:
        return (pen_infer_codes){404, 12};
    case PEN_DOES_NOT_FIT:
        return (pen_infer_codes){429, 8};
    case PEN_DEADLINE:
        return (pen_infer_codes){504, 4};
    case PEN_UNAVAILABLE:
    case PEN_OUT_OF_MEMORY:
        return (pen_infer_codes){503, 14};
    default:
        return (pen_infer_codes){500, 13};
    }
}

bool pen_infer_is_allowed(const char *token, const char *header, size_t length) {
    if (token == NULL) return true;
    const size_t bearer = strlen(TEXTS_BEARER), expected = strlen(token);
    if (length < bearer || memcmp(header, TEXTS_BEARER, bearer) != 0) return false;
    unsigned char difference = length - bearer != expected;
    for (size_t i = 0; i < length - bearer; i++) {
        difference |= (unsigned char)(header[bearer + i] ^ token[expected == 0 ? 0 : i % expected]);
    }
    return difference == 0;
}
