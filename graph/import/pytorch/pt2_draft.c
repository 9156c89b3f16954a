// What conversions read: arguments and types.

#include "graph/import/pytorch/pt2_importer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/import/pytorch/pt2_formula.h"

pen_graph *pen_pt2_graph(const pen_pt2_draft *draft) {
    return draft->import->graph;
}

pen_arena *pen_pt2_arena(const pen_pt2_draft *draft) {
    return draft->import->arena;
}

const char *pen_pt2_op_name(const pen_pt2_draft *draft) {
    return draft->mapping->op_name;
}

const char *pen_pt2_target(const pen_pt2_draft *draft) {
    return draft->node->target;
}

pen_status pen_pt2_refuse_at(const char *file, int line, const pen_pt2_draft *draft,
                             const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return pen_error_at(file, line, PEN_UNSUPPORTED, "%s of %.100s, which Penstock has not", text,
                        draft->node->target);
}

// ---- finding

// What an operator calls "input", it calls "self" where it works in place: either will do.
static const pen_pt2_argument *draft_find_named(const pen_pt2_draft *draft, const char *name) {
    const pen_pt2_argument *argument = pen_pt2_node_argument(draft->node, name);
    if (argument != NULL) return argument;
    if (strcmp(name, "input") == 0) return pen_pt2_node_argument(draft->node, "self");
    if (strcmp(name, "self") == 0) return pen_pt2_node_argument(draft->node, "input");
    return NULL;
}

// NULL: it is left out, or None.
static const pen_pt2_argument *draft_find(const pen_pt2_draft *draft, const char *name) {
    const pen_pt2_argument *argument = draft_find_named(draft, name);
    if (argument == NULL) return NULL;
    const bool is_none =
        !argument->is_list && (argument->count == 0 || argument->items[0].kind == PEN_PT2_NONE);
    return is_none ? NULL : argument;
}

bool pen_pt2_has(const pen_pt2_draft *draft, const char *name) {
    return draft_find(draft, name) != NULL;
}

static bool draft_has_kind(const pen_pt2_draft *draft, const char *name, pen_pt2_kind kind) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    for (uint32_t i = 0; argument != NULL && i < argument->count; i++) {
        if (argument->items[i].kind == kind) return true;
    }
    return false;
}

bool pen_pt2_is_tensor(const pen_pt2_draft *draft, const char *name) {
    return draft_has_kind(draft, name, PEN_PT2_TENSOR);
}

bool pen_pt2_is_symbol(const pen_pt2_draft *draft, const char *name) {
    return draft_has_kind(draft, name, PEN_PT2_SYMBOL);
}

// Keeps what is wrong with an argument; the first such mistake counts.
static void draft_complain(pen_pt2_draft *draft, const char *name, const char *expected) {
    if (draft->problem != PEN_OK) return;
    if (pen_pt2_is_symbol(draft, name)) {
        draft->problem = pen_error(PEN_UNSUPPORTED,
                                   "argument '%.100s' depends on a size that the file leaves open; "
                                   "expected: %s",
                                   name, expected);
        return;
    }
    draft->problem = pen_error(PEN_INVALID_INPUT, "argument '%.100s' is no %s", name, expected);
}

// ---- tensors

// Whether an argument is the first: the one that views are of.
static bool draft_is_first(const pen_pt2_draft *draft, const pen_pt2_argument *argument) {
    return draft->node->argument_count > 0 && argument == &draft->node->arguments[0];
}

// A view that is made again, or is run on places, reads those in the place of its first argument.
static pen_status draft_read(pen_pt2_draft *draft, const pen_pt2_argument *argument,
                             const pen_pt2_item *item, pen_value_id *out_value) {
    if (item->kind == PEN_PT2_NONE) {
        *out_value = PEN_VALUE_NONE;
        return PEN_OK;
    }
    if (item->kind != PEN_PT2_TENSOR) {
        return pen_error(PEN_INVALID_INPUT, "argument '%.100s' is no tensor", argument->name);
    }
    if (pen_value_is(draft->first) && draft_is_first(draft, argument)) {
        *out_value = draft->first;
        return PEN_OK;
    }
    pen_pt2_slot *slot = pen_pt2_scope_find(draft->scope, item->text);
    if (slot == NULL) {
        return pen_error(PEN_INVALID_INPUT, "argument '%.100s' is '%.100s', which no node makes",
                         argument->name, item->text);
    }
    return pen_pt2_slot_read(draft->import, slot, out_value);
}

