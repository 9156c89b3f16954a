// Conversions of single operators: older forms, and forms that differ from ours.

#include <string.h>

#include "graph/import/onnx/onnx_mapping.h"
#include "graph/import/onnx/onnx_tensor.h"
#include "graph/import/tensor_elements.h"
#include "graph/op.h"
#include "graph/ops/product/recurrent_geometry.h"

// An attribute that is a list of integers becomes operand `input`.
static pen_status convert_ints(pen_onnx_draft *draft, const char *name, uint32_t input) {
    const pen_onnx_attribute *attribute = pen_onnx_draft_attribute(draft, name);
    if (attribute == NULL) return PEN_OK;
    if (attribute->type != PEN_ONNX_INTS) {
        return pen_error(PEN_INVALID_INPUT, "attribute '%s' is no list of integers", name);
    }
    return pen_onnx_draft_ints(draft, input, name, attribute->count, attribute->integers);
}

pen_status pen_onnx_convert_axes(pen_onnx_draft *draft) {
    return convert_ints(draft, "axes", 1);
}

// ---- normalisation and dropout

// PyTorch's new exporter writes the form of inference in any case, but says which statistics a run
// of the model changes. A job may ask for the form of training, too, where the scale is trained.
static bool convert_learns(const pen_onnx_draft *draft) {
    const pen_onnx_node *node = draft->node;
    if (node->input_count > 3 && pen_onnx_weights_is_updated(draft->weights, node->inputs[3])) {
        return true;
    }
    if (!draft->options->train_batch_norm || !pen_onnx_draft_has(draft, 1)) return false;
    return pen_graph_value(draft->graph, draft->inputs[1])->trainable;
}

// Whether it trains was said in three ways over the versions; moments are given out for the
// gradient.
pen_status pen_onnx_convert_batch_normalization(pen_onnx_draft *draft) {
    static const char *const suffixes[] = {"y", "running_mean", "running_variance", "batch_mean",
                                           "batch_inverse_deviation"};
    const int64_t opset = draft->node->opset;
    bool trains = draft->output_count > 1;
    if (opset >= 14) trains = pen_onnx_draft_int(draft, "training_mode", 0) != 0;
    if (opset < 7) trains = pen_onnx_draft_int(draft, "is_test", 0) == 0;
    trains = trains || draft->node->trains || convert_learns(draft);
    pen_onnx_draft_add_attribute(draft, pen_attribute_int("training_mode", trains));
    if (draft->model->is_unbiased) {
        pen_onnx_draft_add_attribute(draft, pen_attribute_int("unbiased", 1));
    }
    // outputs 3 and 4 are ours, for the gradient; before operator set 14 they were something else
    draft->output_count = trains ? 5 : 1;
    for (uint32_t i = 1; i < draft->output_count; i++) {
        const bool named = i < 3 && i < draft->node->output_count && draft->output_names[i][0] != 0;
        if (named) continue;
        PEN_TRY(pen_arena_format(pen_graph_arena(draft->graph), &draft->output_names[i], "%s/%s",
                                 draft->name, suffixes[i]));
    }
    return PEN_OK;
}

pen_status pen_onnx_convert_identity(pen_onnx_draft *draft) {
    if (draft->node->trains) draft->op_name = "stop_gradient";
    return PEN_OK;
}

static pen_status dropout_set_training(pen_onnx_draft *draft, bool trains) {
    const char *name;
    pen_value_id value;
    PEN_TRY(
        pen_arena_format(pen_graph_arena(draft->graph), &name, "%s/training_mode", draft->name));
    PEN_TRY(pen_graph_constant_number(draft->graph, name, PEN_BOOL, trains ? 1 : 0, &value));
    pen_onnx_draft_set_input(draft, 2, value);
    return PEN_OK;
}

