// Single operators of PyTorch in all their forms, against what PyTorch makes of them: their results
// to 1e-6, the gradients of all parameters to 1e-5, and what buffers hold afterwards.
// models/make_cases.py and make_sequence_cases.py make the files, and say what is in them.

#include <math.h>

#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/import/import.h"
#include "graph/import/pytorch/pt2_mapping.h"
#include "graph/import/zip_file.h"
#include "graph/op.h"
#include "graph/passes/gradient/build_gradients.h"
#include "graph/passes/infer_shapes.h"
#include "graph/passes/set_inference.h"
#include "tests/support/check.h"
#include "tests/support/run_graph.h"
#include "tests/support/scratch.h"

#define CASES_FOLDER "tests/graph/import/pytorch/models"
#define CASES_OUTPUTS 256

// The gradients of all parameters, from one output.
typedef struct cases_output {
    pen_value_id value, seed;
    pen_gradients *gradients; // NULL: there are none
} cases_output;

typedef struct cases {
    const char *archive; // "operators.zip"
    const char *name;
    pen_arena *arena;
    pen_model *model;
    pen_graph *graph;
    uint32_t parameter_count;
    pen_value_id *parameters;
    cases_output outputs[CASES_OUTPUTS];
    uint32_t output_count;
    run_graph run;
    uint32_t compared; // records
} cases;

// Sizes that the file leaves open become those that the references were made with: 4 for the first
// dimension of inputs, 7 for others.
static void cases_bind(const cases *c) {
    pen_symbol_binding bindings[8];
    uint32_t count = 0;
    for (uint32_t i = 0; i < pen_graph_input_count(c->graph); i++) {
        const pen_shape shape = pen_value_type(c->graph, pen_graph_input(c->graph, i))->shape;
        for (uint32_t d = 0; d < shape.rank && count < 8; d++) {
            const char *symbol = pen_graph_symbol_name(c->graph, shape.dims[d]);
            if (symbol != NULL) bindings[count++] = (pen_symbol_binding){symbol, d == 0 ? 4 : 7};
        }
    }
    CHECK_OK(pen_infer_shapes(c->graph, &(pen_infer_options){.bindings = bindings,
                                                             .binding_count = count,
                                                             .evaluate = pen_reference_evaluate}));
}

// A file of the archive, in the scratch folder.
static const char *cases_unpack(const cases *c, const char *ending) {
    pen_mapping mapping;
    pen_zip *zip;
    const uint8_t *bytes;
    size_t length;
    char name[64], archive[128];
    snprintf(name, sizeof name, "%s%s", c->name, ending);
    snprintf(archive, sizeof archive, CASES_FOLDER "/%s", c->archive);
    CHECK_OK(pen_mapping_open(archive, &mapping));
    CHECK_OK(pen_zip_open(archive, mapping.bytes, mapping.length, &zip));
    CHECK_OK(pen_zip_read(zip, name, UINT64_MAX, c->arena, &bytes, &length));
    const char *path = scratch_file(name, bytes, length);
    pen_zip_close(zip);
    pen_mapping_close(&mapping);
    return path;
}

// `is_evaluated`: what trains by chance, or by the batch, does not.
static void cases_open(cases *c, const char *archive, const char *name, bool is_evaluated) {
    *c = (cases){.archive = archive, .name = name, .arena = check_arena()};
    CHECK_OK(pen_model_open(cases_unpack(c, ".pt2"), NULL, &c->model));
    c->graph = c->model->graph;
    if (is_evaluated) CHECK_OK(pen_set_inference(c->graph));
    cases_bind(c);
    CHECK_OK(PEN_NEW(c->arena, pen_graph_value_count(c->graph), &c->parameters));
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
        if (value->kind != PEN_VALUE_PARAMETER) continue;
        c->parameters[c->parameter_count++] = (pen_value_id){v};
    }
    c->output_count = pen_graph_output_count(c->graph);
    assert_true(c->output_count <= CASES_OUTPUTS);
}

static void cases_close(cases *c) {
    pen_arena_destroy(c->arena);
    pen_model_destroy(c->model);
}

// Sizes that the file declares are what comes out.
static void cases_check_shape(const cases *c, uint32_t output, pen_value_id value) {
    const pen_shape *declared = &c->model->output_types[output].shape;
    const pen_shape *shape = &pen_value_type(c->graph, value)->shape;
    CHECK(shape->rank == declared->rank, "%s: output %s has rank %u, expected %u", c->name,
          pen_value_name(c->graph, value), shape->rank, declared->rank);
    for (uint32_t d = 0; d < shape->rank; d++) {
        CHECK(declared->dims[d] < 0 || declared->dims[d] == shape->dims[d],
              "%s: output %s has size %lld in dimension %u, expected %lld", c->name,
              pen_value_name(c->graph, value), (long long)shape->dims[d], d,
              (long long)declared->dims[d]);
    }
}