pen_status pen_pt2_tensor_or_none(pen_pt2_draft *draft, const char *name, pen_value_id *out_value) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    *out_value = PEN_VALUE_NONE;
    if (argument == NULL || argument->count == 0) return PEN_OK;
    return draft_read(draft, argument, &argument->items[0], out_value);
}

pen_status pen_pt2_tensor(pen_pt2_draft *draft, const char *name, pen_value_id *out_value) {
    PEN_TRY(pen_pt2_tensor_or_none(draft, name, out_value));
    if (pen_value_is(*out_value)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "argument '%.100s' is not there, expected: a tensor", name);
}

pen_status pen_pt2_tensors(pen_pt2_draft *draft, const char *name, uint32_t *out_count,
                           const pen_value_id **out_values) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    const uint32_t count = argument == NULL ? 0 : argument->count;
    pen_value_id *values;
    PEN_TRY(PEN_NEW(draft->import->arena, count, &values));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(draft_read(draft, argument, &argument->items[i], &values[i]));
    }
    *out_count = count;
    *out_values = values;
    return PEN_OK;
}

pen_status pen_pt2_tensors_as(pen_pt2_draft *draft, const char *name, pen_element_type element,
                              uint32_t *out_count, const pen_value_id **out_values) {
    const pen_value_id *read;
    pen_value_id *values;
    PEN_TRY(pen_pt2_tensors(draft, name, out_count, &read));
    PEN_TRY(PEN_NEW(draft->import->arena, *out_count, &values));
    for (uint32_t i = 0; i < *out_count; i++) {
        values[i] = read[i];
        if (pen_value_is(read[i])) PEN_TRY(pen_pt2_cast(draft, read[i], element, &values[i]));
    }
    *out_values = values;
    return PEN_OK;
}

// ---- numbers and symbols

static pen_status draft_symbol(const pen_pt2_draft *draft, const char *name,
                               pen_value_id *out_value) {
    const pen_pt2_known_symbol *symbol = pen_pt2_scope_symbol(draft->scope, name);
    if (symbol == NULL) {
        return pen_error(PEN_UNSUPPORTED, "it reads '%.100s', a number that Penstock has not",
                         name);
    }
    *out_value = symbol->value;
    return PEN_OK;
}

static bool draft_is_plain(const pen_pt2_item *item) {
    return item->kind == PEN_PT2_INTEGER || item->kind == PEN_PT2_NUMBER ||
           item->kind == PEN_PT2_TRUTH;
}

// A number or symbol as a value without dimensions.
static pen_status draft_scalar(pen_pt2_draft *draft, const pen_pt2_argument *argument,
                               const pen_pt2_item *item, pen_element_type element,
                               pen_value_id *out_value) {
    if (draft_is_plain(item)) {
        return pen_pt2_constant_number(draft, element, item->number, out_value);
    }
    if (item->kind != PEN_PT2_SYMBOL) {
        return pen_error(PEN_INVALID_INPUT, "argument '%.100s' is no number", argument->name);
    }
    PEN_TRY(draft_symbol(draft, item->text, out_value));
    return pen_pt2_cast(draft, *out_value, element, out_value);
}

pen_status pen_pt2_operand(pen_pt2_draft *draft, const char *name, pen_element_type element,
                           pen_value_id *out_value) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL || argument->count == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "argument '%.100s' is not there, expected: a tensor or a number", name);
    }
    if (argument->items[0].kind != PEN_PT2_TENSOR) {
        return draft_scalar(draft, argument, &argument->items[0], element, out_value);
    }
    PEN_TRY(draft_read(draft, argument, &argument->items[0], out_value));
    return pen_pt2_cast(draft, *out_value, element, out_value);
}

pen_status pen_pt2_own_operand(pen_pt2_draft *draft, const char *name, pen_value_id *out_value) {
    return pen_pt2_operand(draft, name, pen_pt2_own_element(draft), out_value);
}