// The ratio was an attribute before version 12 and is an operand since; a mask is added where the
// gradient will want it.
pen_status pen_onnx_convert_dropout(pen_onnx_draft *draft) {
    const bool has_operands = draft->node->opset >= 12;
    bool trains = draft->options->dropout_trains;
    if (draft->node->opset < 7 && pen_onnx_draft_int(draft, "is_test", 0) != 0) trains = false;
    if (!pen_onnx_draft_has(draft, 1)) {
        const double ratio = has_operands ? 0.5 : pen_onnx_draft_float(draft, "ratio", 0.5);
        PEN_TRY(pen_onnx_draft_number(draft, 1, "ratio", ratio));
    }
    if (!has_operands) {
        PEN_TRY(dropout_set_training(draft, trains));
        // before operator set 10 the mask was of the type of the data
        if (draft->node->opset < 10 && draft->output_count > 1) draft->output_count = 1;
    }
    if (has_operands && draft->node->trains && !pen_onnx_draft_has(draft, 2)) {
        PEN_TRY(dropout_set_training(draft, true));
    }
    const bool may_train = pen_onnx_draft_has(draft, 2) && (has_operands || trains);
    if (!may_train || draft->output_count > 1) return PEN_OK;
    draft->output_count = 2; // its gradient needs the mask
    return pen_arena_format(pen_graph_arena(draft->graph), &draft->output_names[1], "%s/mask",
                            draft->name);
}

// ---- recurrent nets

static pen_status convert_activations(pen_onnx_draft *draft) {
    const pen_onnx_attribute *activations = pen_onnx_draft_attribute(draft, "activations");
    if (activations == NULL) return PEN_OK;
    if (activations->type != PEN_ONNX_STRINGS) {
        return pen_error(PEN_INVALID_INPUT, "attribute 'activations' is no list of strings");
    }
    if (activations->count > 0 && activations->text[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT, "attribute 'activations' is too long, or empty");
    }
    pen_onnx_draft_add_attribute(draft, pen_attribute_text("activations", activations->text));
    return PEN_OK;
}

// Outputs from `first` on are ours, for the gradient.
static pen_status convert_recurrent(pen_onnx_draft *draft, uint32_t first, uint32_t count) {
    static const char *const suffixes[] = {"gates", "cells"};
    PEN_TRY(convert_activations(draft));
    if (draft->node->output_count > first) {
        return pen_error(PEN_INVALID_INPUT, "there are %u outputs, at most %u are possible",
                         draft->node->output_count, first);
    }
    for (uint32_t i = draft->output_count; i < first; i++) {
        draft->output_names[i] = "";
    }
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_arena_format(pen_graph_arena(draft->graph), &draft->output_names[first + i],
                                 "%s/%s", draft->name, suffixes[i]));
    }
    if (count > 0) draft->output_count = first + count;
    return PEN_OK;
}

pen_status pen_onnx_convert_lstm(pen_onnx_draft *draft) {
    return convert_recurrent(draft, PEN_RECURRENT_LAST_C + 1, 2);
}

pen_status pen_onnx_convert_gru(pen_onnx_draft *draft) {
    return convert_recurrent(draft, PEN_RECURRENT_LAST_H + 1, 1);
}

pen_status pen_onnx_convert_rnn(pen_onnx_draft *draft) {
    return convert_recurrent(draft, PEN_RECURRENT_LAST_H + 1, 0);
}

// ---- constants and casts

static pen_status convert_constant_tensor(pen_onnx_draft *draft,
                                          const pen_onnx_attribute *attribute) {
    pen_arena *arena = pen_graph_arena(draft->graph);
    pen_onnx_tensor tensor = {0};
    const void *data = NULL;
    PEN_TRY(pen_onnx_tensor_open(&attribute->tensor, arena, &tensor));
    PEN_TRY(pen_onnx_tensor_data(&tensor, draft->files, arena, &data));
    pen_value spec = {
        .name = draft->output_names[0], .kind = PEN_VALUE_PARAMETER, .type = tensor.type};
    spec.type.element = pen_onnx_widened(tensor.type.element, draft->model->widens);
    PEN_TRY(pen_tensor_type_check(&spec.type));
    PEN_TRY(pen_tensor_convert(&tensor.type, spec.type.element, arena, &data));
    spec.data = data;
    spec.data_bytes = pen_tensor_type_bytes(&spec.type);
    PEN_TRY(pen_onnx_weights_decide_node(draft->weights, spec.name, &spec.type, &spec.trainable));
    if (spec.trainable) return pen_graph_add_value(draft->graph, &spec, &draft->value);
    return pen_graph_constant(draft->graph, spec.name, &spec.type, data, &draft->value);
}

