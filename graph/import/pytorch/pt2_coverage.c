// Lists the operators of a model that Penstock has not: all at once, before anything is built.

#include "graph/import/pytorch/pt2_importer.h"

#include <string.h>

#include "base/text.h"

#define COVERAGE_LISTED_LIMIT 40

// An operator that is missing, and where it first stands.
typedef struct coverage_miss {
    const pen_pt2_node *first;
    uint32_t count;
} coverage_miss;

typedef struct coverage {
    pen_arena *arena;
    pen_name_map index; // of misses
    coverage_miss misses[COVERAGE_LISTED_LIMIT];
} coverage;

static pen_status coverage_walk(coverage *found, const pen_pt2_graph_part *graph);

static pen_status coverage_note(coverage *found, const pen_pt2_node *node) {
    const uint32_t known = pen_name_map_find(&found->index, node->target);
    if (known != PEN_NAME_MAP_NONE) {
        if (known < COVERAGE_LISTED_LIMIT) found->misses[known].count++;
        return PEN_OK;
    }
    const uint32_t index = found->index.count;
    if (index < COVERAGE_LISTED_LIMIT) found->misses[index] = (coverage_miss){node, 1};
    return pen_name_map_add(&found->index, node->target, index);
}

static pen_status coverage_walk(coverage *found, const pen_pt2_graph_part *graph) {
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const pen_pt2_node *node = &graph->nodes[n];
        bool in_place;
        const bool is_nested = pen_pt2_is_nested(node);
        if (!is_nested && pen_pt2_mapping_find(node->target, &in_place) == NULL) {
            PEN_TRY(coverage_note(found, node));
        }
        for (uint32_t a = 0; is_nested && a < node->argument_count; a++) {
            const pen_pt2_argument *argument = &node->arguments[a];
            if (argument->count != 1 || argument->items[0].kind != PEN_PT2_GRAPH) continue;
            PEN_TRY(coverage_walk(found, argument->items[0].graph));
        }
    }
    return PEN_OK;
}

// "\n  aten.foo.default, 3 times, first in layers.0 (Block), net.py line 16: y = foo(x)"
static void coverage_print(pen_text *text, const coverage_miss *miss) {
    const pen_pt2_node *node = miss->first;
    pen_text_print(text, "\n  %.200s, %u time%s", node->target, miss->count,
                   miss->count == 1 ? "" : "s");
    const char *class_name = strrchr(node->class_name, '.');
    class_name = class_name != NULL ? class_name + 1 : node->class_name;
    if (node->module[0] != '\0') {
        pen_text_print(text, ", first in %.200s (%.100s)", node->module, class_name);
    }
    if (node->file != NULL) {
        pen_text_print(text, ", %.200s line %u: %.120s", node->file, node->line, node->code);
    }
}

// The list is cut at COVERAGE_LISTED_LIMIT: a file may name any number of operators.
pen_status pen_pt2_coverage_check(const pen_pt2_model *model, pen_arena *arena) {
    coverage *found;
    pen_text text;
    PEN_TRY(PEN_NEW(arena, 1, &found));
    found->arena = arena;
    pen_name_map_init(&found->index, arena);
    PEN_TRY(coverage_walk(found, &model->graph));
    const uint32_t count = found->index.count;
    if (count == 0) return PEN_OK;
    pen_text_init(&text, arena);
    pen_text_print(&text, "the model has %u operator%s that Penstock has not:", count,
                   count == 1 ? "" : "s");
    for (uint32_t i = 0; i < count && i < COVERAGE_LISTED_LIMIT; i++) {
        coverage_print(&text, &found->misses[i]);
    }
    if (count > COVERAGE_LISTED_LIMIT) {
        pen_text_print(&text, "\n  and %u more", count - COVERAGE_LISTED_LIMIT);
    }
    return pen_text_error(&text, PEN_UNSUPPORTED);
}
