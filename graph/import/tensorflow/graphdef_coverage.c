#include "graph/import/tensorflow/graphdef_coverage.h"

#include <string.h>

#include "base/text.h"
#include "graph/import/tensorflow/graphdef_mapping.h"
#include "graph/import/tensorflow/graphdef_tensor.h"

#define COVERAGE_PROBLEMS_LIMIT 64

typedef struct coverage_problem {
    const char *what;
    const char *node; // an example
    uint32_t count;
} coverage_problem;

typedef struct coverage {
    const pen_graphdef_request *request;
    pen_arena *arena;
    coverage_problem problems[COVERAGE_PROBLEMS_LIMIT];
    uint32_t count, left_out;
} coverage;

bool pen_graphdef_is_variable(const pen_graphdef_node *node) {
    return strcmp(node->op, "VariableV2") == 0 || strcmp(node->op, "Variable") == 0 ||
           strcmp(node->op, "VarHandleOp") == 0;
}

static void coverage_add(coverage *c, const char *what, const pen_graphdef_node *node) {
    uint32_t i = 0;
    while (i < c->count && strcmp(c->problems[i].what, what) != 0) {
        i++;
    }
    if (i == COVERAGE_PROBLEMS_LIMIT) {
        c->left_out++;
        return;
    }
    if (i == c->count) c->problems[c->count++] = (coverage_problem){what, node->name, 0};
    c->problems[i].count++;
}

static bool coverage_is_input(const coverage *c, const pen_graphdef_node *node) {
    for (uint32_t i = 0; i < c->request->input_count; i++) {
        if (strcmp(c->request->inputs[i].at.node, node->name) == 0) return true;
    }
    return strcmp(node->op, "Placeholder") == 0;
}

static pen_status coverage_check_input(coverage *c, const pen_graphdef_node *node) {
    const char *what = "an input without a type";
    const pen_graphdef_attribute *type = pen_graphdef_attribute_find(node, "dtype");
    if (type != NULL && type->kind == PEN_GRAPHDEF_TYPE) {
        if (pen_graphdef_element_type(type->integer) != PEN_ELEMENT_UNKNOWN) return PEN_OK;
        PEN_TRY(pen_arena_format(c->arena, &what, "an input of type %s",
                                 pen_graphdef_data_type_name(type->integer)));
    }
    coverage_add(c, what, node);
    return PEN_OK;
}

static pen_status coverage_check_block(coverage *c, const pen_graphdef_block *block, bool is_inner);

static pen_status coverage_check_control(coverage *c, const pen_graphdef_control *control) {
    for (uint32_t p = 0; p < PEN_GRAPHDEF_PART_COUNT; p++) {
        PEN_TRY(coverage_check_block(c, &control->parts[p], true));
    }
    return PEN_OK;
}

static pen_status coverage_check_node(coverage *c, const pen_graphdef_block *block, uint32_t n) {
    const pen_graphdef_node *node = &block->flat->nodes[n];
    const bool is_merge = strcmp(node->op, "Merge") == 0 || strcmp(node->op, "RefMerge") == 0;
    if (strcmp(node->op, "Const") == 0 || pen_graphdef_is_variable(node)) return PEN_OK;
    if (block->controls[n] != NULL) return coverage_check_control(c, block->controls[n]);
    if (is_merge && block->order.merged[n] == UINT32_MAX) {
        coverage_add(c, "Merge of branches, both of which may run: its predicate is not constant",
                     node);
        return PEN_OK;
    }
    if (strcmp(node->op, "If") == 0 || strcmp(node->op, "StatelessIf") == 0) {
        coverage_add(c, "If on a predicate that is not constant", node);
    } else if (pen_graphdef_mapping_find(node->op) == NULL) {
        coverage_add(c, node->op, node);
    }
    return PEN_OK;
}

static pen_status coverage_check_block(coverage *c, const pen_graphdef_block *block,
                                       bool is_inner) {
    for (uint32_t i = 0; i < block->order.count; i++) {
        const uint32_t n = block->order.nodes[i];
        const pen_graphdef_node *node = &block->flat->nodes[n];
        if (is_inner && strcmp(node->op, PEN_GRAPHDEF_ARGUMENT) == 0) continue;
        if (!is_inner && coverage_is_input(c, node)) {
            PEN_TRY(coverage_check_input(c, node));
        } else {
            PEN_TRY(coverage_check_node(c, block, n));
        }
    }
    return PEN_OK;
}

pen_status pen_graphdef_coverage_check(const pen_graphdef_request *request,
                                       const pen_graphdef_block *block, pen_arena *arena) {
    coverage c = {.request = request, .arena = arena};
    PEN_TRY(coverage_check_block(&c, block, false));
    if (c.count == 0) return PEN_OK;
    pen_text text;
    pen_text_init(&text, arena);
    for (uint32_t i = 0; i < c.count; i++) {
        const coverage_problem *problem = &c.problems[i];
        pen_text_print(&text, "%s%s (%u, as '%.100s')", i > 0 ? "; " : "", problem->what,
                       problem->count, problem->node);
    }
    if (c.left_out > 0) pen_text_print(&text, "; and %u nodes more", c.left_out);
    const char *list;
    PEN_TRY(pen_text_finish(&text, &list));
    return pen_error(PEN_UNSUPPORTED, "Penstock has not, of what this TensorFlow graph uses: %s",
                     list);
}
