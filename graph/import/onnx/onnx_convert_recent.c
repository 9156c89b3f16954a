// Conversions of what operator sets 18 to 24 brought, or changed.

#include <string.h>

#include "graph/import/onnx/onnx_mapping.h"

// A node in front of the draft's.
static pen_status recent_apply(pen_onnx_draft *draft, const char *op_name, const char *suffix,
                               pen_node_inputs inputs, pen_value_id *out_value) {
    const pen_onnx_extra extra = {op_name, suffix, inputs, PEN_NO_ATTRIBUTES};
    return pen_onnx_draft_extra(draft, &extra, out_value);
}

static pen_status recent_list(pen_onnx_draft *draft, const char *suffix, int64_t integer,
                              pen_value_id *out_value) {
    return pen_onnx_draft_list(draft, suffix, 1, &integer, out_value);
}

static pen_status recent_concat(pen_onnx_draft *draft, const char *suffix, int64_t axis,
                                pen_value_id a, pen_value_id b, pen_value_id *out_value) {
    const pen_onnx_extra concat = {"concat", suffix, PEN_INPUTS(a, b),
                                   PEN_WITH(pen_attribute_int("axis", axis))};
    return pen_onnx_draft_extra(draft, &concat, out_value);
}

static pen_status recent_reshape(pen_onnx_draft *draft, const char *suffix, uint32_t count,
                                 const int64_t *dims, pen_value_id *value) {
    pen_value_id shape;
    const char *name;
    PEN_TRY(pen_arena_format(pen_graph_arena(draft->graph), &name, "%s_shape", suffix));
    PEN_TRY(pen_onnx_draft_list(draft, name, count, dims, &shape));
    return recent_apply(draft, "reshape", suffix, PEN_INPUTS(*value, shape), value);
}

// ---- pads of some axes

// Pads of the axes that operand 3 lists become pads of all: zeros, into which those given are
// scattered. The rank need not be known here; all of it is constant once it is.
static pen_status pad_spread(pen_onnx_draft *draft) {
    pen_value_id shape, rank, two, places, zero, axes = draft->inputs[3], zeros, after, at, pads;
    const pen_onnx_extra cast = {"cast", "axes", PEN_INPUTS(axes),
                                 PEN_WITH(pen_attribute_text("to", "int64"))};
    const pen_attribute_given of_integers = pen_attribute_text("element", "int64");
    PEN_TRY(pen_onnx_draft_extra(draft, &cast, &axes));
    PEN_TRY(recent_apply(draft, "shape", "shape", PEN_INPUTS(draft->inputs[0]), &shape));
    PEN_TRY(recent_apply(draft, "shape", "rank", PEN_INPUTS(shape), &rank));
    PEN_TRY(recent_list(draft, "two", 2, &two));
    PEN_TRY(recent_apply(draft, "mul", "places", PEN_INPUTS(rank, two), &places));
    const pen_onnx_extra fill = {"constant_of_shape", "zeros", PEN_INPUTS(places),
                                 PEN_WITH(pen_attribute_float("value", 0), of_integers)};
    PEN_TRY(pen_onnx_draft_extra(draft, &fill, &zeros));
    PEN_TRY(recent_apply(draft, "mod", "before", PEN_INPUTS(axes, rank), &zero));
    PEN_TRY(recent_apply(draft, "add", "after", PEN_INPUTS(zero, rank), &after));
    PEN_TRY(recent_concat(draft, "at", 0, zero, after, &at));
    PEN_TRY(recent_apply(draft, "scatter_elements", "pads", PEN_INPUTS(zeros, at, draft->inputs[1]),
                         &pads));
    draft->inputs[1] = pads;
    draft->input_count = 3;
    while (!pen_value_is(draft->inputs[draft->input_count - 1])) {
        draft->input_count -= 1;
    }
    return PEN_OK;
}

pen_status pen_onnx_convert_pad_axes(pen_onnx_draft *draft) {
    const bool is_given = pen_onnx_draft_has(draft, 0) && pen_onnx_draft_has(draft, 1);
    if (draft->node->opset < 18 || !is_given || !pen_onnx_draft_has(draft, 3)) {
        return pen_onnx_convert_pad(draft);
    }
    return pad_spread(draft);
}

