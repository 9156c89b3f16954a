#include "device/cpu/cpu_kernel_list.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/cpu_layout.h"
#include "device/kernel_choices.h"

// Every family of device/cpu/kernels/, compiled once a level.
// clang-format off
#define CPU_FAMILIES(X)                                                                            \
    X(matmul)                                                                                      \
    X(optimizer)                                                                                   \
    X(movement)                                                                                    \
    X(indexing)                                                                                    \
    X(elementwise)                                                                                 \
    X(activation)                                                                                  \
    X(gelu)                                                                                        \
    X(reduction)                                                                                   \
    X(recurrent)                                                                                   \
    X(softmax)                                                                                     \
    X(loss)                                                                                        \
    X(dropout)                                                                                     \
    X(pooling)                                                                                     \
    X(convolution)                                                                                 \
    X(attention)                                                                                   \
    X(lrn)                                                                                         \
    X(normalization)                                                                               \
    X(normalization_backward)                                                                      \
    X(layer_norm)                                                                                  \
    X(resize)
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

static const pen_cpu_family *const *const cpu_families[PEN_CPU_LEVEL_COUNT] = {
    cpu_families_base, cpu_families_v2, cpu_families_v3, cpu_families_v4};

static bool cpu_is_plain_float(const pen_graph *graph, pen_value_id id) {
    if (!pen_value_is(id)) return true;
    const pen_value *value = pen_graph_value(graph, id);
    return value->type.element == PEN_FLOAT32 && value->layout == PEN_LAYOUT_PLAIN;
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
    const pen_node *node = request->node;
    if (takes_any_layout && cpu_lies_alike(request)) return true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_constant = i < 64 && (node->op->constant_inputs >> i & 1) != 0;
        if (!is_constant && !cpu_is_plain_float(request->graph, node->inputs[i])) return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!cpu_is_plain_float(request->graph, node->outputs[i])) return false;
    }
    return true;
}

// Whether the device can add for an entry that cannot: it knows floats alone.
static bool cpu_can_add(const pen_cpu_request *request) {
    for (uint32_t i = 0; i < request->node->output_count; i++) {
        if (!pen_value_is(request->node->outputs[i])) continue;
        const pen_element_type element =
            pen_value_type(request->graph, request->node->outputs[i])->element;
        if (element != PEN_FLOAT32 && element != PEN_FLOAT64) return false;
    }
    return true;
}

static bool cpu_entry_can(const pen_cpu_request *request, const pen_cpu_kernel *entry) {
    if (strcmp(entry->op_name, request->node->op->name) != 0) return false;
    if (request->node->accumulates && !entry->can_accumulate && !cpu_can_add(request)) return false;
    return entry->supports == NULL ? cpu_supports_by_default(request, entry->takes_any_layout)
                                   : entry->supports(request);
}

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

bool pen_cpu_takes_any_layout(pen_cpu_level level, const char *op_name) {
    const pen_cpu_family *const *families = cpu_families[level];
    for (; *families != NULL; families++) {
        for (uint32_t i = 0; i < (*families)->kernel_count; i++) {
            const pen_cpu_kernel *entry = &(*families)->kernels[i];
            if (entry->takes_any_layout && strcmp(entry->op_name, op_name) == 0) return true;
        }
    }
    return false;
}

static void cpu_key_add_value(pen_text *text, const pen_graph *graph, pen_value_id id) {
    if (!pen_value_is(id)) {
        pen_text_add(text, " -");
        return;
    }
    char type[PEN_SHAPE_TEXT_BYTES];
    const pen_value *value = pen_graph_value(graph, id);
    pen_text_print(text, " %s", pen_tensor_type_format(&value->type, type));
    if (value->layout != PEN_LAYOUT_PLAIN) pen_text_print(text, "/%u", (unsigned)value->layout);
}

