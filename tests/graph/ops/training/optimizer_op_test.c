// Expected parameters are those of torch.optim in float64 after three steps from `start` with the
// gradients below; of Lion and LAMB, those of their papers' formulas written with torch.

#include <math.h>

#include "graph/op.h"
#include "graph/ops/training/optimizer.h"
#include "tests/support/dice.h"

static const double start[3] = {0.5, -1.25, 2.0};
static const double steps[3][3] = {{0.1, -0.2, 0.3}, {0.05, 0.4, -0.6}, {-0.3, 0.2, 0.1}};

static op_case_input vector_of(const double *data) {
    return (op_case_input){.type = {PEN_FLOAT64, {1, {3}}}, .data = data};
}

static op_case_input scalar_of(const double *data) {
    return (op_case_input){.type = {PEN_FLOAT64, {0, {0}}}, .data = data};
}

// Runs the case for each gradient. kept[i] is what operand places[i] starts as and output i
// becomes; `step` is the storage of the step's number, which goes on.
static void take_steps(const op_case *c, uint32_t kept_count, double kept[][3], double *step,
                       double gradient[3], double scale) {
    for (int s = 0; s < 3; s++) {
        op_built built;
        run_graph run;
        for (int k = 0; k < 3; k++) {
            gradient[k] = steps[s][k] / scale;
        }
        *step += 1;
        CHECK_OK(op_build(c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(c, &built, 1, &run);
        CHECK_OK(run_graph_all(&run));
        for (uint32_t i = 0; i < kept_count; i++) {
            memcpy(kept[i], run.tensors[built.outputs[i].index].data, sizeof kept[i]);
        }
        op_built_free(&built);
    }
}

static void check_vector(const double found[3], const double expected[3]) {
    for (int k = 0; k < 3; k++) {
        CHECK(fabs(found[k] - expected[k]) <= 1e-15, "element %d is %.17g, expected %.17g", k,
              found[k], expected[k]);
    }
}

// SGD: `momentum` 0 goes without a velocity.
static void check_sgd(double momentum, bool nesterov, double scale, const double expected[3]) {
    double kept[2][3] = {{0}}, gradient[3], step = 0;
    const double rate = 0.1;
    memcpy(kept[0], start, sizeof start);
    op_case c = {
        .op = "sgd_update",
        .input_count = 5,
        .inputs = {vector_of(kept[0]), vector_of(gradient), vector_of(kept[1]), scalar_of(&rate),
                   scalar_of(&scale)},
        .output_count = momentum != 0 ? 2 : 1,
        .attribute_count = 3,
        .attributes = {pen_attribute_float("momentum", momentum),
                       pen_attribute_float("weight_decay", momentum != 0 ? 0.01 : 0),
                       pen_attribute_int("nesterov", nesterov)},
    };
    c.inputs[2].is_absent = momentum == 0;
    if (scale == 1) c.input_count = 4;
    take_steps(&c, c.output_count, kept, &step, gradient, scale);
    check_vector(kept[0], expected);
}

static void sgd(void **state) {
    (void)state;
    check_sgd(0, false, 1, (const double[]){0.515, -1.29, 2.02});
    check_sgd(0, false, 0.25, (const double[]){0.515, -1.29, 2.02});
    check_sgd(0.9, false, 1, (const double[]){0.4906403895, -1.28482947875, 2.011543568});
    check_sgd(0.9, true, 0.5,
              (const double[]){0.5051634119805, -1.31763754924625, 2.0244519365120004});
}

static void check_adam(bool decoupled, double scale, const double expected[3]) {
    double kept[3][3] = {{0}}, gradient[3], step = 0;
    const double rate = 0.01;
    memcpy(kept[0], start, sizeof start);
    op_case c = {
        .op = "adam_update",
        .input_count = scale == 1 ? 6 : 7,
        .inputs = {vector_of(kept[0]), vector_of(gradient), vector_of(kept[1]), vector_of(kept[2]),
                   scalar_of(&rate), scalar_of(&step), scalar_of(&scale)},
        .output_count = 3,
        .attribute_count = 5,
        .attributes = {pen_attribute_float("beta1", 0.8), pen_attribute_float("beta2", 0.95),
                       pen_attribute_float("epsilon", 1e-6),
                       pen_attribute_float("weight_decay", 0.02),
                       pen_attribute_int("decoupled", decoupled)},
    };
    take_steps(&c, 3, kept, &step, gradient, scale);
    check_vector(kept[0], expected);
}

static void adam(void **state) {
    (void)state;
    check_adam(false, 1,
               (const double[]){0.4844541058126853, -1.2484874592780968, 1.9944014270517574});
    check_adam(true, 0.5,
               (const double[]){0.48476002793055545, -1.2491189186038445, 1.994964807637153});
}

// Operands in the op's order; of the states, those that are not kept are left out.
static void check_rmsprop(double momentum, bool centered, double weight_decay, double scale,
                          const double expected[3]) {
    double parameter[3], states[3][3] = {{0}}, gradient[3];
    const double rate = 0.01;
    const bool keeps[3] = {true, momentum != 0, centered};
    memcpy(parameter, start, sizeof start);
    op_case c = {
        .op = "rmsprop_update",
        .input_count = scale == 1 ? 6 : 7,
        .inputs = {vector_of(parameter), vector_of(gradient), vector_of(states[0]),
                   vector_of(states[1]), vector_of(states[2]), scalar_of(&rate), scalar_of(&scale)},
        .output_count = centered        ? 4
                        : momentum != 0 ? 3
                                        : 2,
        .attribute_count = 5,
        .attributes = {pen_attribute_float("alpha", 0.9), pen_attribute_float("epsilon", 1e-6),
                       pen_attribute_float("weight_decay", weight_decay),
                       pen_attribute_float("momentum", momentum),
                       pen_attribute_int("centered", centered)},
    };
    c.inputs[3].is_absent = !keeps[1];
    c.inputs[4].is_absent = !keeps[2];
    c.absent_outputs = keeps[1] ? 0 : 1u << 2;
    for (int s = 0; s < 3; s++) {
        op_built built;
        run_graph run;
        for (int k = 0; k < 3; k++) {
            gradient[k] = steps[s][k] / scale;
        }
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, 1, &run);
        CHECK_OK(run_graph_all(&run));
        memcpy(parameter, run.tensors[built.outputs[0].index].data, sizeof parameter);
        for (uint32_t i = 0; i < 3; i++) {
            if (!keeps[i]) continue;
            memcpy(states[i], run.tensors[built.outputs[1 + i].index].data, sizeof states[i]);
        }
        op_built_free(&built);
    }
    check_vector(parameter, expected);
}

static void rmsprop(void **state) {
    (void)state;
    check_rmsprop(0, false, 0, 1,
                  (const double[]){0.48358180098208886, -1.2605445490271603, 1.9919914487930781});
    check_rmsprop(0, true, 0.02, 0.5,
                  (const double[]){0.47925695290467918, -1.2571653533507292, 1.9872566732766006});
    check_rmsprop(0.9, false, 0.02, 1,
                  (const double[]){0.41404956490595263, -1.2289975747019768, 1.9593788138986465});
    check_rmsprop(0.9, true, 0.02, 0.25,
                  (const double[]){0.40679119766302063, -1.2251501108628657, 1.9551485331504994});
}

// ---- optimizers that keep all their states

typedef struct other_update {
    pen_optimizer_kind kind;
    int rounds; // of three steps
    double scale, clip_value;
    double expected[3];
    bool decoupled;
} other_update;

// Operands and states as the op says where they go.
static void check_other(const other_update *o, double lr_scale) {
    const pen_op *op = pen_optimizer_op(o->kind);
    const pen_optimizer_entry *entry = pen_optimizer_entry_of(o->kind);
    const pen_optimizer optimizer = {.weight_decay = o->kind == PEN_OPTIMIZER_SGD ? 0 : 0.02,
                                     .beta1 = 0.8,
                                     .beta2 = 0.95,
                                     .epsilon = 1e-6,
                                     .rho = 0.9,
                                     .lr_decay = 0.1,
                                     .momentum_decay = 0.01,
                                     .decoupled = o->decoupled};
    double kept[3][3] = {{0}}, gradient[3], step = 0;
    const double rate = (o->kind == PEN_OPTIMIZER_SGD ? 0.1 : 0.01) / lr_scale;
    memcpy(kept[0], start, sizeof start);
    op_case c = {.op = op->name, .input_count = op->update.scale + 1};
    c.inputs[0] = vector_of(kept[0]);
    c.inputs[1] = vector_of(gradient);
    for (uint32_t i = op->update.state; i < op->update.rate; i++) {
        c.inputs[i] = vector_of(kept[1 + i - op->update.state]);
        c.inputs[i].is_absent = o->kind == PEN_OPTIMIZER_SGD;
    }
    c.inputs[op->update.rate] = scalar_of(&rate);
    if (op->update.step != 0) c.inputs[op->update.step] = scalar_of(&step);
    c.inputs[op->update.scale] = scalar_of(&o->scale);
    c.output_count = o->kind == PEN_OPTIMIZER_SGD ? 1 : 1 + op->update.rate - op->update.state;
    for (; c.attribute_count < PEN_OPTIMIZER_NUMBERS; c.attribute_count++) {
        const pen_optimizer_number *number = &entry->numbers[c.attribute_count];
        if (number->attribute == NULL) break;
        const double value = pen_optimizer_read(&optimizer, number);
        c.attributes[c.attribute_count] = number->is_flag
                                              ? pen_attribute_int(number->attribute, (int64_t)value)
                                              : pen_attribute_float(number->attribute, value);
    }
    c.attributes[c.attribute_count++] = pen_attribute_float("clip_value", o->clip_value);
    c.attributes[c.attribute_count++] = pen_attribute_float("lr_scale", lr_scale);
    for (int i = 0; i < o->rounds; i++) {
        take_steps(&c, c.output_count, kept, &step, gradient, o->scale < 0 ? 1 : o->scale);
    }
    check_vector(kept[0], o->expected);
    for (uint32_t i = 1; o->scale < 0 && i < c.output_count; i++) {
        check_vector(kept[i], (const double[3]){0});
    }
}

static const other_update other_updates[] = {
    {PEN_OPTIMIZER_ADAGRAD,
     1,
     1,
     0,
     {0.49331002684055658, -1.250892147605019, 1.9960310400108991},
     0},
    {PEN_OPTIMIZER_ADADELTA,
     1,
     0.5,
     0,
     {0.4999916504092759, -1.2500301980744069, 1.9999941461425603},
     0},
    {PEN_OPTIMIZER_ADAMAX,
     1,
     0.25,
     0,
     {0.48457204672782139, -1.2466996621325721, 1.9935566259540087},
     0},
    {PEN_OPTIMIZER_NADAM,
     1,
     1,
     0,
     {0.49351664299986259, -1.2533279128362027, 1.9960209284705426},
     0},
    {PEN_OPTIMIZER_NADAM,
     1,
     0.5,
     0,
     {0.49383087585225233, -1.2535783417952819, 1.9962105072754612},
     1},
    {PEN_OPTIMIZER_RADAM,
     1,
     1,
     0,
     {0.49878140836885249, -1.2501903838592896, 1.9985712400418942},
     0},
    {PEN_OPTIMIZER_RADAM,
     1,
     0.5,
     0,
     {0.4987816608667468, -1.2501905739537162, 1.998571531667279},
     1},
    // its variance is known from the sixth step on
    {PEN_OPTIMIZER_RADAM,
     3,
     1,
     0,
     {0.50104320836136707, -1.2556177445602901, 1.9994212521874937},
     0},
    {PEN_OPTIMIZER_LION, 1, 0.5, 0, {0.489706059596, -1.2592521495899998, 1.9888022395840002}, 0},
    {PEN_OPTIMIZER_LAMB, 1, 1, 0, {0.47989707635338785, -1.2633289901978266, 1.999647377015767}, 0},
    {PEN_OPTIMIZER_LAMB,
     1,
     0.25,
     0.15,
     {0.46965877565972913, -1.2578138872077853, 1.9759467585479287},
     0},
    {PEN_OPTIMIZER_SGD, 1, 0.5, 0.15, {0.5, -1.265, 1.99}, 0},
};

static void others(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof other_updates / sizeof *other_updates; i++) {
        check_other(&other_updates[i], 1);
        other_update kept = other_updates[i]; // nothing is applied
        kept.scale = -1;
        memcpy(kept.expected, start, sizeof start);
        check_other(&kept, 1);
        check_other(&other_updates[i], 0.25); // of four times the rate
    }
}

