#include "graph/import/onnx/onnx_weights.h"

#include <string.h>
#include <strings.h>

#include "base/reserve.h"

uint32_t pen_onnx_weights_reading(const char *op_type, uint32_t input) {
    static const char *const recurrent[] = {"LSTM", "GRU", "RNN"};
    if (input == 1 && strcmp(op_type, "MatMul") == 0) return PEN_ONNX_READ_AS_MATRIX;
    if (input == 1 && strcmp(op_type, "PRelu") == 0) return PEN_ONNX_READ_AS_SLOPE;
    for (size_t i = 0; i < sizeof recurrent / sizeof *recurrent; i++) {
        const bool is_weight = input >= 1 && input <= 3;
        if (is_weight && strcmp(op_type, recurrent[i]) == 0) return PEN_ONNX_READ_AS_RECURRENT;
    }
    return PEN_ONNX_READ_OTHERWISE;
}

// "val_12", as PyTorch's new exporter calls what stands between the operators of the program.
static bool weights_is_between(const char *name) {
    return strncmp(name, "val_", 4) == 0 && name[4] != '\0' &&
           strspn(name + 4, "0123456789") == strlen(name + 4);
}

// Whether a value that the exporter has computed holds the elements of parameters, only laid out in
// another way: it stands between operators, and who reads it tells what the layout was for.
static bool weights_are_laid_out(const pen_onnx_computed *computed, uint32_t readings) {
    if (!weights_is_between(computed->name) || computed->parameter_count == 0) return false;
    if (readings == PEN_ONNX_READ_AS_MATRIX) return computed->source_count == 1; // transposed
    if (readings == PEN_ONNX_READ_AS_SLOPE) return computed->parameter_count == 1;
    return readings == PEN_ONNX_READ_AS_RECURRENT;
}

// Numbers that stand in formulas have names that no program gives to a parameter: "onnx::Mul_37",
// "12", "eps/const"; parameters are "logit_scale", "blocks.3.gain".
static bool weights_is_of_program(const char *name) {
    if (strspn(name, "0123456789") == strlen(name)) return false;
    for (const char *c = name; *c != '\0'; c++) {
        if (strncasecmp(c, "const", 5) == 0 || strchr(":/", *c) != NULL) return false;
    }
    return true;
}

static bool weights_unfreeze(pen_onnx_weights *weights, const char *name) {
    if (weights->unfreeze == NULL || !pen_pattern_matches(weights->unfreeze, name)) return false;
    weights->unfrozen_count += 1;
    return true;
}

static pen_status weights_add(pen_onnx_weights *weights, const pen_model_weight *weight) {
    PEN_TRY(PEN_RESERVE(weights->arena, &weights->list, weights->count, &weights->capacity, 64));
    weights->list[weights->count++] = *weight;
    return PEN_OK;
}

// By what the file says of its values.
static void weights_by_mark(const pen_onnx_weights *weights, pen_model_weight *weight,
                            uint32_t readings) {
    const pen_onnx_target *target = pen_onnx_origins_target(&weights->origins, weight->name);
    const pen_onnx_computed *computed = pen_onnx_origins_computed(&weights->origins, weight->name);
    weight->reason = "computed by the exporter";
    if (target != NULL) {
        weight->is_trained = target->is_parameter;
        weight->reason = target->is_parameter ? "the file marks it as a parameter"
                                              : "the file marks it as a buffer";
        return;
    }
    if (computed == NULL || computed->parameter_count == 0) return;
    weight->is_trained = weights_are_laid_out(computed, readings);
    weight->reason = weight->is_trained ? "a parameter, laid out otherwise by the exporter"
                                        : "computed by the exporter from a parameter";
    weight->of = computed->parameter;
}

// By its name and shape, for files that say nothing.
static void weights_by_form(const pen_onnx_weights *weights, const pen_tensor_type *type,
                            pen_model_weight *weight) {
    const bool is_single = pen_shape_element_count(&type->shape) <= 1;
    weight->is_trained = true;
    weight->reason = "a tensor that is used as a weight";
    if (strcmp(weights->producer, "penstock") == 0) {
        weight->reason = "Penstock writes parameters alone as initializers";
        return;
    }
    if (weights_is_between(weight->name)) {
        weight->is_trained = false;
        weight->reason = "named as the exporter's constants are";
        return;
    }
    if (!is_single) return;
    const bool is_pytorch = strcmp(weights->producer, "pytorch") == 0;
    weight->is_trained = is_pytorch && weights_is_of_program(weight->name);
    weight->reason = weight->is_trained ? "a number under a name of the program"
                                        : "a single number; unfreeze trains it";
}

