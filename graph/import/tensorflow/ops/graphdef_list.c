#include "graph/import/tensorflow/ops/graphdef_list.h"
#include "graph/import/tensorflow/graphdef_mapping.h"

#include <string.h>

#include "base/limits.h"

// ---- lists

// Operand `input` as a list. UNSUPPORTED: it is none.
static pen_status list_of_operand(const pen_graphdef_draft *draft, uint32_t input,
                                  pen_graphdef_list **out_list) {
    PEN_TRY(pen_graphdef_draft_need(draft, input + 1));
    *out_list = draft->operands[input]->list;
    if (*out_list != NULL) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED, "operand %u, '%.100s', is no list of tensors", input,
                     draft->operands[input]->name);
}

pen_status pen_graphdef_set_list(pen_graphdef_draft *draft, uint32_t output,
                                 pen_graphdef_list *list) {
    if (output >= draft->result_count) return PEN_OK;
    draft->results[output]->list = list;
    draft->results[output]->is_made = true;
    return PEN_OK;
}

static pen_status list_new(const pen_graphdef_draft *draft, pen_graphdef_list **out_list) {
    PEN_TRY(PEN_NEW(draft->arena, 1, out_list));
    **out_list = (pen_graphdef_list){.counts = {-1, -1}, .whole = PEN_GRAPHDEF_VALUE_NONE};
    return PEN_OK;
}

pen_status pen_graphdef_list_of(const pen_graphdef_draft *draft, pen_graphdef_value whole,
                                pen_graphdef_list **out_list) {
    PEN_TRY(list_new(draft, out_list));
    (*out_list)->whole = whole;
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        const pen_tensor_type *type = pen_graphdef_value_type(draft, &whole, trial);
        if (type != NULL && type->shape.rank > 0) (*out_list)->counts[trial] = type->shape.dims[0];
    }
    return PEN_OK;
}

pen_status pen_graphdef_list_set(const pen_graphdef_draft *draft, const pen_graphdef_list *list,
                                 uint32_t index, pen_graphdef_result *item,
                                 pen_graphdef_list **out_list) {
    PEN_TRY(list_new(draft, out_list));
    memcpy((*out_list)->counts, list->counts, sizeof list->counts);
    (*out_list)->item = item;
    (*out_list)->index = index;
    (*out_list)->before = list;
    return PEN_OK;
}

// How many elements it has.
static pen_status list_count(const pen_graphdef_list *list, uint32_t *out_count) {
    if (list->counts[0] < 0 || list->counts[0] != list->counts[1]) {
        return pen_error(PEN_UNSUPPORTED,
                         "the number of its elements depends on data, or on a size that the model "
                         "leaves open; it must be constant");
    }
    if (list->counts[0] > PEN_LOOP_ROUNDS_LIMIT) {
        return pen_error(PEN_UNSUPPORTED, "the list has %lld elements; at most %d are possible",
                         (long long)list->counts[0], PEN_LOOP_ROUNDS_LIMIT);
    }
    *out_count = (uint32_t)list->counts[0];
    return PEN_OK;
}

static pen_status list_item(const pen_graphdef_draft *draft, pen_graphdef_value value,
                            pen_graphdef_result **out_item) {
    pen_graphdef_result *item;
    PEN_TRY(PEN_NEW(draft->arena, 1, &item));
    *item = (pen_graphdef_result){.is_made = true,
                                  .name = draft->node->name,
                                  .plain = value,
                                  .first = PEN_GRAPHDEF_VALUE_NONE};
    *out_item = item;
    return PEN_OK;
}

// Takes a whole apart.
static pen_status list_take_apart(pen_graphdef_draft *draft, pen_graphdef_list *list,
                                  uint32_t count) {
    pen_graphdef_value *parts;
    PEN_TRY(PEN_NEW(draft->arena, (size_t)count + 1, &parts));
    PEN_TRY(PEN_NEW(draft->arena, (size_t)count + 1, &list->parts));
    PEN_TRY(pen_graphdef_emit_node(
        draft,
        &(pen_graphdef_emission){.op_name = "split",
                                 .suffix = "elements",
                                 .inputs = PEN_GRAPHDEF_INPUTS(list->whole),
                                 .attributes = PEN_WITH(pen_attribute_int("axis", 0)),
                                 .output_count = count},
        parts));
    for (uint32_t i = 0; i < count; i++) {
        PEN_TRY(pen_graphdef_emit_with_int(draft, "squeeze", "element", parts[i], 0, &parts[i]));
        PEN_TRY(list_item(draft, parts[i], &list->parts[i]));
    }
    return PEN_OK;
}

