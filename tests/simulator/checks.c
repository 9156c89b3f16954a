#include "tests/simulator/checks.h"

#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "tests/simulator/checkpoints.h"
#include "tests/simulator/coordinator_process.h"
#include "tests/simulator/worker_process.h"

// ---- generations

void check_process(process *p) {
    struct checks *checks = p->world->checks;
    uint64_t generation = 0;
    if (p->worker != NULL && p->worker->run != NULL) {
        generation = pen_worker_core_generation(p->worker->run->core);
        if (generation < p->worker->run->memory->generation) return; // not assigned yet
    } else if (p->coordinator != NULL && p->coordinator->run != NULL) {
        generation = p->coordinator->run->generation;
    }
    if (generation == 0) return;
    if (generation < checks->generations[p->index]) {
        world_wrong(p->world, "I1", "process %u goes from generation %" PRIu64 " to %" PRIu64,
                    p->index, checks->generations[p->index], generation);
    }
    checks->generations[p->index] = generation;
}

// Of records: the higher its number, the higher its generation, or as high.
void check_fenced(process *p, const pen_commit_record *record) {
    struct checks *checks = p->world->checks;
    for (uint32_t i = 0; i < checks->fence_count; i++) {
        const check_fence *other = &checks->fences[i];
        if (other->number == record->number && other->generation == record->generation) return;
        if ((other->number < record->number) == (other->generation < record->generation)) continue;
        world_wrong(p->world, "I1",
                    "the fence of generation %" PRIu64 " is record %" PRIu64
                    ", that of generation %" PRIu64 " is record %" PRIu64,
                    record->generation, record->number, other->generation, other->number);
    }
    PEN_ASSERT(checks->fence_count < CHECK_FENCES);
    checks->fences[checks->fence_count++] =
        (check_fence){.number = record->number, .generation = record->generation};
}

void check_assigned(process *p, uint64_t generation) {
    if (p->coordinator->run->is_fenced) return;
    world_wrong(p->world, "I1",
                "workers are assigned to generation %" PRIu64 ", which is not durable", generation);
}

// ---- shards

static check_shard *check_find_shard(const world *w, const char *file) {
    struct checks *checks = w->checks;
    for (uint32_t i = checks->shard_count; i-- > 0;) {
        if (strcmp(checks->shards[i].file, file) == 0) return &checks->shards[i];
    }
    return NULL;
}

void check_shard_written(world *w, const char *file, uint64_t generation, uint64_t step,
                         uint32_t stages, bool is_right) {
    struct checks *checks = w->checks;
    check_shard *shard = check_find_shard(w, file);
    if (shard == NULL) {
        PEN_ASSERT(checks->shard_count < CHECK_SHARDS);
        shard = &checks->shards[checks->shard_count++];
    }
    *shard = (check_shard){
        .step = step, .generation = generation, .stages = stages, .is_right = is_right};
    snprintf(shard->file, sizeof shard->file, "%s", file);
}

void check_rotten(world *w, const char *path) {
    struct checks *checks = w->checks;
    const char *name = strrchr(path, '/') + 1;
    if (strncmp(name, "commit.", 7) != 0) {
        check_shard *shard = check_find_shard(w, name);
        if (shard != NULL) shard->is_rotten = true;
        return;
    }
    PEN_ASSERT(checks->rotten_count < CHECK_ROTTEN);
    checks->rotten_records[checks->rotten_count++] = strtoull(name + 7, NULL, 10);
}

static bool check_record_is_rotten(const struct checks *checks, uint64_t number) {
    for (uint32_t i = 0; i < checks->rotten_count; i++) {
        if (checks->rotten_records[i] == number) return true;
    }
    return false;
}

bool check_is_whole(const world *w, const pen_commit_record *record) {
    for (uint32_t i = 0; i < record->manifest.shard_count; i++) {
        const check_shard *shard = check_find_shard(w, record->manifest.shards[i].file);
        if (shard == NULL || shard->is_rotten) return false;
    }
    return true;
}

