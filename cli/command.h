// A verb of the command. Adding one is a file, command_<verb>.c, that defines pen_command_<verb>,
// and a line in the list below.
#ifndef PEN_CLI_COMMAND_H
#define PEN_CLI_COMMAND_H

#include <stddef.h>

#include "base/arena.h"
#include "base/format/json_writer.h"
#include "base/status.h"
#include "cli/options.h"

// Exit codes, as scripts rely on them.
typedef enum pen_exit_code {
    PEN_EXIT_OK = 0,
    PEN_EXIT_INTERNAL = 1,
    PEN_EXIT_USAGE = 2,
    PEN_EXIT_SPEC = 3,
    PEN_EXIT_MODEL = 4,
    PEN_EXIT_DOES_NOT_FIT = 5, // or out of memory
    PEN_EXIT_PEER_LOST = 6,    // state saved
    PEN_EXIT_VERIFICATION = 7,
    PEN_EXIT_NOT_FINITE = 8, // or a device computed wrongly
    PEN_EXIT_NO_STORAGE = 9, // disk or place: try again later
} pen_exit_code;

// What a verb works with, and what it leaves.
typedef struct pen_command_context {
    const struct pen_command_tasks *tasks; // of the job's devices (cli/training_job.h); NULL: none
    pen_arena *arena;                      // released after the verb
    pen_option_list settings;              // const char *: of --set, for jobs that are read
    // What a wrong input means (pen_status_exit_code) at this moment: PEN_EXIT_SPEC when a verb
    // starts; it sets PEN_EXIT_MODEL while it reads a model.
    pen_exit_code input_exit_code;
    // The exit code when the verb returns PEN_OK: 0, or 7 when it found a difference.
    pen_exit_code exit_code;
} pen_command_context;

typedef struct pen_command {
    const char *name;    // "train"
    const char *summary; // one line of --help
    pen_cli_table table;
    size_t options_bytes; // of the struct that `run` gets; it begins with a pen_cli_common

    // What it needs in a sandbox (base/system/sandbox.h) besides folders.
    bool connects;      // to other hosts, or takes links from them
    bool starts_itself; // workers of its own

    // Does the work. Results go to standard output, messages to standard error (base/log.h).
    pen_status (*run)(pen_command_context *context, const void *options);
} pen_command;

// The verbs, in the order of --help. Each is pen_command_<name>, in command_<name>.c.
#define PEN_COMMAND_LIST(VERB)                                                                     \
    VERB(init)                                                                                     \
    VERB(inspect)                                                                                  \
    VERB(train)                                                                                    \
    VERB(sweep)                                                                                    \
    VERB(eval)                                                                                     \
    VERB(predict)                                                                                  \
    VERB(serve)                                                                                    \
    VERB(export)                                                                                   \
    VERB(checkpoint)                                                                               \
    VERB(verify)                                                                                   \
    VERB(rate)                                                                                     \
    VERB(plan)                                                                                     \
    VERB(explain)                                                                                  \
    VERB(diff)                                                                                     \
    VERB(profile)                                                                                  \
    VERB(probe)                                                                                    \
    VERB(place)                                                                                    \
    VERB(simulate)                                                                                 \
    VERB(show)                                                                                     \
    VERB(worker)                                                                                   \
    VERB(certs)                                                                                    \
    VERB(diagnose)                                                                                 \
    VERB(doctor)                                                                                   \
    VERB(schema)                                                                                   \
    VERB(help)

#define PEN_COMMAND_DECLARE(name) extern const pen_command pen_command_##name;
PEN_COMMAND_LIST(PEN_COMMAND_DECLARE)

// The verbs, ended by NULL.
extern const pen_command *const pen_commands[];

// The verb of that name. NOT_FOUND says what a word of other programs is here, or lists the names,
// nearest first; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_command_find(const char *name, pen_arena *arena,
                                          const pen_command **out_command);

// Ends the text and prints it on standard output. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_command_print(pen_text *text);

// Values in place of the job's, which stand in objects begun from now on; they outlive the verb.
void pen_command_note_settings(const char *const *settings, uint32_t count);

// The exit code of a verb that ended with `status`, which is an error. What --set gave is a mistake
// of the command line, also where it is found while a model is read.
int pen_command_exit_code(const pen_command_context *context, pen_status status);

// Begins the JSON object of a verb on standard output: {"schema": "penstock/VERB/1", ...
// What the job was set to follows ("set"), if something was.
// The verb ends the object and calls pen_json_finish. Begun only when there is something to say:
// after an error before that, standard output stays empty.
void pen_command_begin_json(pen_json_writer *json, const char *verb);

// Whether an object was begun.
bool pen_command_has_json(void);

// Ends an object that an error cut short: {"schema": …, what was written, "error": MESSAGE,
// "exit_code": N}. Returns `status`.
PEN_NODISCARD pen_status pen_command_fail_json(const pen_command_context *context,
                                               pen_json_writer *json, pen_status status);

#endif // PEN_CLI_COMMAND_H
