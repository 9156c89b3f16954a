#include "base/option/option.h"

#include "base/option/option_places.h"
#include "tests/support/check.h"

typedef enum test_colour { TEST_RED, TEST_GREEN } test_colour;

typedef struct test_link {
    const char *name;
    double bandwidth;
    double latency;
} test_link;

typedef struct test_spec {
    double time_limit;
    double flops;
    uint64_t memory;
    test_colour colour;
    pen_option_list names; // of const char *
    pen_option_list links; // of test_link
    bool has_flops;
} test_spec;

static const char *const test_colours[] = {"red", "green", NULL};
static const pen_option_field test_link_fields[] = {
    {.key = "name",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(test_link, name),
     .is_required = true},
    {.key = "bandwidth",
     .kind = PEN_OPTION_BANDWIDTH,
     .offset = offsetof(test_link, bandwidth),
     .minimum = PEN_OPTION_ABOVE(0),
     .default_text = "1Gbit/s"},
    {.key = "latency", .kind = PEN_OPTION_SECONDS, .offset = offsetof(test_link, latency)},
};
static const pen_text_word test_words[] = {{"lime", "green"}, {NULL, NULL}};
static const pen_option_table test_link_table = {PEN_OPTION_FIELDS(test_link, test_link_fields)};
static const pen_option_field test_link_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &test_link_table};
static const pen_option_field test_name_item = {.kind = PEN_OPTION_TEXT};
static const pen_option_field test_fields[] = {
    {.key = "time_limit",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(test_spec, time_limit),
     .maximum = PEN_OPTION_TO(3600),
     .default_text = "5s"},
    {.key = "flops",
     .kind = PEN_OPTION_RATE,
     .offset = offsetof(test_spec, flops),
     .present_offset = offsetof(test_spec, has_flops)},
    {.key = "memory", .kind = PEN_OPTION_BYTES, .offset = offsetof(test_spec, memory)},
    {.key = "colour",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(test_spec, colour),
     .choices = test_colours,
     .words = test_words,
     .default_text = "green"},
    {.key = "names",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(test_spec, names),
     .item = &test_name_item,
     .count_minimum = 2,
     .count_maximum = 2},
    {.key = "links",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(test_spec, links),
     .item = &test_link_item},
};
static const pen_option_table test_table = {PEN_OPTION_FIELDS(test_spec, test_fields)};

static pen_status read_text(pen_arena *arena, const char *text, test_spec *out_spec,
                            const pen_option_source **out_source) {
    const pen_yaml_node *root;
    const pen_option_settings settings = {.file = "c.yaml"};
    *out_spec = (test_spec){.time_limit = 0};
    PEN_TRY(pen_yaml_parse("c.yaml", text, strlen(text), arena, &root));
    return pen_option_read(&test_table, root, &settings, arena, out_spec, out_source);
}

static void quantities_and_lists_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    test_spec spec;
    const pen_option_source *source;
    CHECK_OK(read_text(arena,
                       "time_limit: 1.5 min\nflops: 80G\nmemory: \"4GiB\"\nnames: [a, \"5\"]\n"
                       "links:\n  - {name: x, latency: 50us}\n  - {name: y, bandwidth: 8Gbit/s}\n",
                       &spec, &source));
    assert_true(spec.time_limit == 90 && spec.flops == 80e9 && spec.has_flops);
    assert_true(spec.memory == 4ull << 30);
    assert_int_equal(spec.colour, TEST_GREEN);
    assert_string_equal(((const char **)spec.names.items)[1], "5");
    const test_link *links = spec.links.items;
    assert_int_equal(spec.links.count, 2);
    assert_true(links[0].latency == 50e-6 && links[0].bandwidth == 0.125e9);
    assert_true(links[1].bandwidth == 1e9);
    CHECK_ERROR(pen_option_blame(source, &links[1].bandwidth, pen_error(PEN_IO, "slow")), PEN_IO,
                "c.yaml:7:26: error: slow");
    CHECK_ERROR(pen_option_blame(source, &links[1].latency, pen_error(PEN_IO, "slow")), PEN_IO,
                "c.yaml:7:5: error: slow");
    CHECK_ERROR(pen_option_blame(source, &spec.colour, pen_error(PEN_IO, "bad")), PEN_IO,
                "c.yaml:1:1: error: bad");
    CHECK_ERROR(pen_option_blame(source, arena, pen_error(PEN_IO, "elsewhere")), PEN_IO,
                "error: elsewhere");
    pen_arena_destroy(arena);
}