// Three steps of Adafactor with the gradients (7i + 5s) mod 11, less 5, in quarters. states: their
// elements.
static void check_adafactor(const pen_shape *shape, const int states[3], const double *expected) {
    const pen_tensor_type type = {PEN_FLOAT64, *shape};
    const int count = (int)pen_shape_element_count(shape);
    double kept[4][12] = {{0}}, gradient[12], step = 0;
    const double rate = 0.3;
    op_case c = {.op = "adafactor_update",
                 .input_count = 7,
                 .output_count = states[2] > 0 ? 4 : 3,
                 .absent_outputs = states[2] > 0 ? 3u << 1 : 0,
                 .attribute_count = 2,
                 .attributes = {pen_attribute_float("weight_decay", 0.1),
                                pen_attribute_float("epsilon", 1e-7)}};
    c.inputs[0] = (op_case_input){.type = type, .data = kept[0]};
    c.inputs[1] = (op_case_input){.type = type, .data = gradient};
    for (int i = 0; i < 3; i++) {
        c.inputs[2 + i] =
            (op_case_input){.type = type, .data = kept[1 + i], .is_absent = states[i] == 0};
        if (i < 2 && states[i] > 0)
            c.inputs[2 + i].type.shape.dims[shape->rank - 1 - (uint32_t)i] = 1;
    }
    c.inputs[5] = scalar_of(&rate);
    c.inputs[6] = scalar_of(&step);
    for (int k = 0; k < count; k++) {
        kept[0][k] = k / 8.0 - 0.7;
    }
    for (int s = 0; s < 3; s++) {
        op_built built;
        run_graph run;
        step += 1;
        for (int k = 0; k < count; k++) {
            gradient[k] = ((k * 7 + s * 5) % 11 - 5) / 4.0;
        }
        CHECK_OK(op_build(&c, &built));
        CHECK_OK(run_graph_init(&run, built.graph, built.arena));
        op_fill(&c, &built, 1, &run);
        CHECK_OK(run_graph_all(&run));
        for (uint32_t i = 0; i < c.output_count; i++) {
            if (i > 0 && states[i - 1] == 0) continue;
            const size_t elements = (size_t)(i == 0 ? count : states[i - 1]);
            memcpy(kept[i], run.tensors[built.outputs[i].index].data, elements * sizeof(double));
        }
        op_built_free(&built);
    }
    for (int k = 0; k < count; k++) {
        CHECK(fabs(kept[0][k] - expected[k]) < 1e-14, "element %d is %.17g, expected %.17g", k,
              kept[0][k], expected[k]);
    }
}

