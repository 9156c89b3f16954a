#include "scheduler/launched/task_system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/machine.h"

#define SYSTEM_BEGAN_FIELD 19u // behind the state in /proc/N/stat

void pen_task_system_name(char out_name[PEN_TASK_NODE_BYTES]) {
    char boot[PEN_MACHINE_BOOT_BYTES], space[20] = "?", number[16] = "0";
    pen_machine_boot(boot);
    const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    if (length > 0) space[length] = '\0';
    if (strncmp(space, "pid:[", 5) == 0) snprintf(number, sizeof number, "%.14s", space + 5);
    number[strcspn(number, "]")] = '\0';
    snprintf(out_name, PEN_TASK_NODE_BYTES, "%.36s/%s", boot[0] == '\0' ? "?" : boot, number);
}

uint64_t pen_task_system_began(uint64_t process) {
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", process);
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[length] = '\0';
    const char *at = strrchr(text, ')'); // a name may have anything in it
    if (at == NULL || at[1] != ' ') return 0;
    at += 2;
    if (*at == 'Z' || *at == 'X') return 0;
    for (uint32_t i = 0; i < SYSTEM_BEGAN_FIELD && at != NULL; i++) {
        at = strchr(at, ' ');
        if (at != NULL) at += 1;
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

bool pen_task_system_has(uint64_t process, uint64_t began) {
    return began != 0 && pen_task_system_began(process) == began;
}