static void mistakes_say_what_is_possible(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"time_limit: 5", "c.yaml:1:13: error: time_limit: found \"5\", expected a duration like "
                          "5s (units: ns, us, ms, s, min, h) at most 3600"},
        {"time_limit: 2h", "found \"2h\""},
        {"flops: 80", "found \"80\", expected a rate like 80G (units: M, G"},
        {"memory: 20000000TiB", "found \"20000000TiB\", expected a size"},
        {"colour: blue", "found \"blue\", expected one of red, green"},
        {"colour: geren", "found \"geren\", expected one of red, green; did you mean green?"},
        {"colour: Lime", "found \"Lime\", expected one of red, green; did you mean green?"},
        {"names: [a]", "c.yaml:1:8: error: names: found 1 item, expected at least 2"},
        {"names: [a, b, c]", "names: found 3 items, expected at most 2"},
        {"names: a", "expected a list of 2 items, each text"},
        {"names: [a, []]", "c.yaml:1:12: error: names[1]: found a list, expected text"},
        {"links: [{name: a}, {bandwith: 1}]",
         "c.yaml:1:21: error: links[1]: unknown key \"bandwith\", possible: bandwidth, name, "
         "latency"},
        {"links: [{name: a, bandwidth: 0bit/s}]", "links[0].bandwidth: found \"0bit/s\""},
        {"links: [{name: a, bandwidth: 10Gbit}]", "expected a bandwidth like 10Gbit/s (units: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        test_spec spec;
        const pen_option_source *source;
        CHECK_ERROR(read_text(arena, cases[i].text, &spec, &source), PEN_INVALID_INPUT,
                    cases[i].message);
        pen_arena_destroy(arena);
    }
}

static void defaults_stand_alone(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    test_spec spec = {.time_limit = 0};
    CHECK_OK(pen_option_set_defaults(&test_table, arena, &spec));
    assert_true(spec.time_limit == 5 && spec.colour == TEST_GREEN && !spec.has_flops);
    assert_int_equal(spec.links.count, 0);
    pen_arena_destroy(arena);
}

// A path is written as --set takes it, or with "-"; what is in a list or ends early is none.
static void written_paths_are_found(void **state) {
    (void)state;
    static const pen_option_field inner[] = {{.key = "every"}, {.key = "keep_best"}};
    static const pen_option_table inner_table = {.fields = inner, .field_count = 2};
    static const pen_option_field csv[] = {{.key = "file"}, {.key = "name"}};
    static const pen_option_table csv_table = {.fields = csv, .field_count = 2};
    static const pen_option_field variants[] = {
        {.key = "csv", .kind = PEN_OPTION_MAPPING, .table = &csv_table}};
    static const pen_option_table data_table = {
        .tag = "format", .variants = variants, .variant_count = 1};
    static const pen_option_field fields[] = {
        {.key = "data", .kind = PEN_OPTION_MAPPING, .table = &data_table},
        {.key = "eval", .kind = PEN_OPTION_MAPPING, .table = &inner_table},
        {.key = "eval_more", .kind = PEN_OPTION_MAPPING, .table = &inner_table},
        {.key = "inputs", .kind = PEN_OPTION_MAP, .item = &test_name_item},
        {.key = "links", .kind = PEN_OPTION_LIST, .item = &test_link_item},
    };
    static const pen_option_table root = {.fields = fields, .field_count = 5};
    static const struct {
        const char *written, *separators, *path;
    } cases[] = {
        {"eval.every", ".", "eval.every"},
        {"eval-every", ".", NULL},
        {"eval-every", ".-_", "eval.every"},
        {"eval_keep-best", ".-_", "eval.keep_best"},
        {"eval_more_every", ".-_", "eval_more.every"},
        {"eval.keep-best", ".", "eval.keep_best"},
        {"data.file", ".", "data.file"},
        {"data.format", ".", "data.format"},
        {"data.csv.file", ".", NULL},
        {"inputs.my-name", ".", "inputs.my-name"},
        {"inputs.", ".", NULL},
        {"inputs.a.b", ".", NULL},
        {"links.name", ".", NULL},
        {"links", ".", "links"},
        {"eval.every.more", ".", NULL},
        {"eval.ever", ".", NULL},
        {"eval.", ".", NULL},
        {"eva", ".", NULL},
        {"", ".", NULL},
    };
    pen_arena *arena = check_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path =
            pen_option_match_path(&root, cases[i].written, cases[i].separators, arena);
        const bool is_same = path == NULL || cases[i].path == NULL
                                 ? path == cases[i].path
                                 : strcmp(path, cases[i].path) == 0;
        CHECK(is_same, "%s: %s", cases[i].written, path == NULL ? "none" : path);
    }
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(quantities_and_lists_are_read),
              cmocka_unit_test(mistakes_say_what_is_possible),
              cmocka_unit_test(defaults_stand_alone), cmocka_unit_test(written_paths_are_found))
