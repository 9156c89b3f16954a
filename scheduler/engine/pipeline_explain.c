// Why a step of a pipeline has a loss that is not finite. One device has the numbers of many, so
// that this process computes the step again with the tensors that the devices still have: what
// comes out otherwise is the fault of one of them.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "scheduler/engine/local_engine.h"
#include "scheduler/engine/pipeline_audit.h"
#include "scheduler/engine/pipeline_state.h"
#include "scheduler/runtime/run/run_wire.h"

static pen_status explain_copy_tensor(const pen_tensor_store *from, const pen_tensor_store *to,
                                      uint32_t index, char *piece) {
    const pen_stored_tensor *tensor = &from->tensors[index];
    const uint32_t target = pen_tensor_store_find(to, tensor->name);
    if (target == PEN_TENSOR_NONE || to->tensors[target].bytes != tensor->bytes) {
        return pen_error(PEN_INTERNAL, "one device has no tensor '%s'", tensor->name);
    }
    for (uint64_t first = 0; first < tensor->bytes; first += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t left = tensor->bytes - first;
        const uint64_t bytes = left < PEN_TENSOR_PIECE_BYTES ? left : PEN_TENSOR_PIECE_BYTES;
        PEN_TRY(from->read(from->context, index, first, piece, bytes));
        PEN_TRY(to->write(to->context, target, first, piece, bytes));
    }
    return PEN_OK;
}

static pen_status explain_copy_tensors(pipeline_engine *p, pen_engine *local) {
    char *piece = pen_memory_allocate(pen_tensor_store_piece_bytes(p->joined), 1);
    if (piece == NULL) return pen_error_out_of_memory();
    const pen_tensor_store *to = local->kind->tensors(local);
    pen_status status = PEN_OK;
    for (uint32_t t = 0; status == PEN_OK && t < p->joined->count; t++) {
        status = explain_copy_tensor(p->joined, to, t, piece);
    }
    pen_memory_free(piece);
    return status;
}

// "device 'a', 'b' or 'c'"
static const char *explain_devices(const pipeline_engine *p, char *text, size_t size) {
    const pen_cluster_spec *cluster = &p->job->cluster;
    size_t used = (size_t)snprintf(text, size, "device ");
    for (uint32_t d = 0; d < cluster->device_count && used + 80 < size; d++) {
        const char *between = d == 0 ? "" : d + 1 == cluster->device_count ? " or " : ", ";
        used += (size_t)snprintf(text + used, size - used, "%s'%.60s'", between,
                                 cluster->devices[d].name);
    }
    return text;
}

// What the workers say that they sent in a step.
typedef struct explain_sent {
    const pen_run_sent *list;
    uint32_t count;
} explain_sent;

typedef struct explain_step {
    pipeline_engine *p;
    const pipeline_rounds *rounds; // of the step
    const explain_sent *sent;      // [worker_count + 1]
    char device[256];              // the text about one
} explain_step;

static const char *explain_find_device(const void *context, const char *node) {
    explain_step *explain = (explain_step *)(uintptr_t)context;
    const pipeline_engine *p = explain->p;
    const pen_run_spec *spec = p->forms.spec;
    for (uint32_t d = 0; d < spec->table->device_count; d++) {
        pen_node_id found;
        const pen_status status =
            pen_graph_find_node(spec->forms[0].parts[d].part->graph, node, &found);
        pen_status_ignore(status, "another device has it");
        if (status != PEN_OK) continue;
        snprintf(explain->device, sizeof explain->device, "device '%.80s' of %.100s",
                 spec->devices[d].name, p->workers.list[p->workers.worker_of_device[d]].name);
        return explain->device;
    }
    return NULL;
}

// Whether a frame is that of a value for a microbatch of the step.
static bool explain_is_of(const explain_step *explain, const pen_run_sent *sent,
                          uint64_t microbatch, const char *value) {
    const pen_run_spec *spec = explain->p->forms.spec;
    const pipeline_rounds *rounds = explain->rounds;
    if (sent->form >= spec->table->form_count) return false;
    const pen_run_form *form = &spec->table->forms[sent->form];
    if (sent->channel >= form->channel_count) return false;
    const pen_run_channel *channel = &form->channels[sent->channel];
    const pen_run_spec_channel *what = &spec->forms[sent->form].channels[sent->channel];
    if (channel->is_per_step || what->layout != PEN_LAYOUT_PLAIN) return false;
    if (strcmp(what->value, value) != 0) return false;
    uint64_t place = microbatch;
    for (uint32_t r = 0; r < rounds->count; r++) {
        if (place < rounds->microbatches[r]) {
            return sent->form == rounds->form[r] && place >= channel->first_microbatch &&
                   place - channel->first_microbatch < pen_run_slots(form, channel) &&
                   sent->sequence ==
                       pen_run_sequence(form, channel, rounds->number[r], (uint32_t)place);
        }
        place -= rounds->microbatches[r];
    }
    return false;
}

