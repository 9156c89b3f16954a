// The contract of conversions: how one node of a PyTorch export becomes nodes of ours.
//
// A conversion sees one call of an operator: arguments by the names of the operator's schema
// ("input", "dim"), with the default that the schema has where the file leaves them out. It adds
// nodes (pen_pt2_emit), the last of which is the node itself (pen_pt2_give), or says what its
// results are (pen_pt2_set).
//
//   aten.linear(input, weight, bias):      static pen_status convert_linear(pen_pt2_draft *draft)
//       pen_value_id input, weight, bias, turned, product;
//       PEN_TRY(pen_pt2_tensor(draft, "input", &input)); …
//       PEN_TRY(pen_pt2_emit(draft, "matmul", "product", PEN_INPUTS(input, turned),
//                            PEN_NO_ATTRIBUTES, &product));
//       return pen_pt2_give(draft, "add", PEN_INPUTS(product, bias), PEN_NO_ATTRIBUTES);
//
// "self" and "input" stand for each other: operators call one argument so or so where they work in
// place.
//
// Element types: those of the file, float16 and bfloat16 being float32 throughout. Our operators do
// not promote, those of PyTorch do: pen_pt2_operand casts to what the operator works on.
//
// In place and views: conversions know of neither. `aten.add_.Tensor` is converted as
// `aten.add.Tensor`, and pt2_storage.c sees to who else shows the changed bytes. A row that has a
// `view` may be run again, or on integers that stand for the elements of argument 0.
//
// Symbols: a size that the file leaves open is an int64 value without dimensions, computed in the
// graph and folded once sizes are bound. Where only a plain number will do (a dimension, a kernel's
// size), a symbol is an error.
//
// Errors: pen_pt2_int and its like return a number, not a status. What is wrong with an argument is
// kept, and fails the node when its conversion has ended, whatever that returned.
//
// Lifetime: a draft lives for one conversion; all it gives lives in the model's arena.
// Threads:  one thread at a time.
#ifndef PEN_GRAPH_IMPORT_PYTORCH_PT2_CONVERT_H
#define PEN_GRAPH_IMPORT_PYTORCH_PT2_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "graph/attribute.h"
#include "graph/graph_types.h"
#include "graph/node_parts.h"
#include "graph/tensor_type.h"

typedef struct pen_pt2_draft pen_pt2_draft;

// The graph that nodes go into, and an arena as long-lived.
pen_graph *pen_pt2_graph(const pen_pt2_draft *draft);
pen_arena *pen_pt2_arena(const pen_pt2_draft *draft);
// The row's `op_name`; NULL where it has none. For a conversion that serves several rows.
const char *pen_pt2_op_name(const pen_pt2_draft *draft);
// The operator as the file has it, "aten.add_.Tensor", for messages and telling overloads apart.
const char *pen_pt2_target(const pen_pt2_draft *draft);

// ---- arguments
// Whether an argument is given, and is not None.
bool pen_pt2_has(const pen_pt2_draft *draft, const char *name);
// Whether it is a tensor, or a list of tensors.
bool pen_pt2_is_tensor(const pen_pt2_draft *draft, const char *name);
// Whether it is a symbol, or a list with a symbol in it: no plain number.
bool pen_pt2_is_symbol(const pen_pt2_draft *draft, const char *name);

// A tensor that must be there, in its own element type.
PEN_NODISCARD pen_status pen_pt2_tensor(pen_pt2_draft *draft, const char *name,
                                        pen_value_id *out_value);
// PEN_VALUE_NONE where it is left out, or None.
PEN_NODISCARD pen_status pen_pt2_tensor_or_none(pen_pt2_draft *draft, const char *name,
                                                pen_value_id *out_value);
// A list of tensors. Entries that are None are PEN_VALUE_NONE.
PEN_NODISCARD pen_status pen_pt2_tensors(pen_pt2_draft *draft, const char *name,
                                         uint32_t *out_count, const pen_value_id **out_values);
