#include "partition/problem/workload.h"

#include <math.h>

#include "tests/support/check.h"
#include "tests/support/scratch.h"

static const char *const good =
    "{\"maxFPGAs\": 2, \"maxCPUs\": 1, \"maxSizePerFPGA\": 100.5,\n"
    " \"nodes\": [\n"
    "  {\"id\": 40, \"supportedOnFpga\": 1, \"cpuLatency\": 20.5, \"fpgaLatency\": 2.25,\n"
    "   \"isBackwardNode\": 0, \"colorClass\": 9, \"size\": 64},\n"
    "  {\"id\": -7, \"supportedOnFpga\": false, \"cpuLatency\": 3, \"fpgaLatency\": 4,\n"
    "   \"isBackwardNode\": true, \"colorClass\": 9},\n"
    "  {\"id\": 3, \"supportedOnFpga\": true, \"cpuLatency\": 1, \"fpgaLatency\": 1,\n"
    "   \"isBackwardNode\": 0, \"size\": 1.5}],\n"
    " \"edges\": [{\"sourceId\": 40, \"destId\": 3, \"cost\": 0.5},\n"
    "  {\"sourceId\": 40, \"destId\": -7, \"cost\": 0.5}]}\n";

static pen_workload *parse(const char *text, pen_arena *arena) {
    pen_workload *workload;
    CHECK_OK(pen_workload_parse("w.json", text, strlen(text), arena, &workload));
    return workload;
}

static void fields_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_workload *workload = parse(good, arena);
    const pen_problem_given *given = &workload->given;
    assert_int_equal(workload->accelerator_count, 2);
    assert_int_equal(workload->core_count, 1);
    assert_int_equal(given->device_count, 3);
    assert_true(given->devices[1].bytes_limit == 100.5 && given->devices[1].send == 1.0);
    assert_true(isinf(given->devices[2].bytes_limit) && given->devices[2].send == 0.0);
    assert_true(given->devices[2].is_parallel && !given->devices[0].is_parallel);
    assert_int_equal(given->node_count, 3);
    assert_int_equal(workload->id_of_node[1], -7);
    assert_string_equal(given->names[1], "-7");
    const double compute[6] = {2.25, INFINITY, 1.0, 20.5, 3.0, 1.0};
    assert_memory_equal(given->compute, compute, sizeof compute);
    assert_true(given->nodes[0].transfer == 0.5 && given->nodes[1].transfer == 0.0);
    assert_true(given->nodes[0].bytes == 64.0 && given->nodes[1].bytes == 0.0);
    assert_int_equal(given->nodes[0].color, given->nodes[1].color);
    assert_int_equal(given->nodes[2].color, PEN_PROBLEM_ANY);
    assert_int_equal(given->nodes[0].role, PEN_ROLE_FORWARD);
    assert_int_not_equal(given->nodes[1].role, PEN_ROLE_FORWARD);
    assert_int_equal(given->edges[1].source, 0);
    assert_int_equal(given->edges[1].target, 1);
    pen_arena_destroy(arena);
}

static void placements_go_round(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_workload *workload = parse(good, arena);
    uint32_t devices[3];
    const char *text = "{\"placement\": {\"-7\": 2, \"40\": 0}}";
    CHECK_OK(pen_workload_parse_placement(workload, "p", text, strlen(text), arena, devices));
    const uint32_t expected[3] = {0, 2, PEN_PROBLEM_ANY};
    assert_memory_equal(devices, expected, sizeof expected);
    const char *path = scratch_file("bare.json", "{\"3\": 1.0}", 10);
    CHECK_OK(pen_workload_read_placement(workload, path, arena, devices));
    assert_int_equal(devices[2], 1);
    assert_int_equal(devices[0], PEN_PROBLEM_ANY);
    pen_arena_destroy(arena);
}

static void wrong_placements_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"placement\": {\"41\": 0}}", "p: there is no node '41'"},
        {"{\"040\": 0}", "p: there is no node '040'"},
        {"{\" 40\": 0}", "p: there is no node ' 40'"},
        {"{\"\": 0}", "p: there is no node ''"},
        {"{\"99999999999999999999\": 0}", "p: there is no node '99999999999999999999'"},
        {"{\"40\": 3}", "p: 40: expected an integer from 0 to 2, found 3"},
        {"{\"40\": -1}", "found -1"},
        {"{\"40\": \"a\"}", "p: 40: expected an integer, found a text"},
        {"{\"40\": 0, \"40\": 1}", "duplicate"},
        {"{\"placement\": [1, 2]}", "expected an object of node ids, found a list"},
        {"[0]", "expected an object of node ids, found a list"},
        {"", "p"},
    };
    pen_arena *arena = check_arena();
    const pen_workload *workload = parse(good, arena);
    uint32_t devices[3];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_ERROR(pen_workload_parse_placement(workload, "p", cases[i].text,
                                                 strlen(cases[i].text), arena, devices),
                    PEN_INVALID_INPUT, cases[i].message);
    }
    CHECK_ERROR(pen_workload_read_placement(workload, scratch_path("none"), arena, devices),
                PEN_NOT_FOUND, "none");
    pen_arena_destroy(arena);
}

