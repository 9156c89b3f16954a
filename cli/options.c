#include "cli/options.h"

#include <string.h>

#include "base/option/option_places.h"
#include "cli/option_words.h"
#include "scheduler/job/job.h"
#include "scheduler/job/job_words.h"

static const pen_cli_option cli_common_options[] = {
    PEN_CLI_FLAG(0, "json", pen_cli_common, json, "one JSON object on standard output"),
    PEN_CLI_FLAG('q', "quiet", pen_cli_common, quiet, "warnings and errors only"),
    {.value_name = "DIR",
     .is_repeated = true,
     .field = PEN_OPTION_AS("sandbox", TEXT, pen_cli_common, sandbox,
                            "write beneath DIR alone, or \"-\" nowhere; run no other program")},
    PEN_CLI_FLAG('h', "help", pen_cli_common, help, "this text"),
};
#define CLI_COMMON_COUNT (sizeof cli_common_options / sizeof *cli_common_options)

static const pen_cli_option cli_set_option = {
    .value_name = "PATH=VALUE",
    .is_repeated = true,
    .field = PEN_OPTION_AS("set", TEXT, pen_cli_common, settings,
                           "a value in place of the job's; may be given again"),
};
#define CLI_OTHER_COUNT (CLI_COMMON_COUNT + 1)

typedef struct cli_parser {
    const pen_cli_table *table;
    pen_arena *arena;
    unsigned char *options; // the verb's struct
    char *const *arguments;
    int count;
    int index; // of the next argument
    const char **operands;
    uint32_t operand_count;
    bool *is_given; // [options of the verb]
} cli_parser;

const pen_cli_option *pen_cli_option_at(const pen_cli_table *table, size_t index) {
    if (index < table->option_count) return &table->options[index];
    index -= table->option_count;
    if (table->takes_job && index == 0) return &cli_set_option;
    if (table->takes_job) index -= 1;
    return index < CLI_COMMON_COUNT ? &cli_common_options[index] : NULL;
}

// What is meant by "--batch-size=8" or "--training.batch-size": the whole, "training.batch-size",
// and its last key, "batch-size", which is the one that other programs and jobs may share.
static pen_status cli_name_of(const cli_parser *parser, const char *argument, const char **out_path,
                              const char **out_name) {
    const char *name = argument + strspn(argument, "-");
    PEN_TRY(pen_arena_copy_text(parser->arena, name, strcspn(name, "="), out_path));
    const char *dot = strrchr(*out_path, '.');
    *out_name = dot != NULL ? dot + 1 : *out_path;
    return PEN_OK;
}

// Says what does the same here as a name of another program. What is said of a job's keys goes with
// how the command line changes one; what begins with "`" is about commands. False: it is no such.
static bool cli_add_word(const cli_parser *parser, const char *name, pen_text *text) {
    const char *why = pen_text_find_word(pen_cli_words, name);
    if (why == NULL) why = pen_text_find_word(parser->table->words, name);
    const bool is_key = why == NULL && parser->table->takes_job;
    if (is_key) why = pen_job_explain(name);
    if (why == NULL) return false;
    const bool has_path = is_key && why[0] != '`';
    pen_text_print(text, has_path ? ": in a job, %s; --set PATH=VALUE changes a key" : ": %s", why);
    return true;
}

// A whole path of the job, `--data.train.file`, or, with "-" among the separators, also
// `--evaluation-every`: that very path is what --set takes. False: it is none.
static bool cli_add_path(const cli_parser *parser, const char *written, const char *separators,
                         pen_text *text) {
    if (!parser->table->takes_job) return false;
    const char *path = pen_option_match_path(&pen_job_table, written, separators, parser->arena);
    if (path == NULL) return false;
    pen_text_print(text, ", which is a key of the job: --set %s=VALUE", path);
    return true;
}

