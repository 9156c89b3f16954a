// Random numbers, of the streams of Penstock: other draws than PyTorch's, of the same laws.

#include "graph/import/pytorch/pt2_convert.h"
#include "graph/import/pytorch/pt2_mapping.h"

// Like a tensor of the result's sizes. The row's op_name is the law, of 0 and 1.
static pen_status convert_random(pen_pt2_draft *draft) {
    pen_value_id sizes, like;
    PEN_TRY(pen_pt2_sizes_of_result(draft, 0, &sizes));
    PEN_TRY(pen_pt2_emit(draft, "constant_of_shape", "like", PEN_INPUTS(sizes), PEN_NO_ATTRIBUTES,
                         &like));
    return pen_pt2_give_map(draft, pen_pt2_op_name(draft), like);
}

static const pen_pt2_mapping random_rows[] = {
    PEN_PT2_NAMED("rand.default", "random_uniform_like", random),
    PEN_PT2_NAMED("rand_like.default", "random_uniform_like", random),
    PEN_PT2_NAMED("randn.default", "random_normal_like", random),
    PEN_PT2_NAMED("randn_like.default", "random_normal_like", random),
};
PEN_PT2_FAMILY(pen_pt2_randoms, random_rows);
