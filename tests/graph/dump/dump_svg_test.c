#include "graph/dump/dump_drawing_dot.h"
#include "graph/dump/dump_svg.h"

#include "graph/dump/layered_layout.h"
#include "tests/support/chain_graph.h"
#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/small_graph.h"

static const pen_drawing_group groups[] = {{"device <a>", PEN_DRAWING_NONE, 0},
                                           {"device \"b\"", PEN_DRAWING_NONE, 1},
                                           {"stage 0", 0, 0},
                                           {"stage 1", 1, 1}};

static pen_drawing *draw(const pen_graph *graph, const pen_drawing_options *options,
                         pen_arena *arena) {
    pen_drawing *drawing;
    CHECK_OK(pen_drawing_new(graph, options, arena, &drawing));
    CHECK_OK(pen_layered_layout(drawing, arena));
    return drawing;
}

static void draws_groups(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const small_graph small = small_graph_forward(arena);
    const uint32_t group_of_node[] = {2, 3};
    const pen_drawing_options options = {
        .group_of_node = group_of_node, .groups = groups, .group_count = 4};
    const pen_drawing *drawing = draw(small.graph, &options, arena);
    const char *text;
    CHECK_OK(pen_dump_svg(drawing, small.graph, arena, &text));
    CHECK_GOLDEN("drawing.svg", text);
    CHECK_OK(pen_dump_drawing_dot(drawing, small.graph, arena, &text));
    CHECK_GOLDEN("drawing.dot", text);
    pen_arena_destroy(arena);
}

static const char *hostile_name(uint32_t index, char *room) {
    static const char *const names[] = {"</text><script>alert(1)</script>", "\"];\n}\\", "\xFF'&"};
    snprintf(room, 256, "%s", names[index % 3]);
    return room;
}

static void lets_no_name_out(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_graph *graph = chain_graph(arena, "</svg>\"\\", 3, hostile_name);
    const pen_drawing_options options = {0};
    const pen_drawing *drawing = draw(graph, &options, arena);
    const char *text;
    CHECK_OK(pen_dump_svg(drawing, graph, arena, &text));
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_null(strchr(text, '\xFF'));
    CHECK(strstr(text, "</svg>") == text + strlen(text) - 7, "the document ends once");
    CHECK_OK(pen_dump_drawing_dot(drawing, graph, arena, &text));
    assert_non_null(strstr(text, "digraph \"</svg>\\\"\\\\\" {"));
    assert_non_null(strstr(text, "label=\"relu\\n\\\"]; }\\\\\""));
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(draws_groups), cmocka_unit_test(lets_no_name_out))