// The same, cast to `element`.
PEN_NODISCARD pen_status pen_pt2_tensors_as(pen_pt2_draft *draft, const char *name,
                                            pen_element_type element, uint32_t *out_count,
                                            const pen_value_id **out_values);
// An operand of an element-wise operator: a tensor, cast to `element`, or a number or symbol, which
// becomes a value of `element` without dimensions.
PEN_NODISCARD pen_status pen_pt2_operand(pen_pt2_draft *draft, const char *name,
                                         pen_element_type element, pen_value_id *out_value);
// The same in the element of result 0; of two such operands.
PEN_NODISCARD pen_status pen_pt2_own_operand(pen_pt2_draft *draft, const char *name,
                                             pen_value_id *out_value);
PEN_NODISCARD pen_status pen_pt2_own_operands(pen_pt2_draft *draft, const char *name_a,
                                              const char *name_b, pen_value_id *out_a,
                                              pen_value_id *out_b);
// A number or symbol, as pen_pt2_operand; `fallback` where it is left out or None.
PEN_NODISCARD pen_status pen_pt2_scalar(pen_pt2_draft *draft, const char *name,
                                        pen_element_type element, double fallback,
                                        pen_value_id *out_value);
// A list of integers and symbols, or a single one, as an int64 value [count]: a constant when all
// are plain. Without such an argument: of count 0.
PEN_NODISCARD pen_status pen_pt2_sizes(pen_pt2_draft *draft, const char *name,
                                       pen_value_id *out_value);
// An integer or symbol as an int64 value [1]; `fallback` where it is left out or None.
PEN_NODISCARD pen_status pen_pt2_size(pen_pt2_draft *draft, const char *name, int64_t fallback,
                                      pen_value_id *out_value);

// Plain numbers; the fallback where they are left out, or None.
int64_t pen_pt2_int(pen_pt2_draft *draft, const char *name, int64_t fallback);
double pen_pt2_float(pen_pt2_draft *draft, const char *name, double fallback); // of ints, too
bool pen_pt2_bool(pen_pt2_draft *draft, const char *name, bool fallback);
const char *pen_pt2_text(pen_pt2_draft *draft, const char *name, const char *fallback);
// A dtype argument; `fallback` where it is left out or None. Half types are PEN_FLOAT32.
pen_element_type pen_pt2_element(pen_pt2_draft *draft, const char *name, pen_element_type fallback);
// A dimension from 0 to `rank` - 1 (0 of rank 0); negative ones count from the end.
uint32_t pen_pt2_axis(pen_pt2_draft *draft, const char *name, uint32_t rank, int64_t fallback);

// A list of plain integers; one integer counts as a list of one. Left out or None: NULL and 0.
typedef struct pen_pt2_list {
    uint32_t count;
    const int64_t *integers; // [count]
} pen_pt2_list;
pen_pt2_list pen_pt2_ints(pen_pt2_draft *draft, const char *name);
// The same of numbers with a fraction.
typedef struct pen_pt2_numbers {
    uint32_t count;
    const double *numbers; // [count]
} pen_pt2_numbers;
pen_pt2_numbers pen_pt2_floats(pen_pt2_draft *draft, const char *name);
// Exactly `count` integers, a single one standing for all; `fallback` for all where none is given
// ([] counts as none, as in a pooling's stride).
void pen_pt2_ints_each(pen_pt2_draft *draft, const char *name, uint32_t count, int64_t fallback,
                       int64_t *out_integers);
// Dimensions, from 0 to `rank` - 1, in the order given, each once, into the arena. Left out, None
// or []: all.
pen_pt2_list pen_pt2_axes(pen_pt2_draft *draft, const char *name, uint32_t rank);

