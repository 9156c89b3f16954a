#include "cli/command.h"
#include "device/cpu/cpu_device.h"

int main(int argument_count, char **arguments) {
    pen_cpu_process_init();
    return pen_command_main(argument_count > 0 ? argument_count - 1 : 0, arguments + 1);
}
