#include "graph/op_known.h"

#include <stdatomic.h>
#include <stddef.h>

#include "graph/op.h"

#define KNOWN_NAME(name) #name,
static const char *const known_names[] = {PEN_KNOWN_OPS(KNOWN_NAME)};

// Each is looked up once. Who comes second stores the same: ops never change.
static const pen_op *_Atomic known_ops[PEN_KNOWN_COUNT];

const pen_op *pen_op_known(pen_known_op known) {
    const pen_op *op = atomic_load_explicit(&known_ops[known], memory_order_relaxed);
    if (op != NULL) return op;
    const pen_status status = pen_op_find(known_names[known], &op);
    PEN_ASSERT(status == PEN_OK);
    atomic_store_explicit(&known_ops[known], op, memory_order_relaxed);
    return op;
}