static void adafactor(void **state) {
    (void)state;
    check_adafactor(&(pen_shape){3, {2, 2, 3}}, (const int[3]){4, 6, 0},
                    (const double[]){-0.6813444045272968, -0.5698191296017705, -0.3514499048012326,
                                     -0.5075451425066269, -0.0732508792313509, 0.1373652814041185,
                                     -0.13897647096555293, 0.009050302254721589,
                                     0.49772831668567985, 0.3335760111273323, 0.6014646339956368,
                                     0.5844791444792969});
    check_adafactor(
        &(pen_shape){1, {3}}, (const int[3]){0, 0, 3},
        (const double[]){-0.6514154845307323, -0.5563695166991941, -0.2683673942236128});
}

static void update_refuses(void **state) {
    (void)state;
    const double rate = 0.1;
    op_case c = {
        .op = "sgd_update",
        .input_count = 4,
        .inputs = {vector_of(start), vector_of(start), {.is_absent = true}, scalar_of(&rate)},
        .attribute_count = 1,
        .attributes = {pen_attribute_float("momentum", 0.9)},
    };
    op_check_error(&c, PEN_INVALID_INPUT, "sgd_update 'subject': momentum needs a velocity");
    c.attribute_count = 0;
    c.input_count = 2;
    op_check_error(&c, PEN_INVALID_INPUT, "there is no learning rate (input 3)");
    c.input_count = 4;
    c.inputs[3] = vector_of(start);
    op_check_error(&c, PEN_INVALID_INPUT, "the learning rate is float64[3], it must be a float32");
    c.inputs[1].type.shape.dims[0] = 2;
    op_check_error(&c, PEN_INVALID_INPUT,
                   "the gradient is float64[2], but the parameter is float64[3]");
    c.inputs[0].type.element = PEN_INT32;
    op_check_error(&c, PEN_INVALID_INPUT, "the parameter is int32; only floating types");
}

