#include "graph/import/tensorflow/graphdef_types.h"

#define TYPE_REFERENCE 100 // is added to the number of what is referred to

// Field numbers of TensorProto: its lists.
enum {
    TENSOR_FLOATS = 5,
    TENSOR_DOUBLES = 6,
    TENSOR_INTS = 7,
    TENSOR_INT64S = 10,
    TENSOR_BOOLS = 11,
    TENSOR_HALVES = 13,
    TENSOR_UINT32S = 16,
    TENSOR_UINT64S = 17,
};

// Indexed by the number in TensorFlow.
static const pen_tensor_element tensor_element_list[] = {
    {PEN_ELEMENT_UNKNOWN, "invalid", 0},       {PEN_FLOAT32, "float", TENSOR_FLOATS},
    {PEN_FLOAT64, "double", TENSOR_DOUBLES},   {PEN_INT32, "int32", TENSOR_INTS},
    {PEN_UINT8, "uint8", TENSOR_INTS},         {PEN_INT16, "int16", TENSOR_INTS},
    {PEN_INT8, "int8", TENSOR_INTS},           {PEN_ELEMENT_UNKNOWN, "string", 0},
    {PEN_ELEMENT_UNKNOWN, "complex64", 0},     {PEN_INT64, "int64", TENSOR_INT64S},
    {PEN_BOOL, "bool", TENSOR_BOOLS},          {PEN_ELEMENT_UNKNOWN, "qint8", 0},
    {PEN_ELEMENT_UNKNOWN, "quint8", 0},        {PEN_ELEMENT_UNKNOWN, "qint32", 0},
    {PEN_BFLOAT16, "bfloat16", TENSOR_HALVES}, {PEN_ELEMENT_UNKNOWN, "qint16", 0},
    {PEN_ELEMENT_UNKNOWN, "quint16", 0},       {PEN_UINT16, "uint16", TENSOR_INTS},
    {PEN_ELEMENT_UNKNOWN, "complex128", 0},    {PEN_FLOAT16, "half", TENSOR_HALVES},
    {PEN_ELEMENT_UNKNOWN, "resource", 0},      {PEN_ELEMENT_UNKNOWN, "variant", 0},
    {PEN_UINT32, "uint32", TENSOR_UINT32S},    {PEN_UINT64, "uint64", TENSOR_UINT64S},
};
static const pen_tensor_elements tensor_elements = {
    tensor_element_list, sizeof tensor_element_list / sizeof tensor_element_list[0]};

const pen_tensor_element *pen_graphdef_tensor_element(int64_t data_type) {
    if (data_type > TYPE_REFERENCE) data_type -= TYPE_REFERENCE;
    return pen_tensor_elements_at(&tensor_elements, data_type);
}

pen_element_type pen_graphdef_element_type(int64_t data_type) {
    return pen_graphdef_tensor_element(data_type)->element;
}

int64_t pen_graphdef_data_type(pen_element_type element) {
    return pen_tensor_elements_number(&tensor_elements, element);
}

const char *pen_graphdef_data_type_name(int64_t data_type) {
    return pen_graphdef_tensor_element(data_type)->name;
}