static pen_status convert_constant_floats(pen_onnx_draft *draft, uint32_t rank, uint32_t count,
                                          const double *numbers) {
    float *data;
    const int64_t dim = count;
    PEN_TRY(PEN_NEW(pen_graph_arena(draft->graph), count, &data));
    for (uint32_t i = 0; i < count; i++) {
        data[i] = (float)numbers[i];
    }
    const pen_tensor_type type = pen_tensor_type_make(PEN_FLOAT32, rank, &dim);
    return pen_graph_constant(draft->graph, draft->output_names[0], &type, data, &draft->value);
}

static pen_status convert_constant_int(pen_onnx_draft *draft, int64_t integer) {
    int64_t *data;
    PEN_TRY(PEN_NEW(pen_graph_arena(draft->graph), 1, &data));
    data[0] = integer;
    const pen_tensor_type type = pen_tensor_type_make(PEN_INT64, 0, NULL);
    return pen_graph_constant(draft->graph, draft->output_names[0], &type, data, &draft->value);
}

pen_status pen_onnx_convert_constant(pen_onnx_draft *draft) {
    const pen_onnx_node *node = draft->node;
    if (node->attribute_count != 1 || node->output_count != 1) {
        return pen_error(PEN_INVALID_INPUT, "a constant needs one value and one output");
    }
    const pen_onnx_attribute *value = &node->attributes[0];
    draft->is_value = true;
    if (value->type == PEN_ONNX_TENSOR) return convert_constant_tensor(draft, value);
    if (value->type == PEN_ONNX_INT) return convert_constant_int(draft, value->integer);
    if (value->type == PEN_ONNX_FLOAT) return convert_constant_floats(draft, 0, 1, &value->number);
    if (value->type == PEN_ONNX_FLOATS) {
        return convert_constant_floats(draft, 1, value->count, value->numbers);
    }
    if (value->type == PEN_ONNX_INTS) {
        return pen_graph_constant_ints(draft->graph, draft->output_names[0], value->count,
                                       value->integers, &draft->value);
    }
    return pen_error(PEN_INVALID_INPUT, "attribute '%s' is no value", value->name);
}

// The value is a tensor of one element, whose type is that of the result.
pen_status pen_onnx_convert_constant_of_shape(pen_onnx_draft *draft) {
    const pen_onnx_attribute *value = pen_onnx_draft_attribute(draft, "value");
    if (value == NULL) return PEN_OK; // zeros of float32, as with us
    if (value->type != PEN_ONNX_TENSOR) {
        return pen_error(PEN_INVALID_INPUT, "attribute 'value' is no tensor");
    }
    pen_arena *arena = pen_graph_arena(draft->graph);
    pen_onnx_tensor tensor = {0};
    const void *data = NULL;
    PEN_TRY(pen_onnx_tensor_open(&value->tensor, arena, &tensor));
    PEN_TRY(pen_onnx_tensor_data(&tensor, draft->files, arena, &data));
    if (pen_shape_element_count(&tensor.type.shape) != 1) {
        return pen_error(PEN_INVALID_INPUT, "attribute 'value' has %lld elements, expected one",
                         (long long)pen_shape_element_count(&tensor.type.shape));
    }
    const double number = pen_element_read(tensor.type.element, data, 0);
    const char *element =
        pen_element_name(pen_onnx_widened(tensor.type.element, draft->model->widens));
    pen_onnx_draft_add_attribute(draft, pen_attribute_float("value", number));
    pen_onnx_draft_add_attribute(draft, pen_attribute_text("element", element));
    return PEN_OK;
}