// "evaluation" of `--evaluation.batch`, where the job has the one and not the other; else NULL.
static const char *cli_find_mapping(const cli_parser *parser, const char *path) {
    const char *dot = strrchr(path, '.');
    const char *before;
    if (dot == NULL || !parser->table->takes_job) return NULL;
    const pen_status status =
        pen_arena_copy_text(parser->arena, path, (size_t)(dot - path), &before);
    pen_status_ignore(status, "the message does without");
    if (status != PEN_OK) return NULL;
    return pen_option_match_path(&pen_job_table, before, ".", parser->arena);
}

// Options that are keys of the job, `--epochs 3`, are asked for by those who come from programs
// without files: says which key it is, and how the command line changes it. False: it is none.
static bool cli_add_key(const cli_parser *parser, const char *name, pen_text *text) {
    char *key;
    const size_t length = strlen(name);
    if (!parser->table->takes_job) return false;
    const pen_status status = PEN_NEW(parser->arena, length + 1, &key);
    pen_status_ignore(status, "the message does without");
    if (status != PEN_OK) return false;
    for (size_t i = 0; i < length; i++) {
        key[i] = name[i] == '-' ? '_' : name[i];
    }
    const char *path = pen_option_find_path(&pen_job_table, key, parser->arena);
    if (path != NULL) {
        pen_text_print(text, ", which is a key of the job: --set %s=VALUE", path);
        return true;
    }
    pen_text place;
    pen_text_init(&place, parser->arena);
    if (!pen_option_add_places(&pen_job_table, &pen_job_table, key, &place)) return false;
    pen_text_add(text, ", which ");
    pen_text_append(text, place.bytes, place.length);
    pen_text_add(text, " of the job: --set PATH=VALUE changes it");
    return true;
}

// What a name means, which is no whole path of the job, in the order of cli_refuse_name. False: it
// is not known.
static bool cli_add_meaning(const cli_parser *parser, const char *path, const char *name,
                            pen_text *text) {
    if (cli_add_word(parser, name, text)) return true;
    const char *mapping = cli_find_mapping(parser, path);
    if (mapping != NULL) {
        pen_text_print(text, ", and %.100s of the job has no key %.100s", mapping, name);
        return true;
    }
    return cli_add_path(parser, path, ".-_", text) || cli_add_key(parser, name, text);
}

// Adds all options, that at `near` first, if there is one.
static void cli_add_names(const char *const *keys, size_t count, size_t near, pen_text *text) {
    for (size_t i = 0; i < count; i++) {
        const size_t at = near == count ? i : i == 0 ? near : i <= near ? i - 1 : i;
        pen_text_print(text, "%s--%s", i == 0 ? "possible: " : ", ", keys[at]);
    }
    if (near < count) pen_text_print(text, "; did you mean --%s?", keys[near]);
}

// What is said of an unknown option. A path with dots that the job has comes first, then an option
// with one letter wrong, then words of other programs, then keys of the job, and then names that
// are near. Where the job has all but the last key of a path, no option is meant.
static pen_status cli_refuse_name(const cli_parser *parser, const char *argument) {
    const char **keys;
    const char *path, *name;
    size_t count = 0;
    PEN_TRY(PEN_NEW(parser->arena, parser->table->option_count + CLI_OTHER_COUNT, &keys));
    PEN_TRY(cli_name_of(parser, argument, &path, &name));
    const pen_cli_option *option;
    for (size_t i = 0; (option = pen_cli_option_at(parser->table, i)) != NULL; i++) {
        if (!option->is_internal) keys[count++] = option->field.key;
    }
    const size_t length = strcspn(argument, "=");
    pen_text text;
    pen_text_init(&text, parser->arena);
    pen_text_print(&text, "unknown option %.*s", length < 100 ? (int)length : 100, argument);
    const size_t near = pen_text_nearest(name, keys, count);
    const bool is_slip = near < count && cli_find_mapping(parser, path) == NULL &&
                         pen_text_distance(name, keys[near]) <= 1;
    const bool is_path = name != path && cli_add_path(parser, path, ".", &text);
    const bool is_known = is_path || (!is_slip && cli_add_meaning(parser, path, name, &text));
    pen_text_add(&text, is_known ? "; " : ", ");
    cli_add_names(keys, count, is_known ? count : near, &text);
    return pen_text_error(&text, PEN_INVALID_INPUT);
}

