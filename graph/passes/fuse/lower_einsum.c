#include "graph/passes/fuse/lower_einsum.h"

#include <string.h>

#include "graph/op.h"
#include "graph/op_known.h"
#include "graph/ops/product/einsum_equation.h"
#include "graph/passes/copy_graph.h"

// A value of the new graph and the labels of its dimensions.
typedef struct lower_operand {
    pen_value_id value;
    pen_einsum_term term;
} lower_operand;

// One einsum being replaced.
typedef struct lowering {
    pen_graph_copy *copy;
    pen_node_id node;
    pen_einsum einsum;
    uint32_t emitted; // nodes so far
} lowering;

// ---- sets of labels, in the order in which they came

static bool lower_has(const pen_einsum_term *term, uint8_t label) {
    return memchr(term->labels, label, term->rank) != NULL;
}

static void lower_push(pen_einsum_term *term, uint8_t label) {
    term->labels[term->rank++] = label;
}

// Whether the result, or an operand from `next` on, has the label.
static bool lower_is_wanted(const lowering *work, uint32_t next, uint8_t label) {
    if (lower_has(&work->einsum.output, label)) return true;
    for (uint32_t o = next; o < work->einsum.operand_count; o++) {
        if (lower_has(&work->einsum.operands[o], label)) return true;
    }
    return false;
}

static int64_t lower_size(const lowering *work, const pen_einsum_term *term) {
    int64_t size = 1;
    for (uint32_t d = 0; d < term->rank; d++) {
        size *= work->einsum.sizes[term->labels[d]];
    }
    return size;
}

// ---- nodes

typedef struct lower_node {
    const pen_op *op;
    uint32_t input_count;
    pen_value_id inputs[2];
    uint32_t attribute_count;
    pen_attribute_given attribute;
} lower_node;

static pen_status lower_emit(lowering *work, const lower_node *wanted, pen_value_id *out_value) {
    pen_graph_copy *copy = work->copy;
    const char *name;
    pen_node_spec spec;
    PEN_TRY(pen_arena_format(pen_graph_arena(copy->to), &name, "%s/%s_%u",
                             pen_graph_node(copy->from, work->node)->name, wanted->op->name,
                             work->emitted));
    PEN_TRY(pen_graph_copy_spec(copy, work->node, wanted->op, name, &spec));
    spec.inputs = wanted->inputs;
    spec.input_count = wanted->input_count;
    spec.attributes = &wanted->attribute;
    spec.attribute_count = wanted->attribute_count;
    work->emitted++;
    return pen_graph_add_simple(copy->to, &spec, out_value);
}

// A node whose second operand is a list of integers.
static pen_status lower_emit_by(lowering *work, const pen_op *op, pen_value_id value,
                                uint32_t count, const int64_t *integers, pen_value_id *out_value) {
    const char *name;
    lower_node node = {.op = op, .input_count = 2, .inputs = {value}};
    PEN_TRY(pen_arena_format(pen_graph_arena(work->copy->to), &name, "%s/%s_%u/list",
                             pen_graph_node(work->copy->from, work->node)->name, op->name,
                             work->emitted));
    PEN_TRY(pen_graph_constant_ints(work->copy->to, name, count, integers, &node.inputs[1]));
    if (op == PEN_OP(reduce_sum)) {
        node.attribute_count = 1;
        node.attribute = pen_attribute_int("keepdims", 0);
    }
    return lower_emit(work, &node, out_value);
}

static pen_status lower_reshape(lowering *work, const pen_shape *shape, pen_value_id *value) {
    if (pen_shape_equal(&pen_value_type(work->copy->to, *value)->shape, shape)) return PEN_OK;
    return lower_emit_by(work, PEN_OP(reshape), *value, shape->rank, shape->dims, value);
}

// Dimensions in the order of `term`, which has the operand's labels.
static pen_status lower_order(lowering *work, const pen_einsum_term *term, lower_operand *operand) {
    int64_t perm[PEN_RANK_LIMIT];
    bool moves = false;
    for (uint32_t d = 0; d < term->rank; d++) {
        const uint8_t *place = memchr(operand->term.labels, term->labels[d], operand->term.rank);
        PEN_ASSERT(place != NULL);
        perm[d] = place - operand->term.labels;
        moves = moves || perm[d] != (int64_t)d;
    }
    operand->term = *term;
    if (!moves) return PEN_OK;
    const lower_node node = {.op = PEN_OP(transpose),
                             .input_count = 1,
                             .inputs = {operand->value},
                             .attribute_count = 1,
                             .attribute = pen_attribute_ints("perm", term->rank, perm)};
    return lower_emit(work, &node, &operand->value);
}