static void cases_differentiate(cases *c) {
    for (uint32_t i = 0; i < c->output_count; i++) {
        cases_output *output = &c->outputs[i];
        output->value = pen_graph_output(c->graph, i);
        cases_check_shape(c, i, output->value);
        const pen_tensor_type type = *pen_value_type(c->graph, output->value);
        if (!pen_element_is_float(type.element)) continue;
        const pen_value seed = {.name = "seed", .kind = PEN_VALUE_INPUT, .type = type};
        CHECK_OK(pen_graph_add_own_value(c->graph, &seed, &output->seed));
        CHECK_OK(pen_build_gradients(c->graph, output->value, output->seed, c->parameter_count,
                                     c->parameters, &output->gradients));
    }
}

// ---- records of NAME.expected

typedef struct cases_record {
    const char *name;
    uint32_t count;
    const uint8_t *numbers;
} cases_record;

static double record_at(const cases_record *record, uint32_t index) {
    float number;
    memcpy(&number, record->numbers + index * sizeof number, sizeof number);
    return (double)number;
}

static bool record_next(const pen_mapping *mapping, size_t *io_position, cases_record *out) {
    if (*io_position >= mapping->length) return false;
    const uint8_t *at = (const uint8_t *)mapping->bytes + *io_position;
    out->name = (const char *)at;
    at += strlen(out->name) + 1;
    memcpy(&out->count, at, sizeof out->count);
    out->numbers = at + sizeof out->count;
    *io_position =
        (size_t)(out->numbers - (const uint8_t *)mapping->bytes) + out->count * sizeof(float);
    return true;
}

static pen_mapping cases_records(const cases *c) {
    pen_mapping mapping;
    CHECK_OK(pen_mapping_open(cases_unpack(c, ".expected"), &mapping));
    return mapping;
}

static pen_value_id cases_find(const cases *c, const char *name) {
    pen_value_id value;
    CHECK_OK(pen_graph_find_value(c->graph, name, &value));
    return value;
}

static void cases_compare(cases *c, const cases_record *record, const double *found,
                          double tolerance) {
    for (uint32_t k = 0; k < record->count; k++) {
        const double expected = record_at(record, k);
        CHECK(fabs(found[k] - expected) <= tolerance * (1 + fabs(expected)),
              "%s: element %u of %s is %.9g, expected %.9g", c->name, k, record->name, found[k],
              expected);
    }
    c->compared++;
}

static double *cases_numbers(const cases *c, pen_value_id value) {
    const pen_tensor *tensor = &c->run.tensors[value.index];
    double *numbers;
    CHECK_OK(PEN_NEW(c->arena, (size_t)pen_tensor_count(tensor) + 1, &numbers));
    for (int64_t k = 0; k < pen_tensor_count(tensor); k++) {
        numbers[k] = pen_tensor_get(tensor, k);
    }
    return numbers;
}

// The gradient of one parameter from one output, all its uses added.
static double *cases_gradient(const cases *c, const cases_output *output, const char *parameter) {
    const pen_value_id wanted = cases_find(c, parameter);
    const int64_t count = pen_shape_element_count(&pen_value_type(c->graph, wanted)->shape);
    double *sum;
    CHECK_OK(PEN_NEW(c->arena, (size_t)count + 1, &sum));
    for (uint32_t i = 0; i < output->gradients->count; i++) {
        const pen_gradient *gradient = &output->gradients->items[i];
        if (!pen_value_same(gradient->value, wanted)) continue;
        for (uint32_t u = 0; u < gradient->use_count; u++) {
            for (int64_t k = 0; k < count; k++) {
                sum[k] += pen_tensor_get(&c->run.tensors[gradient->uses[u].index], k);
            }
        }
    }
    return sum;
}

static const cases_output *cases_output_find(const cases *c, const char *name, size_t length) {
    for (uint32_t i = 0; i < c->output_count; i++) {
        const char *found = pen_value_name(c->graph, c->outputs[i].value);
        if (strlen(found) == length && memcmp(found, name, length) == 0) return &c->outputs[i];
    }
    CHECK(false, "%s: there is no output %.*s", c->name, (int)length, name);
    return NULL;
}