// The option that "--name" or "--name=value" or "-o" means, or NULL. *out_value is what follows
// '=', or NULL.
static const pen_cli_option *cli_find(const pen_cli_table *table, const char *argument,
                                      const char **out_value) {
    const pen_cli_option *option;
    *out_value = NULL;
    if (argument[1] != '-') {
        for (size_t i = 0; (option = pen_cli_option_at(table, i)) != NULL; i++) {
            if (option->letter != 0 && option->letter == argument[1] && argument[2] == '\0') {
                return option;
            }
        }
        return NULL;
    }
    const char *name = argument + 2;
    const size_t length = strcspn(name, "=");
    for (size_t i = 0; (option = pen_cli_option_at(table, i)) != NULL; i++) {
        if (strlen(option->field.key) != length) continue;
        if (strncmp(option->field.key, name, length) != 0) continue;
        if (name[length] == '=') *out_value = name + length + 1;
        return option;
    }
    return NULL;
}

// One more of an option that may be given again: there are fewer than arguments.
static pen_status cli_add_value(const cli_parser *parser, const pen_option_field *field,
                                const char *value) {
    pen_option_list list;
    memcpy(&list, parser->options + field->offset, sizeof list);
    if (list.items == NULL) {
        const char **items;
        PEN_TRY(PEN_NEW(parser->arena, (size_t)parser->count, &items));
        list.items = items;
    }
    const char **values = list.items;
    values[list.count++] = value;
    memcpy(parser->options + field->offset, &list, sizeof list);
    return PEN_OK;
}

// The value after "=" or the next argument. Messages begin with the option's name, since a command
// line has no lines to point at.
static pen_status cli_take_value(cli_parser *parser, const pen_cli_option *option,
                                 const char *value) {
    const pen_option_field *field = &option->field;
    if (value == NULL && parser->index < parser->count) value = parser->arguments[parser->index++];
    if (value == NULL) {
        pen_text text;
        pen_text_init(&text, parser->arena);
        pen_text_print(&text, "--%s: found nothing behind it, expected ", field->key);
        pen_option_describe(field, &text);
        return pen_text_error(&text, PEN_INVALID_INPUT);
    }
    if (option->is_repeated) return cli_add_value(parser, field, value);
    const pen_status status =
        pen_option_parse(field, value, parser->arena, parser->options + field->offset);
    if (pen_status_get_code(status) != PEN_INVALID_INPUT) return status;
    const pen_status named =
        pen_error(PEN_INVALID_INPUT, "--%s: %s", field->key, pen_status_message(status));
    pen_status_ignore(status, "its message is in the other");
    return named;
}

// Options without a value are switches; of the others it is noted that they were given, so that
// defaults can be told from what was said.
static pen_status cli_take_option(cli_parser *parser, const char *argument) {
    const char *value;
    const pen_cli_option *option = cli_find(parser->table, argument, &value);
    if (option == NULL) return cli_refuse_name(parser, argument);
    const pen_option_field *field = &option->field;
    const bool given = true;
    if (option->value_name == NULL) {
        if (value != NULL) {
            return pen_error(PEN_INVALID_INPUT, "--%s: found the value \"%.60s\", expected none",
                             field->key, value);
        }
        memcpy(parser->options + field->offset, &given, sizeof given);
        return PEN_OK;
    }
    PEN_TRY(cli_take_value(parser, option, value));
    if (option->is_repeated) return PEN_OK;
    parser->is_given[option - parser->table->options] = true; // common ones take no value
    if (field->present_offset != 0) {
        memcpy(parser->options + field->present_offset, &given, sizeof given);
    }
    return PEN_OK;
}