// The list without all that was set; `items` [count] is what was, unless it is NULL.
static pen_graphdef_list *list_origin(pen_graphdef_list *list, pen_graphdef_result **items,
                                      uint32_t count) {
    const pen_graphdef_list *at = list;
    for (; at->item != NULL; at = at->before) {
        const bool is_wanted = items != NULL && at->index < count && items[at->index] == NULL;
        if (is_wanted) items[at->index] = at->item;
    }
    return (pen_graphdef_list *)(uintptr_t)at; // lists are made by this file alone
}

static pen_status list_unset(uint32_t index) {
    return pen_error(PEN_UNSUPPORTED, "element %u of the list is read, and never written", index);
}

// Element `index`.
static pen_status list_get(pen_graphdef_draft *draft, pen_graphdef_list *list, uint32_t index,
                           pen_graphdef_result **out_item) {
    const pen_graphdef_list *at = list;
    uint32_t count;
    while (at->item != NULL && at->index != index) {
        at = at->before;
    }
    *out_item = at->item;
    if (at->item != NULL) return PEN_OK;
    pen_graphdef_list *whole = list_origin(list, NULL, 0);
    if (!pen_value_is(whole->whole.in[0])) return list_unset(index);
    PEN_TRY(list_count(whole, &count));
    if (index >= count) return list_unset(index);
    if (whole->parts == NULL) PEN_TRY(list_take_apart(draft, whole, count));
    *out_item = whole->parts[index];
    return PEN_OK;
}

// All elements, one after the other along a new first axis.
static pen_status list_stack(pen_graphdef_draft *draft, pen_graphdef_list *list,
                             pen_graphdef_value *out_value) {
    pen_graphdef_result **items;
    pen_graphdef_value *parts;
    uint32_t count;
    *out_value = list->whole;
    if (list->item == NULL && pen_value_is(list->whole.in[0])) return PEN_OK;
    PEN_TRY(list_count(list, &count));
    if (count == 0) return pen_error(PEN_UNSUPPORTED, "the list is empty");
    PEN_TRY(PEN_NEW(draft->arena, count, &items));
    PEN_TRY(PEN_NEW(draft->arena, count, &parts));
    (void)list_origin(list, items, count);
    for (uint32_t i = 0; i < count; i++) {
        if (items[i] == NULL) PEN_TRY(list_get(draft, list, i, &items[i]));
        PEN_TRY(pen_graphdef_result_value(draft, items[i], &parts[i]));
        PEN_TRY(pen_graphdef_emit_with_int(draft, "unsqueeze", "element", parts[i], 0, &parts[i]));
    }
    return pen_graphdef_concat(draft, "whole", (pen_graphdef_inputs){parts, count}, 0, out_value);
}

// ---- TensorList

static pen_status list_index(const pen_graphdef_draft *draft, uint32_t input,
                             const pen_graphdef_list *list, uint32_t *out_index) {
    int64_t index;
    PEN_TRY(pen_graphdef_operand_int(draft, input, &index));
    const bool is_below = list->counts[0] < 0 || index < list->counts[0];
    if (index < 0 || index >= PEN_LOOP_ROUNDS_LIMIT || !is_below) {
        return pen_error(PEN_INVALID_INPUT, "element %lld of a list of %lld", (long long)index,
                         (long long)list->counts[0]);
    }
    *out_index = (uint32_t)index;
    return PEN_OK;
}