// What the buffer becomes.
static pen_value_id cases_successor(const cases *c, const char *buffer) {
    const pen_value_id state = cases_find(c, buffer);
    for (uint32_t v = 0; v < pen_graph_value_count(c->graph); v++) {
        const pen_value *value = pen_graph_value(c->graph, (pen_value_id){v});
        if (pen_value_is(value->replaces) && pen_value_same(value->replaces, state)) {
            return (pen_value_id){v};
        }
    }
    CHECK(false, "%s: buffer %s stays as it is", c->name, buffer);
    return state;
}

static void cases_compare_record(cases *c, const cases_record *record) {
    const char *bar = strchr(record->name, '|');
    if (record->name[0] == '=') {
        cases_compare(c, record, cases_numbers(c, cases_successor(c, record->name + 1)), 1e-6);
    } else if (bar == NULL) {
        const cases_output *output = cases_output_find(c, record->name, strlen(record->name));
        assert_int_equal(pen_tensor_count(&c->run.tensors[output->value.index]), record->count);
        cases_compare(c, record, cases_numbers(c, output->value), 1e-6);
    } else {
        const cases_output *output =
            cases_output_find(c, record->name, (size_t)(bar - record->name));
        CHECK(output->gradients != NULL, "%s: %s has no gradient", c->name, record->name);
        cases_compare(c, record, cases_gradient(c, output, bar + 1), 1e-5);
    }
}

static void cases_feed(cases *c, const pen_mapping *records) {
    cases_record record;
    for (size_t at = 0; record_next(records, &at, &record);) {
        if (record.name[0] != '<') continue;
        const pen_tensor *tensor = &c->run.tensors[cases_find(c, record.name + 1).index];
        assert_int_equal(pen_tensor_count(tensor), record.count);
        for (uint32_t k = 0; k < record.count; k++) {
            pen_tensor_set(tensor, k, record_at(&record, k));
        }
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (c->outputs[i].gradients == NULL) continue;
        const pen_tensor *seed = &c->run.tensors[c->outputs[i].seed.index];
        for (int64_t k = 0; k < pen_tensor_count(seed); k++) {
            pen_tensor_set(seed, k, (double)((k * 7 + 3) % 11 - 5) / 4); // as make_cases.py
        }
    }
}

static void cases_check(const char *archive, const char *name) {
    cases c;
    cases_record record;
    cases_open(&c, archive, name, false);
    pen_mapping records = cases_records(&c);
    cases_differentiate(&c);
    CHECK_OK(run_graph_init(&c.run, c.graph, c.arena));
    cases_feed(&c, &records);
    CHECK_OK(run_graph_all(&c.run));
    for (size_t at = 0; record_next(&records, &at, &record);) {
        if (record.name[0] != '<') cases_compare_record(&c, &record);
    }
    assert_true(c.compared >= c.output_count);
    pen_mapping_close(&records);
    cases_close(&c);
}

#define FAMILY(archive, name)                                                                      \
    static void name##_as_pytorch(void **state) {                                                  \
        (void)state;                                                                               \
        cases_check(#archive ".zip", #name);                                                       \
    }
FAMILY(operators, elementwise)
FAMILY(operators, activation)
FAMILY(operators, window)
FAMILY(operators, normalization)
FAMILY(operators, reduction)
FAMILY(operators, movement)
FAMILY(operators, loss)
FAMILY(operators, open_sizes)
FAMILY(sequences, product)
FAMILY(sequences, attention)
FAMILY(sequences, indexing)
FAMILY(sequences, order)
FAMILY(sequences, creation)
FAMILY(sequences, recurrent)
FAMILY(sequences, open_sequences)

// ---- what is dropped by chance

// Of the operand, which is 1 everywhere: what becomes of what is kept, of what is dropped, with
// which probability, and how many elements share one draw.
typedef struct drop {
    const char *output;
    double kept, dropped, p;
    uint32_t together;
} drop;

// The share of what is dropped is within four deviations of the probability.
static void drop_check(const cases *c, const drop *d) {
    const cases_output *output = cases_output_find(c, d->output, strlen(d->output));
    const double *numbers = cases_numbers(c, output->value);
    const int64_t count = pen_tensor_count(&c->run.tensors[output->value.index]);
    int64_t dropped = 0;
    for (int64_t k = 0; k < count; k++) {
        const double is = numbers[k], first = numbers[k - k % d->together];
        const bool is_kept = fabs(is - d->kept) < 1e-6, is_dropped = fabs(is - d->dropped) < 1e-6;
        CHECK(is_kept || is_dropped, "%s: element %lld is %.9g", d->output, (long long)k, is);
        CHECK(is == first, "%s: element %lld is %.9g, and its first %.9g", d->output, (long long)k,
              is, first);
        dropped += !is_kept;
    }
    const double draws = (double)count / d->together;
    CHECK(fabs((double)dropped / (double)count - d->p) <= 4 * sqrt(d->p * (1 - d->p) / draws),
          "%s: %lld of %lld are dropped, the probability is %g", d->output, (long long)dropped,
          (long long)count, d->p);
}