// Whether the bytes that are safe are those that its summary speaks of. One that turned while the
// writer was held, before it heard of its success, is no fault of the writer.
void check_shard_durable(world *w, const pen_shard_summary *summary) {
    char path[128];
    uint64_t count;
    check_shard *shard = check_find_shard(w, summary->file);
    snprintf(path, sizeof path, "%s/%s", SIMULATION_SHARDS, summary->file);
    const uint8_t *bytes = faulty_disk_look(w->disk, path, true, &count);
    shard->is_durable = bytes != NULL && count == summary->bytes && summary->chunk_count == 1 &&
                        (shard->is_rotten || pen_checksum(bytes, count) == summary->checksums[0]);
}

static void check_shards(world *w, const pen_commit_record *record) {
    uint32_t stages = 0;
    for (uint32_t i = 0; i < record->manifest.shard_count; i++) {
        const pen_shard_summary *summary = &record->manifest.shards[i];
        const check_shard *shard = check_find_shard(w, summary->file);
        if (shard == NULL) {
            world_wrong(w, "I5", "a manifest has the shard %s, which nobody wrote", summary->file);
            return;
        }
        if (shard->step != record->manifest.step || !shard->is_right) {
            world_wrong(w, "I7", "shard %s has not the parameters of step %" PRIu64, summary->file,
                        record->manifest.step);
        }
        if ((stages & shard->stages) != 0) {
            world_wrong(w, "I5", "a manifest has stages twice");
        }
        stages |= shard->stages;
        if (!shard->is_durable) {
            world_wrong(w, "I5", "shard %s is in a manifest and not durable", summary->file);
        }
    }
    if (stages != (1u << w->shape->stage_count) - 1) {
        world_wrong(w, "I5", "the manifest of step %" PRIu64 " has not all stages",
                    record->manifest.step);
    }
}

// ---- manifests

static void check_build_upon(world *w, const pen_commit_record *record) {
    struct checks *checks = w->checks;
    uint32_t at = checks->manifest_count;
    PEN_ASSERT(checks->manifest_count < CHECK_MANIFESTS);
    for (; at > 0 && checks->manifests[at - 1].number >= record->number; at--) {
        if (checks->manifests[at - 1].number == record->number) return;
    }
    memmove(&checks->manifests[at + 1], &checks->manifests[at],
            (checks->manifest_count - at) * sizeof *checks->manifests);
    checks->manifest_count += 1;
    check_manifest *manifest = &checks->manifests[at];
    *manifest = (check_manifest){
        .number = record->number, .step = record->manifest.step, .generation = record->generation};
    if (checks->manifest_count >= 2) {
        const uint64_t oldest = checks->manifests[checks->manifest_count - 2].number;
        if (oldest > checks->oldest_kept) checks->oldest_kept = oldest;
    }
    for (uint32_t i = 0; i < record->manifest.shard_count; i++) {
        const check_shard *shard = check_find_shard(w, record->manifest.shards[i].file);
        if (shard == NULL) continue;
        manifest->shards[manifest->shard_count++] = (uint32_t)(shard - checks->shards);
    }
}

void check_published(process *p, const pen_commit_record *record) {
    world *w = p->world;
    struct checks *checks = w->checks;
    for (uint32_t i = 0; i < checks->fence_count; i++) {
        const check_fence *fence = &checks->fences[i];
        if (fence->number > record->number || fence->generation <= record->generation) continue;
        world_wrong(w, "I1",
                    "the manifest of generation %" PRIu64 " is record %" PRIu64
                    ", the fence of generation %" PRIu64 " is record %" PRIu64,
                    record->generation, record->number, fence->generation, fence->number);
    }
    check_shards(w, record);
    check_build_upon(w, record);
    if (record->manifest.step == w->shape->step_count) checks->is_done = true;
}

void check_committed(process *p, uint64_t step) {
    if (p->coordinator->run->published_step == step) return;
    world_wrong(p->world, "I5",
                "workers are told that step %" PRIu64 " is committed, and no manifest is durable",
                step);
}

static bool check_manifest_is_whole(const struct checks *checks, const check_manifest *manifest) {
    if (check_record_is_rotten(checks, manifest->number)) return false;
    for (uint32_t i = 0; i < manifest->shard_count; i++) {
        if (checks->shards[manifest->shards[i]].is_rotten) return false;
    }
    return true;
}

