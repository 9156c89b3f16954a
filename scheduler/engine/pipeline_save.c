// Checkpoints of a pipeline: workers write what their devices hold, this process what none holds.

#include <string.h>

#include "scheduler/engine/pipeline_audit.h"
#include "scheduler/engine/pipeline_state.h"

// Tensors of the model that nothing computes with: they stay as they are.
static uint32_t save_count_homeless(const pipeline_engine *p) {
    uint32_t count = 0;
    for (uint32_t t = 0; t < p->tensors.count; t++) {
        count += p->tensor_places[t].home_count == 0;
    }
    return count;
}

static pen_status save_read(void *context, uint32_t index, uint64_t first, void *out,
                            uint64_t bytes) {
    pipeline_engine *p = context;
    return p->tensors.read(p->tensors.context, p->homeless[index], first, out, bytes);
}

// Tensors that no worker holds are part of the checkpoint all the same: this process writes them as
// shard 0.
static pen_status save_homeless(pipeline_engine *p, uint64_t step, const char *folder) {
    const uint32_t count = save_count_homeless(p);
    pen_disk *disk = pen_disk_of_machine();
    pen_shard_tensor *tensors;
    const char *name = "";
    p->has_homeless = count > 0;
    pen_arena_reset(p->saving);
    if (count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(p->saving, count, &tensors));
    PEN_TRY(PEN_NEW(p->saving, count, &p->homeless));
    uint32_t filled = 0;
    for (uint32_t t = 0; t < p->tensors.count; t++) {
        const pen_stored_tensor *tensor = &p->tensors.tensors[t];
        if (p->tensor_places[t].home_count > 0) continue;
        p->homeless[filled] = t;
        tensors[filled] = (pen_shard_tensor){.type = tensor->type, .bytes = tensor->bytes};
        PEN_TRY(pen_shard_tensor_name(tensor, p->saving, &tensors[filled].name));
        filled += 1;
    }
    const pen_shard_source source = {
        .tensors = tensors, .count = count, .read = save_read, .context = p};
    PEN_TRY(pen_shard_name(p->generation, step, 0, p->saving, &name));
    return pen_shard_write(disk, &source, folder, name, p->saving, &p->homeless_summary);
}

pen_status pen_pipeline_save(pen_engine *engine, uint64_t step, const char *folder) {
    pipeline_engine *p = pipeline_of(engine);
    pen_disk *disk = pen_disk_of_machine();
    PEN_ASSERT(p->begun_count == 0);
    PEN_TRY(pen_pipeline_await_quiet(p));
    PEN_TRY(
        pen_pipeline_advance_audit(p, PEN_PIPELINE_AUDIT_WHOLE)); // of a step that would be in it
    PEN_TRY(disk->kind->make_folder(disk, folder));
    PEN_TRY(save_homeless(p, step, folder));
    return pen_coordinator_save(p->coordinator, step, folder);
}

bool pen_pipeline_writes_to(pen_engine *engine, const char *folder) {
    return pen_coordinator_writes_to(pipeline_of(engine)->coordinator, folder);
}

// The workers' shards and this process's.
static void save_add_homeless(pipeline_engine *p, const pen_coordinator_saved *saved,
                              pen_engine_saved *out_saved) {
    pen_shard_summary *all;
    const pen_status status = PEN_NEW(p->saving, (size_t)saved->summary_count + 1, &all);
    if (status != PEN_OK) {
        pen_status_ignore(status, "the checkpoint fails with it");
        *out_saved = (pen_engine_saved){
            .state = PEN_ENGINE_SAVE_FAILED, .step = saved->step, .failure = "out of memory"};
        return;
    }
    memcpy(all, saved->summaries, saved->summary_count * sizeof *all);
    all[saved->summary_count] = p->homeless_summary;
    out_saved->shards = all;
    out_saved->shard_count = saved->summary_count + 1;
}

// The coordinator's word about the workers' shards, with this process's own shard added.
pen_status pen_pipeline_poll_saved(pen_engine *engine, bool waits, pen_engine_saved *out_saved) {
    static const pen_engine_save_state states[] = {
        [PEN_SAVE_NONE] = PEN_ENGINE_SAVE_NONE,
        [PEN_SAVE_WRITING] = PEN_ENGINE_SAVE_WRITING,
        [PEN_SAVE_DURABLE] = PEN_ENGINE_SAVE_DURABLE,
        [PEN_SAVE_FAILED] = PEN_ENGINE_SAVE_FAILED,
    };
    pipeline_engine *p = pipeline_of(engine);
    pen_coordinator_saved saved;
    if (waits) {
        PEN_TRY(pen_coordinator_await_saved(p->coordinator, &saved));
    } else {
        pen_coordinator_poll_saved(p->coordinator, &saved);
    }
    *out_saved = (pen_engine_saved){.state = states[saved.state],
                                    .step = saved.step,
                                    .shard_count = saved.summary_count,
                                    .shards = saved.summaries,
                                    .failure = saved.failure};
    if (saved.state == PEN_SAVE_DURABLE && p->has_homeless) save_add_homeless(p, &saved, out_saved);
    return PEN_OK;
}

// By another thread than the engine's, which may meanwhile have found that somebody was lost; so is
// the next.
void pen_pipeline_publishing(pen_engine *engine) {
    pipeline_engine *p = pipeline_of(engine);
    pen_mutex_lock(&p->publishing);
    if (p->coordinator != NULL) pen_coordinator_keep_publishing(p->coordinator);
    pen_mutex_unlock(&p->publishing);
}

void pen_pipeline_published(pen_engine *engine, uint64_t step, pen_status_code code) {
    pipeline_engine *p = pipeline_of(engine);
    pen_mutex_lock(&p->publishing);
    if (p->coordinator != NULL && code == PEN_CODE_OK) {
        pen_coordinator_committed(p->coordinator, step);
    } else if (p->coordinator != NULL) {
        pen_coordinator_give_save_up(p->coordinator, step, code);
    }
    pen_mutex_unlock(&p->publishing);
}
