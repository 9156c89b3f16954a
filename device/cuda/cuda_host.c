#include "device/cuda/cuda_host.h"

#include "base/integer.h"
#include "base/memory.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda/cuda_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"

struct pen_cuda_chunk {
    pen_cuda_chunk *next;
    void *bytes;
    uint64_t size;
    pen_buffer *buffer; // of the cpu device, around the bytes
};

// A copy between the GPU and pinned memory.
typedef struct host_copy {
    pen_cuda_address device;
    uint8_t *host;
    size_t bytes;
} host_copy;

struct pen_cuda_host_launch {
    pen_launch *launch; // of the cpu device
    host_copy *in;      // [in_count]: operands, and results that are added to or read
    uint32_t in_count;
    host_copy *out; // [out_count]
    uint32_t out_count;
    bool is_update;
};

pen_status pen_cuda_host_open(const pen_device_options *options, pen_cuda_memory *memory,
                              pen_cuda_host *out_host) {
    pen_device_options own = *options;
    own.memory_bytes = 0;
    own.precision = PEN_PRECISION_FLOAT32;
    *out_host = (pen_cuda_host){.memory = memory};
    return pen_cpu_device_kind.open(&own, &out_host->cpu);
}

void pen_cuda_host_close(pen_cuda_host *host) {
    while (host->chunks != NULL) {
        pen_cuda_chunk *chunk = host->chunks;
        host->chunks = chunk->next;
        pen_cpu_device_kind.buffer_destroy(host->cpu, chunk->buffer);
        (void)host->memory->driver->context_set(host->memory->context);
        (void)host->memory->driver->stream_wait(host->memory->stream);
        (void)host->memory->driver->host_free(chunk->bytes);
        pen_memory_free(chunk);
    }
    pen_cpu_device_kind.close(host->cpu);
    host->cpu = NULL;
}

// Bytes of a chunk for `bytes`, behind one of `before` (0: it is the first).
static uint64_t host_chunk_bytes(uint64_t before, uint64_t bytes) {
    return pen_max_u64(bytes, before == 0 ? PEN_CUDA_SLOT_BYTES : 2 * before);
}

// Chunks that there are stay: launches are bound to them.
static pen_status host_add_chunk(pen_cuda_host *host, uint64_t bytes) {
    pen_cuda_memory *memory = host->memory;
    pen_cuda_chunk *chunk = pen_memory_allocate(1, sizeof *chunk);
    if (chunk == NULL) return pen_error_out_of_memory();
    chunk->size = host_chunk_bytes(host->chunks == NULL ? 0 : host->chunks->size, bytes);
    pen_status status = pen_cuda_memory_enter(memory);
    if (status == PEN_OK) {
        status = pen_cuda_check(
            memory, memory->driver->host_allocate(&chunk->bytes, (size_t)chunk->size, 0),
            "while pinned memory was taken");
    }
    if (status == PEN_OK) {
        status = pen_cpu_device_kind.buffer_wrap(host->cpu, pen_memory_place_at(chunk->bytes),
                                                 chunk->size, &chunk->buffer);
    }
    if (status != PEN_OK) {
        if (chunk->bytes != NULL) (void)memory->driver->host_free(chunk->bytes);
        pen_memory_free(chunk);
        return status;
    }
    chunk->next = host->chunks;
    host->chunks = chunk;
    return PEN_OK;
}

// Operands of a launch, in the order inputs, outputs.
typedef struct host_operands {
    const pen_graph *graph;
    const pen_node *node;
    const pen_binding *binding;
    uint32_t count;
    pen_operand *places; // [count] in pinned memory
    uint64_t end;        // bytes that they take
} host_operands;

static pen_operand host_device_operand(const host_operands *o, uint32_t i) {
    const uint32_t inputs = o->node->input_count;
    return i < inputs ? o->binding->inputs[i] : o->binding->outputs[i - inputs];
}

static pen_value_id host_operand_id(const host_operands *o, uint32_t i) {
    const uint32_t inputs = o->node->input_count;
    return i < inputs ? o->node->inputs[i] : o->node->outputs[i - inputs];
}

static size_t host_operand_bytes(const host_operands *o, uint32_t i) {
    return (size_t)pen_tensor_type_bytes(pen_value_type(o->graph, host_operand_id(o, i)));
}

// What an operand takes of a chunk, with a gap behind it.
static uint64_t host_room(uint64_t bytes) {
    return pen_align_up(bytes, 64) + 64;
}

// The operand before `i` that lies at the same place on the GPU, or `i`.
static uint32_t host_find_same(const host_operands *o, uint32_t i) {
    const pen_cuda_address address = pen_cuda_address_of(host_device_operand(o, i));
    for (uint32_t k = 0; k < i; k++) {
        const pen_operand other = host_device_operand(o, k);
        if (other.buffer == NULL || pen_cuda_address_of(other) != address) continue;
        if (host_operand_bytes(o, k) == host_operand_bytes(o, i)) return k;
    }
    return i;
}

// What shares memory on the GPU shares it here.
static void host_lay_out(host_operands *o) {
    for (uint32_t i = 0; i < o->count; i++) {
        if (host_device_operand(o, i).buffer == NULL) continue;
        const uint32_t same = host_find_same(o, i);
        o->places[i].offset = same < i ? o->places[same].offset : o->end;
        if (same == i) o->end += host_room(host_operand_bytes(o, i));
    }
}

