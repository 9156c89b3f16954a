#include "tests/support/check.h"

#define CHECK_TEXT_BYTES 8192

void check_ok(pen_status status, const char *expression, const char *file, int line) {
    if (status == PEN_OK) return;
    char text[CHECK_TEXT_BYTES];
    pen_status_format(status, text, sizeof text);
    pen_status_ignore(status, "printed below");
    print_error("%s\nfrom %s\n", text, expression);
    _fail(file, line);
}

void check_error(pen_status status, pen_status_code code, const char *text, const char *expression,
                 const char *file, int line) {
    char found[CHECK_TEXT_BYTES];
    pen_status_format(status, found, sizeof found);
    const pen_status_code found_code = pen_status_get_code(status);
    pen_status_ignore(status, "compared below");
    if (found_code == code && strstr(found, text) != NULL) return;
    print_error("%s\nexpected '%s' with \"%s\"\nfound '%s' with \"%s\"\n", expression,
                pen_status_code_name(code), text, pen_status_code_name(found_code), found);
    _fail(file, line);
}

void check_claim(bool holds, const char *claim, const char *file, int line, const char *format,
                 ...) {
    if (holds) return;
    char text[CHECK_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_error("%s does not hold: %s\n", claim, text);
    _fail(file, line);
}

pen_arena *check_arena(void) {
    pen_arena *arena = NULL;
    check_ok(pen_arena_create(&arena), "pen_arena_create", __FILE__, __LINE__);
    return arena;
}