// ---- names and places of attributes

// From operator set 20 on two of the modes have other names.
pen_status pen_onnx_convert_grid_sample(pen_onnx_draft *draft) {
    const pen_onnx_attribute *given = pen_onnx_draft_attribute(draft, "mode");
    const char *mode = given != NULL && given->type == PEN_ONNX_STRING ? given->text : "bilinear";
    if (strcmp(mode, "linear") == 0) mode = "bilinear";
    if (strcmp(mode, "cubic") == 0) mode = "bicubic";
    pen_onnx_draft_add_attribute(draft, pen_attribute_text("mode", mode));
    return PEN_OK;
}

// The axis is an operand from operator set 20 on, and then the last but one unless it is given.
pen_status pen_onnx_convert_dft(pen_onnx_draft *draft) {
    int64_t axis = pen_onnx_draft_int(draft, "axis", 1);
    if (draft->node->opset >= 20) axis = -2;
    if (draft->node->opset >= 20 && pen_onnx_draft_has(draft, 2)) {
        uint32_t count;
        const int64_t *integers;
        const pen_value *value = pen_graph_value(draft->graph, draft->inputs[2]);
        if (value->kind != PEN_VALUE_CONSTANT) {
            return pen_error(PEN_UNSUPPORTED, "its axis '%s' is no constant", value->name);
        }
        PEN_TRY(pen_value_read_ints(draft->graph, draft->inputs[2], &count, &integers));
        if (count != 1) {
            return pen_error(PEN_INVALID_INPUT, "its axis has %u numbers, expected one", count);
        }
        axis = integers[0];
    }
    if (draft->input_count > 2) draft->input_count = 2;
    if (axis < 0) { // ours counts from the front where it can
        uint32_t rank;
        if (pen_onnx_draft_rank(draft, 0, &rank)) axis += rank;
    }
    pen_onnx_draft_add_attribute(draft, pen_attribute_int("axis", axis));
    return PEN_OK;
}

// ---- embeddings with a row for padding

// Where the row is the one for padding, no gradient flows back: the rows looked up are the same,
// but stopped.
pen_status pen_onnx_convert_gather(pen_onnx_draft *draft) {
    pen_value_id rows, stopped, padding, row, last, is_padding;
    const pen_onnx_node *node = draft->node;
    const bool is_table = pen_onnx_draft_int(draft, "axis", 0) == 0;
    if (!node->has_padding || !is_table || !pen_onnx_draft_has(draft, 1)) return PEN_OK;
    PEN_TRY(recent_apply(draft, "gather", "rows", PEN_INPUTS(draft->inputs[0], draft->inputs[1]),
                         &rows));
    PEN_TRY(recent_apply(draft, "stop_gradient", "stopped", PEN_INPUTS(rows), &stopped));
    PEN_TRY(recent_list(draft, "padding", node->padding_row, &padding));
    const pen_onnx_extra cast = {"cast", "row", PEN_INPUTS(draft->inputs[1]),
                                 PEN_WITH(pen_attribute_text("to", "int64"))};
    PEN_TRY(pen_onnx_draft_extra(draft, &cast, &row));
    PEN_TRY(recent_apply(draft, "equal", "is_padding", PEN_INPUTS(row, padding), &is_padding));
    PEN_TRY(recent_list(draft, "last", -1, &last));
    PEN_TRY(recent_apply(draft, "unsqueeze", "mask", PEN_INPUTS(is_padding, last), &is_padding));
    draft->op_name = "where"; // the node itself
    draft->attribute_count = 0;
    pen_onnx_draft_set_input(draft, 0, is_padding);
    pen_onnx_draft_set_input(draft, 1, stopped);
    pen_onnx_draft_set_input(draft, 2, rows);
    return PEN_OK;
}

// ---- rotary embeddings

typedef struct rotary {
    pen_onnx_draft *draft;
    bool is_interleaved;
    int64_t heads;   // 0: x has a dimension of heads
    int64_t rotated; // how many of the last numbers; 0: all
    pen_value_id cosines, sines;
} rotary;

