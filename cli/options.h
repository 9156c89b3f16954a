// The command line of one verb: a table, from which come the parsing, its errors, help, manual page
// and completion (help.h).
//
// Options are long, `--steps 100` or `--steps=100`; some have a letter too, `-o F`. A value is
// described by an option field (base/option/option.h), so ranges, units and messages are those of
// the files. Everything after `--` is an operand. Errors are INVALID_INPUT and mean exit code 2.
//
// Lifetime: tables are static; what is parsed lives in the arena.
#ifndef PEN_CLI_OPTIONS_H
#define PEN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/option/option.h"
#include "base/status.h"
#include "base/text.h"

typedef struct pen_cli_option {
    char letter;            // 'o' for -o, or 0
    const char *value_name; // in help: "N", "FILE"; NULL for a flag, which is a BOOL without value
    pen_option_field field; // a scalar; its key is the name without "--"
    bool is_repeated;       // a TEXT that goes to a pen_option_list of all that were given
    bool is_internal;       // given by our own processes to each other: no help speaks of it
} pen_cli_option;

typedef struct pen_cli_table {
    const char *operands; // in usage: "JOB", "MODEL...", or "" for none
    uint32_t operand_count_minimum;
    uint32_t operand_count_maximum;
    const pen_cli_option *options;
    uint32_t option_count;
    const char *details;        // more text of --help, in lines of up to 80 columns, or NULL
    const char *examples;       // lines such as "penstock train job.yaml\n"
    bool takes_job;             // an operand may be a job: there is --set
    const pen_text_word *words; // what options are called elsewhere, without "--", or NULL
} pen_cli_table;

// --written, or -letter (0: none): a flag, or an option with a value that help calls `value`. What
// describes the value is as of PEN_OPTION.
#define PEN_CLI_FLAG(short_name, written, type, member, ...)                                       \
    { .letter = (short_name), .field = PEN_OPTION_AS(written, BOOL, type, member, __VA_ARGS__) }
#define PEN_CLI_VALUE(short_name, written, value, ...)                                             \
    { .letter = (short_name), .value_name = (value), .field = PEN_OPTION_AS(written, __VA_ARGS__) }
#define PEN_CLI_INTERNAL(written, value, ...)                                                      \
    { .is_internal = true, .value_name = (value), .field = PEN_OPTION_AS(written, __VA_ARGS__) }

// Options that verbs share which run a job: members of their own structs have the same names.
#define PEN_CLI_INSECURE(type)                                                                     \
    PEN_CLI_FLAG(0, "insecure", type, insecure, "reach workers on other machines without TLS")
#define PEN_CLI_NO_MEMORY_CHECK(type)                                                              \
    PEN_CLI_FLAG(0, "no-memory-check", type, no_memory_check, "run what is planned not to fit")

#define PEN_CLI_OPERANDS(names, least, most)                                                       \
    .operands = (names), .operand_count_minimum = (least), .operand_count_maximum = (most)
#define PEN_CLI_OPTIONS(array) .options = (array), .option_count = sizeof(array) / sizeof *(array)

// What every verb gets, and the start of its own struct:
//   typedef struct { pen_cli_common common; int64_t steps; } train_options;
typedef struct pen_cli_common {
    bool json;
    bool help;
    bool quiet;
    pen_option_list settings;    // const char *: of --set, in order
    pen_option_list sandbox;     // const char *: folders that may be written, "-" for none
    const char *const *operands; // [operand_count]
    uint32_t operand_count;
} pen_cli_common;

// Sets defaults and parses `arguments` (without the verb) into the zeroed struct that begins with a
// pen_cli_common. With --help nothing else is checked. INVALID_INPUT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cli_parse(const pen_cli_table *table, int argument_count,
                                       char *const *arguments, pen_arena *arena, void *out_options);

// The items of "ONE,TWO", the value of `option`. INVALID_INPUT: one is empty; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cli_read_list(const char *option, const char *text, pen_arena *arena,
                                           const char *const **out_items, size_t *out_count);

// Option `index` of the verb's own, --set, and the common ones. NULL: past the last
const pen_cli_option *pen_cli_option_at(const pen_cli_table *table, size_t index);

#endif // PEN_CLI_OPTIONS_H
