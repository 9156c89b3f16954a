#include "graph/op_table.h"

const pen_op_family pen_movement_family = {"movement", NULL, 0};