// A list without contents; its number of elements is operand `input`.
static pen_status list_reserve(const pen_graphdef_draft *draft, uint32_t input,
                               pen_graphdef_list **out_list) {
    PEN_TRY(list_new(draft, out_list));
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        const pen_graphdef_ints_known *ints = pen_graphdef_operand_trial(draft, input, trial);
        if (ints != NULL && ints->count == 1) (*out_list)->counts[trial] = ints->integers[0];
    }
    return PEN_OK;
}

static pen_status convert_reserve(pen_graphdef_draft *draft) {
    pen_graphdef_list *list;
    PEN_TRY(list_reserve(draft, 1, &list));
    return pen_graphdef_set_list(draft, 0, list);
}

static pen_status convert_empty(pen_graphdef_draft *draft) {
    pen_graphdef_list *list;
    PEN_TRY(list_new(draft, &list));
    list->counts[0] = list->counts[1] = 0;
    return pen_graphdef_set_list(draft, 0, list);
}

static pen_status convert_from_tensor(pen_graphdef_draft *draft) {
    pen_graphdef_value whole;
    pen_graphdef_list *list;
    PEN_TRY(pen_graphdef_operand(draft, 0, &whole));
    PEN_TRY(pen_graphdef_list_of(draft, whole, &list));
    return pen_graphdef_set_list(draft, 0, list);
}

static pen_status list_set_item(pen_graphdef_draft *draft, uint32_t output, uint32_t input,
                                pen_graphdef_result *item) {
    pen_graphdef_list *list, *changed;
    uint32_t index;
    PEN_TRY(list_of_operand(draft, input, &list));
    PEN_TRY(list_index(draft, 1, list, &index));
    PEN_TRY(pen_graphdef_list_set(draft, list, index, item, &changed));
    return pen_graphdef_set_list(draft, output, changed);
}

static pen_status convert_set_item(pen_graphdef_draft *draft) {
    PEN_TRY(pen_graphdef_draft_need(draft, 3));
    return list_set_item(draft, 0, 0, draft->operands[2]);
}

static pen_status list_get_item(pen_graphdef_draft *draft, uint32_t input) {
    pen_graphdef_list *list;
    uint32_t index;
    PEN_TRY(list_of_operand(draft, input, &list));
    PEN_TRY(list_index(draft, 1, list, &index));
    if (draft->result_count > 0) PEN_TRY(list_get(draft, list, index, &draft->results[0]));
    return PEN_OK;
}

static pen_status convert_get_item(pen_graphdef_draft *draft) {
    return list_get_item(draft, 0);
}

static pen_status convert_stack(pen_graphdef_draft *draft) {
    pen_graphdef_list *list;
    pen_graphdef_value whole;
    PEN_TRY(list_of_operand(draft, 0, &list));
    PEN_TRY(list_stack(draft, list, &whole));
    return pen_graphdef_set(draft, 0, whole);
}

static pen_status convert_push_back(pen_graphdef_draft *draft) {
    pen_graphdef_list *list, *longer;
    uint32_t count;
    PEN_TRY(list_of_operand(draft, 0, &list));
    PEN_TRY(pen_graphdef_draft_need(draft, 2));
    PEN_TRY(list_count(list, &count));
    PEN_TRY(pen_graphdef_list_set(draft, list, count, draft->operands[1], &longer));
    longer->counts[0] = longer->counts[1] = (int64_t)count + 1;
    return pen_graphdef_set_list(draft, 0, longer);
}

// The node's result is how many items the list of operand `input` has.
static pen_status list_give_length(pen_graphdef_draft *draft, uint32_t input) {
    pen_graphdef_list *list;
    uint32_t count;
    pen_graphdef_value value;
    PEN_TRY(list_of_operand(draft, input, &list));
    PEN_TRY(list_count(list, &count));
    PEN_TRY(pen_graphdef_number_value(draft, "count", PEN_INT32, count, &value));
    return pen_graphdef_set(draft, 0, value);
}

static pen_status convert_length(pen_graphdef_draft *draft) {
    return list_give_length(draft, 0);
}

static pen_status list_evaluate_length(const pen_graphdef_evaluation *known, uint32_t input) {
    if (input >= known->draft->operand_count) return PEN_OK;
    const pen_graphdef_list *list = known->draft->operands[input]->list;
    if (list == NULL || list->counts[known->trial] < 0) return PEN_OK;
    *known->out = (pen_graphdef_ints_known){
        .is_known = true, .is_scalar = true, .count = 1, .integers = {list->counts[known->trial]}};
    return PEN_OK;
}