// Elements from `start` to `end`, every `step`th, of the last dimension.
static pen_status rotary_cut(const rotary *r, pen_value_id x, const char *suffix,
                             const int64_t range[3], pen_value_id *out_value) {
    static const char *const names[] = {"start", "end", "step"};
    pen_value_id operands[5] = {x};
    const char *name;
    for (uint32_t i = 0; i < 3; i++) {
        PEN_TRY(
            pen_arena_format(pen_graph_arena(r->draft->graph), &name, "%s_%s", suffix, names[i]));
        PEN_TRY(recent_list(r->draft, name, range[i], &operands[i == 2 ? 4 : i + 1]));
    }
    PEN_TRY(recent_list(r->draft, "last", -1, &operands[3]));
    return recent_apply(r->draft, "slice", suffix, PEN_INPUTS_ALL(operands), out_value);
}

// The two halves of the numbers that are turned: the first and the last ones, or every other one.
static pen_status rotary_halves(const rotary *r, pen_value_id x, pen_value_id halves[2]) {
    if (r->is_interleaved) {
        PEN_TRY(rotary_cut(r, x, "real", (const int64_t[]){0, INT64_MAX, 2}, &halves[0]));
        return rotary_cut(r, x, "imaginary", (const int64_t[]){1, INT64_MAX, 2}, &halves[1]);
    }
    const pen_onnx_extra split = {"split", "halves", PEN_INPUTS(x),
                                  PEN_WITH(pen_attribute_int("axis", -1))};
    const char *name;
    pen_node_id node;
    PEN_TRY(pen_arena_format(pen_graph_arena(r->draft->graph), &name, "%s/halves", r->draft->name));
    pen_node_spec spec = pen_node_spec_make(split.op_name, name);
    spec.source = r->draft->source;
    spec.output_count = 2;
    pen_node_spec_fill(&spec, split.inputs, split.attributes);
    PEN_TRY(pen_graph_add_node(r->draft->graph, &spec, &node));
    halves[0] = pen_graph_node(r->draft->graph, node)->outputs[0];
    halves[1] = pen_graph_node(r->draft->graph, node)->outputs[1];
    return PEN_OK;
}

// `first` * a - or + `second` * b.
static pen_status rotary_turn(const rotary *r, const char *op_name, const pen_value_id first[2],
                              const pen_value_id second[2], pen_value_id *out_value) {
    pen_value_id a, b;
    PEN_TRY(recent_apply(r->draft, "mul", "turned", PEN_INPUTS(first[0], first[1]), &a));
    PEN_TRY(recent_apply(r->draft, "mul", "turned", PEN_INPUTS(second[0], second[1]), &b));
    return recent_apply(r->draft, op_name, "turned", PEN_INPUTS(a, b), out_value);
}

// Numbers two by two are turned as complex ones are by an angle.
static pen_status rotary_apply(const rotary *r, pen_value_id x, pen_value_id *out_value) {
    pen_value_id halves[2], real, imaginary, last;
    const pen_value_id *cosines = &r->cosines, *sines = &r->sines;
    PEN_TRY(rotary_halves(r, x, halves));
    PEN_TRY(rotary_turn(r, "sub", (const pen_value_id[]){halves[0], *cosines},
                        (const pen_value_id[]){halves[1], *sines}, &real));
    PEN_TRY(rotary_turn(r, "add", (const pen_value_id[]){halves[0], *sines},
                        (const pen_value_id[]){halves[1], *cosines}, &imaginary));
    if (!r->is_interleaved) {
        return recent_concat(r->draft, "joined", -1, real, imaginary, out_value);
    }
    PEN_TRY(recent_list(r->draft, "pairs", -1, &last));
    PEN_TRY(recent_apply(r->draft, "unsqueeze", "real", PEN_INPUTS(real, last), &real));
    PEN_TRY(
        recent_apply(r->draft, "unsqueeze", "imaginary", PEN_INPUTS(imaginary, last), &imaginary));
    PEN_TRY(recent_concat(r->draft, "pairs", -1, real, imaginary, out_value));
    return recent_reshape(r->draft, "joined", 4, (const int64_t[]){0, 0, 0, -1}, out_value);
}

