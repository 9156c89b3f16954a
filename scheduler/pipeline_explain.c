// Why a step of a pipeline has a loss that is not finite. One device has the numbers of many, so
// that this process computes the step again with the tensors that the devices still have: what
// comes out otherwise is the fault of one of them.

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "scheduler/local_engine.h"
#include "scheduler/pipeline_state.h"

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
    char *piece = pen_memory_allocate(pen_tensor_store_piece_bytes(&p->tensors), 1);
    if (piece == NULL) return pen_error_out_of_memory();
    const pen_tensor_store *to = local->kind->tensors(local);
    pen_status status = PEN_OK;
    for (uint32_t t = 0; status == PEN_OK && t < p->tensors.count; t++) {
        status = explain_copy_tensor(&p->tensors, to, t, piece);
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

static const char *explain_find_device(const void *context, const char *node) {
    const pipeline_engine *p = context;
    const pen_run_spec *spec = p->forms.spec;
    for (uint32_t d = 0; d < spec->table->device_count; d++) {
        pen_node_id found;
        const pen_status status =
            pen_graph_find_node(spec->forms[0].parts[d].part->graph, node, &found);
        if (status == PEN_OK) return spec->devices[d].name;
        pen_status_ignore(status, "another device has it");
    }
    return NULL;
}

static pen_status explain_here(pipeline_engine *p, const pen_engine_step *step) {
    char devices[512];
    pen_engine *local = NULL;
    pen_engine_options options = {.job = p->job,
                                  .info = p->info,
                                  .part = p->options.part,
                                  .rest = p->options.rest,
                                  .as_reference = true};
    pen_status status = pen_local_engine_create(&options, &local);
    if (status == PEN_OK) status = explain_copy_tensors(p, local);
    if (status == PEN_OK) {
        const pen_local_elsewhere elsewhere = {.where = explain_devices(p, devices, sizeof devices),
                                               .find_device = explain_find_device,
                                               .context = p,
                                               .loss_count = p->step_loss_count,
                                               .losses = p->step_losses};
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

pen_status pen_pipeline_explain(pen_engine *engine, const pen_engine_step *step) {
    pipeline_engine *p = pipeline_of(engine);
    p->begun_count = 0; // what is under way waits for ever, and changes nothing
    return explain_here(p, step);
}