static void drop_run(cases *c, bool is_evaluated) {
    cases_open(c, "operators.zip", "drop", is_evaluated);
    for (uint32_t i = 0; i < c->output_count; i++) {
        c->outputs[i].value = pen_graph_output(c->graph, i);
    }
    CHECK_OK(run_graph_init(&c->run, c->graph, c->arena));
    CHECK_OK(run_graph_all(&c->run));
}

static void drops_share_and_scale(void **state) {
    (void)state;
    const double alpha = 1.7580993408473766, a = 1 / sqrt((alpha * alpha * 0.2 + 1) * 0.8);
    const drop drops[] = {
        {"dropout", 1 / 0.7, 0, 0.3, 1},
        {"dropout_off", 1, 1, 0, 1},
        {"dropout_none", 1, 1, 0, 1},
        {"dropout_in_place", 1 / 0.75, 0, 0.25, 1},
        {"dropout2d", 1 / 0.6, 0, 0.4, 2},
        {"alpha_dropout", a + a * alpha * 0.2, a * alpha * 0.2 - a * alpha, 0.2, 1},
        {"bernoulli", 1 / 0.8, 0, 0.2, 50},
        {"floor", 1 / 0.7, 0, 0.3, 50},
    };
    cases c;
    drop_run(&c, false);
    assert_int_equal(c.output_count, sizeof drops / sizeof drops[0]);
    for (uint32_t i = 0; i < c.output_count; i++) {
        drop_check(&c, &drops[i]);
    }
    cases_close(&c);
}

static void evaluation_drops_nothing(void **state) {
    (void)state;
    cases c;
    drop_run(&c, true);
    for (uint32_t i = 0; i < c.output_count; i++) {
        drop_check(&c, &(drop){pen_value_name(c.graph, c.outputs[i].value), 1, 1, 0, 1});
    }
    cases_close(&c);
}

// One layer that is called twice is evaluated by the same statistics both times.
static void evaluation_keeps_statistics(void **state) {
    (void)state;
    cases c;
    cases_open(&c, "operators.zip", "normalization", true);
    for (uint32_t n = 0; n < pen_graph_node_count(c.graph); n++) {
        const pen_node *node = pen_graph_node(c.graph, (pen_node_id){n});
        if (strcmp(node->op->name, "batch_normalization") != 0) continue;
        for (uint32_t i = 3; i < 5; i++) {
            const pen_node_id maker = pen_graph_value(c.graph, node->inputs[i])->producer;
            assert_true(!pen_node_is(maker) || pen_graph_node(c.graph, maker)->op != node->op);
        }
    }
    cases_close(&c);
}

// Each operator has one row: a second one would never be found.
static void rows_are_found(void **state) {
    (void)state;
    const pen_pt2_mapping *row;
    for (uint32_t i = 0; (row = pen_pt2_mapping_at(i)) != NULL; i++) {
        bool in_place;
        CHECK(pen_pt2_mapping_find(row->target, &in_place) == row, "%s has two rows", row->target);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(elementwise_as_pytorch), cmocka_unit_test(activation_as_pytorch),
              cmocka_unit_test(window_as_pytorch), cmocka_unit_test(normalization_as_pytorch),
              cmocka_unit_test(reduction_as_pytorch), cmocka_unit_test(movement_as_pytorch),
              cmocka_unit_test(loss_as_pytorch), cmocka_unit_test(open_sizes_as_pytorch),
              cmocka_unit_test(product_as_pytorch), cmocka_unit_test(attention_as_pytorch),
              cmocka_unit_test(indexing_as_pytorch), cmocka_unit_test(order_as_pytorch),
              cmocka_unit_test(creation_as_pytorch), cmocka_unit_test(recurrent_as_pytorch),
              cmocka_unit_test(open_sequences_as_pytorch), cmocka_unit_test(drops_share_and_scale),
              cmocka_unit_test(evaluation_drops_nothing), cmocka_unit_test(rows_are_found),
              cmocka_unit_test(evaluation_keeps_statistics))