// What a node needs of a chunk, each of its operands by itself.
static pen_status host_measure_node(const pen_cuda_host *host, const pen_graph *graph,
                                    pen_node_id id, uint64_t *out_bytes) {
    const host_operands o = {.graph = graph, .node = pen_graph_node(graph, id)};
    pen_arena *scratch;
    pen_kernel *kernel;
    uint64_t bytes = 0;
    PEN_TRY(pen_arena_create(&scratch));
    const pen_status status = pen_cpu_device_kind.prepare(host->cpu, graph, id, scratch, &kernel);
    if (status == PEN_OK) {
        bytes = pen_align_up(pen_cpu_device_kind.workspace_bytes(kernel), 64);
        pen_cpu_device_kind.release(host->cpu, kernel);
    }
    pen_arena_destroy(scratch);
    for (uint32_t i = 0; i < o.node->input_count + o.node->output_count; i++) {
        if (pen_value_is(host_operand_id(&o, i))) bytes += host_room(host_operand_bytes(&o, i));
    }
    *out_bytes = bytes;
    return status;
}

// Chunks grow as launches are bound one after the other.
pen_status pen_cuda_host_measure(const pen_cuda_host *host, const pen_graph *graph,
                                 const pen_node_id *order, uint32_t order_count,
                                 uint64_t *out_bytes) {
    uint64_t chunk = 0, all = 0;
    for (uint32_t p = 0; p < order_count; p++) {
        const pen_node *node = pen_graph_node(graph, order[p]);
        uint64_t bytes;
        if (node->op->is_view || pen_cuda_entry_find(graph, node) != NULL) continue;
        PEN_TRY(host_measure_node(host, graph, order[p], &bytes));
        if (chunk > 0 && chunk >= bytes) continue;
        chunk = host_chunk_bytes(chunk, bytes);
        all += chunk;
    }
    *out_bytes = all;
    return PEN_OK;
}

static bool host_is_read(const host_operands *o, uint32_t i) {
    return i < o->node->input_count || o->node->accumulates || o->node->op->adds_itself;
}

static void host_list_copies(const host_operands *o, uint8_t *base, pen_cuda_host_launch *launch) {
    for (uint32_t i = 0; i < o->count; i++) {
        const pen_operand operand = host_device_operand(o, i);
        if (operand.buffer == NULL) continue;
        const host_copy copy = {pen_cuda_address_of(operand), base + o->places[i].offset,
                                host_operand_bytes(o, i)};
        if (copy.bytes == 0) continue;
        if (host_is_read(o, i) && host_find_same(o, i) == i) launch->in[launch->in_count++] = copy;
        if (i >= o->node->input_count) launch->out[launch->out_count++] = copy;
    }
}

// Operands lie in the newest chunk, which is the largest.
pen_status pen_cuda_host_bind(pen_cuda_host *host, const pen_cuda_host_node *given,
                              const pen_binding *binding, pen_arena *arena,
                              pen_cuda_host_launch **out_launch) {
    const pen_node *node = given->node;
    host_operands o = {.graph = given->graph,
                       .node = node,
                       .binding = binding,
                       .count = node->input_count + node->output_count};
    const uint64_t workspace = pen_cpu_device_kind.workspace_bytes(given->kernel);
    pen_cuda_host_launch *launch;
    PEN_TRY(PEN_NEW(arena, 1, &launch));
    PEN_TRY(PEN_NEW(arena, o.count, &o.places));
    PEN_TRY(PEN_NEW(arena, o.count, &launch->in));
    PEN_TRY(PEN_NEW(arena, node->output_count, &launch->out));
    host_lay_out(&o);
    const uint64_t end = o.end + pen_align_up(workspace, 64);
    if (host->chunks == NULL || host->chunks->size < end) PEN_TRY(host_add_chunk(host, end));
    pen_buffer *const buffer = host->chunks->buffer;
    for (uint32_t i = 0; i < o.count; i++)
        if (host_device_operand(&o, i).buffer != NULL) o.places[i].buffer = buffer;
    host_list_copies(&o, host->chunks->bytes, launch);
    launch->is_update = node->op->is_update;
    const pen_binding own = {.inputs = o.places,
                             .outputs = o.places + node->input_count,
                             .workspace = {workspace > 0 ? buffer : NULL, o.end}};
    PEN_TRY(pen_cpu_device_kind.bind(host->cpu, given->kernel, &own, arena, &launch->launch));
    *out_launch = launch;
    return PEN_OK;
}

// The stream keeps order: what is written back is there before another launch's operands are read.
pen_status pen_cuda_host_run(pen_cuda_host *host, const pen_cuda_host_launch *launch,
                             const pen_cuda_flag *flag, const pen_run_context *run) {
    pen_cuda_memory *memory = host->memory;
    *flag->here = 0;
    if (launch->is_update) {
        PEN_TRY(pen_cuda_check(
            memory,
            memory->driver->read(flag->here, flag->device, sizeof *flag->here, memory->stream),
            "while a word was copied from it"));
    }
    for (uint32_t i = 0; i < launch->in_count; i++) {
        const host_copy *copy = &launch->in[i];
        PEN_TRY(pen_cuda_check(
            memory, memory->driver->read(copy->host, copy->device, copy->bytes, memory->stream),
            "while an operand was copied from it"));
    }
    PEN_TRY(pen_cuda_memory_wait(memory));
    if (*flag->here != 0) return PEN_OK;
    PEN_TRY(pen_cpu_device_kind.enqueue(host->cpu, launch->launch, run));
    for (uint32_t i = 0; i < launch->out_count; i++) {
        const host_copy *copy = &launch->out[i];
        PEN_TRY(pen_cuda_check(
            memory, memory->driver->write(copy->device, copy->host, copy->bytes, memory->stream),
            "while a result was copied to it"));
    }
    return PEN_OK;
}
