#include "device/cpu/cpu_kernel_list.h"

#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"

// Every family of device/cpu/kernels/, compiled once a level.
// clang-format off
#define CPU_FAMILIES(X)                                                                            \
    X(matmul)                                                                                      \
    X(optimizer)                                                                                   \
    X(adaptive)                                                                                    \
    X(adafactor)                                                                                   \
    X(movement)                                                                                    \
    X(indexing)                                                                                    \
    X(elementwise)                                                                                 \
    X(activation)                                                                                  \
    X(gelu)                                                                                        \
    X(reduction)                                                                                   \
    X(recurrent)                                                                                   \
    X(softmax)                                                                                     \
    X(loss)                                                                                        \
    X(pair_loss)                                                                                   \
    X(dropout)                                                                                     \
    X(pooling)                                                                                     \
    X(convolution)                                                                                 \
    X(depthwise)                                                                                   \
    X(attention)                                                                                   \
    X(attention_backward)                                                                          \
    X(lrn)                                                                                         \
    X(normalization)                                                                               \
    X(normalization_backward)                                                                      \
    X(layer_norm)                                                                                  \
    X(resize)                                                                                      \
    X(tree)                                                                                        \
    X(version)
// clang-format on

// Families that are compiled once: they only call libraries.
#define CPU_LIBRARY_FAMILIES(X) X(onednn_convolution) X(onednn_reorder)

#define CPU_DECLARE_BASE(name) extern const pen_cpu_family pen_##name##_cpu_base;
#define CPU_DECLARE_LEVELS(name)                                                                   \
    extern const pen_cpu_family pen_##name##_cpu_v2;                                               \
    extern const pen_cpu_family pen_##name##_cpu_v3;                                               \
    extern const pen_cpu_family pen_##name##_cpu_v4;
#define CPU_ENTRY_BASE(name) &pen_##name##_cpu_base,
#define CPU_ENTRY_V2(name) &pen_##name##_cpu_v2,
#define CPU_ENTRY_V3(name) &pen_##name##_cpu_v3,
#define CPU_ENTRY_V4(name) &pen_##name##_cpu_v4,

CPU_LIBRARY_FAMILIES(CPU_DECLARE_BASE)
#ifdef PEN_CPU_HAS_LEVELS
CPU_FAMILIES(CPU_DECLARE_LEVELS)
static const pen_cpu_family *const cpu_families_base[] = {NULL};
static const pen_cpu_family *const cpu_families_v2[] = {
    CPU_FAMILIES(CPU_ENTRY_V2) CPU_LIBRARY_FAMILIES(CPU_ENTRY_BASE) NULL};
static const pen_cpu_family *const cpu_families_v3[] = {
    CPU_FAMILIES(CPU_ENTRY_V3) CPU_LIBRARY_FAMILIES(CPU_ENTRY_BASE) NULL};
static const pen_cpu_family *const cpu_families_v4[] = {
    CPU_FAMILIES(CPU_ENTRY_V4) CPU_LIBRARY_FAMILIES(CPU_ENTRY_BASE) NULL};
#else
CPU_FAMILIES(CPU_DECLARE_BASE)
static const pen_cpu_family *const cpu_families_base[] = {
    CPU_FAMILIES(CPU_ENTRY_BASE) CPU_LIBRARY_FAMILIES(CPU_ENTRY_BASE) NULL};
static const pen_cpu_family *const cpu_families_v2[] = {NULL};
static const pen_cpu_family *const cpu_families_v3[] = {NULL};
static const pen_cpu_family *const cpu_families_v4[] = {NULL};
#endif

static const pen_cpu_family *const *const cpu_families[PEN_KERNEL_LEVEL_COUNT] = {
    [PEN_KERNEL_LEVEL_BASE] = cpu_families_base,
    [PEN_KERNEL_LEVEL_V2] = cpu_families_v2,
    [PEN_KERNEL_LEVEL_V3] = cpu_families_v3,
    [PEN_KERNEL_LEVEL_V4] = cpu_families_v4,
};

bool pen_cpu_is_plain_float(const pen_cpu_request *request, pen_value_id id) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(request->graph, id);
    return value->type.element == PEN_FLOAT32 && value->layout == PEN_LAYOUT_PLAIN;
}