static void norms(void **state) {
    (void)state;
    // one block and a bit: squares whose sum depends on the order in float32, not in double
    static float numbers[3 * 4096 + 5];
    const int64_t count = sizeof numbers / sizeof *numbers;
    double expected = 0;
    for (int64_t k = 0; k < count; k++) {
        numbers[k] = (float)(k % 7) - 3;
        expected += (double)numbers[k] * (double)numbers[k];
    }
    op_case c = {.op = "squared_norm",
                 .input_count = 1,
                 .inputs = {{.type = {PEN_FLOAT32, {1, {count}}}, .data = numbers}}};
    op_check_values(&c, 0, &expected, 1, 0); // integers: exact in any order
    c.inputs[0].type.shape.dims[0] = 0;
    op_check_values(&c, 0, (const double[]){0}, 1, 0);
    c.inputs[0].type.element = PEN_INT32;
    op_check_error(&c, PEN_INVALID_INPUT, "squared_norm 'subject': the input is int32");
}

static void clips(void **state) {
    (void)state;
    static const double nine = 9, sixteen = 16, lost = (double)NAN;
    op_case c = {.op = "clip_scale",
                 .input_count = 2,
                 .inputs = {scalar_of(&nine), scalar_of(&sixteen)},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_float("limit", 2.5)}};
    op_check_values(&c, 0, (const double[]){2.5 / (5 + 1e-6)}, 1, 1e-15);
    c.attributes[0] = pen_attribute_float("limit", 5.1);
    op_check_values(&c, 0, (const double[]){1}, 1, 0);
    c.inputs[1].data = &lost;
    op_check_values(&c, 0, &lost, 1, 0);
    c.attributes[c.attribute_count++] = pen_attribute_int("skips", 1);
    for (int i = 0; i < 3; i++) { // with an infinite sum, -1; with a finite one, what it was
        const double infinite = HUGE_VAL, *const norms[] = {&lost, &infinite, &sixteen};
        c.inputs[1].data = norms[i];
        op_check_values(&c, 0, (const double[]){i < 2 ? -1 : 1}, 1, 0);
    }
    c.attributes[0] = pen_attribute_float("limit", 0);
    op_check_error(&c, PEN_INVALID_INPUT, "limit is 0, it must be above 0");
}