pen_status pen_pt2_own_operands(pen_pt2_draft *draft, const char *name_a, const char *name_b,
                                pen_value_id *out_a, pen_value_id *out_b) {
    PEN_TRY(pen_pt2_own_operand(draft, name_a, out_a));
    return pen_pt2_own_operand(draft, name_b, out_b);
}

pen_status pen_pt2_scalar(pen_pt2_draft *draft, const char *name, pen_element_type element,
                          double fallback, pen_value_id *out_value) {
    if (pen_pt2_has(draft, name)) return pen_pt2_operand(draft, name, element, out_value);
    return pen_pt2_constant_number(draft, element, fallback, out_value);
}

// One symbol of a list, as a value [1].
static pen_status draft_size(pen_pt2_draft *draft, const pen_pt2_argument *argument,
                             const pen_pt2_item *item, pen_value_id *out_value) {
    if (item->kind == PEN_PT2_INTEGER || item->kind == PEN_PT2_TRUTH) {
        return pen_pt2_constant_ints(draft, 1, &item->integer, out_value);
    }
    pen_value_id scalar;
    if (item->kind == PEN_PT2_TENSOR) { // an index that was computed
        PEN_TRY(draft_read(draft, argument, item, &scalar));
        PEN_TRY(pen_pt2_cast(draft, scalar, PEN_INT64, &scalar));
    } else {
        PEN_TRY(draft_scalar(draft, argument, item, PEN_INT64, &scalar));
    }
    const int64_t one = 1;
    return pen_pt2_with_ints(draft, "reshape", "size", scalar, (pen_pt2_list){1, &one}, out_value);
}

// Symbols become parts of one list, so that it is folded as a whole once sizes are bound.
pen_status pen_pt2_sizes(pen_pt2_draft *draft, const char *name, pen_value_id *out_value) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    const uint32_t count = argument == NULL ? 0 : argument->count;
    pen_value_id *parts;
    int64_t *integers;
    bool is_plain = true;
    PEN_TRY(PEN_NEW(draft->import->arena, count, &parts));
    PEN_TRY(PEN_NEW(draft->import->arena, count, &integers));
    for (uint32_t i = 0; i < count; i++) {
        integers[i] = argument->items[i].integer;
        is_plain = is_plain && argument->items[i].kind == PEN_PT2_INTEGER;
    }
    if (is_plain) return pen_pt2_constant_ints(draft, count, integers, out_value);
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(draft_size(draft, argument, &argument->items[i], &parts[i]));
    }
    if (count == 1) {
        *out_value = parts[0];
        return PEN_OK;
    }
    return pen_pt2_emit(draft, "concat", "sizes", (pen_node_inputs){parts, count},
                        PEN_WITH(pen_attribute_int("axis", 0)), out_value);
}

pen_status pen_pt2_size(pen_pt2_draft *draft, const char *name, int64_t fallback,
                        pen_value_id *out_value) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL || argument->count == 0) {
        return pen_pt2_constant_ints(draft, 1, &fallback, out_value);
    }
    return draft_size(draft, argument, &argument->items[0], out_value);
}

// The only item of an argument that is a plain number; NULL: it is left out, or wrong.
static const pen_pt2_item *draft_plain(pen_pt2_draft *draft, const char *name,
                                       const char *expected) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL) return NULL;
    if (argument->count == 1 && draft_is_plain(&argument->items[0])) return &argument->items[0];
    draft_complain(draft, name, expected);
    return NULL;
}

int64_t pen_pt2_int(pen_pt2_draft *draft, const char *name, int64_t fallback) {
    const pen_pt2_item *item = draft_plain(draft, name, "integer");
    if (item == NULL) return fallback;
    if (item->kind != PEN_PT2_NUMBER) return item->integer;
    const bool is_whole = fabs(item->number) < 9.0e18 && item->number == floor(item->number);
    if (!is_whole) draft_complain(draft, name, "integer");
    return is_whole ? (int64_t)item->number : fallback;
}