// The number of an element type in ONNX becomes its name: `to` of Cast, `dtype` of EyeLike.
pen_status pen_onnx_convert_cast(pen_onnx_draft *draft) {
    const pen_onnx_attribute *to = pen_onnx_draft_attribute(draft, "to");
    if (to == NULL) to = pen_onnx_draft_attribute(draft, "dtype");
    if (to == NULL) return PEN_OK; // if it is required the op's schema says so
    pen_element_type element =
        to->type == PEN_ONNX_INT ? pen_onnx_element_type(to->integer) : PEN_ELEMENT_UNKNOWN;
    element = pen_onnx_widened(element, draft->model->widens);
    if (element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "element type %s", pen_onnx_data_type_name(to->integer));
    }
    pen_onnx_draft_add_attribute(draft, pen_attribute_text(to->name, pen_element_name(element)));
    return PEN_OK;
}

// The same for a window's.
pen_status pen_onnx_convert_output_type(pen_onnx_draft *draft) {
    const int64_t type = pen_onnx_draft_int(draft, "output_datatype", 1);
    const pen_element_type element = pen_onnx_element_type(type);
    if (element == PEN_ELEMENT_UNKNOWN) {
        return pen_error(PEN_UNSUPPORTED, "element type %s", pen_onnx_data_type_name(type));
    }
    pen_onnx_draft_add_attribute(draft,
                                 pen_attribute_text("output_datatype", pen_element_name(element)));
    return PEN_OK;
}

// The type is that of operand 1, which may be known only when types are inferred.
pen_status pen_onnx_convert_cast_like(pen_onnx_draft *draft) {
    if (!pen_onnx_draft_has(draft, 0) || !pen_onnx_draft_has(draft, 1)) {
        return pen_error(PEN_INVALID_INPUT, "an operand is left out");
    }
    const pen_element_type element = pen_value_type(draft->graph, draft->inputs[1])->element;
    if (element == PEN_ELEMENT_UNKNOWN) return PEN_OK;
    draft->input_count = 1;
    pen_onnx_draft_add_attribute(draft, pen_attribute_text("to", pen_element_name(element)));
    return PEN_OK;
}

// ---- broadcasting before operator set 7

// Before operator set 7 the second operand is matched from `axis` on; dimensions of size 1 behind
// it make that NumPy's broadcasting.
static pen_status convert_align(pen_onnx_draft *draft, int64_t axis) {
    uint32_t rank, own;
    if (!pen_onnx_draft_rank(draft, 0, &rank) || !pen_onnx_draft_rank(draft, 1, &own)) {
        return pen_error(PEN_UNSUPPORTED,
                         "broadcasting along axis %lld, as before operator set 7, "
                         "of an operand whose rank is not known",
                         (long long)axis);
    }
    if (axis < 0) axis += rank;
    if (axis < 0 || axis + own > rank) {
        return pen_error(PEN_INVALID_INPUT, "operands of rank %u and %u do not match at axis %lld",
                         rank, own, (long long)axis);
    }
    int64_t axes[PEN_RANK_LIMIT];
    uint32_t count = 0;
    for (uint32_t i = (uint32_t)axis + own; i < rank; i++) {
        axes[count] = own + count;
        count++;
    }
    if (count == 0) return PEN_OK;
    pen_value_id list, aligned;
    PEN_TRY(pen_onnx_draft_list(draft, "axes", count, axes, &list));
    const pen_onnx_extra extra = {"unsqueeze", "aligned", PEN_INPUTS(draft->inputs[1], list),
                                  PEN_NO_ATTRIBUTES};
    PEN_TRY(pen_onnx_draft_extra(draft, &extra, &aligned));
    pen_onnx_draft_set_input(draft, 1, aligned);
    return PEN_OK;
}

pen_status pen_onnx_convert_broadcast(pen_onnx_draft *draft) {
    if (draft->node->opset >= 7 || !pen_onnx_draft_has(draft, 1)) return PEN_OK;
    if (strcmp(draft->node->op_type, "PRelu") == 0) {
        uint32_t own;
        const bool one = pen_onnx_draft_rank(draft, 1, &own) && own == 1 &&
                         pen_value_type(draft->graph, draft->inputs[1])->shape.dims[0] == 1;
        return one ? PEN_OK : convert_align(draft, 1);
    }
    const pen_onnx_attribute *axis = pen_onnx_draft_attribute(draft, "axis");
    const bool broadcasts = pen_onnx_draft_int(draft, "broadcast", 0) != 0;
    return broadcasts && axis != NULL ? convert_align(draft, axis->integer) : PEN_OK;
}

