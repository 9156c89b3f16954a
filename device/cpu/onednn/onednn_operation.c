#include "device/cpu/onednn/onednn_operation.h"

#include "base/integer.h"

// One operand, from the node's value to the primitive. Where they lie alike, `value` is what the
// primitive takes, and there are no reorders.
typedef struct operation_operand {
    uint32_t index;
    bool is_output;
    uint64_t offset;           // of `staged` in the workspace
    dnnl_memory_t value;       // over the node's operand
    dnnl_memory_t staged;      // as the primitive wants it, in the workspace; or NULL
    dnnl_primitive_t reorder;  // between the two; NULL when they lie alike
    dnnl_primitive_t addition; // staged added to value; NULL unless an output accumulates
} operation_operand;

struct pen_onednn_operation {
    dnnl_primitive_t primitive;
    operation_operand operands[PEN_ONEDNN_OPERAND_LIMIT];
    uint32_t operand_count;
    dnnl_exec_arg_t arguments[PEN_ONEDNN_OPERAND_LIMIT + 1];
    int argument_count;
    dnnl_memory_t scratch; // NULL: none
    uint64_t scratch_offset;
};

dnnl_status_t pen_onednn_operation_attributes(dnnl_primitive_attr_t *out_attributes) {
    *out_attributes = NULL;
    const dnnl_status_t status = dnnl_primitive_attr_create(out_attributes);
    if (status != dnnl_success) return status;
    return dnnl_primitive_attr_set_scratchpad_mode(*out_attributes, dnnl_scratchpad_mode_user);
}

static pen_onednn_md operation_md(const_dnnl_memory_t memory) {
    pen_onednn_md md = NULL;
    const dnnl_status_t status = dnnl_memory_get_memory_desc(memory, &md);
    PEN_ASSERT(status == dnnl_success && md != NULL);
    return md;
}

bool pen_onednn_is_wanted(const_dnnl_primitive_desc_t primitive, int argument,
                          const_dnnl_memory_t memory) {
    const pen_onednn_md wanted =
        dnnl_primitive_desc_query_md(primitive, dnnl_query_exec_arg_md, argument);
    return wanted != NULL && dnnl_memory_desc_equal(wanted, operation_md(memory)) != 0;
}

// A memory in the workspace, of which it takes the next bytes.
static pen_status operation_memory(pen_onednn_md md, uint64_t *workspace_bytes,
                                   uint64_t *out_offset, dnnl_memory_t *out_memory) {
    *out_offset = *workspace_bytes;
    *workspace_bytes += pen_align_up(dnnl_memory_desc_get_size(md), 64);
    return pen_onednn_status(
        dnnl_memory_create(out_memory, md, pen_onednn_engine(), DNNL_MEMORY_NONE),
        "making a memory");
}

// A reorder; with `adds`, its result is added to what is there.
static pen_status operation_reorder(const_dnnl_memory_t from, const_dnnl_memory_t to, bool adds,
                                    dnnl_primitive_t *out_reorder) {
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t post_ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success) status = dnnl_post_ops_create(&post_ops);
    if (status == dnnl_success && adds) status = pen_onednn_append_sum(post_ops);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attributes, post_ops);
    if (status == dnnl_success) {
        status = dnnl_reorder_primitive_desc_create(&description, operation_md(from),
                                                    pen_onednn_engine(), operation_md(to),
                                                    pen_onednn_engine(), attributes);
    }
    if (status == dnnl_success) status = dnnl_primitive_create(out_reorder, description);
    if (description != NULL) dnnl_primitive_desc_destroy(description);
    if (post_ops != NULL) dnnl_post_ops_destroy(post_ops);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    return pen_onednn_status(status, "making a reorder");
}

// Where an operand lies otherwise than oneDNN wants it, or results are added, it goes through a
// staged copy in the workspace.
static pen_status operation_take(pen_onednn_operation *operation, const pen_onednn_operand *operand,
                                 bool accumulates, const_dnnl_primitive_desc_t description,
                                 uint64_t *workspace_bytes) {
    operation_operand *to = &operation->operands[operation->operand_count++];
    to->index = operand->index;
    to->is_output = operand->is_output;
    const pen_onednn_md wanted =
        dnnl_primitive_desc_query_md(description, dnnl_query_exec_arg_md, operand->argument);
    PEN_ASSERT(wanted != NULL);
    PEN_TRY(
        pen_onednn_status(pen_onednn_memory_create(&operand->lies, pen_onednn_engine(), &to->value),
                          "making a memory"));
    const bool adds = accumulates && operand->is_output;
    const bool lies_alike = pen_onednn_is_wanted(description, operand->argument, to->value);
    if (!lies_alike || adds) {
        PEN_TRY(operation_memory(wanted, workspace_bytes, &to->offset, &to->staged));
    }
    if (!lies_alike) {
        PEN_TRY(operation_reorder(to->is_output ? to->staged : to->value,
                                  to->is_output ? to->value : to->staged, false, &to->reorder));
    }
    if (adds) PEN_TRY(operation_reorder(to->staged, to->value, true, &to->addition));
    operation->arguments[operation->argument_count++].arg = operand->argument;
    return PEN_OK;
}

