#include "partition/costs/cost_table.h"
#include "partition/costs/cost_table_file.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/scratch.h"

static pen_cost_entry entry_of(const char *op, const char *shape, uint32_t threads,
                               double seconds) {
    return (pen_cost_entry){
        .op = op, .shape = shape, .kind = "cpu", .threads = threads, .seconds = seconds, .runs = 9};
}

static pen_cost_table *sample_table(pen_arena *arena, bool is_reversed) {
    const pen_cost_entry entries[] = {
        {"matmul", "float32[64,784] float32[784,512] -> float32[64,512]", "cpu", 2, 310.5e-6, 4096,
         9, NULL},
        {"matmul", "float32[64,784] float32[784,512] -> float32[64,512]", "cpu", 2, 620.5e-6, 4096,
         9, "10.0.0.2"},
        {"matmul", "float32[64,784] float32[784,512] -> float32[64,512]", "cpu", 1, 0.6e-3, 0, 9,
         NULL},
        {"relu", "float32[64,512] -> float32[64,512]", "cpu", 2, 870e-9, 0, 31, NULL},
        {"conv", "a \"quoted\" \\ text\n\x01 \xc3\xbc \xe2\x80\xa8", "reference", 1, 12.5, 0, 3,
         ""},
        {"add", "nothing -> nothing", "cpu", 2, 0, 0, 0, NULL},
    };
    const uint32_t count = sizeof entries / sizeof *entries;
    pen_cost_table *table;
    CHECK_OK(pen_cost_table_new(arena, &table));
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(pen_cost_table_set(table, &entries[is_reversed ? count - 1 - i : i]));
    }
    CHECK_OK(pen_cost_table_set_rates(table, &(pen_cost_rates){"reference", 1, 0.9e9, 2e9, NULL}));
    CHECK_OK(pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 2, 95.31e9, 21.3e9, NULL}));
    CHECK_OK(
        pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 2, 47.5e9, 12e9, "10.0.0.2"}));
    CHECK_OK(pen_cost_table_set_link(
        table, &(pen_cost_link){.from = "b", .to = "a", .bandwidth = 1.2e9, .latency = 41e-6}));
    CHECK_OK(pen_cost_table_set_link(table, &(pen_cost_link){.from = "b",
                                                             .to = "c",
                                                             .bandwidth = 1.2e9,
                                                             .latency = 2e-3,
                                                             .send = 3.1e9,
                                                             .receive = 2.2e9,
                                                             .message = 16e-6,
                                                             .has_message = true}));
    CHECK_OK(pen_cost_table_set_link(
        table, &(pen_cost_link){.from = "a", .to = "b", .bandwidth = 12345, .latency = 0}));
    return table;
}

static void tables_are_written_and_read_back(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_cost_table *table = sample_table(arena, false);
    const char *text, *again;
    CHECK_OK(pen_cost_table_format(table, arena, &text));
    CHECK_GOLDEN("cost_table.yaml", text);
    CHECK_OK(pen_cost_table_format(sample_table(arena, true), arena, &again));
    assert_string_equal(text, again);

    const char *path = scratch_path("costs.yaml");
    CHECK_OK(pen_cost_table_write(table, path));
    pen_cost_table *read;
    CHECK_OK(pen_cost_table_read(path, arena, &read));
    CHECK_OK(pen_cost_table_format(read, arena, &again));
    assert_string_equal(text, again);
    for (uint32_t i = 0; i < pen_cost_table_count(table); i++) {
        const pen_cost_entry *entry = pen_cost_table_at(table, i);
        const pen_cost_entry *found = pen_cost_table_find_at(
            read, entry->host, entry->op, entry->shape, entry->kind, entry->threads);
        assert_non_null(found);
        CHECK(fabs(found->seconds - entry->seconds) <= 1e-4 * entry->seconds, "%g", found->seconds);
        assert_int_equal(found->workspace_bytes, entry->workspace_bytes);
        assert_int_equal(found->runs, entry->runs);
    }
    assert_true(pen_cost_table_find_rates(read, "cpu", 2)->flops == 95.31e9);
    assert_true(pen_cost_table_find_rates_at(read, "10.0.0.2", "cpu", 2)->flops == 47.5e9);
    assert_null(pen_cost_table_find_rates_at(read, "10.0.0.3", "cpu", 2));
    assert_true(pen_cost_table_find_link(read, "b", "a")->latency == 41e-6);
    assert_null(pen_cost_table_find_link(read, "a", "c"));
    assert_null(pen_cost_table_find_rates(read, "cpu", 1));
    assert_null(pen_cost_table_find(read, "relu", "float32[64,512] -> float32[64,512]", "cpu", 1));
    pen_arena_destroy(arena);
}

