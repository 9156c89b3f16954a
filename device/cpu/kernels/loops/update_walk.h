// Updates of parameters in one pass over memory, a piece or a row at a time: what kernels of
// optimizers share. The formulas are at the top of graph/ops/training/optimizer_op.c.
//
// Threads: pieces and rows are each updated by one thread, an element always with the same
// arithmetic, so the numbers do not depend on how many there are.
#ifndef PEN_DEVICE_CPU_KERNELS_LOOPS_UPDATE_WALK_H
#define PEN_DEVICE_CPU_KERNELS_LOOPS_UPDATE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cpu/cpu_kernel.h"
#include "graph/graph.h"
#include "graph/op.h"

#define UPDATE_TEAM_ELEMENTS 16384
// Elements that one thread updates at a time.
#define UPDATE_PIECE 4096
// Operands of an update at most.
#define UPDATE_OPERANDS 8

typedef struct update_state {
    const pen_node *node;
    int64_t count;
    uint32_t input_count;
    // elements of the scalar operands, by input: float64, else float32
    bool is_double[UPDATE_OPERANDS];
    // of a gradient of rows
    uint32_t rows; // which operand
    bool has_rows;
    bool rows_are_wide; // int64, else int32
    int64_t row_count, row_length, index_count;
    uint64_t own_offset; // in the workspace, of what the kernel keeps there itself
} update_state;

// An update of `count` elements from `first`; g are their gradients.
typedef struct update_step update_step;
typedef void (*update_span_fn)(const update_step *s, int64_t first, int64_t count, const float *g);

// What one run works with. Letters as in graph/ops/training/optimizer_op.c; each optimizer uses
// what it needs, others are 0.
struct update_step {
    update_span_fn span;
    const float *p, *m, *v; // SGD: v the velocity, NULL without momentum; RMSprop: m likewise
    const float *a;         // RMSprop: NULL where it is not centered
    float *p_new, *m_new, *v_new, *a_new;
    float rate, scale;
    float decay, keep; // weight decay added to the gradient, and what is left of the parameter
    float momentum, ahead, own;
    float beta1, rest1, beta2, rest2;
    float step_size, correction, epsilon;
    bool may_skip; // elements without gradient stay as they are
};

#define update_supports PEN_CPU_JOIN(pen_update_supports, PEN_CPU_LEVEL)
// Whether the first operands are float32 tensors, and the rows not too many.
bool update_supports(const pen_cpu_request *request, uint32_t tensor_count, uint32_t rows);

#define update_supports_node PEN_CPU_JOIN(pen_update_supports_node, PEN_CPU_LEVEL)
// The same for an update: all operands before the learning rate.
bool update_supports_node(const pen_cpu_request *request);

#define update_set_rows PEN_CPU_JOIN(pen_update_set_rows, PEN_CPU_LEVEL)
// Notes what rows there are, of a parameter of this shape. Returns the bytes of their lists.
uint64_t update_set_rows(const pen_cpu_request *request, const pen_shape *shape, uint32_t rows,
                         update_state *state);

#define update_prepare PEN_CPU_JOIN(pen_update_prepare, PEN_CPU_LEVEL)
// Makes an update_state; workspace for update_run.
PEN_NODISCARD pen_status update_prepare(const pen_cpu_request *request, void **out_state,
                                        uint64_t *out_workspace_bytes);

#define update_scalar PEN_CPU_JOIN(pen_update_scalar, PEN_CPU_LEVEL)
// The scalar operand `input`, or `otherwise` where it is left out.
double update_scalar(const pen_cpu_call *call, uint32_t input, double otherwise);

#define update_rate PEN_CPU_JOIN(pen_update_rate, PEN_CPU_LEVEL)
// The learning rate of the parameter.
double update_rate(const pen_cpu_call *call);

#define update_list_rows PEN_CPU_JOIN(pen_update_list_rows, PEN_CPU_LEVEL)
// Lists the indices of each row, in order: heads [row_count] and next [index_count], ended by -1.
PEN_NODISCARD pen_status update_list_rows(const update_state *state, const void *rows,
                                          int32_t *heads, int32_t *next);

// Elements [first, first + count) of a row.
typedef struct update_part {
    int64_t row, first, count;
} update_part;

#define update_add_row PEN_CPU_JOIN(pen_update_add_row, PEN_CPU_LEVEL)
// Adds to `sum` [part.count] the gradients of a part of a row.
void update_add_row(const update_state *state, const float *gradients, const int32_t *heads,
                    update_part part, float *sum);

#define update_is_kept PEN_CPU_JOIN(pen_update_is_kept, PEN_CPU_LEVEL)
// Whether the scale says that there is nothing to apply. Then all is made as it was.
bool update_is_kept(const pen_cpu_call *call);

#define update_run PEN_CPU_JOIN(pen_update_run, PEN_CPU_LEVEL)
// Runs `step->span` over all elements, with their gradients: clipped where the node says so.
PEN_NODISCARD pen_status update_run(const pen_cpu_call *call, const update_step *step);

#endif // PEN_DEVICE_CPU_KERNELS_LOOPS_UPDATE_WALK_H