// ---- types, by the file: sizes that it leaves open are PEN_DIMENSION_UNKNOWN
// Of a tensor argument (of the first tensor of a list). Never NULL; of unknown element when the
// argument is no tensor.
const pen_tensor_type *pen_pt2_type(pen_pt2_draft *draft, const char *name);
const pen_tensor_type *pen_pt2_type_at(pen_pt2_draft *draft, const char *name, uint32_t index);
uint32_t pen_pt2_rank(pen_pt2_draft *draft, const char *name);
// How many results there are (a list of tensors counts by its items), and their types.
uint32_t pen_pt2_result_count(const pen_pt2_draft *draft);
const pen_tensor_type *pen_pt2_result_type(pen_pt2_draft *draft, uint32_t result);
// The element of result 0: that in which most operators compute, PyTorch having promoted to it.
pen_element_type pen_pt2_own_element(pen_pt2_draft *draft);
// The element that two arguments, tensors or numbers, are compared or combined in: PyTorch's rules
// of promotion, in which numbers and tensors without dimensions count less.
pen_element_type pen_pt2_common_element(pen_pt2_draft *draft, const char *a, const char *b);
// Whether all sizes are numbers.
bool pen_pt2_type_is_known(const pen_tensor_type *type);
// The sizes of a tensor argument, or of a result, as an int64 value [rank]: a constant where the
// file has them all. A result's open sizes are taken from the symbols of the file.
PEN_NODISCARD pen_status pen_pt2_sizes_of(pen_pt2_draft *draft, const char *name,
                                          pen_value_id *out_value);
PEN_NODISCARD pen_status pen_pt2_sizes_of_result(pen_pt2_draft *draft, uint32_t result,
                                                 pen_value_id *out_value);

// ---- what is added
// Adds a node of one output, "<the node's name>/<suffix>"; NULL: it is the node itself.
PEN_NODISCARD pen_status pen_pt2_emit(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                                      pen_node_inputs inputs, pen_node_attributes attributes,
                                      pen_value_id *out_value);
// Adds a node of several outputs; writes output_count values.
typedef struct pen_pt2_emission {
    const char *op_name;
    const char *suffix; // as above
    pen_node_inputs inputs;
    pen_node_attributes attributes;
    uint32_t output_count;
} pen_pt2_emission;
PEN_NODISCARD pen_status pen_pt2_emit_many(pen_pt2_draft *draft, const pen_pt2_emission *emission,
                                           pen_value_id *out_values);
// op(a) and op(a, b), without attributes.
PEN_NODISCARD pen_status pen_pt2_map(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                                     pen_value_id a, pen_value_id *out_value);
PEN_NODISCARD pen_status pen_pt2_pair(pen_pt2_draft *draft, const char *op_name, const char *suffix,
                                      pen_value_id a, pen_value_id b, pen_value_id *out_value);
// a where `when` is true, else b.
PEN_NODISCARD pen_status pen_pt2_where(pen_pt2_draft *draft, const char *suffix, pen_value_id when,
                                       pen_value_id a, pen_value_id b, pen_value_id *out_value);
// `value` times a number of the element of result 0; the value itself where that is 1.
PEN_NODISCARD pen_status pen_pt2_scale(pen_pt2_draft *draft, const char *suffix, pen_value_id value,
                                       double number, pen_value_id *out_value);
// Elements `start` to `end` of dimension `axis`; negative places count from the end.
typedef struct pen_pt2_part {
    int64_t axis, start, end;
} pen_pt2_part;
PEN_NODISCARD pen_status pen_pt2_slice(pen_pt2_draft *draft, const char *suffix, pen_value_id x,
                                       pen_pt2_part range, pen_value_id *out_value);
// op(a, integers), as reshape, squeeze and unsqueeze have it.
PEN_NODISCARD pen_status pen_pt2_with_ints(pen_pt2_draft *draft, const char *op_name,
                                           const char *suffix, pen_value_id a, pen_pt2_list ints,
                                           pen_value_id *out_value);