static void empty_tables_are_files_too(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *table;
    const char *text;
    CHECK_OK(pen_cost_table_new(arena, &table));
    CHECK_OK(pen_cost_table_format(table, arena, &text));
    assert_string_equal(text, "version: 1\n");
    CHECK_OK(pen_cost_table_parse("c.yaml", text, strlen(text), arena, &table));
    assert_int_equal(pen_cost_table_count(table), 0);
    assert_null(pen_cost_table_find(table, "a", "b", "cpu", 1));
    pen_arena_destroy(arena);
}

static void what_is_set_again_is_replaced(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *table;
    CHECK_OK(pen_cost_table_new(arena, &table));
    char op[16] = "op";
    pen_cost_entry entry = entry_of(op, "s", 1, 1);
    CHECK_OK(pen_cost_table_set(table, &entry));
    memset(op, 'x', 3); // texts were copied
    entry = entry_of("op", "s", 1, 2);
    CHECK_OK(pen_cost_table_set(table, &entry));
    assert_int_equal(pen_cost_table_count(table), 1);
    assert_true(pen_cost_table_find(table, "op", "s", "cpu", 1)->seconds == 2);
    // parts do not run together
    entry = entry_of("o", "ps", 1, 3);
    CHECK_OK(pen_cost_table_set(table, &entry));
    assert_true(pen_cost_table_find(table, "op", "s", "cpu", 1)->seconds == 2);
    CHECK_OK(pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 1, 1e9, 1e9, NULL}));
    CHECK_OK(pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 1, 2e9, 1e9, NULL}));
    assert_int_equal(pen_cost_table_rates_count(table), 1);
    assert_true(pen_cost_table_rates_at(table, 0)->flops == 2e9);
    CHECK_OK(pen_cost_table_set_link(
        table, &(pen_cost_link){.from = "a", .to = "b", .bandwidth = 1e9, .latency = 1}));
    CHECK_OK(pen_cost_table_set_link(
        table, &(pen_cost_link){.from = "a", .to = "b", .bandwidth = 2e9, .latency = 1}));
    assert_int_equal(pen_cost_table_link_count(table), 1);
    assert_true(pen_cost_table_link_at(table, 0)->bandwidth == 2e9);
    pen_arena_destroy(arena);
}

static void many_entries_are_found(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *table;
    CHECK_OK(pen_cost_table_new(arena, &table));
    char shape[32];
    for (uint32_t i = 0; i < PEN_COST_TABLE_ENTRY_LIMIT; i++) {
        snprintf(shape, sizeof shape, "s%u", i);
        const pen_cost_entry entry = entry_of("op", shape, 1, i);
        CHECK_OK(pen_cost_table_set(table, &entry));
    }
    for (uint32_t i = 0; i < PEN_COST_TABLE_ENTRY_LIMIT; i++) {
        snprintf(shape, sizeof shape, "s%u", i);
        assert_true(pen_cost_table_find(table, "op", shape, "cpu", 1)->seconds == i);
    }
    pen_cost_entry entry = entry_of("op", "one more", 1, 1);
    CHECK_ERROR(pen_cost_table_set(table, &entry), PEN_DOES_NOT_FIT, "65536 entries");
    entry.shape = "s7"; // what is there can still be replaced
    CHECK_OK(pen_cost_table_set(table, &entry));
    CHECK_OK(pen_cost_table_write(table, scratch_path("large.yaml")));
    CHECK_OK(pen_cost_table_read(scratch_path("large.yaml"), arena, &table));
    assert_int_equal(pen_cost_table_count(table), PEN_COST_TABLE_ENTRY_LIMIT);
    pen_arena_destroy(arena);
}

