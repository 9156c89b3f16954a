#include "partition/spec/name_match.h"

#include "tests/support/check.h"

static const char *const node_names[] = {
    "/conv1/Conv",
    "/layer1/conv1/Conv",
    "/layer1/relu/Relu",
    "/layer4/conv1/Conv",
    "/layer4/conv2/Conv",
    "fc.weight",
    "fcxweight",
    "fc",
    "a[1]",
    "/pool/Pool",
};
static const pen_name_set nodes = {
    .names = node_names, .count = sizeof node_names / sizeof *node_names, .what = "node"};

static const char *const device_names[] = {"n1/cpu0", "n2/cpu0", "n10/cpu0", "gate", "n[1-2]"};
static const pen_name_set devices = {.names = device_names, .count = 5, .what = "device"};

typedef pen_status match_fn(const pen_name_set *set, const char *text, pen_arena *arena,
                            pen_name_matches *out_matches);

// The indices as text: "3 4".
static const char *matched(match_fn *match, const pen_name_set *set, const char *text,
                           pen_arena *arena) {
    pen_name_matches matches;
    const char *list = "";
    CHECK_OK(match(set, text, arena, &matches));
    for (uint32_t i = 0; i < matches.count; i++) {
        CHECK_OK(
            pen_arena_format(arena, &list, "%s%s%u", list, i > 0 ? " " : "", matches.indices[i]));
    }
    return list;
}

static void names_come_before_patterns(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    assert_string_equal(matched(pen_match_names, &nodes, "fc", arena), "7");
    assert_string_equal(matched(pen_match_names, &nodes, "fc.weight", arena), "5");
    assert_string_equal(matched(pen_match_names, &nodes, "a[1]", arena), "8");
    assert_string_equal(matched(pen_match_names, &nodes, "^/layer4/", arena), "3 4");
    assert_string_equal(matched(pen_match_names, &nodes, "conv1/Conv$", arena), "0 1 3");
    assert_string_equal(matched(pen_match_names, &nodes, "^fc.weight$", arena), "5 6");
    assert_string_equal(matched(pen_match_names, &nodes, "^fc\\.", arena), "5");
    pen_arena_destroy(arena);
}

static void ranges_mean_devices(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    assert_string_equal(matched(pen_match_devices, &devices, "n[1-2]/cpu0", arena), "0 1");
    assert_string_equal(matched(pen_match_devices, &devices, "n[1-2]", arena), "4");
    assert_string_equal(matched(pen_match_devices, &devices, "^n[1-2]/", arena), "0 1");
    assert_string_equal(matched(pen_match_devices, &devices, "^n", arena), "0 1 2 4");
    assert_string_equal(matched(pen_match_devices, &devices, "gate", arena), "3");
    // [8-10] is no class of letters, so it must be a range of names
    pen_name_matches matches;
    CHECK_ERROR(pen_match_devices(&devices, "n[8-10]/cpu0", arena, &matches), PEN_NOT_FOUND,
                "no device is called \"n8/cpu0\", near: n1/cpu0, n2/cpu0, n10/cpu0\n"
                "  one of those of \"n[8-10]/cpu0\"");
    pen_arena_destroy(arena);
}

static void what_matches_nothing_lists_near_names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"^/layr4/", "no node matches \"^/layr4/\", near: /layer4/conv1/Conv, "
                     "/layer4/conv2/Conv, /layer1/conv1/Conv"},
        {"/pool/Pol", "no node is called \"/pool/Pol\", near: /pool/Pool"},
        {"fc.weigth", "no node is called \"fc.weigth\", near: fc.weight, fcxweight"},
        {"zzzzzzzzz", "no node is called \"zzzzzzzzz\", possible: /conv1/Conv, "
                      "/layer1/conv1/Conv, /layer1/relu/Relu and 7 more"},
        {"", "no node is called \"\", possible: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        pen_name_matches matches;
        CHECK_ERROR(pen_match_names(&nodes, cases[i].text, arena, &matches), PEN_NOT_FOUND,
                    cases[i].message);
        pen_arena_destroy(arena);
    }
}

static void a_wrong_pattern_is_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_name_matches matches;
    CHECK_ERROR(pen_match_names(&nodes, "^(", arena, &matches), PEN_INVALID_INPUT,
                "found \"^(\", expected the name of a node or a regular expression (POSIX "
                "extended): ");
    CHECK_ERROR(pen_match_names(&nodes, "[8-1]", arena, &matches), PEN_INVALID_INPUT, "[8-1]");
    pen_name_set none = {.what = "device"};
    CHECK_ERROR(pen_match_devices(&none, "a", arena, &matches), PEN_NOT_FOUND,
                "no device is called \"a\"");
    CHECK_ERROR(pen_match_devices(&none, "^a", arena, &matches), PEN_NOT_FOUND,
                "no device matches \"^a\"");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(names_come_before_patterns), cmocka_unit_test(ranges_mean_devices),
              cmocka_unit_test(what_matches_nothing_lists_near_names),
              cmocka_unit_test(a_wrong_pattern_is_named))