static void cpu_key_add_attribute(pen_text *text, const pen_attribute_schema *schema,
                                  const pen_attribute_value *value) {
    if (!value->present) return;
    pen_text_print(text, " %s=", schema->name);
    switch (schema->kind) {
    case PEN_ATTRIBUTE_INT:
        pen_text_print(text, "%lld", (long long)value->integer);
        break;
    case PEN_ATTRIBUTE_FLOAT:
        pen_text_print(text, "%.9g", value->number);
        break;
    case PEN_ATTRIBUTE_TEXT:
        pen_text_add(text, value->text);
        break;
    case PEN_ATTRIBUTE_INTS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_text_print(text, "%s%lld", i == 0 ? "" : ",", (long long)value->integers[i]);
        }
        break;
    case PEN_ATTRIBUTE_FLOATS:
        for (uint32_t i = 0; i < value->count; i++) {
            pen_text_print(text, "%s%.9g", i == 0 ? "" : ",", value->numbers[i]);
        }
        break;
    }
}

// See device/kernel_choices.h.
static pen_status cpu_key(const pen_cpu_request *request, pen_arena *arena, const char **out_key) {
    const pen_node *node = request->node;
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, node->op->name);
    for (uint32_t i = 0; i < node->op->attribute_count; i++) {
        cpu_key_add_attribute(&text, &node->op->attributes[i], &node->attributes[i]);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        cpu_key_add_value(&text, request->graph, node->inputs[i]);
    }
    pen_text_add(&text, " ->");
    for (uint32_t i = 0; i < node->output_count; i++) {
        cpu_key_add_value(&text, request->graph, node->outputs[i]);
    }
    pen_text_print(&text, " accumulates=%d threads=%u level=%s", node->accumulates ? 1 : 0,
                   request->thread_count, pen_cpu_level_name(request->level));
    return pen_text_finish(&text, out_key);
}

// Operands made up for a measurement.
typedef struct cpu_trial {
    void **inputs;  // [input_count]
    void **outputs; // [output_count]
    void *workspace;
} cpu_trial;

static void cpu_trial_free(const pen_node *node, cpu_trial *trial) {
    for (uint32_t i = 0; trial->inputs != NULL && i < node->input_count; i++) {
        pen_memory_free(trial->inputs[i]);
    }
    for (uint32_t i = 0; trial->outputs != NULL && i < node->output_count; i++) {
        pen_memory_free(trial->outputs[i]);
    }
}

static pen_status cpu_trial_operand(const pen_graph *graph, pen_value_id id, void **out_bytes) {
    if (!pen_value_is(id)) return PEN_OK;
    const pen_value *value = pen_graph_value(graph, id);
    const uint64_t bytes = pen_cpu_value_bytes(graph, id);
    *out_bytes = pen_memory_allocate(bytes == 0 ? 1 : bytes, 1);
    if (*out_bytes == NULL) return pen_error_out_of_memory();
    if (value->data != NULL) {
        memcpy(*out_bytes, value->data, value->data_bytes);
    } else if (value->type.element == PEN_FLOAT32) {
        float *numbers = *out_bytes;
        for (uint64_t k = 0; k < bytes / sizeof *numbers; k++) {
            numbers[k] = (float)(k % 13) * 0.125f - 0.75f;
        }
    } else {
        memset(*out_bytes, 0, bytes);
    }
    return PEN_OK;
}