pen_status pen_onnx_weights_decide(pen_onnx_weights *weights, const char *name,
                                   const pen_tensor_type *type, uint32_t readings,
                                   bool *out_is_trained) {
    pen_model_weight weight = {.name = name};
    if (weights->origins.is_marked) {
        weights_by_mark(weights, &weight, readings);
    } else {
        weights_by_form(weights, type, &weight);
    }
    if (weights_unfreeze(weights, name) && !weight.is_trained) {
        weight.is_trained = true;
        weight.reason = "unfreeze names it";
    }
    *out_is_trained = weight.is_trained;
    return weights_add(weights, &weight);
}

pen_status pen_onnx_weights_decide_node(pen_onnx_weights *weights, const char *name,
                                        const pen_tensor_type *type, bool *out_is_trained) {
    pen_model_weight weight = {.name = name, .reason = "a Constant node; unfreeze trains it"};
    *out_is_trained = false;
    if (!pen_element_is_float(type->element)) return PEN_OK;
    weight.is_trained = weights_unfreeze(weights, name);
    if (weight.is_trained) weight.reason = "unfreeze names it";
    *out_is_trained = weight.is_trained;
    if (!weight.is_trained && pen_shape_element_count(&type->shape) <= 1) return PEN_OK;
    return weights_add(weights, &weight);
}

bool pen_onnx_weights_is_updated(const pen_onnx_weights *weights, const char *name) {
    const pen_onnx_target *target = pen_onnx_origins_target(&weights->origins, name);
    return target != NULL && target->is_updated;
}

// ---- what is lost

static pen_status weights_lose(pen_onnx_weights *weights, const char *name, const char *form,
                               const char *other) {
    PEN_TRY(PEN_RESERVE(weights->arena, &weights->lost, weights->lost_count,
                        &weights->lost_capacity, 16));
    pen_model_lost *gone = &weights->lost[weights->lost_count++];
    *gone = (pen_model_lost){.name = name};
    return pen_arena_format(weights->arena, &gone->what, form, other);
}

// Whether the value that a parameter went into is trained in its place.
static bool weights_stands_for(const pen_onnx_weights *weights, const pen_onnx_target *target) {
    for (uint32_t i = 0; i < weights->count; i++) {
        if (strcmp(weights->list[i].name, target->folded_into) != 0) continue;
        return weights->list[i].is_trained;
    }
    return false;
}

// Of a file that PyTorch's optimizer has not changed, parameters are missing only where several are
// one, or nothing reads them.
static pen_status weights_check_target(pen_onnx_weights *weights, const pen_onnx_target *target) {
    const bool stands = target->folded_into != NULL && weights_stands_for(weights, target);
    if (!target->is_parameter) return PEN_OK;
    if (target->is_found && stands) {
        return weights_lose(weights, target->name, "no longer tied to '%s', which was made of it",
                            target->folded_into);
    }
    if (target->is_found || stands) return PEN_OK;
    if (target->folded_into != NULL) {
        return weights_lose(weights, target->name, "folded into '%s'", target->folded_into);
    }
    if (weights->keeps_constants) return PEN_OK;
    return weights_lose(weights, target->name, "%s", "left out, or merged with others like it");
}

// A batch normalization that was folded into the layer before it has left its statistics behind.
static pen_status weights_check_statistics(pen_onnx_weights *weights,
                                           const pen_onnx_target *target) {
    static const char ending[] = "running_var";
    const size_t length = strlen(target->name), ending_length = sizeof ending - 1;
    if (target->is_parameter || target->is_found || weights->keeps_constants) return PEN_OK;
    if (length < ending_length) return PEN_OK;
    if (strcmp(target->name + length - ending_length, ending) != 0) return PEN_OK;
    return weights_lose(weights, target->name, "%s",
                        "statistics of a batch normalization that is no longer there");
}

pen_status pen_onnx_weights_finish(pen_onnx_weights *weights) {
    if (weights->unfreeze != NULL && weights->unfrozen_count == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "unfreeze: no floating constant matches '%s'; `penstock inspect` lists "
                         "them",
                         weights->options->unfreeze);
    }
    if (!weights->origins.is_signed) return PEN_OK;
    for (uint32_t i = 0; i < weights->origins.target_count; i++) {
        PEN_TRY(weights_check_target(weights, &weights->origins.targets[i]));
        PEN_TRY(weights_check_statistics(weights, &weights->origins.targets[i]));
    }
    return PEN_OK;
}
