// A oneDNN primitive as a kernel: the primitive, its memories, and reorders where an operand lies
// otherwise than the primitive wants it.
//
// Everything is made once; a run only points the memories at their bytes and executes.
#ifndef PEN_DEVICE_CPU_ONEDNN_ONEDNN_OPERATION_H
#define PEN_DEVICE_CPU_ONEDNN_ONEDNN_OPERATION_H

#include "device/cpu/cpu_kernel.h"
#include "device/cpu/onednn/onednn.h"

#define PEN_ONEDNN_OPERAND_LIMIT 6

typedef struct pen_onednn_operand {
    int argument;           // DNNL_ARG_SRC, …
    bool is_output;         // of the node
    uint32_t index;         // of the node's inputs or outputs
    pen_onednn_tensor lies; // how the value lies in memory
} pen_onednn_operand;

typedef struct pen_onednn_operation_spec {
    dnnl_primitive_desc_t primitive;    // taken, also on failure
    const pen_onednn_operand *operands; // [operand_count]
    uint32_t operand_count;
    bool accumulates; // the node adds to its outputs: runs may ask for it
} pen_onednn_operation_spec;

typedef struct pen_onednn_operation pen_onednn_operation;

// The attributes of all primitives here: scratch memory comes from the caller. The caller destroys
// them, on failure as well.
dnnl_status_t pen_onednn_operation_attributes(dnnl_primitive_attr_t *out_attributes);

// Whether a memory is what the primitive takes for an argument.
bool pen_onednn_is_wanted(const_dnnl_primitive_desc_t primitive, int argument,
                          const_dnnl_memory_t memory);

// In the request's arena; `out_workspace_bytes` is what a run needs.
PEN_NODISCARD pen_status pen_onednn_operation_make(const pen_cpu_request *request,
                                                   const pen_onednn_operation_spec *spec,
                                                   pen_onednn_operation **out_operation,
                                                   uint64_t *out_workspace_bytes);

// Members of pen_cpu_kernel for entries whose state is an operation.
PEN_NODISCARD pen_status pen_onednn_operation_run(const pen_cpu_call *call);
void pen_onednn_operation_release(void *operation);

#endif // PEN_DEVICE_CPU_ONEDNN_ONEDNN_OPERATION_H