// oneDNN's scratch memory is part of our workspace, so that it allocates nothing while running.
static pen_status operation_fill(pen_onednn_operation *operation,
                                 const pen_onednn_operation_spec *spec, uint64_t *workspace_bytes) {
    PEN_ASSERT(spec->operand_count <= PEN_ONEDNN_OPERAND_LIMIT);
    for (uint32_t i = 0; i < spec->operand_count; i++) {
        PEN_TRY(operation_take(operation, &spec->operands[i], spec->accumulates, spec->primitive,
                               workspace_bytes));
    }
    const pen_onednn_md scratch =
        dnnl_primitive_desc_query_md(spec->primitive, dnnl_query_scratchpad_md, 0);
    if (scratch != NULL && dnnl_memory_desc_get_size(scratch) > 0) {
        PEN_TRY(operation_memory(scratch, workspace_bytes, &operation->scratch_offset,
                                 &operation->scratch));
        operation->arguments[operation->argument_count++] =
            (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, operation->scratch};
    }
    return pen_onednn_status(dnnl_primitive_create(&operation->primitive, spec->primitive),
                             "making a primitive");
}

pen_status pen_onednn_operation_make(const pen_cpu_request *request,
                                     const pen_onednn_operation_spec *spec,
                                     pen_onednn_operation **out_operation,
                                     uint64_t *out_workspace_bytes) {
    pen_onednn_operation *operation;
    pen_status status = PEN_NEW(request->arena, 1, &operation);
    uint64_t workspace_bytes = 0;
    if (status == PEN_OK) {
        status = operation_fill(operation, spec, &workspace_bytes);
        if (status != PEN_OK) pen_onednn_operation_release(operation);
    }
    dnnl_primitive_desc_destroy(spec->primitive);
    PEN_TRY(status);
    *out_operation = operation;
    *out_workspace_bytes = workspace_bytes;
    return PEN_OK;
}

static dnnl_status_t operation_point(dnnl_memory_t memory, void *bytes) {
    return pen_onednn_memory_point(memory, bytes, pen_onednn_stream());
}

static dnnl_status_t operation_move(dnnl_primitive_t reorder, dnnl_memory_t from,
                                    dnnl_memory_t to) {
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return dnnl_primitive_execute(reorder, pen_onednn_stream(), 2, arguments);
}

static bool operation_is_staged(const operation_operand *operand, bool accumulate) {
    return operand->reorder != NULL || (accumulate && operand->addition != NULL);
}

// Points an operand's memories at their bytes, and brings an input into place.
static dnnl_status_t operation_bring(const operation_operand *operand, const pen_cpu_call *call,
                                     dnnl_memory_t *out_memory) {
    void *value = operand->is_output ? call->outputs[operand->index] : call->inputs[operand->index];
    dnnl_status_t status = operation_point(operand->value, value);
    *out_memory = operand->value;
    if (status != dnnl_success || !operation_is_staged(operand, call->accumulate)) return status;
    *out_memory = operand->staged;
    status = operation_point(operand->staged, (char *)call->workspace + operand->offset);
    if (status != dnnl_success || operand->is_output) return status;
    return operation_move(operand->reorder, operand->value, operand->staged);
}

static dnnl_status_t operation_take_away(const operation_operand *operand,
                                         const pen_cpu_call *call) {
    if (!operand->is_output || !operation_is_staged(operand, call->accumulate)) return dnnl_success;
    return operation_move(call->accumulate ? operand->addition : operand->reorder, operand->staged,
                          operand->value);
}

// Arguments are copied onto the stack: several launches of one kernel differ in addresses alone.
static dnnl_status_t operation_execute(const pen_onednn_operation *operation,
                                       const pen_cpu_call *call) {
    dnnl_exec_arg_t arguments[PEN_ONEDNN_OPERAND_LIMIT + 1];
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < operation->argument_count; i++) {
        arguments[i] = operation->arguments[i];
    }
    for (uint32_t i = 0; status == dnnl_success && i < operation->operand_count; i++) {
        status = operation_bring(&operation->operands[i], call, &arguments[i].memory);
    }
    if (status == dnnl_success && operation->scratch != NULL) {
        status = operation_point(operation->scratch,
                                 (char *)call->workspace + operation->scratch_offset);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_execute(operation->primitive, pen_onednn_stream(),
                                        operation->argument_count, arguments);
    }
    for (uint32_t i = 0; status == dnnl_success && i < operation->operand_count; i++) {
        status = operation_take_away(&operation->operands[i], call);
    }
    return status;
}

pen_status pen_onednn_operation_run(const pen_cpu_call *call) {
    const dnnl_status_t status = operation_execute(call->state, call);
    return status == dnnl_success ? PEN_OK : pen_onednn_status(status, "running a primitive");
}

static void operation_destroy(dnnl_primitive_t primitive) {
    if (primitive != NULL) dnnl_primitive_destroy(primitive);
}

static void operation_forget(dnnl_memory_t memory) {
    if (memory != NULL) dnnl_memory_destroy(memory);
}

void pen_onednn_operation_release(void *state) {
    pen_onednn_operation *operation = state;
    if (operation == NULL) return;
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        operation_forget(operation->operands[i].value);
        operation_forget(operation->operands[i].staged);
        operation_destroy(operation->operands[i].reorder);
        operation_destroy(operation->operands[i].addition);
    }
    operation_forget(operation->scratch);
    operation_destroy(operation->primitive);
}