double pen_pt2_float(pen_pt2_draft *draft, const char *name, double fallback) {
    const pen_pt2_item *item = draft_plain(draft, name, "number");
    return item == NULL ? fallback : item->number;
}

bool pen_pt2_bool(pen_pt2_draft *draft, const char *name, bool fallback) {
    const pen_pt2_item *item = draft_plain(draft, name, "bool");
    return item == NULL ? fallback : item->number != 0;
}

const char *pen_pt2_text(pen_pt2_draft *draft, const char *name, const char *fallback) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL) return fallback;
    if (argument->count == 1 && argument->items[0].kind == PEN_PT2_TEXT) {
        return argument->items[0].text;
    }
    draft_complain(draft, name, "text");
    return fallback;
}

pen_element_type pen_pt2_element(pen_pt2_draft *draft, const char *name,
                                 pen_element_type fallback) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL) return fallback;
    if (argument->count != 1 || argument->items[0].kind != PEN_PT2_ELEMENT) {
        draft_complain(draft, name, "element type");
        return fallback;
    }
    const int64_t number = argument->items[0].integer;
    const pen_element_type element = pen_pt2_element_of(number, true);
    if (element != PEN_ELEMENT_UNKNOWN || draft->problem != PEN_OK) return element;
    draft->problem = pen_error(PEN_UNSUPPORTED, "argument '%.100s' is %s, which Penstock has not",
                               name, pen_pt2_element_name(number));
    return fallback;
}

// ---- dimensions and lists

static uint32_t draft_axis(pen_pt2_draft *draft, const char *name, uint32_t rank, int64_t axis) {
    const int64_t limit = rank == 0 ? 1 : rank; // a scalar's only dimension is 0
    if (axis < 0) axis += limit;
    if (axis >= 0 && axis < limit) return (uint32_t)axis;
    draft_complain(draft, name, "dimension of the tensor");
    return 0;
}

uint32_t pen_pt2_axis(pen_pt2_draft *draft, const char *name, uint32_t rank, int64_t fallback) {
    return draft_axis(draft, name, rank, pen_pt2_int(draft, name, fallback));
}

// Room for `count` numbers, or a problem.
static void *draft_room(pen_pt2_draft *draft, uint32_t count, size_t size) {
    void *room = pen_arena_allocate(draft->import->arena, count + 1u, size, alignof(max_align_t));
    if (room == NULL && draft->problem == PEN_OK) draft->problem = pen_error_out_of_memory();
    return room;
}

pen_pt2_list pen_pt2_ints(pen_pt2_draft *draft, const char *name) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL) return (pen_pt2_list){0};
    int64_t *integers = draft_room(draft, argument->count, sizeof *integers);
    if (integers == NULL) return (pen_pt2_list){0};
    for (uint32_t i = 0; i < argument->count; i++) {
        const pen_pt2_item *item = &argument->items[i];
        integers[i] = item->integer;
        if (item->kind == PEN_PT2_INTEGER || item->kind == PEN_PT2_TRUTH) continue;
        draft_complain(draft, name, "list of integers");
        return (pen_pt2_list){0};
    }
    return (pen_pt2_list){argument->count, integers};
}

pen_pt2_numbers pen_pt2_floats(pen_pt2_draft *draft, const char *name) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    if (argument == NULL) return (pen_pt2_numbers){0};
    double *numbers = draft_room(draft, argument->count, sizeof *numbers);
    if (numbers == NULL) return (pen_pt2_numbers){0};
    for (uint32_t i = 0; i < argument->count; i++) {
        numbers[i] = argument->items[i].number;
        if (draft_is_plain(&argument->items[i])) continue;
        draft_complain(draft, name, "list of numbers");
        return (pen_pt2_numbers){0};
    }
    return (pen_pt2_numbers){argument->count, numbers};
}

void pen_pt2_ints_each(pen_pt2_draft *draft, const char *name, uint32_t count, int64_t fallback,
                       int64_t *out_integers) {
    const pen_pt2_list list = pen_pt2_ints(draft, name);
    for (uint32_t i = 0; i < count; i++) {
        out_integers[i] = fallback;
        if (list.count == 1) out_integers[i] = list.integers[0];
        if (list.count == count) out_integers[i] = list.integers[i];
    }
    if (list.count > 1 && list.count != count) draft_complain(draft, name, "list of that length");
}

