#include "graph/wire/part_record.h"

#include "base/limits.h"

#define PART_ATTRIBUTES_LIMIT 64u // of one node

#define POSITION(kind, number, member, ...)                                                        \
    PEN_RECORD_ROW(kind, number, #member, part_position, member, __VA_ARGS__)
#define VALUE(kind, number, member, ...)                                                           \
    PEN_RECORD_ROW(kind, number, #member, part_value, member, __VA_ARGS__)
#define ATTRIBUTE(kind, number, member, ...)                                                       \
    PEN_RECORD_ROW(kind, number, #member, part_attribute, member, __VA_ARGS__)
#define NODE(kind, number, member, ...)                                                            \
    PEN_RECORD_ROW(kind, number, #member, part_node, member, __VA_ARGS__)
#define LIST(number, member, ...)                                                                  \
    PEN_RECORD_ROW(NUMBER, number, #member, pen_part_list, member, __VA_ARGS__)
#define ITEMS(kind, number, type, member, count, ...)                                              \
    PEN_RECORD_LIST_ROW(ITEMS, kind, number, #member, type, member, count, __VA_ARGS__)

static const pen_record_field position_fields[] = {
    POSITION(INDEX, 1, file, "1 + its number in Part.files"),
    POSITION(NUMBER, 2, line, NULL),
    POSITION(NUMBER, 3, column, NULL),
    POSITION(NUMBER, 4, position, "of the node in a binary model"),
};
static const pen_record position_record = {.name = "Position", PEN_RECORD_FIELDS(position_fields)};

static const char *const value_kinds[] = {"COMPUTED", "INPUT",    "SCALAR", "PARAMETER",
                                          "STATE",    "CONSTANT", NULL};
static const pen_record_field value_fields[] = {
    VALUE(NAME, 1, name, NULL, .is_required = true),
    VALUE(NUMBER, 2, kind, "COMPUTED: an output of the next node that has outputs left",
          .choices = value_kinds, .choices_name = "Kind"),
    VALUE(NAME, 3, element, "\"float32\"", .is_required = true),
    PEN_RECORD_LIST_ROW(ARRAY, NUMBER, 4, "shape", part_value, shape.dims, shape.rank, NULL,
                        .limit = PEN_RANK_LIMIT, .item_limit = INT64_MAX),
    VALUE(NUMBER, 5, layout, "0: plain; others belong to the kind of device"),
    VALUE(NUMBER, 6, sharding, "0: whole", .limit = PEN_SHARDING_PARTIAL_SUM),
    VALUE(NUMBER, 7, trainable, NULL),
    VALUE(INDEX, 8, replaces, "1 + the parameter or state whose memory this result takes over"),
    VALUE(NUMBER, 9, has_contents, "parameters and states that do not start as zeros"),
    PEN_RECORD_BYTES_ROW(10, "data", part_value, data, data_bytes,
                         "of a constant, dense, little endian",
                         PEN_RECORD_PRESENT(part_value, has_data), .is_always = true),
    VALUE(MESSAGE, 11, position, "of a result: that of its node", .record = &position_record,
          PEN_RECORD_PRESENT(part_value, has_position)),
};
static const pen_record value_record = {
    .name = "Value", PEN_RECORD_FIELDS(value_fields), .position_offset = offsetof(part_value, at)};

static const char *const attribute_kinds[] = {"INT", "FLOAT", "TEXT", "INTS", "FLOATS", NULL};
static const pen_record_field attribute_fields[] = {
    ATTRIBUTE(NAME, 1, name, NULL, .is_required = true),
    ATTRIBUTE(NUMBER, 2, kind, NULL, .choices = attribute_kinds, .choices_name = "Kind"),
    ATTRIBUTE(SIGNED, 3, integer, NULL),
    ATTRIBUTE(FIXED, 4, number, NULL, .is_real = true, .is_always = true,
              PEN_RECORD_PRESENT(part_attribute, has_number)),
    ATTRIBUTE(NAME, 5, text, NULL),
    ITEMS(SIGNED, 6, part_attribute, integers, integer_count, NULL),
    ITEMS(FIXED, 7, part_attribute, numbers, number_count, NULL, .is_real = true),
};
static const pen_record attribute_record = {.name = "Attribute",
                                            PEN_RECORD_FIELDS(attribute_fields)};

static const char *const node_roles[] = {"FORWARD", "BACKWARD_INPUT", "BACKWARD_WEIGHT",
                                         "UPDATE",  "TRANSFER",       NULL};
static const pen_record_field node_fields[] = {
    NODE(NAME, 1, op, NULL, .is_required = true),
    NODE(NAME, 2, name, NULL, .is_required = true),
    NODE(NUMBER, 3, role, NULL, .choices = node_roles, .choices_name = "Role"),
    NODE(NUMBER, 4, accumulates, "adds to its results, but in the first microbatch"),
    NODE(INDEX, 5, gradient_of, "1 + a node"),
    ITEMS(INDEX, 6, part_node, inputs, input_count, "1 + a value; 0: left out",
          .limit = PEN_NODE_ARITY_LIMIT),
    ITEMS(INDEX, 7, part_node, outputs, output_count, "likewise", .limit = PEN_NODE_ARITY_LIMIT),
    ITEMS(MESSAGE, 8, part_node, attributes, attribute_count, NULL, .record = &attribute_record,
          .limit = PART_ATTRIBUTES_LIMIT),
    NODE(MESSAGE, 9, position, NULL, .record = &position_record,
         PEN_RECORD_PRESENT(part_node, has_position)),
};
static const pen_record node_record = {
    .name = "Node", PEN_RECORD_FIELDS(node_fields), .position_offset = offsetof(part_node, at)};

static const char *const list_kinds[] = {"FORWARD",         "BACKWARD", "BACKWARD_INPUT",
                                         "BACKWARD_WEIGHT", "UPDATE",   NULL};
static const pen_record_field list_fields[] = {
    LIST(1, kind, NULL, .choices = list_kinds, .choices_name = "Kind"),
    LIST(2, stage, NULL),
    LIST(3, phase, "of an update"),
    LIST(4, first, "positions in Part.order; lists follow each other without gaps"),
    LIST(5, end, NULL),
};
static const pen_record list_record = {.name = "List", PEN_RECORD_FIELDS(list_fields)};

static const pen_record_field fed_fields[] = {
    PEN_RECORD_ROW(NUMBER, 1, "channel", pen_part_end, channel, NULL, .limit = UINT32_MAX - 1),
    PEN_RECORD_ROW(NUMBER, 2, "value", pen_part_end, value, NULL, .limit = UINT32_MAX - 1),
};
static const pen_record fed_record = {.name = "Fed", PEN_RECORD_FIELDS(fed_fields)};

static const pen_record_field part_fields[] = {
    PEN_RECORD_ROW(NAME, 1, "name", part_record, name, "of the graph"),
    ITEMS(NAME, 2, part_record, files, file_count, "of the user's model, that positions are in",
          .limit = PEN_PART_LISTS_LIMIT),
    ITEMS(MESSAGE, 3, part_record, values, value_count, "by their numbers, from 0",
          .record = &value_record),
    ITEMS(MESSAGE, 4, part_record, nodes, node_count,
          "by their numbers, from 0; each after what it reads", .record = &node_record),
    ITEMS(MESSAGE, 5, part_record, lists, list_count, "what runs as one task",
          .record = &list_record, .limit = PEN_PART_LISTS_LIMIT),
    ITEMS(NUMBER, 6, part_record, order, order_count, "nodes, by list: all but send and receive"),
    ITEMS(NUMBER, 7, part_record, kept, kept_count, "values to be read after a run"),
    ITEMS(MESSAGE, 8, part_record, fed, fed_count,
          "inputs by the channels they come by, by channel", .record = &fed_record,
          .limit = PEN_PART_LISTS_LIMIT),
    PEN_RECORD_ROW(NUMBER, 9, "value_count", part_record, said_count,
                   "the last field: the message is whole", .limit = PEN_VALUE_COUNT_LIMIT,
                   PEN_RECORD_PRESENT(part_record, is_whole), .is_always = true),
};
const pen_record pen_part_record = {
    .name = "Part",
    .help =
        "What one device runs of a model that several train. Numbers that may be none travel as\n"
        "one more than they are, 0 being none.",
    PEN_RECORD_FIELDS(part_fields),
};
