#include "scheduler/launched/task_system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_BOOT_BYTES 37   // of the id of a start of the system, with its 0
#define SYSTEM_BEGAN_FIELD 19u // behind the state in /proc/N/stat

void pen_task_system_name(char out_name[PEN_TASK_NODE_BYTES]) {
    char boot[SYSTEM_BOOT_BYTES] = "?", space[20] = "?", number[16] = "0";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL && fgets(boot, sizeof boot, file) == NULL) boot[0] = '\0';
    if (file != NULL) (void)fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    if (length > 0) space[length] = '\0';
    if (strncmp(space, "pid:[", 5) == 0) snprintf(number, sizeof number, "%.14s", space + 5);
    number[strcspn(number, "]")] = '\0';
    snprintf(out_name, PEN_TASK_NODE_BYTES, "%s/%s", boot, number);
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