// Cosines or sines of each row of x, with a dimension of heads: rows of a table, if positions are
// given.
static pen_status rotary_angles(const rotary *r, uint32_t input, const char *suffix,
                                pen_value_id *out_value) {
    pen_onnx_draft *draft = r->draft;
    pen_value_id axis;
    *out_value = draft->inputs[input];
    if (pen_onnx_draft_has(draft, 3)) {
        PEN_TRY(recent_apply(draft, "gather", suffix, PEN_INPUTS(*out_value, draft->inputs[3]),
                             out_value));
    }
    PEN_TRY(recent_list(draft, "heads", r->heads > 0 ? 2 : 1, &axis));
    return recent_apply(draft, "unsqueeze", suffix, PEN_INPUTS(*out_value, axis), out_value);
}

// The heads get a dimension of their own while the numbers of each are turned.
pen_status pen_onnx_convert_rotary(pen_onnx_draft *draft) {
    rotary r = {.draft = draft,
                .is_interleaved = pen_onnx_draft_int(draft, "interleaved", 0) != 0,
                .heads = pen_onnx_draft_int(draft, "num_heads", 0),
                .rotated = pen_onnx_draft_int(draft, "rotary_embedding_dim", 0)};
    uint32_t rank;
    for (uint32_t i = 0; i < 3; i++) {
        if (!pen_onnx_draft_has(draft, i)) {
            return pen_error(PEN_INVALID_INPUT, "operand %u is left out", i);
        }
    }
    if (pen_onnx_draft_rank(draft, 0, &rank) && rank == 4) r.heads = 0;
    pen_value_id x = draft->inputs[0], kept = PEN_VALUE_NONE, shape;
    PEN_TRY(rotary_angles(&r, 1, "cosines", &r.cosines));
    PEN_TRY(rotary_angles(&r, 2, "sines", &r.sines));
    if (r.heads > 0) {
        PEN_TRY(recent_reshape(draft, "by_head", 4, (const int64_t[]){0, 0, r.heads, -1}, &x));
    }
    if (r.rotated > 0) {
        PEN_TRY(rotary_cut(&r, x, "kept", (const int64_t[]){r.rotated, INT64_MAX, 1}, &kept));
        PEN_TRY(rotary_cut(&r, x, "rotated", (const int64_t[]){0, r.rotated, 1}, &x));
    }
    PEN_TRY(rotary_apply(&r, x, &x));
    if (r.rotated > 0) PEN_TRY(recent_concat(draft, "whole", -1, x, kept, &x));
    // the node itself gives x the shape that it came in
    PEN_TRY(recent_apply(draft, "shape", "shape", PEN_INPUTS(draft->inputs[0]), &shape));
    draft->inputs[0] = x;
    draft->inputs[1] = shape;
    draft->input_count = 2;
    return PEN_OK;
}

// ---- attention

// (batch, rows, heads * numbers) as (batch, rows, heads, numbers).
static pen_status attention_by_head(pen_onnx_draft *draft, uint32_t input, const char *suffix,
                                    int64_t heads) {
    return recent_reshape(draft, suffix, 4, (const int64_t[]){0, 0, heads, -1},
                          &draft->inputs[input]);
}

// What is not given is 1 over the root of the length of a row, which may not be known here: then q
// is multiplied by it.
static pen_status attention_scale(pen_onnx_draft *draft, double *out_scale) {
    const pen_onnx_attribute *given = pen_onnx_draft_attribute(draft, "scale");
    pen_value_id last, shape, scale;
    *out_scale = given != NULL && given->type == PEN_ONNX_FLOAT ? given->number : 1;
    if (given != NULL) return PEN_OK;
    PEN_TRY(recent_list(draft, "last", -1, &last));
    PEN_TRY(recent_apply(draft, "shape", "shape", PEN_INPUTS(draft->inputs[0]), &shape));
    PEN_TRY(recent_apply(draft, "gather", "depth", PEN_INPUTS(shape, last), &scale));
    const pen_onnx_extra cast = {"cast", "depth", PEN_INPUTS(scale, draft->inputs[0]),
                                 PEN_NO_ATTRIBUTES};
    PEN_TRY(pen_onnx_draft_extra(draft, &cast, &scale));
    PEN_TRY(recent_apply(draft, "sqrt", "root", PEN_INPUTS(scale), &scale));
    return recent_apply(draft, "div", "scaled", PEN_INPUTS(draft->inputs[0], scale),
                        &draft->inputs[0]);
}