// Sums over the labels that neither `other` nor anything from operand `next` on has.
static pen_status lower_sum(lowering *work, const pen_einsum_term *other, uint32_t next,
                            lower_operand *operand) {
    int64_t axes[PEN_RANK_LIMIT];
    uint32_t count = 0;
    pen_einsum_term left = {0};
    for (uint32_t d = 0; d < operand->term.rank; d++) {
        const uint8_t label = operand->term.labels[d];
        const bool stays =
            (other != NULL && lower_has(other, label)) || lower_is_wanted(work, next, label);
        if (stays) {
            lower_push(&left, label);
        } else {
            axes[count++] = d;
        }
    }
    if (count == 0) return PEN_OK;
    operand->term = left;
    return lower_emit_by(work, PEN_OP(reduce_sum), operand->value, count, axes, &operand->value);
}

// ---- products of two operands

// Labels by what becomes of them: kept by both, summed, and kept by one alone.
typedef struct lower_groups {
    pen_einsum_term batch, inner, rows, columns;
} lower_groups;

static bool lower_group(const lowering *work, const lower_operand *a, const lower_operand *b,
                        uint32_t next, lower_groups *groups) {
    *groups = (lower_groups){0};
    for (uint32_t d = 0; d < a->term.rank; d++) {
        const uint8_t label = a->term.labels[d];
        const bool shared = lower_has(&b->term, label);
        const bool wanted = lower_is_wanted(work, next, label);
        lower_push(!shared ? &groups->rows : wanted ? &groups->batch : &groups->inner, label);
    }
    for (uint32_t d = 0; d < b->term.rank; d++) {
        if (!lower_has(&a->term, b->term.labels[d])) {
            lower_push(&groups->columns, b->term.labels[d]);
        }
    }
    return groups->batch.rank + groups->rows.rank + groups->columns.rank <= PEN_RANK_LIMIT &&
           groups->batch.rank + 2 <= PEN_RANK_LIMIT;
}

static pen_einsum_term lower_join(const pen_einsum_term *a, const pen_einsum_term *b,
                                  const pen_einsum_term *c) {
    const pen_einsum_term *const parts[] = {a, b, c};
    pen_einsum_term joined = {0};
    for (uint32_t p = 0; p < 3; p++) {
        for (uint32_t d = 0; d < parts[p]->rank; d++) {
            lower_push(&joined, parts[p]->labels[d]);
        }
    }
    return joined;
}

// The operand as matrices: dimensions of the batch, then all of `first` as one and all of `second`.
static pen_status lower_matrices(lowering *work, const pen_einsum_term *batch,
                                 const pen_einsum_term *first, const pen_einsum_term *second,
                                 lower_operand *operand) {
    const pen_einsum_term order = lower_join(batch, first, second);
    PEN_TRY(lower_order(work, &order, operand));
    pen_shape shape = pen_einsum_shape(&work->einsum, batch);
    shape.dims[shape.rank++] = lower_size(work, first);
    shape.dims[shape.rank++] = lower_size(work, second);
    return lower_reshape(work, &shape, &operand->value);
}

// The operand with dimensions of size 1 for the labels of `term` that it lacks.
static pen_status lower_align(lowering *work, const pen_einsum_term *own,
                              const pen_einsum_term *term, lower_operand *operand) {
    PEN_TRY(lower_order(work, own, operand));
    pen_shape shape = pen_einsum_shape(&work->einsum, term);
    for (uint32_t d = 0; d < term->rank; d++) {
        if (!lower_has(own, term->labels[d])) shape.dims[d] = 1;
    }
    return lower_reshape(work, &shape, &operand->value);
}

// `a` becomes the product of both.
static pen_status lower_multiply(lowering *work, const lower_groups *groups, lower_operand *a,
                                 lower_operand *b) {
    static const pen_einsum_term none = {0};
    const pen_einsum_term result = lower_join(&groups->batch, &groups->rows, &groups->columns);
    const pen_shape shape = pen_einsum_shape(&work->einsum, &result);
    lower_node node = {.op = PEN_OP(mul), .input_count = 2};
    if (groups->inner.rank > 0) {
        node.op = PEN_OP(matmul);
        PEN_TRY(lower_matrices(work, &groups->batch, &groups->rows, &groups->inner, a));
        PEN_TRY(lower_matrices(work, &groups->batch, &groups->inner, &groups->columns, b));
    } else {
        const pen_einsum_term own_a = lower_join(&groups->batch, &groups->rows, &none);
        const pen_einsum_term own_b = lower_join(&groups->batch, &groups->columns, &none);
        PEN_TRY(lower_align(work, &own_a, &result, a));
        PEN_TRY(lower_align(work, &own_b, &result, b));
    }
    node.inputs[0] = a->value;
    node.inputs[1] = b->value;
    PEN_TRY(lower_emit(work, &node, &a->value));
    a->term = result;
    return lower_reshape(work, &shape, &a->value);
}

