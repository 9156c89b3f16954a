#include "base/system/machine.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/text.h"
#include "base/thread.h"

#define MACHINE_FILE_BYTES_LIMIT (4u << 20)
#define MACHINE_CGROUP_ROOT "/sys/fs/cgroup"
#define MACHINE_THREADS_LIMIT 64
#define MACHINE_TURN_SECONDS 0.2 // twice the period of a container's share
#define MACHINE_TURNS 3
#define MACHINE_IS_FREE 0.95

// The text of a file of /proc or /sys, or "" when there is none.
static pen_status machine_read(pen_arena *arena, const char *path, const char **out_text) {
    size_t length;
    const pen_status status =
        pen_file_read(path, MACHINE_FILE_BYTES_LIMIT, arena, out_text, &length);
    if (status == PEN_OK || pen_status_get_code(status) == PEN_OUT_OF_MEMORY) return status;
    pen_status_ignore(status, "not every system has every file");
    *out_text = "";
    return PEN_OK;
}

// What stands behind "key ... : " on the first line that begins with `key`; up to the line's end.
static const char *machine_find(const char *text, const char *key, size_t *out_length) {
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *value = line + strlen(key);
            value += strspn(value, " \t:");
            *out_length = strcspn(value, "\n");
            return value;
        }
        line = end == NULL ? NULL : end + 1;
    }
    *out_length = 0;
    return "";
}

// What `doctor` prints and what levels are chosen by. The compiler's names are asked first, since
// they also know whether the system saves the registers.
static pen_status machine_detect_processor(pen_arena *arena, pen_machine *machine) {
    const char *text;
    size_t length;
    PEN_TRY(machine_read(arena, "/proc/cpuinfo", &text));
    const char *name = machine_find(text, "model name", &length);
    PEN_TRY(pen_arena_copy_text(arena, name, length, &machine->processor));
    pen_text sets;
    pen_text_init(&sets, arena);
#if defined(__x86_64__)
#define MACHINE_ADD_SET(name)                                                                      \
    if (__builtin_cpu_supports(name)) pen_text_add(&sets, sets.length > 0 ? " " name : name)
    MACHINE_ADD_SET("sse4.2");
    MACHINE_ADD_SET("avx");
    MACHINE_ADD_SET("avx2");
    MACHINE_ADD_SET("fma");
    MACHINE_ADD_SET("avx512f");
    MACHINE_ADD_SET("avx512bw");
    MACHINE_ADD_SET("avx512vl");
    MACHINE_ADD_SET("avx512vnni");
    MACHINE_ADD_SET("avx512bf16");
#undef MACHINE_ADD_SET
    // compilers of Debian 12 have no name for these in __builtin_cpu_supports
    const char *flags = machine_find(text, "flags", &length);
    static const char *const more[] = {"avx512_fp16", "amx_tile", "amx_bf16", "amx_int8"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        const char *found = strstr(flags, more[i]);
        if (found != NULL && found < flags + length) pen_text_print(&sets, " %s", more[i]);
    }
#elif defined(__aarch64__)
    pen_text_add(&sets, "neon");
#endif
    return pen_text_finish(&sets, &machine->instruction_sets);
}

// Whether a line, "4:cpu,memory:/group", is of the hierarchy of `controller`; "" is version 2.
static bool machine_is_hierarchy(const char *line, const char *controller) {
    const char *list = line + strcspn(line, ":\n");
    if (*list != ':') return false;
    list += 1;
    if (controller[0] == '\0') return *list == ':';
    for (const char *word = list; *word != ':' && *word != '\n' && *word != '\0';) {
        const size_t length = strcspn(word, ",:\n");
        if (length == strlen(controller) && strncmp(word, controller, length) == 0) return true;
        word += length + (word[length] == ',');
    }
    return false;
}

// The folder of this process's cgroup below the root of a hierarchy, "" when there is none.
static pen_status machine_cgroup(pen_arena *arena, const char *controller, const char **out_path) {
    const char *text;
    PEN_TRY(machine_read(arena, "/proc/self/cgroup", &text));
    for (const char *line = text; *line != '\0'; line += strspn(line, "\n")) {
        const size_t length = strcspn(line, "\n");
        if (machine_is_hierarchy(line, controller)) {
            const char *path = strchr(strchr(line, ':') + 1, ':') + 1;
            return pen_arena_copy_text(arena, path, length - (size_t)(path - line), out_path);
        }
        line += length;
    }
    *out_path = "";
    return PEN_OK;
}