// No dimension is named twice, so there are no more than PEN_RANK_LIMIT.
pen_pt2_list pen_pt2_axes(pen_pt2_draft *draft, const char *name, uint32_t rank) {
    const pen_pt2_list given = pen_pt2_ints(draft, name);
    const uint32_t count = given.count == 0 || rank == 0 ? rank : given.count;
    bool is_named[PEN_RANK_LIMIT] = {false};
    int64_t *axes = draft_room(draft, count, sizeof *axes);
    if (axes == NULL) return (pen_pt2_list){0};
    for (uint32_t i = 0; i < count; i++) {
        axes[i] = given.count == 0 ? i : draft_axis(draft, name, rank, given.integers[i]);
        if (is_named[axes[i]]) {
            draft_complain(draft, name, "list that names each dimension once");
            return (pen_pt2_list){0};
        }
        is_named[axes[i]] = true;
    }
    return (pen_pt2_list){count, axes};
}

// ---- types

static const pen_tensor_type *draft_type(pen_pt2_draft *draft, const char *name, uint32_t index) {
    static const pen_tensor_type unknown;
    const pen_pt2_argument *argument = draft_find(draft, name);
    const bool is_tensor = argument != NULL && index < argument->count &&
                           argument->items[index].kind == PEN_PT2_TENSOR;
    const pen_pt2_tensor_meta *meta =
        is_tensor ? pen_pt2_graph_tensor(draft->scope->graph, argument->items[index].text) : NULL;
    if (meta == NULL) return &unknown;
    pen_tensor_type *type = draft_room(draft, 1, sizeof *type);
    if (type == NULL) return &unknown;
    *type = (pen_tensor_type){pen_pt2_element_of(meta->element_number, true), meta->shape};
    return type;
}

const pen_tensor_type *pen_pt2_type_at(pen_pt2_draft *draft, const char *name, uint32_t index) {
    return draft_type(draft, name, index);
}

const pen_tensor_type *pen_pt2_type(pen_pt2_draft *draft, const char *name) {
    return draft_type(draft, name, 0);
}

uint32_t pen_pt2_rank(pen_pt2_draft *draft, const char *name) {
    return draft_type(draft, name, 0)->shape.rank;
}

uint32_t pen_pt2_result_count(const pen_pt2_draft *draft) {
    return draft->result_count;
}

const pen_tensor_type *pen_pt2_result_type(pen_pt2_draft *draft, uint32_t result) {
    static const pen_tensor_type unknown;
    return result < draft->result_count ? &draft->types[result] : &unknown;
}

pen_element_type pen_pt2_own_element(pen_pt2_draft *draft) {
    return pen_pt2_result_type(draft, 0)->element;
}

bool pen_pt2_type_is_known(const pen_tensor_type *type) {
    for (uint32_t d = 0; d < type->shape.rank; d++) {
        if (type->shape.dims[d] < 0) return false;
    }
    return type->element != PEN_ELEMENT_UNKNOWN;
}

// How much an operand counts when types are promoted, and its element. Numbers count less than
// tensors without dimensions, and these less than others, unless their kind is above: bools below
// integers below floats.
typedef struct draft_operand_type {
    pen_element_type element;
    uint32_t kind; // 0: bool, 1: integer, 2: float
    uint32_t rank; // 0: a number, 1: without dimensions, 2: with
} draft_operand_type;

// A symbol counts as a number, of the element that it has in the graph.
static draft_operand_type draft_operand_type_of(pen_pt2_draft *draft, const char *name) {
    const pen_pt2_argument *argument = draft_find(draft, name);
    draft_operand_type found = {.element = PEN_INT64, .kind = 1};
    if (argument == NULL || argument->count == 0) return found;
    const pen_pt2_item *item = &argument->items[0];
    if (item->kind == PEN_PT2_TENSOR) {
        const pen_tensor_type *type = pen_pt2_type(draft, name);
        found.element = type->element;
        found.rank = type->shape.rank > 0 ? 2 : 1;
    } else if (item->kind == PEN_PT2_SYMBOL) {
        const pen_pt2_known_symbol *symbol = pen_pt2_scope_symbol(draft->scope, item->text);
        if (symbol != NULL) found.element = pen_pt2_importer_element(draft->import, symbol->value);
    } else if (item->kind == PEN_PT2_NUMBER) {
        found.element = PEN_FLOAT64;
    } else if (item->kind == PEN_PT2_TRUTH) {
        found.element = PEN_BOOL;
    }
    found.kind = pen_element_is_float(found.element) ? 2 : found.element == PEN_BOOL ? 0 : 1;
    return found;
}