// ---- whole einsums

static bool lower_is_plain(const lowering *work) {
    for (uint32_t o = 0; o < work->einsum.operand_count; o++) {
        const pen_einsum_term *term = &work->einsum.operands[o];
        for (uint32_t d = 0; d < term->rank; d++) {
            if (memchr(term->labels, term->labels[d], d) != NULL) return false; // a diagonal
        }
    }
    return true;
}

// Operand `index` without the dimensions of size 1 that stand for larger ones.
static pen_status lower_operand_of(lowering *work, uint32_t index, lower_operand *out_operand) {
    const pen_einsum_term *term = &work->einsum.operands[index];
    const pen_node *node = pen_graph_node(work->copy->from, work->node);
    const pen_shape shape = pen_value_type(work->copy->from, node->inputs[index])->shape;
    out_operand->value = work->copy->values[node->inputs[index].index];
    out_operand->term = (pen_einsum_term){0};
    for (uint32_t d = 0; d < term->rank; d++) {
        if (shape.dims[d] == work->einsum.sizes[term->labels[d]]) {
            lower_push(&out_operand->term, term->labels[d]);
        }
    }
    const pen_shape kept = pen_einsum_shape(&work->einsum, &out_operand->term);
    work->einsum.operands[index] = out_operand->term;
    return lower_reshape(work, &kept, &out_operand->value);
}

// Whether every product on the way fits; walks as lower_write does, without making nodes.
static bool lower_fits(const lowering *work) {
    lower_operand a = {.term = work->einsum.operands[0]};
    for (uint32_t o = 1; o < work->einsum.operand_count; o++) {
        const lower_operand b = {.term = work->einsum.operands[o]};
        lower_groups groups;
        if (!lower_group(work, &a, &b, o + 1, &groups)) return false;
        a.term = lower_join(&groups.batch, &groups.rows, &groups.columns);
    }
    return true;
}

static pen_status lower_write(lowering *work, pen_value_id *out_value) {
    lower_operand a = {0}, b = {0};
    lower_groups groups;
    for (uint32_t o = 0; o < work->einsum.operand_count; o++) {
        PEN_TRY(lower_operand_of(work, o, o == 0 ? &a : &b));
        if (o == 0) continue;
        PEN_TRY(lower_sum(work, &b.term, o + 1, &a));
        PEN_TRY(lower_sum(work, &a.term, o + 1, &b));
        const bool fits = lower_group(work, &a, &b, o + 1, &groups);
        PEN_ASSERT(fits);
        PEN_TRY(lower_multiply(work, &groups, &a, &b));
    }
    PEN_TRY(lower_sum(work, NULL, work->einsum.operand_count, &a));
    PEN_TRY(lower_order(work, &work->einsum.output, &a));
    *out_value = a.value;
    return PEN_OK;
}

static pen_status lower_node_of(pen_graph_copy *copy, pen_node_id id) {
    const pen_node *node = pen_graph_node(copy->from, id);
    const pen_value_id output = node->outputs[0];
    lowering work = {.copy = copy, .node = id};
    if (node->op != PEN_OP(einsum) || !pen_graph_copy_computes(copy->from, id) ||
        !pen_element_is_float(pen_value_type(copy->from, output)->element)) {
        return pen_graph_copy_node(copy, id);
    }
    PEN_TRY(pen_einsum_of(copy->from, node, &work.einsum));
    if (!lower_is_plain(&work) || !lower_fits(&work)) return pen_graph_copy_node(copy, id);
    pen_value_id value;
    PEN_TRY(lower_write(&work, &value));
    if (work.emitted == 0) return pen_graph_copy_node(copy, id); // the operand itself
    PEN_TRY(pen_graph_rename_value(copy->to, value, pen_value_name(copy->from, output)));
    copy->nodes[id.index] = pen_graph_value(copy->to, value)->producer;
    pen_graph_copy_value(copy, output, value);
    return PEN_OK;
}

pen_status pen_lower_einsum(pen_graph *graph, pen_graph **out_graph,
                            const pen_value_id **out_values) {
    pen_graph_copy copy;
    bool any = false;
    *out_graph = graph;
    *out_values = NULL;
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        any |= pen_graph_node(graph, (pen_node_id){n})->op == PEN_OP(einsum);
    }
    if (!any) return PEN_OK;
    PEN_TRY(pen_graph_copy_begin(graph, &copy));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        PEN_TRY(lower_node_of(&copy, (pen_node_id){n}));
    }
    PEN_TRY(pen_graph_copy_end(&copy));
    *out_graph = copy.to;
    *out_values = copy.values;
    return PEN_OK;
}