typedef struct machine_limit {
    const char *root; // where the hierarchy is mounted
    const char *controller;
    const char *file;
    double (*parse)(const char *text);
} machine_limit;

// Reads the file of the cgroup and of all above it; keeps the smallest of the limits. In a
// container the path may be the host's, of which only the root is seen.
static pen_status machine_cgroup_least(pen_arena *arena, const machine_limit *limit,
                                       double *out_least) {
    const char *group;
    PEN_TRY(machine_cgroup(arena, limit->controller, &group));
    size_t length = strlen(group);
    for (;;) {
        const char *path;
        const char *text;
        PEN_TRY(pen_arena_format(arena, &path, "%s%.*s/%s", limit->root, (int)length, group,
                                 limit->file));
        PEN_TRY(machine_read(arena, path, &text));
        const double value = limit->parse(text);
        if (value > 0 && (*out_least == 0 || value < *out_least)) *out_least = value;
        if (length == 0) return PEN_OK;
        do {
            length -= 1;
        } while (length > 0 && group[length] != '/');
    }
}

// "max", or a number of bytes. 0 for no limit.
static double machine_parse_bytes(const char *text) {
    return strtod(text, NULL);
}

// "max 100000" or "quota period". Cores, or 0 for no limit.
static double machine_parse_quota(const char *text) {
    char *end;
    const double quota = strtod(text, &end);
    const double period = strtod(end, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

// The process' own limits: prlimit --data, ulimit -v.
static void machine_apply_limits(pen_machine *machine) {
    static const int kinds[] = {RLIMIT_DATA, RLIMIT_AS};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)kinds[i], &limit) != 0) continue;
        if (limit.rlim_cur == RLIM_INFINITY) continue;
        machine->memory_bytes_allowed =
            pen_min_u64(machine->memory_bytes_allowed, (uint64_t)limit.rlim_cur);
    }
}

// The least of what the machine has, cgroups grant (version 2, then 1) and resource limits allow.
static pen_status machine_detect_memory(pen_arena *arena, pen_machine *machine) {
    const char *text;
    size_t length;
    PEN_TRY(machine_read(arena, "/proc/meminfo", &text));
    machine->memory_bytes = strtoull(machine_find(text, "MemTotal", &length), NULL, 10) * 1024;
    machine->memory_bytes_free =
        strtoull(machine_find(text, "MemAvailable", &length), NULL, 10) * 1024;
    machine->memory_bytes_allowed = machine->memory_bytes;
    double limit = 0;
    static const machine_limit limits[] = {
        {MACHINE_CGROUP_ROOT, "", "memory.max", machine_parse_bytes},
        {MACHINE_CGROUP_ROOT "/memory", "memory", "memory.limit_in_bytes", machine_parse_bytes},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        PEN_TRY(machine_cgroup_least(arena, &limits[i], &limit));
    }
    if (limit > 0 && (machine->memory_bytes == 0 || limit < (double)machine->memory_bytes)) {
        machine->memory_bytes_allowed = (uint64_t)limit;
    }
    machine_apply_limits(machine);
    machine->memory_bytes_free =
        pen_min_u64(machine->memory_bytes_free, machine->memory_bytes_allowed);
    return PEN_OK;
}

static pen_status machine_detect_cores(pen_arena *arena, pen_machine *machine) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    machine->core_count = online > 0 ? (uint32_t)online : 1;
    machine->core_count_allowed = machine->core_count;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0) {
        machine->core_count_allowed = (uint32_t)CPU_COUNT(&allowed);
    }
    double quota = 0;
    static const machine_limit limit = {MACHINE_CGROUP_ROOT, "", "cpu.max", machine_parse_quota};
    PEN_TRY(machine_cgroup_least(arena, &limit, &quota));
    if (quota > 0 && quota < (double)machine->core_count_allowed) {
        const uint32_t whole = (uint32_t)quota;
        machine->core_count_allowed = whole + ((double)whole < quota ? 1 : 0);
    }
    return PEN_OK;
}