// A copy until the step after `from`; as torch.lerp then.
static void averages(void **state) {
    (void)state;
    static const double old[3] = {1, -2, 4}, at[] = {1, 3, 4};
    static const struct {
        double decay, expected[3];
    } cases[] = {{0.75, {0.875, -1.8125, 3.5}}, {0.25, {0.625, -1.4375, 2.5}}};
    for (int i = 0; i < 6; i++) {
        const double *expected = i % 3 == 2 ? cases[i / 3].expected : start;
        op_case c = {.op = "average_update",
                     .input_count = 3,
                     .inputs = {vector_of(start), vector_of(old), scalar_of(&at[i % 3])},
                     .attribute_count = 2,
                     .attributes = {pen_attribute_float("decay", cases[i / 3].decay),
                                    pen_attribute_int("from", 2)}};
        op_check_values(&c, 0, expected, 3, 1e-15);
        static const double scales[2] = {-1, 0.5}; // below 0: it stays
        c.input_count = 4;
        c.inputs[3] = scalar_of(&scales[0]);
        op_check_values(&c, 0, old, 3, 0);
        c.inputs[3] = scalar_of(&scales[1]);
        op_check_values(&c, 0, expected, 3, 1e-15);
    }
    op_case c = {.op = "average_update",
                 .input_count = 3,
                 .inputs = {vector_of(start), vector_of(old), scalar_of(&at[0])},
                 .attribute_count = 1,
                 .attributes = {pen_attribute_float("decay", 1)}};
    op_check_error(&c, PEN_INVALID_INPUT, "decay is 1, it must be at least 0 and below 1");
}

static void reorders(void **state) {
    (void)state;
    op_case c = {
        .op = "reorder",
        .input_count = 1,
        .inputs = {vector_of(start)},
        .attribute_count = 2,
        .attributes = {pen_attribute_int("from_layout", 0), pen_attribute_int("to_layout", 3)}};
    op_check_values(&c, 0, start, 3, 0);
    c.attributes[1] = pen_attribute_int("to_layout", -1);
    op_check_error(&c, PEN_INVALID_INPUT, "to_layout is -1, layouts are numbers from 0 to 65535");
}

static void rows_must_fit(void **state) {
    (void)state;
    op_case c = {.op = "sgd_update", .input_count = 6};
    c.inputs[0].type = op_type(PEN_FLOAT32, 2, 7, 3);
    c.inputs[1].type = op_type(PEN_FLOAT32, 3, 2, 4, 3);
    c.inputs[2].is_absent = c.inputs[4].is_absent = true;
    c.inputs[3].type = op_type(PEN_FLOAT32, 0);
    c.inputs[5].type = op_type(PEN_INT64, 2, 2, 5);
    op_check_error(&c, PEN_INVALID_INPUT,
                   "a gradient of rows float32[2,4,3] with indices int64[2,5] does not fit the "
                   "parameter float32[7,3]");
    c.inputs[5].type = op_type(PEN_FLOAT32, 2, 2, 4);
    op_check_error(&c, PEN_INVALID_INPUT, "indices float32[2,4]");
}

PEN_TEST_MAIN(cmocka_unit_test(rows_must_fit), cmocka_unit_test(sgd), cmocka_unit_test(adam),
              cmocka_unit_test(rmsprop), cmocka_unit_test(others), cmocka_unit_test(adafactor),
              cmocka_unit_test(update_refuses), cmocka_unit_test(norms), cmocka_unit_test(clips),
              cmocka_unit_test(averages), cmocka_unit_test(reorders))
