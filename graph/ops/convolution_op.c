#include "graph/op_table.h"

const pen_op_family pen_convolution_family = {"convolution", NULL, 0};
