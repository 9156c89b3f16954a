#include "base/format/yaml_reader.h"

#include "tests/support/check.h"

#include "base/limits.h"
#include "base/text.h"

static pen_status parse(pen_arena *arena, const char *text, const pen_yaml_node **out_root) {
    return pen_yaml_parse("a.yaml", text, strlen(text), arena, out_root);
}

static void nodes_know_where_they_stood(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_yaml_node *root;
    CHECK_OK(parse(arena, "# first\na: 1\nb:\n  - x\n  - {c: \"2\", d: }\n", &root));
    assert_int_equal(root->kind, PEN_YAML_MAPPING);
    assert_int_equal(root->count, 2);
    const pen_yaml_node *a = pen_yaml_find(root, "a");
    assert_string_equal(a->text, "1");
    assert_false(a->is_quoted);
    assert_string_equal(a->file, "a.yaml");
    assert_int_equal(a->line, 2);
    assert_int_equal(a->column, 4);
    assert_int_equal(a->key->column, 1);
    const pen_yaml_node *b = pen_yaml_find(root, "b");
    assert_int_equal(b->kind, PEN_YAML_LIST);
    assert_int_equal(b->count, 2);
    const pen_yaml_node *second = b->first->next;
    assert_null(second->next);
    assert_int_equal(second->line, 5);
    assert_true(pen_yaml_find(second, "c")->is_quoted);
    assert_true(pen_yaml_is_nothing(pen_yaml_find(second, "d")));
    assert_null(pen_yaml_find(second, "e"));
    pen_arena_destroy(arena);
}

static void what_is_not_taken_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "a.yaml:1:1: error: the file is empty"},
        {"# only this\n", "the file is empty"},
        {"a: &x 1\n", "a.yaml:1:4: error: anchors and aliases"},
        {"a: [1, *x]\n", "a.yaml:1:8: error: anchors and aliases"},
        {"a: &x [1]\n", "anchors and aliases"},
        {"a: &x {b: 1}\n", "anchors and aliases"},
        {"a: !!int 1\n", "a.yaml:1:4: error: tags"},
        {"a: !x [1]\n", "tags"},
        {"a: !x {b: 1}\n", "tags"},
        {"a: 1\n---\nb: 2\n", "a.yaml:2:1: error: a second document"},
        {"a: 1\nb: 2\na: 3\n", "a.yaml:3:1: error: key \"a\" is given twice, first on line 1"},
        {"x: {b: 2, c: 1, b: 3}\n", "a.yaml:1:17: error: key \"b\" is given twice"},
        {"? [1]\n: 2\n", "a.yaml:1:3: error: found a list as a key, expected text"},
        {"? {a: 1}\n: 2\n", "found a mapping as a key"},
        {"a: \"x\\0y\"\n", "a.yaml:1:4: error: a zero character"},
        {"a: [1, 2\n", "not YAML"},
        {"a: b: c\n", "a.yaml:1:5: error: not YAML"},
        {"a:\n\t- b\n", "not YAML"},
        {"a: \xff\n", "not YAML"},
        {"a: \x01\n", "not YAML"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        const pen_yaml_node *root;
        CHECK_ERROR(parse(arena, cases[i].text, &root), PEN_INVALID_INPUT, cases[i].message);
        pen_arena_destroy(arena);
    }
}

static void limits_hold(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_yaml_node *root;
    pen_text text;

    for (unsigned extra = 0; extra < 2; extra++) { // as deep as allowed, and one more
        const char *whole;
        pen_text_init(&text, arena);
        for (unsigned i = 0; i < PEN_NESTING_LIMIT + extra; i++) {
            pen_text_add(&text, "[");
        }
        for (unsigned i = 0; i < PEN_NESTING_LIMIT + extra; i++) {
            pen_text_add(&text, "]");
        }
        CHECK_OK(pen_text_finish(&text, &whole));
        if (extra == 0) {
            CHECK_OK(parse(arena, whole, &root));
        } else {
            CHECK_ERROR(parse(arena, whole, &root), PEN_INVALID_INPUT,
                        "a.yaml:1:33: error: nested more than 32 deep");
        }
    }

    for (unsigned extra = 0; extra < 2; extra++) { // the list itself is a node
        const char *whole;
        pen_text_init(&text, arena);
        for (unsigned i = 0; i < PEN_SPEC_NODES_LIMIT - 1 + extra; i++) {
            pen_text_add(&text, "- a\n");
        }
        CHECK_OK(pen_text_finish(&text, &whole));
        if (extra == 0) {
            CHECK_OK(parse(arena, whole, &root));
            assert_int_equal(root->count, PEN_SPEC_NODES_LIMIT - 1);
        } else {
            CHECK_ERROR(parse(arena, whole, &root), PEN_INVALID_INPUT,
                        "more than 65536 values and keys");
        }
    }

    char *large = malloc(PEN_SPEC_BYTES_LIMIT + 1);
    assert_non_null(large);
    memset(large, 'a', PEN_SPEC_BYTES_LIMIT + 1);
    CHECK_OK(pen_yaml_parse("a.yaml", large, PEN_SPEC_BYTES_LIMIT, arena, &root));
    CHECK_ERROR(pen_yaml_parse("a.yaml", large, PEN_SPEC_BYTES_LIMIT + 1, arena, &root),
                PEN_INVALID_INPUT, "a YAML file may have 1048576");
    free(large);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(nodes_know_where_they_stood),
              cmocka_unit_test(what_is_not_taken_is_refused), cmocka_unit_test(limits_hold))
