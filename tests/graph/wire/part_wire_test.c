#include "graph/wire/part_wire.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/format/protobuf_writer.h"
#include "base/system/file.h"
#include "graph/op.h"
#include "tests/support/check.h"
#include "tests/support/cut_case.h"
#include "tests/support/random_graph.h"

// The part of a device with its ends of the cut's channels. Borrows the cut. OUT_OF_MEMORY
static pen_status wired_part_make(const pen_cut *cut, uint32_t device, pen_arena *arena,
                                  pen_wired_part *out_part) {
    pen_part_end *ends;
    PEN_TRY(PEN_NEW(arena, cut->channel_count, &ends));
    pen_wired_part part = {.part = cut->parts[device], .ends = ends};
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        const bool is_source = channel->source == device;
        if (!is_source && channel->target != device) continue;
        ends[part.end_count++] = (pen_part_end){
            .channel = c, .value = is_source ? channel->from : channel->to, .is_source = is_source};
    }
    *out_part = part;
    return PEN_OK;
}

// Whether contents of a value are to be had by name: it has some, and they are not with it.
static bool lacks_contents(const pen_value *value) {
    return value->kind != PEN_VALUE_COMPUTED && value->data == NULL && value->data_bytes > 0;
}

typedef struct wire_bytes {
    const void *bytes;
    uint64_t count;
} wire_bytes;

static wire_bytes encode(const pen_wired_part *part, pen_arena *arena) {
    wire_bytes made;
    CHECK_OK(pen_part_encode(part, arena, &made.bytes, &made.count));
    return made;
}

static wire_bytes encode_device(const cut_case *c, uint32_t device) {
    pen_wired_part part;
    CHECK_OK(wired_part_make(c->cut, device, c->arena, &part));
    return encode(&part, c->arena);
}

static void check_ends(const cut_case *c, uint32_t device, const pen_wired_part *read) {
    pen_wired_part made;
    CHECK_OK(wired_part_make(c->cut, device, c->arena, &made));
    assert_int_equal(made.end_count, read->end_count);
    for (uint32_t e = 0; e < made.end_count; e++) {
        assert_int_equal(made.ends[e].channel, read->ends[e].channel);
        assert_int_equal(made.ends[e].value.index, read->ends[e].value.index);
        assert_int_equal(made.ends[e].is_source, read->ends[e].is_source);
    }
}

// What is read has the same positions in the model, and the same numbers of everything.
static void check_same(const pen_part *a, const pen_part *b) {
    assert_int_equal(a->order_count, b->order_count);
    assert_int_equal(a->list_count, b->list_count);
    assert_int_equal(a->kept_count, b->kept_count);
    assert_int_equal(pen_graph_node_count(a->graph), pen_graph_node_count(b->graph));
    assert_int_equal(pen_graph_value_count(a->graph), pen_graph_value_count(b->graph));
    for (uint32_t n = 0; n < pen_graph_node_count(a->graph); n++) {
        const pen_node *x = pen_graph_node(a->graph, (pen_node_id){n});
        const pen_node *y = pen_graph_node(b->graph, (pen_node_id){n});
        assert_string_equal(x->name, y->name);
        assert_true(x->op == y->op && x->role == y->role && x->accumulates == y->accumulates);
        assert_int_equal(x->gradient_of.index, y->gradient_of.index);
        assert_int_equal(x->source.line, y->source.line);
        assert_int_equal(x->source.position, y->source.position);
        assert_int_equal(x->source.file == NULL, y->source.file == NULL);
        if (x->source.file != NULL) assert_string_equal(x->source.file, y->source.file);
    }
    for (uint32_t v = 0; v < pen_graph_value_count(a->graph); v++) {
        const pen_value *x = pen_graph_value(a->graph, (pen_value_id){v});
        const pen_value *y = pen_graph_value(b->graph, (pen_value_id){v});
        assert_string_equal(x->name, y->name);
        assert_true(x->kind == y->kind && x->layout == y->layout && x->trainable == y->trainable);
        assert_true(pen_tensor_type_equal(&x->type, &y->type));
        assert_int_equal(x->replaces.index, y->replaces.index);
        assert_int_equal(x->data_bytes, y->data_bytes);
    }
}

static void check_case(cut_model_kind kind, uint64_t seed) {
    cut_case c = cut_case_make(kind, seed);
    pen_part parts[CUT_CASE_DEVICES];
    CHECK_OK(cut_case_cut(&c));
    for (uint32_t d = 0; d < c.device_count; d++) {
        const wire_bytes sent = encode_device(&c, d);
        const pen_wired_part *read;
        CHECK_OK(pen_part_decode(sent.bytes, sent.count, c.arena, &read));
        const wire_bytes again = encode(read, c.arena);
        CHECK(sent.count == again.count && memcmp(sent.bytes, again.bytes, sent.count) == 0,
              "device %u of kind %d, seed %d", d, (int)kind, (int)seed);
        check_same(&c.cut->parts[d], &read->part);
        check_ends(&c, d, read);
        parts[d] = read->part;
    }
    CHECK(cut_case_run(&c, parts) > 0 || kind == CUT_MODEL_RANDOM, "nothing was compared");
    pen_arena_destroy(c.arena);
}

