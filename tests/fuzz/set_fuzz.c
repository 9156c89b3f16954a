// Fuzzes values that are given besides a job (base/option/option_assign.c): the first line is the
// assignment, the rest the job. Any bytes give a tree whose nodes are whole, which the reader of
// jobs then takes or refuses, or an error with a message. Opens no file.
#include <string.h>

#include "scheduler/job/job.h"
#include "tests/fuzz/fuzz.h"

static void walk(const pen_yaml_node *node, uint32_t depth) {
    uint32_t count = 0;
    fuzz_must(depth < 256 && node->text != NULL && node->file != NULL);
    for (const pen_yaml_node *member = node->first; member != NULL; member = member->next) {
        fuzz_must((member->key != NULL) == (node->kind == PEN_YAML_MAPPING));
        walk(member, depth + 1);
        count += 1;
    }
    fuzz_must(count == node->count);
}

static void use(const char *assignment, const char *text, size_t length, pen_arena *arena) {
    const pen_option_settings settings = {.file = "fuzz/job.yaml"};
    const pen_option_source *source;
    const pen_yaml_node *root;
    pen_job *job;
    if (!fuzz_reads(pen_yaml_parse("fuzz/job.yaml", text, length, arena, &root))) return;
    if (!fuzz_reads(pen_option_assign(&pen_job_table, root, assignment, &settings, arena, &root))) {
        return;
    }
    walk(root, 0);
    if (!fuzz_works(PEN_NEW(arena, 1, &job))) return;
    fuzz_reads(pen_option_read(&pen_job_table, root, &settings, arena, job, &source));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_arena *arena;
    const char *assignment;
    const uint8_t *end = memchr(data, '\n', size);
    if (end == NULL || memchr(data, 0, (size_t)(end - data)) != NULL) return 0;
    if (!fuzz_works(pen_arena_create(&arena))) return 0;
    const size_t length = (size_t)(end - data);
    if (fuzz_works(pen_arena_copy_text(arena, (const char *)data, length, &assignment))) {
        use(assignment, (const char *)end + 1, size - length - 1, arena);
    }
    pen_arena_destroy(arena);
    return 0;
}