// Bits of one kind of device are not those of another: they say nothing of who is wrong.
static pen_local_seen explain_compare(const void *context, uint64_t microbatch, const char *value,
                                      uint64_t checksum) {
    const explain_step *explain = context;
    if (explain->p->device == NULL) return PEN_LOCAL_NOT_SEEN;
    for (uint32_t w = 1; w <= explain->p->workers.count; w++) {
        for (uint32_t i = 0; i < explain->sent[w].count; i++) {
            const pen_run_sent *sent = &explain->sent[w].list[i];
            if (!explain_is_of(explain, sent, microbatch, value)) continue;
            return sent->checksum == checksum ? PEN_LOCAL_SAME : PEN_LOCAL_OTHER;
        }
    }
    return PEN_LOCAL_NOT_SEEN;
}

static pen_status explain_ask(pipeline_engine *p, pen_arena *arena, const explain_sent **out_sent) {
    explain_sent *sent;
    PEN_TRY(PEN_NEW(arena, p->workers.count + 1, &sent));
    for (uint32_t w = 1; w <= p->workers.count; w++) {
        const void *bytes;
        uint64_t count;
        PEN_TRY(pen_coordinator_inquire(p->coordinator, w, PEN_RUN_INQUIRY_SENT, arena, &bytes,
                                        &count));
        PEN_TRY(pen_run_sent_decode(bytes, count, arena, &sent[w].list, &sent[w].count));
    }
    *out_sent = sent;
    return PEN_OK;
}

// The losses that the step had, as far as one device has the same bits. Of devices of several kinds
// it has not: what was finite says nothing, and counts as not known.
static pen_status explain_losses(const pipeline_engine *p, pen_arena *arena,
                                 const double **out_losses) {
    double *losses;
    PEN_TRY(PEN_NEW(arena, p->step_loss_count, &losses));
    for (uint32_t m = 0; m < p->step_loss_count; m++) {
        const bool is_known = p->device != NULL || !isfinite(p->step_losses[m]);
        losses[m] = is_known ? p->step_losses[m] : 0;
    }
    *out_losses = losses;
    return PEN_OK;
}

// Computes the step again on one device of this machine with the parameters as they are. When even
// that cannot be done, the error says so instead of a node.
static pen_status explain_here(explain_step *explain, const pen_engine_step *step,
                               pen_arena *arena) {
    pipeline_engine *p = explain->p;
    char devices[512];
    const double *losses;
    pen_engine *local = NULL;
    pen_engine_options options = {.job = p->job,
                                  .info = p->info,
                                  .part = p->options.part,
                                  .rest = p->options.rest,
                                  .as_reference = true};
    pen_status status = pen_local_engine_create(&options, &local);
    if (status == PEN_OK) status = explain_copy_tensors(p, local);
    if (status == PEN_OK) status = explain_losses(p, arena, &losses);
    if (status == PEN_OK) {
        const pen_local_elsewhere elsewhere = {.where = explain_devices(p, devices, sizeof devices),
                                               .find_device = explain_find_device,
                                               .compare = explain_compare,
                                               .context = explain,
                                               .loss_count = p->step_loss_count,
                                               .losses = losses};
        status = pen_local_engine_explain(local, step, &elsewhere);
    } else {
        const pen_status why =
            pen_error(PEN_NOT_FINITE,
                      "the loss of step %llu is not finite; which node made it so is not known: %s",
                      (unsigned long long)step->step, pen_status_message(status));
        pen_status_ignore(status, "its text is in the error");
        status = why;
    }
    pen_engine_destroy(local);
    return status;
}

// With the step's messages of all workers beside what is computed here. Not of a scaled loss: what
// is infinite in float16 need not be in float32, and would look like a fault of the hardware.
pen_status pen_pipeline_explain(pen_engine *engine, const pen_engine_step *step) {
    pipeline_engine *p = pipeline_of(engine);
    // the step that was finished last; what is under way behind it waits for ever, and changes
    // nothing
    const pipeline_rounds rounds =
        p->begun[(p->begun_first + PIPELINE_STEPS_AHEAD - 1) % PIPELINE_STEPS_AHEAD];
    explain_step explain = {.p = p, .rounds = &rounds};
    pen_arena *arena;
    p->begun_count = 0;
    pen_pipeline_forget_audit(p); // its round may never end
    if (step->scale.scale > 0) {
        return pen_error(PEN_NOT_FINITE,
                         "which node made it so is not known: this process would compute step %llu "
                         "in float32, where it may be finite",
                         (unsigned long long)step->step);
    }
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = explain_ask(p, arena, &explain.sent);
    if (status == PEN_OK) status = explain_here(&explain, step, arena);
    pen_arena_destroy(arena);
    return status;
}