static void wrong_figures_are_not_set(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *table;
    CHECK_OK(pen_cost_table_new(arena, &table));
    pen_cost_entry entry = entry_of("op", "s", 1, (double)NAN);
    CHECK_ERROR(pen_cost_table_set(table, &entry), PEN_INVALID_INPUT, "seconds is nan");
    entry = entry_of("op", "s", 1, -1);
    CHECK_ERROR(pen_cost_table_set(table, &entry), PEN_INVALID_INPUT, "seconds is -1");
    entry = entry_of("op", "s", 0, 1);
    CHECK_ERROR(pen_cost_table_set(table, &entry), PEN_INVALID_INPUT, "threads is 0");
    entry = entry_of("", "s", 1, 1);
    CHECK_ERROR(pen_cost_table_set(table, &entry), PEN_INVALID_INPUT, "no op");
    entry = entry_of("op", NULL, 1, 1);
    CHECK_ERROR(pen_cost_table_set(table, &entry), PEN_INVALID_INPUT, "no shape");
    CHECK_ERROR(pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 1, 0, 1, NULL}),
                PEN_INVALID_INPUT, "flops is 0");
    CHECK_ERROR(
        pen_cost_table_set_rates(table, &(pen_cost_rates){"cpu", 1, 1, (double)INFINITY, NULL}),
        PEN_INVALID_INPUT, "memory_bandwidth is inf");
    CHECK_ERROR(
        pen_cost_table_set_link(
            table, &(pen_cost_link){.from = "a", .to = "a", .bandwidth = 1e9, .latency = 0}),
        PEN_INVALID_INPUT, "from 'a' to itself");
    CHECK_ERROR(pen_cost_table_set_link(
                    table, &(pen_cost_link){.from = "a", .to = "b", .bandwidth = 0, .latency = 0}),
                PEN_INVALID_INPUT, "bandwidth is 0");
    assert_int_equal(pen_cost_table_count(table), 0);
    pen_arena_destroy(arena);
}

typedef struct mistake {
    const char *text;
    const char *message;
} mistake;

#define OPERATOR(fields) "version: 1\noperators:\n  - {" fields "}\n"
#define RATES(fields) "version: 1\nrates:\n  - {" fields "}\n"
#define LINK(fields) "version: 1\nlinks:\n  - {" fields "}\n"