// Parts that were written before there were tables of fields: what is read
// from them is written with the same bytes.
static void have_the_same_bytes_as_ever(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < 5; kind++) {
        for (uint32_t device = 0; device < 3; device++) {
            pen_arena *arena = check_arena();
            const pen_wired_part *read;
            const char *path, *kept;
            size_t count;
            CHECK_OK(
                pen_arena_format(arena, &path, "tests/golden/parts/model_%u_%u", kind, device));
            CHECK_OK(pen_file_read(path, 1 << 20, arena, &kept, &count));
            CHECK_OK(pen_part_decode(kept, count, arena, &read));
            const wire_bytes again = encode(read, arena);
            if (getenv("PEN_GOLDEN") != NULL) { // `make golden`: operators have new attributes
                FILE *file = fopen(path, "wb");
                CHECK(file != NULL && fwrite(again.bytes, 1, again.count, file) == again.count &&
                          fclose(file) == 0,
                      "%s", path);
                count = again.count;
                kept = again.bytes;
            }
            CHECK(again.count == count && memcmp(again.bytes, kept, count) == 0, "%s", path);
            pen_arena_destroy(arena);
        }
    }
}

static void parts_that_were_sent_run_to_the_same_bits(void **state) {
    (void)state;
    for (int kind = 0; kind < CUT_MODEL_COUNT; kind++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            check_case((cut_model_kind)kind, seed);
        }
    }
}

// No beginning of a part is one, and no byte can be changed such that anything but a part or an
// error comes of it.
static void check_damage(cut_model_kind kind, uint64_t seed) {
    cut_case c = cut_case_make(kind, seed);
    CHECK_OK(cut_case_cut(&c));
    const wire_bytes sent = encode_device(&c, 0);
    uint8_t *copy;
    CHECK_OK(PEN_NEW(c.arena, sent.count, &copy));
    for (uint64_t length = 0; length < sent.count; length += 1 + sent.count / 1500) {
        pen_arena *arena = check_arena();
        uint8_t *cut_off; // of its own, so that the address sanitizer sees reads behind it
        const pen_wired_part *read;
        CHECK_OK(PEN_NEW(arena, length + 1, &cut_off));
        memcpy(cut_off, sent.bytes, length);
        CHECK_ERROR(pen_part_decode(cut_off, length, arena, &read), PEN_CORRUPT, "reading a part");
        pen_arena_destroy(arena);
    }
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 1500; i++) {
        pen_arena *arena = check_arena();
        const pen_wired_part *read;
        memcpy(copy, sent.bytes, sent.count);
        copy[random_between(&c.dice, 0, (int64_t)sent.count - 1)] ^=
            (uint8_t)(1 << random_between(&c.dice, 0, 7));
        const pen_status status = pen_part_decode(copy, sent.count, arena, &read);
        if (status != PEN_OK) {
            assert_int_equal(pen_status_get_code(status), PEN_CORRUPT);
            refused++;
        }
        pen_status_ignore(status, "names may differ");
        pen_arena_destroy(arena);
    }
    CHECK(refused > 100, "only %u damaged parts were refused", refused);
    pen_arena_destroy(c.arena);
}

static void damaged_parts_are_refused(void **state) {
    (void)state;
    check_damage(CUT_MODEL_BRANCHES, 4);
    check_damage(CUT_MODEL_TIED, 7);
    check_damage(CUT_MODEL_PERCEPTRON, 5);
}

// ---- what travels apart

static pen_part hand_part(pen_arena *arena, pen_graph *graph) {
    pen_part part = {.graph = graph};
    pen_node_id *order;
    pen_part_list *list;
    CHECK_OK(PEN_NEW(arena, pen_graph_node_count(graph), &order));
    CHECK_OK(PEN_NEW(arena, 1, &list));
    for (uint32_t n = 0; n < pen_graph_node_count(graph); n++) {
        order[n] = (pen_node_id){n};
    }
    *list = (pen_part_list){.end = pen_graph_node_count(graph)};
    part.order = order;
    part.order_count = pen_graph_node_count(graph);
    part.lists = list;
    part.list_count = 1;
    return part;
}

