// A part as it travels: what the tables of part_record.c describe and part.proto shows. Numbers
// are as they were read, within their limits; what they refer to is not looked at.
//
// Lifetime: whatever it was read into, or borrows from a graph.
// Threads:  immutable once made.
#ifndef PEN_GRAPH_WIRE_PART_RECORD_H
#define PEN_GRAPH_WIRE_PART_RECORD_H

#include "base/record/record.h"
#include "graph/attribute.h"
#include "graph/graph.h"
#include "graph/wire/part_wire.h"

typedef struct part_position {
    uint32_t file; // in the part's files
    uint32_t line;
    uint32_t column;
    uint32_t position;
} part_position;

typedef struct part_value {
    const char *name;
    const char *element;
    pen_value_kind kind;
    pen_shape shape;
    pen_layout layout;
    pen_sharding sharding;
    bool trainable;
    bool has_contents;
    bool has_data;
    bool has_position;
    pen_value_id replaces;
    const void *data;
    size_t data_bytes;
    part_position position;
    size_t at; // at which byte it began
} part_value;

typedef struct part_attribute {
    const char *name;
    pen_attribute_kind kind;
    bool has_number;
    int64_t integer;
    double number;
    const char *text;
    const int64_t *integers;
    const double *numbers;
    uint32_t integer_count;
    uint32_t number_count;
} part_attribute;

typedef struct part_node {
    const char *op;
    const char *name;
    pen_role role;
    bool accumulates;
    bool has_position;
    pen_node_id gradient_of;
    const pen_value_id *inputs;
    const pen_value_id *outputs;
    const part_attribute *attributes;
    uint32_t input_count;
    uint32_t output_count;
    uint32_t attribute_count;
    part_position position;
    size_t at;
} part_node;

typedef struct part_record {
    const char *name;
    const char *const *files;
    const part_value *values;
    const part_node *nodes;
    const pen_part_list *lists;
    const pen_node_id *order;
    const pen_value_id *kept;
    const pen_part_end *fed;
    uint32_t file_count;
    uint32_t value_count;
    uint32_t node_count;
    uint32_t list_count;
    uint32_t order_count;
    uint32_t kept_count;
    uint32_t fed_count;
    uint32_t said_count; // of values
    bool is_whole;       // it says how many values there are
} part_record;

#endif // PEN_GRAPH_WIRE_PART_RECORD_H