pen_status pen_machine_detect(pen_arena *arena, pen_machine *out_machine) {
    pen_machine machine = {.system = "", .processor = "", .instruction_sets = ""};
    struct utsname system;
    if (uname(&system) == 0) {
        PEN_TRY(pen_arena_format(arena, &machine.system, "%s %s %s", system.sysname, system.release,
                                 system.machine));
    }
    PEN_TRY(machine_detect_processor(arena, &machine));
    PEN_TRY(machine_detect_memory(arena, &machine));
    PEN_TRY(machine_detect_cores(arena, &machine));
    *out_machine = machine;
    return PEN_OK;
}

void pen_machine_boot(char out_text[PEN_MACHINE_BOOT_BYTES]) {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    out_text[0] = '\0';
    if (file == NULL) return;
    if (fgets(out_text, PEN_MACHINE_BOOT_BYTES, file) == NULL) out_text[0] = '\0';
    out_text[strcspn(out_text, "\n")] = '\0';
    fclose(file);
}

// What the system says of this process under a name, in bytes; 0: nothing.
static uint64_t machine_status_bytes(const char *name) {
    FILE *file = fopen("/proc/self/status", "re");
    unsigned long long kibibytes = 0;
    char line[256];
    while (file != NULL && kibibytes == 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) != 0) continue;
        if (sscanf(line + strlen(name), "%llu kB", &kibibytes) != 1) kibibytes = 0;
    }
    if (file != NULL) (void)fclose(file);
    return (uint64_t)kibibytes * 1024;
}

uint64_t pen_machine_resident(void) {
    return machine_status_bytes("VmRSS:");
}

// What getrusage says goes on from the process that started this one, even over exec: it only
// stands in where there is no /proc.
uint64_t pen_machine_resident_peak(void) {
    const uint64_t bytes = machine_status_bytes("VmHWM:");
    if (bytes > 0) return bytes;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (uint64_t)usage.ru_maxrss * 1024; // Linux counts in KiB
}

double pen_machine_processor_seconds(void) {
    struct timespec spent;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0) return 0;
    return (double)spent.tv_sec + (double)spent.tv_nsec * 1e-9;
}

static void machine_compute(void *context) {
    const atomic_bool *is_over = context;
    while (!atomic_load(is_over)) {
    }
}

// One of the threads is the caller's.
#define MACHINE_THREADS_PER_CORE 2 // and more are many

void pen_machine_warn_threads(const char *device, uint64_t threads, const char *process,
                              uint32_t cores) {
    if (cores == 0 || threads <= MACHINE_THREADS_PER_CORE * (uint64_t)cores) return;
    pen_log(PEN_LOG_WARNING,
            "device '%.100s' has %llu threads, but %s may use %u %s: expect it to be slow", device,
            (unsigned long long)threads, process, cores, cores == 1 ? "core" : "cores");
}

static pen_status machine_measure_turn(uint32_t threads, double *out_cores) {
    pen_thread *others[MACHINE_THREADS_LIMIT];
    atomic_bool is_over = false;
    uint32_t count = 0;
    pen_status status = PEN_OK;
    const double began = pen_clock_seconds(), spent = pen_machine_processor_seconds();
    while (count + 1 < threads && status == PEN_OK) {
        status = pen_thread_create("share", machine_compute, &is_over, &others[count]);
        count += status == PEN_OK;
    }
    while (status == PEN_OK && pen_clock_seconds() - began < MACHINE_TURN_SECONDS) {
    }
    *out_cores = (pen_machine_processor_seconds() - spent) / (pen_clock_seconds() - began);
    atomic_store(&is_over, true);
    for (uint32_t i = 0; i < count; i++) {
        pen_thread_join(others[i]);
    }
    return status;
}

// Of more threads than it starts, as many get a core as of those.
pen_status pen_machine_measure_cores(uint32_t threads, double *out_cores) {
    const uint32_t computing = threads < MACHINE_THREADS_LIMIT ? threads : MACHINE_THREADS_LIMIT;
    double best = 0, cores;
    for (int turn = 0; turn < MACHINE_TURNS && best < MACHINE_IS_FREE * computing; turn++) {
        PEN_TRY(machine_measure_turn(computing, &cores));
        if (cores > best) best = cores;
    }
    *out_cores = fmin(best / computing, 1) * threads;
    return PEN_OK;
}