// op(a, [integer]).
PEN_NODISCARD pen_status pen_pt2_with_int(pen_pt2_draft *draft, const char *op_name,
                                          const char *suffix, pen_value_id a, int64_t integer,
                                          pen_value_id *out_value);
PEN_NODISCARD pen_status pen_pt2_transpose(pen_pt2_draft *draft, const char *suffix, pen_value_id a,
                                           pen_pt2_list permutation, pen_value_id *out_value);
// The value itself when it has the element already.
PEN_NODISCARD pen_status pen_pt2_cast(pen_pt2_draft *draft, pen_value_id a,
                                      pen_element_type element, pen_value_id *out_value);
// Constants, named by the node: int64 of shape [count], and a number without dimensions.
PEN_NODISCARD pen_status pen_pt2_constant_ints(pen_pt2_draft *draft, uint32_t count,
                                               const int64_t *integers, pen_value_id *out_value);
PEN_NODISCARD pen_status pen_pt2_constant_number(pen_pt2_draft *draft, pen_element_type element,
                                                 double number, pen_value_id *out_value);
// Room for a table of numbers that grows with sizes of the file, not with the file: all tables of a
// model have at most PEN_SPLAT_BYTES_LIMIT bytes. 64-byte aligned.
//   UNSUPPORTED    there is no such room
PEN_NODISCARD pen_status pen_pt2_table(pen_pt2_draft *draft, int64_t count, size_t element_bytes,
                                       void **out_table);
// A constant of the name `name`, which other nodes may have, too; one number for each element.
PEN_NODISCARD pen_status pen_pt2_constant_numbers(pen_pt2_draft *draft, const char *name,
                                                  const pen_tensor_type *type,
                                                  const double *numbers, pen_value_id *out_value);

// A number of the element of result 0.
PEN_NODISCARD pen_status pen_pt2_own_number(pen_pt2_draft *draft, double number,
                                            pen_value_id *out_value);

// The places of all elements of `like`, as an int64 value of its shape: 0, 1, 2, …
PEN_NODISCARD pen_status pen_pt2_places(pen_pt2_draft *draft, pen_value_id like,
                                        pen_value_id *out_value);
// `base` with `changed` at `places`, which have as many elements, each place once.
PEN_NODISCARD pen_status pen_pt2_scatter_places(pen_pt2_draft *draft, pen_value_id base,
                                                pen_value_id places, pen_value_id changed,
                                                pen_value_id *out_value);

// ---- what results
// Result `result` is `value`. Always PEN_OK, to end a conversion with; one that is not there is
// passed over.
pen_status pen_pt2_set(pen_pt2_draft *draft, uint32_t result, pen_value_id value);
// Adds the node itself, of one output, which is the result; of op(a) and op(a, b) likewise.
PEN_NODISCARD pen_status pen_pt2_give(pen_pt2_draft *draft, const char *op_name,
                                      pen_node_inputs inputs, pen_node_attributes attributes);
PEN_NODISCARD pen_status pen_pt2_give_map(pen_pt2_draft *draft, const char *op_name,
                                          pen_value_id a);
PEN_NODISCARD pen_status pen_pt2_give_pair(pen_pt2_draft *draft, const char *op_name,
                                           pen_value_id a, pen_value_id b);
// Tensor argument `name` has `value` from now on: what running statistics become.
PEN_NODISCARD pen_status pen_pt2_mutate(pen_pt2_draft *draft, const char *name, pen_value_id value);

// "…, which Penstock has not", with the operator: for arguments that a conversion refuses.
#define pen_pt2_refuse(draft, ...) pen_pt2_refuse_at(__FILE__, __LINE__, (draft), __VA_ARGS__)
PEN_NODISCARD pen_status pen_pt2_refuse_at(const char *file, int line, const pen_pt2_draft *draft,
                                           const char *format, ...) PEN_PRINTF(4, 5);

#endif // PEN_GRAPH_IMPORT_PYTORCH_PT2_CONVERT_H