static void large_contents_stay_behind(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    const int64_t small = 100, large = 50000;
    const pen_value_id none = PEN_VALUE_NONE;
    float *numbers;
    CHECK_OK(PEN_NEW(arena, 50000, &numbers));
    for (int i = 0; i < 50000; i++) {
        numbers[i] = (float)i;
    }
    CHECK_OK(pen_graph_create(arena, "contents", &graph));
    pen_value parameter = {.name = "w",
                           .kind = PEN_VALUE_PARAMETER,
                           .type = pen_tensor_type_make(PEN_FLOAT32, 1, &large),
                           .trainable = true,
                           .data = numbers,
                           .data_bytes = 200000};
    pen_value_id w, s, constants[2];
    CHECK_OK(pen_graph_add_value(graph, &parameter, &w));
    parameter.name = "s";
    parameter.kind = PEN_VALUE_STATE;
    parameter.trainable = false;
    parameter.data = NULL;
    parameter.data_bytes = 0;
    CHECK_OK(pen_graph_add_value(graph, &parameter, &s));
    const pen_tensor_type types[2] = {pen_tensor_type_make(PEN_FLOAT32, 1, &small),
                                      pen_tensor_type_make(PEN_FLOAT32, 1, &large)};
    CHECK_OK(pen_graph_constant(graph, "small", &types[0], numbers, &constants[0]));
    CHECK_OK(pen_graph_constant(graph, "large", &types[1], numbers, &constants[1]));
    graph_apply(graph, "add", "a", w, graph_apply(graph, "add", "b", s, constants[1], none), none);
    graph_apply(graph, "neg", "c", constants[0], none, none);
    const pen_wired_part part = {.part = hand_part(arena, graph)};
    const wire_bytes sent = encode(&part, arena);
    CHECK(sent.count < 2000, "%d bytes", (int)sent.count);
    const pen_wired_part *read;
    CHECK_OK(pen_part_decode(sent.bytes, sent.count, arena, &read));
    const pen_value *value = pen_graph_value(read->part.graph, w);
    assert_true(lacks_contents(value) && value->data_bytes == 200000);
    assert_false(lacks_contents(pen_graph_value(read->part.graph, s)));
    value = pen_graph_value(read->part.graph, constants[0]);
    assert_true(value->kind == PEN_VALUE_CONSTANT && !lacks_contents(value));
    assert_memory_equal(value->data, numbers, 400);
    value = pen_graph_value(read->part.graph, constants[1]);
    assert_true(value->kind == PEN_VALUE_PARAMETER && !value->trainable);
    assert_true(lacks_contents(value) && value->data_bytes == 200000);
    pen_arena_destroy(arena);
}

// An input that is passed on has two ends, but only that of the host is fed.
static void inputs_may_be_sent(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_graph *graph;
    const int64_t size = 3;
    const pen_value input = {
        .name = "x", .kind = PEN_VALUE_INPUT, .type = pen_tensor_type_make(PEN_FLOAT32, 1, &size)};
    pen_value_id x;
    pen_node_id made;
    CHECK_OK(pen_graph_create(arena, "passed on", &graph));
    CHECK_OK(pen_graph_add_value(graph, &input, &x));
    const pen_attribute_given channel = pen_attribute_int("channel", 1);
    pen_node_spec spec = {.name = "send",
                          .role = PEN_ROLE_TRANSFER,
                          .gradient_of = PEN_NODE_NONE,
                          .inputs = &x,
                          .input_count = 1,
                          .attributes = &channel,
                          .attribute_count = 1};
    CHECK_OK(pen_op_find("send", &spec.op));
    CHECK_OK(pen_graph_add_node(graph, &spec, &made));
    const pen_part_end ends[2] = {{.channel = 0, .value = x},
                                  {.channel = 1, .value = x, .is_source = true}};
    const pen_wired_part part = {.part = {.graph = graph}, .ends = ends, .end_count = 2};
    const wire_bytes sent = encode(&part, arena);
    const pen_wired_part *read;
    CHECK_OK(pen_part_decode(sent.bytes, sent.count, arena, &read));
    assert_int_equal(read->end_count, 2);
    assert_true(!read->ends[0].is_source && read->ends[1].is_source);
    pen_arena_destroy(arena);
}

// ---- by hand

typedef struct wrong_part {
    const char *op;   // of the node
    const char *type; // of what it makes
    uint32_t input;   // 1 + a value
    uint32_t output;  // 1 + a value
    uint32_t list_end;
    uint32_t ordered;
    uint32_t value_count;
    uint32_t kept;
} wrong_part;

static void wrong_position(pen_protobuf_writer *writer, const void *context) {
    (void)context;
    pen_protobuf_write_int(writer, 1, 1);
    pen_protobuf_write_int(writer, 2, 12);
}

static void wrong_input(pen_protobuf_writer *writer, const void *context) {
    (void)context;
    pen_protobuf_write_text(writer, 1, "x");
    pen_protobuf_write_int(writer, 2, PEN_VALUE_INPUT);
    pen_protobuf_write_text(writer, 3, "float32");
    pen_protobuf_write_int(writer, 4, 3);
}

