#include "tests/simulator/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/store/commit_record.h"
#include "scheduler/store/shard.h"
#include "tests/simulator/checks.h"

#define CHECKPOINT_HEADER_LIMIT 8192u

static const char *const checkpoint_names[SHAPE_STAGES] = {"stage.0", "stage.1", "stage.2",
                                                           "stage.3", "stage.4", "stage.5"};

pen_status checkpoint_write_shard(process *p, const checkpoint_part *part, uint64_t generation,
                                  uint64_t step, uint32_t worker, pen_message *out_message) {
    world *w = p->world;
    const int64_t dim = 1;
    pen_shard_tensor tensors[SHAPE_STAGES];
    uint32_t stages = 0;
    bool is_right = step <= w->shape->step_count;
    for (uint32_t i = 0; i < part->count; i++) {
        const uint32_t stage = part->stages[i];
        tensors[i] = (pen_shard_tensor){.name = checkpoint_names[stage],
                                        .type = pen_tensor_type_make(PEN_INT64, 1, &dim),
                                        .bytes = 8};
        stages |= 1u << stage;
        is_right = is_right && part->words[i] == w->shape->parameters[step][stage];
    }
    const pen_shard_source source = {.tensors = tensors, .count = part->count, .data = part->words};
    const char *name, *bytes;
    uint64_t count;
    pen_shard_summary summary;
    PEN_TRY(pen_shard_name(generation, step, worker, w->arena, &name));
    check_shard_written(w, name, generation, step, stages, is_right);
    PEN_TRY(pen_shard_write(&p->disk->base, &source, SIMULATION_SHARDS, name, w->arena, &summary));
    if (p->is_alive) check_shard_durable(w, &summary);
    PEN_TRY(pen_shard_summary_encode(&summary, w->arena, &bytes, &count));
    out_message->bytes = bytes;
    out_message->bytes_length = count;
    return PEN_OK;
}

// Where a tensor's bytes begin, from the file's header; the header is text of our own making.
static bool checkpoint_find(const char *header, const char *name, uint64_t *out_first) {
    char key[32];
    snprintf(key, sizeof key, "\"%s\"", name);
    const char *at = strstr(header, key);
    if (at == NULL) return false;
    at = strstr(at, "\"data_offsets\"");
    if (at == NULL) return false;
    at = strchr(at, '[');
    if (at == NULL) return false;
    *out_first = strtoull(at + 1, NULL, 10);
    return true;
}

static pen_status checkpoint_read_shard(pen_shard_reader *reader, uint32_t stage_count,
                                        uint64_t *out_words, uint32_t *found) {
    uint64_t length = 0;
    char header[CHECKPOINT_HEADER_LIMIT];
    PEN_TRY(pen_shard_reader_read(reader, 0, &length, 8));
    if (length >= sizeof header) return pen_error(PEN_CORRUPT, "a header of a shard is too long");
    PEN_TRY(pen_shard_reader_read(reader, 8, header, length));
    header[length] = '\0';
    for (uint32_t s = 0; s < stage_count; s++) {
        uint64_t first;
        if (!checkpoint_find(header, checkpoint_names[s], &first)) continue;
        if (*found & (1u << s)) return pen_error(PEN_CORRUPT, "a stage is in two shards");
        *found |= 1u << s;
        PEN_TRY(pen_shard_reader_read(reader, 8 + length + first, &out_words[s], 8));
    }
    return PEN_OK;
}

pen_status checkpoint_read(pen_disk *disk, const pen_commit_record *record, uint32_t stage_count,
                           uint64_t *out_words) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < record->manifest.shard_count; i++) {
        pen_shard_reader reader;
        pen_status status =
            pen_shard_reader_init(&reader, disk, SIMULATION_SHARDS, &record->manifest.shards[i]);
        if (status == PEN_OK) {
            status = checkpoint_read_shard(&reader, stage_count, out_words, &found);
        }
        pen_shard_reader_deinit(&reader);
        PEN_TRY(status);
    }
    if (found != (1u << stage_count) - 1) {
        return pen_error(PEN_CORRUPT, "the checkpoint has not all stages");
    }
    return PEN_OK;
}