static pen_status evaluate_length(const pen_graphdef_evaluation *known) {
    return list_evaluate_length(known, 0);
}

// ---- TensorArray: its contents go with the "flow", which every operation reads and gives

static pen_status convert_array(pen_graphdef_draft *draft) {
    pen_graphdef_list *list;
    PEN_TRY(list_reserve(draft, 0, &list));
    pen_graphdef_set_list(draft, 0, list);
    return pen_graphdef_set_list(draft, 1, list);
}

static pen_status convert_array_write(pen_graphdef_draft *draft) {
    PEN_TRY(pen_graphdef_draft_need(draft, 4));
    return list_set_item(draft, 0, 3, draft->operands[2]);
}

static pen_status convert_array_read(pen_graphdef_draft *draft) {
    return list_get_item(draft, 2);
}

// Operand 1 must name all elements, in order.
static pen_status list_check_all(const pen_graphdef_draft *draft, const pen_graphdef_list *list) {
    for (uint32_t trial = 0; trial < PEN_GRAPHDEF_TRIALS; trial++) {
        const pen_graphdef_ints_known *ints = pen_graphdef_operand_trial(draft, 1, trial);
        bool is_all =
            ints != NULL && (list->counts[trial] < 0 || ints->count == list->counts[trial]);
        for (uint32_t i = 0; is_all && i < ints->count; i++) {
            is_all = ints->integers[i] == i;
        }
        if (!is_all) {
            return pen_error(PEN_UNSUPPORTED,
                             "its indices are not known to be those of all elements, in order");
        }
    }
    return PEN_OK;
}

static pen_status convert_array_scatter(pen_graphdef_draft *draft) {
    pen_graphdef_list *list;
    pen_graphdef_value whole;
    PEN_TRY(list_of_operand(draft, 3, &list));
    PEN_TRY(pen_graphdef_operand(draft, 2, &whole));
    PEN_TRY(pen_graphdef_list_of(draft, whole, &list));
    PEN_TRY(list_check_all(draft, list));
    return pen_graphdef_set_list(draft, 0, list);
}

static pen_status convert_array_gather(pen_graphdef_draft *draft) {
    pen_graphdef_list *list;
    pen_graphdef_value whole;
    PEN_TRY(list_of_operand(draft, 2, &list));
    PEN_TRY(list_check_all(draft, list));
    PEN_TRY(list_stack(draft, list, &whole));
    return pen_graphdef_set(draft, 0, whole);
}

static pen_status convert_array_size(pen_graphdef_draft *draft) {
    return list_give_length(draft, 1);
}

static pen_status evaluate_array_size(const pen_graphdef_evaluation *known) {
    return list_evaluate_length(known, 1);
}

static const pen_graphdef_mapping list_mappings[] = {
    {.op = "EmptyTensorList", .convert = convert_empty},
    {.op = "TensorArrayGatherV3", .convert = convert_array_gather},
    {.op = "TensorArrayReadV3", .convert = convert_array_read},
    {.op = "TensorArrayScatterV3", .convert = convert_array_scatter},
    {.op = "TensorArraySizeV3", .convert = convert_array_size, .evaluate = evaluate_array_size},
    {.op = "TensorArrayV3", .convert = convert_array},
    {.op = "TensorArrayWriteV3", .convert = convert_array_write},
    {.op = "TensorListFromTensor", .convert = convert_from_tensor},
    {.op = "TensorListGetItem", .convert = convert_get_item},
    {.op = "TensorListLength", .convert = convert_length, .evaluate = evaluate_length},
    {.op = "TensorListPushBack", .convert = convert_push_back},
    {.op = "TensorListReserve", .convert = convert_reserve},
    {.op = "TensorListSetItem", .convert = convert_set_item},
    {.op = "TensorListStack", .convert = convert_stack},
};

PEN_GRAPHDEF_FAMILY(pen_graphdef_lists, list_mappings);