static const mistake mistakes[] = {
    {"", "c.yaml:1:1: error: the file is empty, expected YAML"},
    {"operators: []\n", "c.yaml:1:1: error: 'version' is missing"},
    {"version: 2\n", "c.yaml:1:10: error: version: found \"2\", expected an integer, 1"},
    {"version: 1\noperator: []\n",
     "c.yaml:2:1: error: unknown key \"operator\", possible: operators"},
    {"version: 1\noperators: 3\n", "c.yaml:2:12: error: operators: found \"3\""},
    {OPERATOR("shape: s, kind: cpu, threads: 1, seconds: 1s"),
     "c.yaml:3:5: error: operators[0]: 'op' is missing"},
    {OPERATOR("op: a, kind: cpu, threads: 1, seconds: 1s"),
     "c.yaml:3:5: error: operators[0]: 'shape' is missing"},
    {OPERATOR("op: a, shape: s, threads: 1, seconds: 1s"),
     "c.yaml:3:5: error: operators[0]: 'kind' is missing"},
    {OPERATOR("op: a, shape: s, kind: cpu, seconds: 1s"),
     "c.yaml:3:5: error: operators[0]: 'threads' is missing"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1"),
     "c.yaml:3:5: error: operators[0]: 'seconds' is missing"},
    {OPERATOR("op: [a], shape: s, kind: cpu, threads: 1, seconds: 1s"),
     "c.yaml:3:10: error: operators[0].op: found a list"},
    {OPERATOR("op: a, shape: \"\", kind: cpu, threads: 1, seconds: 1s"),
     "c.yaml:3:20: error: operators[0].shape: found \"\""},
    {OPERATOR("op: a, shape: s, kind: {}, threads: 1, seconds: 1s"),
     "c.yaml:3:29: error: operators[0].kind: found a mapping"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 0, seconds: 1s"),
     "c.yaml:3:43: error: operators[0].threads: found \"0\", expected an integer from 1 to 4096"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: 310"),
     "c.yaml:3:55: error: operators[0].seconds: found \"310\", expected a duration"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: -1s"),
     "c.yaml:3:55: error: operators[0].seconds: found \"-1s\", expected a duration"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: 1e12s"),
     "c.yaml:3:55: error: operators[0].seconds: found \"1e12s\", expected a duration"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: 1s, workspace: 7"),
     "c.yaml:3:70: error: operators[0].workspace: found \"7\", expected a size"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: 1s, runs: -1"),
     "c.yaml:3:65: error: operators[0].runs: found \"-1\", expected an integer from 0 to "
     "1000000000"},
    {OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: 1s, run: 1"),
     "c.yaml:3:59: error: operators[0]: unknown key \"run\", possible: runs, op, shape, kind, "
     "threads, seconds, workspace"},
    {OPERATOR(
         "op: a, shape: s, kind: cpu, threads: 1, seconds: 1s") "  - {op: a, shape: s, kind: cpu, "
                                                                "threads: 1, seconds: 2s}\n",
     "c.yaml:4:10: error: the cost of a on cpu with 1 threads is given twice"},
    {RATES("threads: 1, flops: 1G, memory_bandwidth: 1GB/s"),
     "c.yaml:3:5: error: rates[0]: 'kind' is missing"},
    {RATES("kind: cpu, threads: 1.5, flops: 1G, memory_bandwidth: 1GB/s"),
     "c.yaml:3:26: error: rates[0].threads: found \"1.5\", expected an integer from 1 to 4096"},
    {RATES("kind: cpu, threads: 1, flops: 0G, memory_bandwidth: 1GB/s"),
     "c.yaml:3:36: error: rates[0].flops: found \"0G\", expected a rate"},
    {RATES("kind: cpu, threads: 1, flops: 1G, memory_bandwidth: 1G"),
     "c.yaml:3:58: error: rates[0].memory_bandwidth: found \"1G\", expected a bandwidth"},
    {RATES(
         "kind: cpu, threads: 1, flops: 1G, memory_bandwidth: 1GB/s") "  - {kind: cpu, threads: 1, "
                                                                      "flops: 1G, "
                                                                      "memory_bandwidth: 1GB/s}\n",
     "c.yaml:4:12: error: rates of cpu with 1 threads are given twice"},
    {LINK("to: b, bandwidth: 1Gbit/s, latency: 1us"),
     "c.yaml:3:5: error: links[0]: 'from' is missing"},
    {LINK("from: a, to: a, bandwidth: 1Gbit/s, latency: 1us"),
     "c.yaml:3:19: error: to: found \"a\", which the link comes from"},
    {LINK("from: a, to: b, bandwidth: fast, latency: 1us"),
     "c.yaml:3:33: error: links[0].bandwidth: found \"fast\", expected a bandwidth"},
    {LINK("from: a, to: b, bandwidth: 1Gbit/s, latency: 1"),
     "c.yaml:3:51: error: links[0].latency: found \"1\", expected a duration"},
    {LINK("from: a, to: b, bandwidth: 1Gbit/s, latency: 1us") "  - {from: a, to: b, bandwidth: "
                                                              "1Gbit/s, latency: 1us}\n",
     "c.yaml:4:12: error: the link from 'a' to 'b' is given twice"},
};

static void mistakes_are_named_where_they_stand(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        pen_arena *arena = check_arena();
        pen_cost_table *table;
        const char *text = mistakes[i].text;
        CHECK_ERROR(pen_cost_table_parse("c.yaml", text, strlen(text), arena, &table),
                    PEN_INVALID_INPUT, mistakes[i].message);
        pen_arena_destroy(arena);
    }
    pen_arena *arena = check_arena();
    pen_cost_table *table;
    CHECK_ERROR(pen_cost_table_read(scratch_path("none.yaml"), arena, &table), PEN_NOT_FOUND,
                "none.yaml");
    CHECK_ERROR(pen_cost_table_write(sample_table(arena, false), "/nowhere/c.yaml"), PEN_NOT_FOUND,
                "/nowhere");
    pen_arena_destroy(arena);
}

static void what_may_be_left_out_may(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_cost_table *table;
    const char *text = OPERATOR("op: a, shape: s, kind: cpu, threads: 1, seconds: 3 us");
    CHECK_OK(pen_cost_table_parse("c.yaml", text, strlen(text), arena, &table));
    const pen_cost_entry *entry = pen_cost_table_find(table, "a", "s", "cpu", 1);
    assert_true(entry->seconds == 3e-6);
    assert_int_equal(entry->workspace_bytes, 0);
    assert_int_equal(entry->runs, 0);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(tables_are_written_and_read_back),
              cmocka_unit_test(empty_tables_are_files_too),
              cmocka_unit_test(what_is_set_again_is_replaced),
              cmocka_unit_test(many_entries_are_found), cmocka_unit_test(wrong_figures_are_not_set),
              cmocka_unit_test(mistakes_are_named_where_they_stand),
              cmocka_unit_test(what_may_be_left_out_may))