static pen_status cli_check_operands(const cli_parser *parser) {
    const pen_cli_table *table = parser->table;
    if (parser->operand_count < table->operand_count_minimum) {
        return pen_error(PEN_INVALID_INPUT, "%s is missing; --help says what it is",
                         table->operands);
    }
    if (parser->operand_count > table->operand_count_maximum) {
        return pen_error(PEN_INVALID_INPUT, "found \"%.100s\", expected %s",
                         parser->operands[table->operand_count_maximum],
                         table->operand_count_maximum == 0 ? "options alone" : table->operands);
    }
    return PEN_OK;
}

// Options that must be given were.
static pen_status cli_check_required(const cli_parser *parser) {
    const pen_cli_option *option;
    for (size_t i = 0; (option = pen_cli_option_at(parser->table, i)) != NULL; i++) {
        if (!option->field.is_required || parser->is_given[i]) continue;
        if (option->letter == 0) {
            return pen_error(PEN_INVALID_INPUT, "--%s %s is missing", option->field.key,
                             option->value_name);
        }
        return pen_error(PEN_INVALID_INPUT, "--%s %s (or -%c) is missing", option->field.key,
                         option->value_name, option->letter);
    }
    return PEN_OK;
}

static pen_status cli_set_defaults(const cli_parser *parser) {
    const pen_cli_option *option;
    for (size_t i = 0; (option = pen_cli_option_at(parser->table, i)) != NULL; i++) {
        const pen_option_field *field = &option->field;
        if (field->default_text == NULL) continue;
        PEN_TRY(pen_option_parse(field, field->default_text, parser->arena,
                                 parser->options + field->offset));
    }
    return PEN_OK;
}

// --help wins over everything else, also over mistakes before it. After "--" all is operands.
pen_status pen_cli_parse(const pen_cli_table *table, int argument_count, char *const *arguments,
                         pen_arena *arena, void *out_options) {
    cli_parser parser = {.table = table,
                         .arena = arena,
                         .options = out_options,
                         .arguments = arguments,
                         .count = argument_count};
    pen_cli_common *common = out_options;
    PEN_TRY(PEN_NEW(arena, (size_t)argument_count + 1, &parser.operands));
    PEN_TRY(PEN_NEW(arena, (size_t)table->option_count + CLI_OTHER_COUNT, &parser.is_given));
    PEN_TRY(cli_set_defaults(&parser));
    for (int i = 0; i < argument_count && strcmp(arguments[i], "--") != 0; i++) {
        common->help |= strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0;
    }
    if (common->help) return PEN_OK;
    bool options_end = false;
    while (parser.index < parser.count) {
        const char *argument = arguments[parser.index++];
        if (!options_end && strcmp(argument, "--") == 0) {
            options_end = true;
        } else if (!options_end && argument[0] == '-' && argument[1] != '\0') {
            PEN_TRY(cli_take_option(&parser, argument));
        } else {
            parser.operands[parser.operand_count++] = argument;
        }
    }
    common->operands = parser.operands;
    common->operand_count = parser.operand_count;
    PEN_TRY(cli_check_operands(&parser));
    return cli_check_required(&parser);
}

// Counts first: the list is one block of the arena.
pen_status pen_cli_read_list(const char *option, const char *text, pen_arena *arena,
                             const char *const **out_items, size_t *out_count) {
    const char **items;
    size_t count = 1;
    for (const char *at = text; *at != '\0'; at++)
        count += *at == ',';
    PEN_TRY(PEN_NEW(arena, count, &items));
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(text, ",");
        if (length == 0) {
            return pen_error(PEN_INVALID_INPUT, "--%s: expected names, with a comma between two",
                             option);
        }
        PEN_TRY(pen_arena_copy_text(arena, text, length, &items[i]));
        text += length + 1;
    }
    *out_items = items;
    *out_count = count;
    return PEN_OK;
}
