#include "scheduler/launched/task_identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/quantity.h"

#define IDENTITY_SIZE_LIMIT 4096 // tasks of a start
#define IDENTITY_NAMES 4
#define IDENTITY_PART_BYTES 60 // of the name of a start, of which there are IDENTITY_NAMES
#define IDENTITY_START_BYTES (IDENTITY_NAMES * (IDENTITY_PART_BYTES + 1))

// Who starts tasks, and the variables that say which task it is: the first that is set counts. Of
// `start` all that are set count. What comes first wins: mpirun within an allocation of Slurm
// leaves Slurm's variables of its daemons.
typedef struct identity_starter {
    const char *name;
    const char *rank[IDENTITY_NAMES];
    const char *size[IDENTITY_NAMES];
    const char *start[IDENTITY_NAMES];
    bool is_in_container;
} identity_starter;

static const identity_starter identity_starters[] = {
    {.name = "the environment",
     .rank = {"PENSTOCK_RANK"},
     .size = {"PENSTOCK_SIZE"},
     .start = {"PENSTOCK_START"}},
    {.name = "MPI",
     .rank = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"},
     .size = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"},
     .start = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PENSTOCK_START"}},
    {.name = "Slurm",
     .rank = {"SLURM_PROCID"},
     .size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
     .start = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "PENSTOCK_START"}},
    {.name = "Kubernetes",
     .rank = {"JOB_COMPLETION_INDEX"},
     .size = {"PENSTOCK_SIZE"},
     .start = {"PENSTOCK_START"},
     .is_in_container = true},
};
#define IDENTITY_STARTERS (sizeof identity_starters / sizeof *identity_starters)

// The name of the first variable that is set; NULL: none.
static const char *identity_first(const char *const *names) {
    for (uint32_t i = 0; i < IDENTITY_NAMES && names[i] != NULL; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') return names[i];
    }
    return NULL;
}

static const identity_starter *identity_find_starter(void) {
    for (uint32_t i = 0; i < IDENTITY_STARTERS; i++) {
        if (identity_first(identity_starters[i].rank) != NULL) return &identity_starters[i];
    }
    return NULL;
}

static pen_status identity_read(const char *name, int64_t minimum, int64_t maximum,
                                int64_t *out_number) {
    const char *value = getenv(name);
    if (pen_integer_parse(value, out_number) && *out_number >= minimum && *out_number <= maximum) {
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT,
                     "%s in the environment: found \"%.60s\", expected a number from %lld to %lld",
                     name, value, (long long)minimum, (long long)maximum);
}

static pen_status identity_refuse_size(const identity_starter *starter, const char *rank) {
    return pen_error(
        PEN_INVALID_INPUT,
        "found %s=%.20s in the environment, but not how many tasks there are: expected "
        "%s, or --tasks N",
        rank, getenv(rank), starter->size[0]);
}

// The parts of the name that are there, with signs that a file may have.
static pen_status identity_name_start(const identity_starter *starter, pen_arena *arena,
                                      const char **out_start) {
    char text[IDENTITY_START_BYTES] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < IDENTITY_NAMES && starter->start[i] != NULL; i++) {
        const char *name = starter->start[i], *value = getenv(name);
        if (value == NULL || value[0] == '\0') continue;
        if (strlen(value) > IDENTITY_PART_BYTES) {
            return pen_error(PEN_INVALID_INPUT,
                             "%s in the environment: found \"%.20s…\", expected at most %d bytes",
                             name, value, IDENTITY_PART_BYTES);
        }
        const int added =
            snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? "." : "", value);
        length += (size_t)added;
    }
    for (char *at = text; *at != '\0'; at++) {
        const bool is_plain = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
                              (*at >= 'A' && *at <= 'Z') || *at == '-';
        if (!is_plain && (*at != '.' || at == text)) *at = '_';
    }
    *out_start = NULL;
    return length == 0 ? PEN_OK : pen_arena_copy_text(arena, text, length, out_start);
}

static pen_status identity_name_node(pen_arena *arena, const char **out_node) {
    char host[256] = "";
    const char *node = getenv("SLURMD_NODENAME");
    if (node == NULL && gethostname(host, sizeof host - 1) == 0) node = host;
    if (node == NULL) node = "?";
    return pen_arena_copy_text(arena, node, strnlen(node, 63), out_node);
}

static pen_status identity_refuse_nothing(void) {
    if (getenv("PENSTOCK_SIZE") != NULL) {
        return pen_error(
            PEN_INVALID_INPUT,
            "found PENSTOCK_SIZE=%.20s in the environment, but not which task this is: "
            "expected PENSTOCK_RANK, or JOB_COMPLETION_INDEX of Kubernetes",
            getenv("PENSTOCK_SIZE"));
    }
    return pen_error(
        PEN_NOT_FOUND,
        "--launched: nothing in the environment says which task this is, expected what "
        "Slurm (SLURM_PROCID), MPI (OMPI_COMM_WORLD_RANK) or an indexed Job of "
        "Kubernetes (JOB_COMPLETION_INDEX) sets, or PENSTOCK_RANK and PENSTOCK_SIZE");
}

// What the command line says of the number of tasks goes before the environment.
pen_status pen_task_identity_find(uint32_t size, pen_arena *arena,
                                  pen_task_identity *out_identity) {
    const identity_starter *starter = identity_find_starter();
    if (starter == NULL) return identity_refuse_nothing();
    const char *rank_name = identity_first(starter->rank);
    const char *size_name = identity_first(starter->size);
    int64_t rank, count = size;
    if (size == 0 && size_name == NULL) return identity_refuse_size(starter, rank_name);
    if (size == 0) {
        PEN_TRY(identity_read(size_name, 1, IDENTITY_SIZE_LIMIT, &count));
    }
    PEN_TRY(identity_read(rank_name, 0, IDENTITY_SIZE_LIMIT - 1, &rank));
    if (rank >= count) {
        return pen_error(
            PEN_INVALID_INPUT,
            "%s in the environment: found %lld, expected less than the number of tasks, "
            "%lld (%s)",
            rank_name, (long long)rank, (long long)count, size > 0 ? "--tasks" : size_name);
    }
    *out_identity = (pen_task_identity){.starter = starter->name,
                                        .rank = (uint32_t)rank,
                                        .size = (uint32_t)count,
                                        .is_in_container = starter->is_in_container};
    PEN_TRY(identity_name_start(starter, arena, &out_identity->start));
    return identity_name_node(arena, &out_identity->node);
}

const char *pen_task_identity_hint(void) {
    const identity_starter *starter = identity_find_starter();
    const char *name = starter == NULL ? NULL : identity_first(starter->size);
    int64_t size;
    if (name == NULL || !pen_integer_parse(getenv(name), &size) || size <= 1) return NULL;
    return name;
}
