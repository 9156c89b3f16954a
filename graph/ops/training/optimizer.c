#include "graph/ops/training/optimizer.h"

#include <string.h>

#include "base/status.h"
#include "graph/op.h"

// clang-format off
#define NUMBER(member) {#member, false, offsetof(pen_optimizer, member)}
#define FLAG(member) {#member, true, offsetof(pen_optimizer, member)}
// clang-format on

#define MOMENTS                                                                                    \
    {                                                                                              \
        {.suffix = "first_moment"}, {                                                              \
            .suffix = "second_moment"                                                              \
        }                                                                                          \
    }

static const pen_optimizer_entry optimizer_entries[] = {
    [PEN_OPTIMIZER_SGD] = {.op_name = "sgd_update",
                           .states = {{.suffix = "velocity", .with = NUMBER(momentum)}},
                           .numbers = {NUMBER(momentum), FLAG(nesterov), NUMBER(weight_decay)}},
    [PEN_OPTIMIZER_ADAM] = {.op_name = "adam_update",
                            .states = MOMENTS,
                            .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(epsilon),
                                        NUMBER(weight_decay)}},
    [PEN_OPTIMIZER_ADAMW] = {.op_name = "adam_update",
                             .states = MOMENTS,
                             .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(epsilon),
                                         NUMBER(weight_decay)},
                             .set = "decoupled"},
    [PEN_OPTIMIZER_RMSPROP] = {.op_name = "rmsprop_update",
                               .states = {{.suffix = "square_average"},
                                          {.suffix = "momentum_buffer", .with = NUMBER(momentum)},
                                          {.suffix = "gradient_average", .with = FLAG(centered)}},
                               .numbers = {NUMBER(alpha), NUMBER(epsilon), NUMBER(weight_decay),
                                           NUMBER(momentum), FLAG(centered)}},
    [PEN_OPTIMIZER_ADAGRAD] = {.op_name = "adagrad_update",
                               .states = {{.suffix = "square_sum"}},
                               .numbers = {NUMBER(lr_decay), NUMBER(epsilon),
                                           NUMBER(weight_decay)}},
    [PEN_OPTIMIZER_ADADELTA] = {.op_name = "adadelta_update",
                                .states = {{.suffix = "square_average"},
                                           {.suffix = "step_average"}},
                                .numbers = {NUMBER(rho), NUMBER(epsilon), NUMBER(weight_decay)}},
    [PEN_OPTIMIZER_ADAMAX] = {.op_name = "adamax_update",
                              .states = {{.suffix = "first_moment"}, {.suffix = "largest"}},
                              .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(epsilon),
                                          NUMBER(weight_decay)}},
    [PEN_OPTIMIZER_NADAM] = {.op_name = "nadam_update",
                             .states = MOMENTS,
                             .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(epsilon),
                                         NUMBER(weight_decay), NUMBER(momentum_decay),
                                         FLAG(decoupled)}},
    [PEN_OPTIMIZER_RADAM] = {.op_name = "radam_update",
                             .states = MOMENTS,
                             .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(epsilon),
                                         NUMBER(weight_decay), FLAG(decoupled)}},
    [PEN_OPTIMIZER_LION] = {.op_name = "lion_update",
                            .states = {{.suffix = "first_moment"}},
                            .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(weight_decay)}},
    [PEN_OPTIMIZER_LAMB] = {.op_name = "lamb_update",
                            .states = MOMENTS,
                            .numbers = {NUMBER(beta1), NUMBER(beta2), NUMBER(epsilon),
                                        NUMBER(weight_decay)},
                            .needs_whole = true},
    [PEN_OPTIMIZER_ADAFACTOR] = {.op_name = "adafactor_update",
                                 .states = {{.suffix = "row_variance", .shape = PEN_OPTIMIZER_ROWS},
                                            {.suffix = "column_variance",
                                             .shape = PEN_OPTIMIZER_COLUMNS},
                                            {.suffix = "variance", .shape = PEN_OPTIMIZER_VECTOR}},
                                 .numbers = {NUMBER(beta2_decay), NUMBER(epsilon), NUMBER(epsilon2),
                                             NUMBER(clip_threshold), NUMBER(weight_decay)},
                                 .needs_whole = true},
};

const pen_optimizer_entry *pen_optimizer_entry_of(pen_optimizer_kind kind) {
    PEN_ASSERT(kind < PEN_OPTIMIZER_COUNT);
    return &optimizer_entries[kind];
}

const pen_op *pen_optimizer_op(pen_optimizer_kind kind) {
    const pen_op *op;
    const pen_status status = pen_op_find(pen_optimizer_entry_of(kind)->op_name, &op);
    PEN_ASSERT(status == PEN_OK && op->is_update);
    return op;
}

double pen_optimizer_read(const pen_optimizer *optimizer, const pen_optimizer_number *number) {
    const char *member = (const char *)optimizer + number->offset;
    if (number->is_flag) return *(const bool *)member ? 1 : 0;
    double value;
    memcpy(&value, member, sizeof value);
    return value;
}

bool pen_optimizer_keeps(const pen_optimizer *optimizer, const pen_optimizer_state *state) {
    return state->with.attribute == NULL || pen_optimizer_read(optimizer, &state->with) != 0;
}

bool pen_optimizer_state_type(pen_optimizer_shape shape, const pen_tensor_type *parameter,
                              pen_tensor_type *out_type) {
    const uint32_t rank = parameter->shape.rank;
    *out_type = *parameter;
    switch (shape) {
    case PEN_OPTIMIZER_LIKE_IT:
        return true;
    case PEN_OPTIMIZER_ROWS:
        if (rank > 1) out_type->shape.dims[rank - 1] = 1;
        return rank > 1;
    case PEN_OPTIMIZER_COLUMNS:
        if (rank > 1) out_type->shape.dims[rank - 2] = 1;
        return rank > 1;
    case PEN_OPTIMIZER_VECTOR:
        return rank <= 1;
    }
    return false;
}

bool pen_optimizer_has_state(const char *suffix, const pen_tensor_type *parameter,
                             const pen_tensor_type *state) {
    pen_tensor_type type;
    if (strcmp(suffix, PEN_OPTIMIZER_AVERAGE) == 0) return pen_tensor_type_equal(parameter, state);
    for (int kind = 0; kind < PEN_OPTIMIZER_COUNT; kind++) {
        for (int i = 0; i < PEN_OPTIMIZER_STATES; i++) {
            const pen_optimizer_state *own = &optimizer_entries[kind].states[i];
            if (own->suffix == NULL || strcmp(own->suffix, suffix) != 0) continue;
            if (!pen_optimizer_state_type(own->shape, parameter, &type)) continue;
            if (pen_tensor_type_equal(&type, state)) return true;
        }
    }
    return false;
}