static pen_status cpu_trial_make(const pen_cpu_request *request, cpu_trial *trial) {
    const pen_node *node = request->node;
    PEN_TRY(PEN_NEW(request->arena, node->input_count, &trial->inputs));
    PEN_TRY(PEN_NEW(request->arena, node->output_count, &trial->outputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        PEN_TRY(cpu_trial_operand(request->graph, node->inputs[i], &trial->inputs[i]));
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        PEN_TRY(cpu_trial_operand(request->graph, node->outputs[i], &trial->outputs[i]));
    }
    return PEN_OK;
}

// The least time of a few runs, the first not counted.
static pen_status cpu_trial_time(const pen_cpu_kernel *entry, const pen_cpu_call *call,
                                 double *out_seconds) {
    const double budget_seconds = 0.02;
    PEN_TRY(entry->run(call));
    double least = 1e30, spent = 0;
    for (int runs = 0; runs < 3 || (runs < 20 && spent < budget_seconds); runs++) {
        const double start = pen_clock_seconds();
        PEN_TRY(entry->run(call));
        const double seconds = pen_clock_seconds() - start;
        spent += seconds;
        if (seconds < least) least = seconds;
    }
    *out_seconds = least;
    return PEN_OK;
}

static pen_status cpu_trial_run(const pen_cpu_request *request, const pen_cpu_kernel *entry,
                                const cpu_trial *trial, double *out_seconds) {
    static const pen_run_context run = {.first_microbatch = false};
    void *state = NULL;
    uint64_t workspace_bytes = 0;
    if (entry->prepare != NULL) PEN_TRY(entry->prepare(request, &state, &workspace_bytes));
    pen_cpu_call call = {
        .state = state,
        .inputs = trial->inputs,
        .outputs = trial->outputs,
        .run = &run,
        .accumulate = request->node->accumulates && entry->can_accumulate,
    };
    call.workspace = pen_memory_allocate(workspace_bytes == 0 ? 1 : workspace_bytes, 1);
    const pen_status status = call.workspace == NULL ? pen_error_out_of_memory()
                                                     : cpu_trial_time(entry, &call, out_seconds);
    pen_memory_free(call.workspace);
    if (entry->release != NULL && state != NULL) entry->release(state);
    return status;
}

static pen_status cpu_measure_in(const pen_cpu_request *request,
                                 const pen_cpu_kernel *const *entries, uint32_t count,
                                 cpu_trial *trial, const pen_cpu_kernel **out_entry) {
    PEN_TRY(cpu_trial_make(request, trial));
    double least = 0;
    for (uint32_t i = 0; i < count; i++) {
        double seconds = 0;
        PEN_TRY(cpu_trial_run(request, entries[i], trial, &seconds));
        // a later entry must be clearly better: the rule of thumb wins ties
        if (i > 0 && seconds > 0.97 * least) continue;
        least = seconds;
        *out_entry = entries[i];
    }
    return PEN_OK;
}

static pen_status cpu_measure(const pen_cpu_request *request, const pen_cpu_kernel *const *entries,
                              uint32_t count, const pen_cpu_kernel **out_entry) {
    pen_arena *arena;
    PEN_TRY(pen_arena_create(&arena));
    pen_cpu_request inner = *request;
    inner.arena = arena;
    cpu_trial trial = {0};
    const pen_status status = cpu_measure_in(&inner, entries, count, &trial, out_entry);
    cpu_trial_free(request->node, &trial);
    pen_arena_destroy(arena);
    return status;
}

static pen_status cpu_choose_among(const pen_cpu_request *request, pen_kernel_choices *choices,
                                   const pen_cpu_kernel *const *entries, uint32_t count,
                                   const pen_cpu_kernel **out_entry) {
    const char *key;
    PEN_TRY(cpu_key(request, request->arena, &key));
    const char *chosen = pen_kernel_choices_find(choices, key);
    *out_entry = entries[0];
    if (chosen == NULL) {
        if (!pen_kernel_choices_may_measure(choices)) return PEN_OK;
        PEN_TRY(cpu_measure(request, entries, count, out_entry));
        return pen_kernel_choices_set(choices, key, (*out_entry)->name);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(entries[i]->name, chosen) == 0) {
            *out_entry = entries[i];
            return PEN_OK;
        }
    }
    return pen_error(PEN_UNSUPPORTED,
                     "%s '%s': kernel '%s' was chosen, but is not there in this build",
                     request->node->op->name, request->node->name, chosen);
}

pen_status pen_cpu_choose(const pen_cpu_request *request, pen_kernel_choices *choices,
                          const pen_cpu_kernel **out_entry) {
    const pen_cpu_kernel *entries[PEN_CPU_CANDIDATE_LIMIT];
    const uint32_t count = pen_cpu_candidates(request, entries);
    if (count == 0) {
        *out_entry = &pen_cpu_fallback_kernel;
        return PEN_OK;
    }
    if (count > 1 && choices != NULL) {
        return cpu_choose_among(request, choices, entries, count, out_entry);
    }
    *out_entry = entries[0];
    return PEN_OK;
}
