// One step of a recurrent layer, as code that loops in Python has it.

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// value w^T + b, as a layer has it. A bias may be left out.
static pen_status cell_linear(pen_pt2_draft *draft, const char *suffix, pen_value_id value,
                              const char *const names[2], pen_value_id *out_value) {
    pen_value_id weight, bias;
    PEN_TRY(pen_pt2_tensor(draft, names[0], &weight));
    PEN_TRY(pen_pt2_tensor_or_none(draft, names[1], &bias));
    const bool has_bias = pen_value_is(bias);
    return pen_pt2_emit(draft, "gemm", suffix,
                        (pen_node_inputs){(pen_value_id[]){value, weight, bias}, has_bias ? 3 : 2},
                        PEN_WITH(pen_attribute_int("transB", 1)), out_value);
}

static const char *const cell_input_names[2] = {"w_ih", "b_ih"};
static const char *const cell_state_names[2] = {"w_hh", "b_hh"};

// The gates of a value, side by side in `all`, apart.
static pen_status cell_split(pen_pt2_draft *draft, const char *suffix, pen_value_id all,
                             uint32_t count, pen_value_id *out_gates) {
    const pen_tensor_type *weight = pen_pt2_type(draft, "w_hh");
    const int64_t hidden = weight->shape.rank == 2 ? weight->shape.dims[1] : 0;
    const int64_t widths[4] = {hidden, hidden, hidden, hidden};
    pen_value_id sizes;
    PEN_TRY(pen_pt2_constant_ints(draft, count, widths, &sizes));
    const pen_pt2_emission emission = {"split", suffix, PEN_INPUTS(all, sizes),
                                       PEN_WITH(pen_attribute_int("axis", 1)), count};
    return pen_pt2_emit_many(draft, &emission, out_gates);
}

static pen_status cell_check(pen_pt2_draft *draft) {
    if (pen_pt2_rank(draft, "input") == 2) return PEN_OK;
    return pen_pt2_refuse(draft, "a step without a batch");
}

// aten.lstm_cell(input, hx (h, c), w_ih, w_hh, b_ih?, b_hh?), the gates being i f g o:
//   c' = sigmoid(f) c + sigmoid(i) tanh(g),  h' = sigmoid(o) tanh(c')
static pen_status convert_lstm_cell(pen_pt2_draft *draft) {
    pen_value_id input, from_input, from_state, gates[4], kept, added, cell, shown;
    const pen_value_id *states;
    uint32_t count;
    PEN_TRY(cell_check(draft));
    PEN_TRY(pen_pt2_tensor(draft, "input", &input));
    PEN_TRY(pen_pt2_tensors(draft, "hx", &count, &states));
    if (count != 2) return pen_pt2_refuse(draft, "%u states", count);
    PEN_TRY(cell_linear(draft, "from_input", input, cell_input_names, &from_input));
    PEN_TRY(cell_linear(draft, "from_state", states[0], cell_state_names, &from_state));
    PEN_TRY(pen_pt2_pair(draft, "add", "all_gates", from_input, from_state, &from_input));
    PEN_TRY(cell_split(draft, "gates", from_input, 4, gates));
    PEN_TRY(pen_pt2_map(draft, "sigmoid", "input_gate", gates[0], &gates[0]));
    PEN_TRY(pen_pt2_map(draft, "sigmoid", "forget_gate", gates[1], &gates[1]));
    PEN_TRY(pen_pt2_map(draft, "tanh", "candidate", gates[2], &gates[2]));
    PEN_TRY(pen_pt2_map(draft, "sigmoid", "output_gate", gates[3], &gates[3]));
    PEN_TRY(pen_pt2_pair(draft, "mul", "kept", gates[1], states[1], &kept));
    PEN_TRY(pen_pt2_pair(draft, "mul", "added", gates[0], gates[2], &added));
    PEN_TRY(pen_pt2_pair(draft, "add", "cell", kept, added, &cell));
    PEN_TRY(pen_pt2_map(draft, "tanh", "shown", cell, &shown));
    PEN_TRY(pen_pt2_pair(draft, "mul", "state", gates[3], shown, &shown));
    PEN_TRY(pen_pt2_set(draft, 0, shown));
    return pen_pt2_set(draft, 1, cell);
}

// aten.gru_cell(input, hx, w_ih, w_hh, b_ih?, b_hh?), the gates being r z n of x and of h:
//   n = tanh(n_x + sigmoid(r) n_h),  h' = n + sigmoid(z) (h - n)
static pen_status convert_gru_cell(pen_pt2_draft *draft) {
    pen_value_id input, state, x[3], h[3], all, reset, update;
    PEN_TRY(cell_check(draft));
    PEN_TRY(pen_pt2_tensor(draft, "input", &input));
    PEN_TRY(pen_pt2_tensor(draft, "hx", &state));
    PEN_TRY(cell_linear(draft, "from_input", input, cell_input_names, &all));
    PEN_TRY(cell_split(draft, "input_gates", all, 3, x));
    PEN_TRY(cell_linear(draft, "from_state", state, cell_state_names, &all));
    PEN_TRY(cell_split(draft, "state_gates", all, 3, h));
    PEN_TRY(pen_pt2_pair(draft, "add", "reset_sum", x[0], h[0], &reset));
    PEN_TRY(pen_pt2_map(draft, "sigmoid", "reset_gate", reset, &reset));
    PEN_TRY(pen_pt2_pair(draft, "add", "update_sum", x[1], h[1], &update));
    PEN_TRY(pen_pt2_map(draft, "sigmoid", "update_gate", update, &update));
    PEN_TRY(pen_pt2_pair(draft, "mul", "reset_state", reset, h[2], &all));
    PEN_TRY(pen_pt2_pair(draft, "add", "candidate_sum", x[2], all, &all));
    PEN_TRY(pen_pt2_map(draft, "tanh", "candidate", all, &all));
    PEN_TRY(pen_pt2_pair(draft, "sub", "difference", state, all, &state));
    PEN_TRY(pen_pt2_pair(draft, "mul", "kept", update, state, &state));
    return pen_pt2_give_pair(draft, "add", all, state);
}

// aten.rnn_tanh_cell and aten.rnn_relu_cell; the row's op_name is the function.
static pen_status convert_rnn_cell(pen_pt2_draft *draft) {
    pen_value_id input, state;
    PEN_TRY(cell_check(draft));
    PEN_TRY(pen_pt2_tensor(draft, "input", &input));
    PEN_TRY(pen_pt2_tensor(draft, "hx", &state));
    PEN_TRY(cell_linear(draft, "from_input", input, cell_input_names, &input));
    PEN_TRY(cell_linear(draft, "from_state", state, cell_state_names, &state));
    PEN_TRY(pen_pt2_pair(draft, "add", "sum", input, state, &state));
    return pen_pt2_give_map(draft, pen_pt2_op_name(draft), state);
}

static const pen_pt2_mapping cell_rows[] = {
    PEN_PT2_ROW("gru_cell.default", gru_cell),
    PEN_PT2_ROW("lstm_cell.default", lstm_cell),
    PEN_PT2_NAMED("rnn_relu_cell.default", "relu", rnn_cell),
    PEN_PT2_NAMED("rnn_tanh_cell.default", "tanh", rnn_cell),
};
PEN_PT2_FAMILY(pen_pt2_cells, cell_rows);