// Of two equal standing: the wider one; uint8 with a signed type of its width gives the next.
static pen_element_type draft_wider(pen_element_type a, pen_element_type b) {
    const size_t a_bytes = pen_element_bytes(a), b_bytes = pen_element_bytes(b);
    if (a == b) return a;
    if (a_bytes != b_bytes) return a_bytes > b_bytes ? a : b;
    return a_bytes == 1 ? PEN_INT16 : PEN_INT64;
}

pen_element_type pen_pt2_common_element(pen_pt2_draft *draft, const char *a, const char *b) {
    const draft_operand_type x = draft_operand_type_of(draft, a);
    const draft_operand_type y = draft_operand_type_of(draft, b);
    const bool has_tensor = x.rank > 0 || y.rank > 0;
    if (x.kind == y.kind && x.rank == y.rank) return draft_wider(x.element, y.element);
    const bool takes_x = x.kind != y.kind ? x.kind > y.kind : x.rank > y.rank;
    const draft_operand_type *taken = takes_x ? &x : &y;
    const bool is_number = taken->rank == 0 && has_tensor; // a number brings its kind, no width
    return is_number && taken->kind == 2 ? PEN_FLOAT32 : taken->element;
}

// ---- sizes

static pen_status draft_sizes_of_type(pen_pt2_draft *draft, const pen_shape *shape,
                                      pen_value_id *out_value) {
    return pen_pt2_constant_ints(draft, shape->rank, shape->dims, out_value);
}

pen_status pen_pt2_sizes_of(pen_pt2_draft *draft, const char *name, pen_value_id *out_value) {
    const pen_tensor_type *type = pen_pt2_type(draft, name);
    pen_value_id value;
    if (pen_pt2_type_is_known(type)) return draft_sizes_of_type(draft, &type->shape, out_value);
    PEN_TRY(pen_pt2_tensor(draft, name, &value));
    return pen_pt2_map(draft, "shape", "shape", value, out_value);
}

// Sizes that are numbers are constants; each of the others is computed.
pen_status pen_pt2_sizes_of_result(pen_pt2_draft *draft, uint32_t result, pen_value_id *out_value) {
    static const int64_t one[] = {1};
    const pen_tensor_type *type = pen_pt2_result_type(draft, result);
    if (pen_pt2_type_is_known(type)) return draft_sizes_of_type(draft, &type->shape, out_value);
    if (result >= draft->result_count || draft->items[result]->kind != PEN_PT2_TENSOR) {
        return pen_error(PEN_INVALID_INPUT, "result %u is no tensor", result);
    }
    const pen_pt2_tensor_meta *meta =
        pen_pt2_graph_tensor(draft->scope->graph, draft->items[result]->text);
    pen_value_id sizes[PEN_RANK_LIMIT];
    for (uint32_t d = 0; d < type->shape.rank; d++) {
        if (type->shape.dims[d] >= 0) {
            PEN_TRY(pen_pt2_constant_ints(draft, 1, &type->shape.dims[d], &sizes[d]));
            continue;
        }
        PEN_TRY(pen_pt2_formula_emit(draft, meta == NULL ? NULL : meta->symbols[d], &sizes[d]));
        PEN_TRY(pen_pt2_with_ints(draft, "reshape", "size", sizes[d], (pen_pt2_list){1, one},
                                  &sizes[d]));
    }
    return pen_pt2_emit(draft, "concat", "sizes", (pen_node_inputs){sizes, type->shape.rank},
                        PEN_WITH(pen_attribute_int("axis", 0)), out_value);
}
