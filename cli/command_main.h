// The command as a whole: finds the verb, reads its options, runs it, and says what went wrong.
#ifndef PEN_CLI_COMMAND_MAIN_H
#define PEN_CLI_COMMAND_MAIN_H

// Runs `penstock ARGUMENTS...`; returns the exit code. Prints errors.
int pen_command_main(int argument_count, char *const *arguments);

#endif // PEN_CLI_COMMAND_MAIN_H
