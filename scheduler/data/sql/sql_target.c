#include "scheduler/data/sql/sql_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// Whether `text` begins with `prefix`; what follows goes to *out_rest.
static bool target_begins(const char *text, const char *prefix, const char **out_rest) {
    const size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0) return false;
    *out_rest = text + length;
    return true;
}

static int target_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// "%41" is "A".
static pen_status target_decode(const char *text, size_t length, pen_arena *arena,
                                const char **out_text) {
    char *decoded;
    size_t count = 0;
    PEN_TRY(PEN_NEW(arena, length + 1, &decoded));
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '%') {
            decoded[count++] = text[i];
            continue;
        }
        const int high = i + 1 < length ? target_digit(text[i + 1]) : -1;
        const int low = i + 2 < length ? target_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0) {
            return pen_error(PEN_INVALID_INPUT,
                             "connection: found %% in the password that no two digits follow, "
                             "expected %%25 for a percent sign");
        }
        decoded[count++] = (char)(high * 16 + low);
        i += 2;
    }
    *out_text = decoded;
    return PEN_OK;
}

// Adds the options behind "?", those of passwords aside, which libpq would take there, too.
static pen_status target_add_options(const char *options, pen_arena *arena, pen_text *text,
                                     const char **io_password) {
    char separator = '?';
    while (*options != '\0') {
        const char *value;
        const size_t length = strcspn(options, "&");
        if (memchr(options, '%', strcspn(options, "=&")) != NULL) { // "%70assword"
            return pen_error(PEN_INVALID_INPUT,
                             "connection: found %% in the name of an option, expected its letters");
        }
        if (target_begins(options, "password=", &value)) {
            PEN_TRY(target_decode(value, length - (size_t)(value - options), arena, io_password));
        } else if (target_begins(options, "sslpassword=", &value)) {
            return pen_error(PEN_INVALID_INPUT,
                             "connection: found sslpassword, expected a key without a password");
        } else {
            pen_text_print(text, "%c%.*s", separator, (int)length, options);
            separator = '&';
        }
        options += length;
        if (*options == '&') options += 1;
    }
    return PEN_OK;
}

// user:password@host/name?options: what stands before the last '@' ahead of any '?' is of the user.
// libpq ends it at the first '/', and would tell of what follows as if it were a port.
static pen_status target_parse_postgres(const char *rest, pen_arena *arena,
                                        pen_sql_target *target) {
    const size_t path = strcspn(rest, "?");
    const char *at = memrchr(rest, '@', path);
    const size_t user_length = at == NULL ? 0 : (size_t)(at - rest);
    const char *colon = memchr(rest, ':', user_length);
    const size_t name_length = colon == NULL ? user_length : (size_t)(colon - rest);
    pen_text text;
    if (memchr(rest, '/', user_length) != NULL || memchr(rest, '@', user_length) != NULL ||
        strchr(rest + path, '@') != NULL) {
        return pen_error(PEN_INVALID_INPUT,
                         "connection: found '@' behind '/', '@' or '?', expected "
                         "postgresql://user:password@host:port/name, with %%40 for '@', %%2F for "
                         "'/' and %%3F for '?' in the user's name and password");
    }
    pen_text_init(&text, arena);
    pen_text_add(&text, "postgresql://");
    if (at != NULL) pen_text_print(&text, "%.*s@", (int)name_length, rest);
    if (colon != NULL) {
        PEN_TRY(target_decode(colon + 1, user_length - name_length - 1, arena, &target->password));
    }
    const char *host = at == NULL ? rest : at + 1;
    pen_text_append(&text, host, (size_t)(rest + path - host));
    if (rest[path] == '?') {
        PEN_TRY(target_add_options(rest + path + 1, arena, &text, &target->password));
    }
    return pen_text_finish(&text, &target->text);
}

// One file has one name, from whichever folder it is looked at.
static pen_status target_find_file(const char *path, pen_arena *arena, pen_sql_target *target) {
    char *real = realpath(path, NULL);
    if (real == NULL) {
        return pen_error(errno == ENOENT ? PEN_NOT_FOUND : PEN_IO,
                         "cannot find the database '%s': %s", path, strerror(errno));
    }
    pen_status status = pen_arena_format(arena, &target->text, "sqlite:%s", real);
    if (status == PEN_OK) {
        status = pen_arena_copy_text(arena, real, strlen(real), &target->file);
    }
    free(real);
    return status;
}

pen_status pen_sql_target_parse(const char *connection, pen_arena *arena,
                                pen_sql_target *out_target) {
    const char *rest;
    *out_target = (pen_sql_target){0};
    if (target_begins(connection, "postgresql://", &rest) ||
        target_begins(connection, "postgres://", &rest)) {
        out_target->kind = PEN_SQL_POSTGRES;
        return target_parse_postgres(rest, arena, out_target);
    }
    if (target_begins(connection, "sqlite:", &rest) && *rest != '\0') {
        out_target->kind = PEN_SQL_SQLITE;
        return target_find_file(rest, arena, out_target);
    }
    return pen_error(PEN_INVALID_INPUT, "connection: found another kind of address, expected "
                                        "postgresql://user@host:port/name or sqlite:FILE");
}
