#include "scheduler/runtime/worker/recompute.h"

#include <string.h>

#include "graph/graph.h"
#include "scheduler/runtime/executor/evidence.h"
#include "scheduler/runtime/run/run_spec_wire.h"

#define RECOMPUTE_HEAD 8 // bytes: of the description

static uint64_t recompute_round_up(uint64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

pen_status pen_recompute_pack(const pen_run_spec *spec, uint32_t worker,
                              pen_recompute_bytes evidence, pen_arena *arena,
                              pen_recompute_bytes *out_package) {
    const void *description;
    uint64_t described;
    char *bytes;
    PEN_TRY(pen_run_spec_encode(spec, worker, arena, &description, &described));
    const uint64_t first = RECOMPUTE_HEAD + recompute_round_up(described);
    PEN_TRY(PEN_NEW(arena, first + evidence.count, &bytes));
    memcpy(bytes, &described, sizeof described);
    memcpy(bytes + RECOMPUTE_HEAD, description, described);
    memcpy(bytes + first, evidence.bytes, evidence.count);
    *out_package = (pen_recompute_bytes){bytes, first + evidence.count};
    return PEN_OK;
}

// The part of the device in form 0, with one place for each value that has copies.
static pen_status recompute_create(const pen_run_spec *spec, uint32_t index, pen_device *device,
                                   pen_arena *arena, pen_executor **out_executor) {
    const pen_run_spec_part *given = &spec->forms[0].parts[index];
    const pen_part *part = given->part;
    const uint32_t value_count = pen_graph_value_count(part->graph);
    pen_executor_list *lists;
    uint32_t *copies;
    PEN_TRY(PEN_NEW(arena, part->list_count, &lists));
    PEN_TRY(PEN_NEW(arena, value_count, &copies));
    for (uint32_t l = 0; l < part->list_count; l++) {
        lists[l] = (pen_executor_list){part->lists[l].first, part->lists[l].end};
    }
    for (uint32_t v = 0; v < value_count; v++) {
        copies[v] = given->copies[v] > 0;
    }
    const pen_executor_spec executor = {.device = device,
                                        .graph = part->graph,
                                        .order = part->order,
                                        .order_count = part->order_count,
                                        .lists = lists,
                                        .list_count = part->list_count,
                                        .copies_of_value = copies,
                                        .kept = part->kept,
                                        .kept_count = part->kept_count,
                                        .defer_contents = true};
    return pen_executor_create(&executor, out_executor);
}

// The digest of what the evidence gives on a device like that of the index, opened for this alone.
static pen_status recompute_on(const pen_run_spec *spec, uint32_t index, uint64_t memory_bytes,
                               pen_recompute_bytes evidence, pen_arena *arena,
                               uint64_t *out_digest) {
    const pen_device_kind *kind;
    pen_device *device;
    pen_executor *executor = NULL;
    const pen_device_options options = {.name = spec->devices[index].name,
                                        .thread_count = 1,
                                        .memory_bytes = memory_bytes,
                                        .precision = (pen_precision)spec->devices[index].precision,
                                        .libraries = (pen_libraries)spec->devices[index].libraries};
    PEN_TRY(pen_device_kind_find(spec->devices[index].kind, &kind));
    PEN_TRY(kind->open(&options, &device));
    pen_status status = recompute_create(spec, index, device, arena, &executor);
    if (status == PEN_OK) {
        status = pen_evidence_recompute(evidence.bytes, evidence.count, executor, out_digest);
    }
    pen_executor_destroy(executor);
    kind->close(device);
    return status;
}

// Where the description ends, the evidence begins.
static pen_status recompute_unpacked(pen_recompute_bytes package, uint32_t index,
                                     uint64_t memory_bytes, pen_arena *arena,
                                     uint64_t *out_digest) {
    const pen_run_spec *spec;
    const char *bytes = package.bytes;
    uint64_t described = UINT64_MAX;
    if (package.count >= RECOMPUTE_HEAD) memcpy(&described, bytes, sizeof described);
    if (package.count < RECOMPUTE_HEAD || described > package.count - RECOMPUTE_HEAD ||
        recompute_round_up(described) > package.count - RECOMPUTE_HEAD) {
        return pen_error(PEN_CORRUPT, "a package of %llu bytes with a description of %llu",
                         (unsigned long long)package.count, (unsigned long long)described);
    }
    const uint64_t first = RECOMPUTE_HEAD + recompute_round_up(described);
    PEN_TRY(pen_run_spec_decode(bytes + RECOMPUTE_HEAD, described, arena, &spec));
    if (index >= spec->table->device_count || spec->table->form_count == 0 ||
        spec->forms[0].parts[index].part == NULL) {
        return pen_error(PEN_CORRUPT, "a package without a part of device %u", index);
    }
    const pen_recompute_bytes evidence = {bytes + first, package.count - first};
    return recompute_on(spec, index, memory_bytes, evidence, arena, out_digest);
}

pen_status pen_recompute_carry_out(pen_recompute_bytes package, uint32_t device,
                                   uint64_t memory_bytes, uint64_t *out_digest) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = recompute_unpacked(package, device, memory_bytes, arena, out_digest);
    pen_arena_destroy(arena);
    return pen_status_add_context(status, "while computing again what another worker did");
}