static void wrong_output(pen_protobuf_writer *writer, const void *context) {
    const wrong_part *part = context;
    pen_protobuf_write_text(writer, 1, "y");
    pen_protobuf_write_text(writer, 3, part->type);
    pen_protobuf_write_int(writer, 4, 3);
}

static void wrong_node(pen_protobuf_writer *writer, const void *context) {
    const wrong_part *part = context;
    pen_protobuf_write_text(writer, 1, part->op);
    pen_protobuf_write_text(writer, 2, "node");
    pen_protobuf_write_int(writer, 6, part->input);
    pen_protobuf_write_int(writer, 7, part->output);
    pen_protobuf_write_message(writer, 9, wrong_position, NULL);
}

static void wrong_list(pen_protobuf_writer *writer, const void *context) {
    const wrong_part *part = context;
    pen_protobuf_write_int(writer, 5, part->list_end);
}

static void wrong_fed(pen_protobuf_writer *writer, const void *context) {
    (void)context;
    pen_protobuf_write_int(writer, 1, 6);
}

static void check_wrong(const wrong_part *part, const char *text) {
    pen_arena *arena = check_arena();
    pen_protobuf_writer writer;
    char bytes[1024];
    FILE *stream = fmemopen(bytes, sizeof bytes, "w");
    CHECK(stream != NULL, "no stream");
    pen_protobuf_writer_init(&writer, stream);
    pen_protobuf_write_text(&writer, 1, "wrong");
    pen_protobuf_write_text(&writer, 2, "model.onnx");
    pen_protobuf_write_message(&writer, 3, wrong_input, NULL);
    pen_protobuf_write_message(&writer, 3, wrong_output, part);
    pen_protobuf_write_message(&writer, 4, wrong_node, part);
    pen_protobuf_write_message(&writer, 5, wrong_list, part);
    pen_protobuf_write_int(&writer, 6, part->ordered);
    pen_protobuf_write_int(&writer, 7, part->kept);
    pen_protobuf_write_message(&writer, 8, wrong_fed, NULL);
    pen_protobuf_write_int(&writer, 9, part->value_count);
    CHECK_OK(pen_protobuf_writer_finish(&writer));
    fclose(stream);
    const pen_wired_part *read;
    const pen_status status = pen_part_decode(bytes, writer.length, arena, &read);
    if (text == NULL) {
        CHECK_OK(status);
        assert_int_equal(read->end_count, 1);
        assert_int_equal(read->ends[0].channel, 6);
        assert_string_equal(pen_graph_value(read->part.graph, read->part.kept[0])->source.file,
                            "model.onnx");
    } else {
        CHECK_ERROR(status, PEN_CORRUPT, text);
    }
    pen_arena_destroy(arena);
}

static void errors_name_what_does_not_hold(void **state) {
    (void)state;
    const wrong_part right = {"tanh", "float32", 1, 2, 1, 0, 2, 1};
    check_wrong(&right, NULL);
    wrong_part part = right;
    part.op = "tan_h";
    check_wrong(&part, "'tan_h'");
    part = right;
    part.type = "float64";
    check_wrong(&part, "value 'y' is float64");
    part = right;
    part.type = "float33";
    check_wrong(&part, "float33");
    part = right;
    part.input = 2;
    check_wrong(&part, "node 'node' reads a value that is made by it or later");
    part = right;
    part.input = 0;
    check_wrong(&part, "needs its input 0");
    part = right;
    part.output = 1;
    check_wrong(&part, "node 'node' reads a value that is made by it or later");
    part = right;
    part.output = 3;
    check_wrong(&part, "'y'");
    part = right;
    part.list_end = 2;
    check_wrong(&part, "list 0 is from 0 to 2");
    part.list_end = 0;
    check_wrong(&part, "lists end at 0, but 1 nodes run");
    part = right;
    part.ordered = 1;
    check_wrong(&part, "node 1 is to run, there are 1");
    part = right;
    part.value_count = 3;
    check_wrong(&part, "3 values, and has 2");
    part = right;
    part.kept = 0;
    check_wrong(&part, "value 0 is to be kept, but not computed");
    part.kept = 7;
    check_wrong(&part, "value 7 is to be kept");
}

PEN_TEST_MAIN(cmocka_unit_test(have_the_same_bytes_as_ever),
              cmocka_unit_test(parts_that_were_sent_run_to_the_same_bits),
              cmocka_unit_test(damaged_parts_are_refused),
              cmocka_unit_test(large_contents_stay_behind), cmocka_unit_test(inputs_may_be_sent),
              cmocka_unit_test(errors_name_what_does_not_hold))