void check_recovered(process *p, uint64_t generation, const pen_commit_record *record,
                     bool is_excused) {
    world *w = p->world;
    struct checks *checks = w->checks;
    const uint64_t number = record == NULL ? 0 : record->number;
    if (!p->is_alive) return;
    for (uint32_t i = 0; i < checks->fence_count; i++) { // it is superseded, and will hear of it
        if (checks->fences[i].generation > generation) return;
    }
    // the newest two are kept
    for (uint32_t i = checks->manifest_count; i-- > 0 && i + 2 >= checks->manifest_count;) {
        const check_manifest *manifest = &checks->manifests[i];
        if (manifest->number < checks->oldest_kept) break;
        if (!check_manifest_is_whole(checks, manifest)) continue;
        if (manifest->number <= number || is_excused) break;
        world_wrong(w, "I6",
                    "goes on from record %" PRIu64 ", but record %" PRIu64 " (step %" PRIu64
                    ") is durable and whole",
                    number, manifest->number, manifest->step);
        break;
    }
    // what is newer is passed over for good
    while (checks->manifest_count > 0 &&
           checks->manifests[checks->manifest_count - 1].number > number) {
        checks->manifest_count -= 1;
    }
    if (record != NULL) check_build_upon(w, record);
}

// ---- the end

static void check_final(world *w) {
    const faulty_disk_rates none = {0};
    const shape *s = w->shape;
    faulty_view *view;
    pen_commit_log *log;
    uint64_t words[SHAPE_STAGES];
    faulty_disk_set_rates(w->disk, &none);
    faulty_disk_lose_power(w->disk, FAULTY_DISK_ANY);
    if (faulty_view_new(w->disk, UINT32_MAX - 1, &view) != PEN_OK) abort();
    pen_status status = pen_commit_log_open(&view->base, SIMULATION_LOG, w->arena, &log);
    if (status != PEN_OK) {
        world_wrong(w, "I6", "the log cannot be read in the end: %s", pen_status_message(status));
        pen_status_ignore(status, "said");
        return;
    }
    const pen_commit_record *record = NULL;
    const pen_commit_record *newest = pen_commit_log_manifest(log, 0);
    for (uint32_t i = 0;; i++) {
        record = pen_commit_log_manifest(log, i);
        if (record == NULL || check_is_whole(w, record)) break;
    }
    const uint64_t step = record == NULL ? 0 : record->manifest.step;
    const uint64_t last = s->step_count;
    const bool is_rotten = w->checks->rotten_count > 0 ||
                           (newest != NULL && newest->manifest.step == last && newest != record);
    if (!w->checks->has_ended_not_finite && step != last && !is_rotten) {
        world_wrong(w, "I6", "the last checkpoint in the end is of step %" PRIu64 " of %" PRIu64,
                    step, last);
    }
    if (record == NULL || w->is_wrong) return;
    status = checkpoint_read(&view->base, record, s->stage_count, words);
    if (status != PEN_OK) {
        world_wrong(w, "I5", "the last checkpoint cannot be read: %s", pen_status_message(status));
        pen_status_ignore(status, "said");
        return;
    }
    for (uint32_t i = 0; i < s->stage_count; i++) {
        if (words[i] == s->parameters[step][i]) continue;
        world_wrong(w, "I7", "stage %u has other parameters in the end", i);
    }
}

void check_end(world *w) {
    const simulation_result *result = w->result;
    if (w->checks->has_ended_not_finite != (w->shape->not_finite_step > 0)) {
        world_wrong(w, "I2", "a loss that is not finite %s",
                    w->shape->not_finite_step > 0 ? "was passed over" : "came from nowhere");
    }
    const bool is_loss_only =
        w->options.profile == SIMULATION_LOSS_ONLY || w->options.profile == SIMULATION_CALM;
    if (is_loss_only && result->generations > 1) {
        world_wrong(w, "I10", "%" PRIu64 " generations with message loss only",
                    result->generations);
    }
    if (!w->is_wrong) check_final(w);
}
