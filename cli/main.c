#include "cli/command.h"

int main(int argument_count, char **arguments) {
    return pen_command_main(argument_count > 0 ? argument_count - 1 : 0, arguments + 1);
}