// ---- movement

pen_status pen_onnx_convert_clip(pen_onnx_draft *draft) {
    if (draft->node->opset >= 11) return PEN_OK;
    const pen_onnx_attribute *low = pen_onnx_draft_attribute(draft, "min");
    const pen_onnx_attribute *high = pen_onnx_draft_attribute(draft, "max");
    if (low != NULL) PEN_TRY(pen_onnx_draft_number(draft, 1, "min", low->number));
    if (high != NULL) PEN_TRY(pen_onnx_draft_number(draft, 2, "max", high->number));
    return PEN_OK;
}

pen_status pen_onnx_convert_pad(pen_onnx_draft *draft) {
    if (draft->node->opset >= 11) return PEN_OK;
    PEN_TRY(convert_ints(draft, "paddings", 1));
    PEN_TRY(convert_ints(draft, "pads", 1));
    const double value = pen_onnx_draft_float(draft, "value", 0);
    return value != 0 ? pen_onnx_draft_number(draft, 2, "value", value) : PEN_OK;
}

pen_status pen_onnx_convert_slice(pen_onnx_draft *draft) {
    if (draft->node->opset >= 10) return PEN_OK;
    PEN_TRY(convert_ints(draft, "starts", 1));
    PEN_TRY(convert_ints(draft, "ends", 2));
    return convert_ints(draft, "axes", 3);
}

pen_status pen_onnx_convert_split(pen_onnx_draft *draft) {
    const pen_onnx_attribute *outputs = pen_onnx_draft_attribute(draft, "num_outputs");
    draft->output_count = draft->node->output_count;
    if (outputs != NULL && outputs->integer != draft->node->output_count) {
        return pen_error(PEN_INVALID_INPUT, "num_outputs is %lld, but there are %u outputs",
                         (long long)outputs->integer, draft->node->output_count);
    }
    return draft->node->opset < 13 ? convert_ints(draft, "split", 1) : PEN_OK;
}

// Before operator set 13, softmax and its kin work on a matrix: dimensions before `axis` are rows,
// the others columns. Where `axis` is the last dimension that is the same as now.
pen_status pen_onnx_convert_softmax(pen_onnx_draft *draft) {
    const bool old = draft->node->opset < 13;
    int64_t axis = pen_onnx_draft_int(draft, "axis", old ? 1 : -1);
    uint32_t rank;
    const bool is_last = axis == -1 || (pen_onnx_draft_rank(draft, 0, &rank) && axis + 1 == rank);
    if (!old || is_last || !pen_onnx_draft_has(draft, 0)) {
        pen_onnx_draft_add_attribute(draft, pen_attribute_int("axis", old ? -1 : axis));
        return PEN_OK;
    }
    pen_value_id shape, matrix, result;
    const pen_node_inputs x = PEN_INPUTS(draft->inputs[0]);
    const pen_onnx_extra take_shape = {"shape", "shape", x, PEN_NO_ATTRIBUTES};
    PEN_TRY(pen_onnx_draft_extra(draft, &take_shape, &shape));
    const pen_onnx_extra flatten = {"flatten", "matrix", x,
                                    PEN_WITH(pen_attribute_int("axis", axis))};
    PEN_TRY(pen_onnx_draft_extra(draft, &flatten, &matrix));
    const pen_onnx_extra apply = {draft->op_name, "rows", PEN_INPUTS(matrix),
                                  PEN_WITH(pen_attribute_int("axis", -1))};
    PEN_TRY(pen_onnx_draft_extra(draft, &apply, &result));
    draft->op_name = "reshape"; // the node itself
    pen_onnx_draft_set_input(draft, 0, result);
    pen_onnx_draft_set_input(draft, 1, shape);
    return PEN_OK;
}