// The values of the node, but for inputs that are constants of the op.
static bool cpu_are_plain_floats(const pen_cpu_request *request, uint64_t constant_inputs) {
    const pen_node *node = request->node;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_constant = i < 64 && (constant_inputs >> i & 1) != 0;
        if (!is_constant && !pen_cpu_is_plain_float(request, node->inputs[i])) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!pen_cpu_is_plain_float(request, node->outputs[i])) return false;
    }
    return true;
}

bool pen_cpu_is_all_plain_float(const pen_cpu_request *request) {
    return cpu_are_plain_floats(request, 0);
}

static bool cpu_lies_like(const pen_graph *graph, pen_value_id id, const pen_value *model) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(graph, id);
    return value->layout == model->layout && pen_tensor_type_equal(&value->type, &model->type);
}

// Whether all operands and outputs are float32 of one shape in one layout.
static bool cpu_lies_alike(const pen_cpu_request *request) {
    const pen_node *node = request->node;
    const pen_value *model = pen_graph_value(request->graph, node->outputs[0]);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!cpu_lies_like(request->graph, node->inputs[i], model)) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!cpu_lies_like(request->graph, node->outputs[i], model)) return false;
    }
    return model->type.element == PEN_FLOAT32;
}

// The rule for entries without one of their own.
static bool cpu_supports_by_default(const pen_cpu_request *request, bool takes_any_layout) {
    return (takes_any_layout && cpu_lies_alike(request)) ||
           cpu_are_plain_floats(request, request->node->op->constant_inputs);
}

// Whether the device can add for an entry that cannot: it knows floats alone.
static bool cpu_can_add(const pen_cpu_request *request) {
    for (uint32_t i = 0; i < request->node->output_count; i++) {
        if (!pen_value_is(request->node->outputs[i])) continue;
        const pen_element_type element =
            pen_value_type(request->graph, request->node->outputs[i])->element;
        if (!pen_element_is_trained(element)) return false;
    }
    return true;
}

static bool cpu_entry_can(const pen_cpu_request *request, const pen_cpu_kernel *entry) {
    if (strcmp(entry->op_name, request->node->op->name) != 0) return false;
    if (request->node->accumulates && !entry->can_accumulate && !cpu_can_add(request)) return false;
    if (entry->supports == NULL) return cpu_supports_by_default(request, entry->takes_any_layout);
    pen_cpu_request ruled = *request;
    ruled.rule = entry->rule;
    return entry->supports(&ruled);
}

// All entries that can do the node; one whose rule of thumb prefers the shape moves to the front.
uint32_t pen_cpu_candidates(const pen_cpu_request *request,
                            const pen_cpu_kernel *out_entries[PEN_CPU_CANDIDATE_LIMIT]) {
    uint32_t count = 0;
    const pen_cpu_family *const *families = cpu_families[request->level];
    for (; *families != NULL; families++) {
        for (uint32_t i = 0; i < (*families)->kernel_count; i++) {
            const pen_cpu_kernel *entry = &(*families)->kernels[i];
            if (count < PEN_CPU_CANDIDATE_LIMIT && cpu_entry_can(request, entry)) {
                out_entries[count++] = entry;
            }
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        if (out_entries[i]->prefers == NULL || !out_entries[i]->prefers(request)) continue;
        const pen_cpu_kernel *preferred = out_entries[i];
        memmove((void *)(out_entries + 1), (const void *)out_entries, i * sizeof *out_entries);
        out_entries[0] = preferred;
        break;
    }
    return count;
}

bool pen_cpu_takes_any_layout(pen_kernel_level level, const char *op_name) {
    const pen_cpu_family *const *families = cpu_families[level];
    for (; *families != NULL; families++) {
        for (uint32_t i = 0; i < (*families)->kernel_count; i++) {
            const pen_cpu_kernel *entry = &(*families)->kernels[i];
            if (entry->takes_any_layout && strcmp(entry->op_name, op_name) == 0) return true;
        }
    }
    return false;
}

const pen_cpu_kernel *pen_cpu_choose(const pen_cpu_request *request) {
    const pen_cpu_kernel *entries[PEN_CPU_CANDIDATE_LIMIT];
    return pen_cpu_candidates(request, entries) > 0 ? entries[0] : &pen_cpu_fallback_kernel;
}