// The good text with the first `from` replaced.
static void refuse(const char *from, const char *to, const char *message) {
    char text[2048];
    pen_arena *arena = check_arena();
    pen_workload *workload;
    const char *at = strstr(good, from);
    CHECK(at != NULL, "'%s' is not in the text", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    CHECK_ERROR(pen_workload_parse("w.json", text, strlen(text), arena, &workload),
                PEN_INVALID_INPUT, message);
    pen_arena_destroy(arena);
}

static void wrong_fields_are_named(void **state) {
    (void)state;
    refuse("\"maxFPGAs\": 2,", "", "w.json: maxFPGAs: expected an integer, found nothing");
    refuse("\"maxFPGAs\": 2", "\"maxFPGAs\": 2.5", "maxFPGAs: expected an integer from 0 to");
    refuse("\"maxCPUs\": 1", "\"maxCPUs\": 3000000000", "found 3000000000");
    refuse("\"maxCPUs\": 1", "\"maxCPUs\": 1e300", "found 1");
    refuse("100.5", "-1", "maxSizePerFPGA: expected a number from 0 to 1e+30, found -1");
    refuse("100.5", "\"big\"", "maxSizePerFPGA: expected a number, found a text");
    refuse("\"id\": 40,", "", "w.json: nodes[0].id: expected an integer, found nothing");
    refuse("\"id\": 3", "\"id\": 40", "nodes[2].id: another node has the same");
    refuse("\"id\": 3", "\"id\": 9.5", "nodes[2].id: expected an integer");
    refuse("\"supportedOnFpga\": 1", "\"supportedOnFpga\": 2",
           "nodes[0].supportedOnFpga: expected 0, 1, false or true");
    refuse("\"isBackwardNode\": true", "\"isBackwardNode\": null",
           "nodes[1].isBackwardNode: expected 0, 1, false or true, found null");
    refuse("20.5", "-20.5", "nodes[0].cpuLatency: expected a number from 0 to 1e+30, found -20.5");
    refuse("2.25", "[2.25]", "nodes[0].fpgaLatency: expected a number, found a list");
    refuse("\"size\": 64", "\"size\": 1e300", "nodes[0].size");
    refuse("\"colorClass\": 9", "\"colorClass\": {}",
           "nodes[0].colorClass: expected an integer, found an object");
    refuse("\"destId\": 3", "\"destId\": 4", "edges[0].destId: there is no node 4");
    refuse("\"sourceId\": 40,", "", "edges[0].sourceId: expected an integer, found nothing");
    refuse("0.5}]", "0.75}]", "edges[1].cost: 0.75, but another edge of node 40 costs 0.5");
    refuse("\"cost\": 0.5", "\"cost\": false", "edges[0].cost: expected a number");
    refuse("\"id\": 40", "\"id\": 40, \"id\": 41", "duplicate");
    refuse("\"edges\"", "\"Edges\"", "w.json: edges: expected a list, found nothing");
    refuse("20.5", "NaN", "w.json:3");
    refuse("20.5", "1e999", "w.json:3");
    refuse("20.5,", "20.5", "w.json:3");
}

static void other_texts_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "[]",
                                        "7",
                                        "null",
                                        "\"text\"",
                                        "{",
                                        "\xff\xfe",
                                        "{\"maxFPGAs\": 0, \"maxCPUs\": 0, \"maxSizePerFPGA\": 1, "
                                        "\"nodes\": [], \"edges\": []}",
                                        "{\"maxFPGAs\": 1, \"maxCPUs\": 0, \"maxSizePerFPGA\": 1, "
                                        "\"nodes\": [5], \"edges\": []}"};
    pen_arena *arena = check_arena();
    pen_workload *workload;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_ERROR(pen_workload_parse("w.json", texts[i], strlen(texts[i]), arena, &workload),
                    PEN_INVALID_INPUT, "w.json");
    }
    CHECK_ERROR(pen_workload_read(scratch_path("none.json"), arena, &workload), PEN_NOT_FOUND,
                "none.json");
    pen_arena_destroy(arena);
}

// Lists in lists, past any stack.
static void deep_texts_are_refused(void **state) {
    (void)state;
    static char deep[200000];
    memset(deep, '[', sizeof deep);
    pen_arena *arena = check_arena();
    pen_workload *workload;
    CHECK_ERROR(pen_workload_parse("w.json", deep, sizeof deep, arena, &workload),
                PEN_INVALID_INPUT, "w.json");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(fields_are_read), cmocka_unit_test(placements_go_round),
              cmocka_unit_test(wrong_placements_are_named),
              cmocka_unit_test(wrong_fields_are_named), cmocka_unit_test(other_texts_are_refused),
              cmocka_unit_test(deep_texts_are_refused))