// What ours does not do, which PyTorch writes nothing of.
static pen_status attention_check(const pen_onnx_draft *draft, bool is_flat) {
    const int64_t heads = pen_onnx_draft_int(draft, "kv_num_heads", 0);
    for (uint32_t i = 0; i < 3; i++) {
        if (!pen_onnx_draft_has(draft, i)) {
            return pen_error(PEN_INVALID_INPUT, "operand %u is left out", i);
        }
    }
    if (is_flat && heads <= 0) return pen_error(PEN_INVALID_INPUT, "kv_num_heads is missing");
    if (pen_onnx_draft_float(draft, "softcap", 0) != 0) {
        return pen_error(PEN_UNSUPPORTED, "softcap is %g; 0 is possible",
                         pen_onnx_draft_float(draft, "softcap", 0));
    }
    for (uint32_t i = 4; i < draft->input_count; i++) {
        if (!pen_onnx_draft_has(draft, i)) continue;
        return pen_error(PEN_UNSUPPORTED, "operand %u (%s)", i,
                         i == 6 ? "lengths of what is not padding" : "keys or values of the past");
    }
    if (draft->output_count <= 1) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "output %u: only the first is made", draft->output_count - 1);
}

// Three dimensions hold the heads side by side, as products with weight matrices make them.
pen_status pen_onnx_convert_attention(pen_onnx_draft *draft) {
    static const char *const by_row[] = {"q_by_row", "k_by_row", "v_by_row", "y_by_row"};
    const int64_t heads = pen_onnx_draft_int(draft, "q_num_heads", 0);
    const int64_t shared = pen_onnx_draft_int(draft, "kv_num_heads", 0);
    const int64_t causal = pen_onnx_draft_int(draft, "is_causal", 0);
    double scale;
    uint32_t rank;
    bool is_flat = heads > 0;
    if (pen_onnx_draft_rank(draft, 0, &rank)) is_flat = rank == 3;
    PEN_TRY(attention_check(draft, is_flat));
    if (is_flat) {
        PEN_TRY(attention_by_head(draft, 0, "q", heads));
        PEN_TRY(attention_by_head(draft, 1, "k", shared));
        PEN_TRY(attention_by_head(draft, 2, "v", shared));
    }
    PEN_TRY(attention_scale(draft, &scale));
    if (draft->input_count > 4) draft->input_count = 4;
    pen_attribute_given given[6] = {pen_attribute_float("scale", scale),
                                    pen_attribute_int("causal", causal != 0)};
    for (uint32_t i = 0; i < 4; i++) {
        given[2 + i] = pen_attribute_int(by_row[i], is_flat);
    }
    if (!is_flat) {
        draft->op_name = "attention";
        for (uint32_t i = 0; i < 6; i++) {
            pen_onnx_draft_add_attribute(draft, given[i]);
        }
        return PEN_OK;
    }
    const pen_onnx_extra attend = {
        "attention", "by_head", {draft->inputs, draft->input_count}, {given, 6}};
    const int64_t dims[] = {0, 0, -1};
    pen_value_id y, shape;
    PEN_TRY(pen_onnx_draft_extra(draft, &attend, &y));
    PEN_TRY(pen_onnx_draft_list(draft, "shape_of_rows", 3, dims, &shape));
    draft->op_name = "reshape"; // the node itself
    draft->inputs[0] = y;
    draft->inputs[1] = shape;
    draft->input_count = 2;
    return PEN_OK;
}
