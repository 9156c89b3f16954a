// Borders. PyTorch lists their sizes from the last dimension on: before, behind, and so on.

#include <string.h>

#include "graph/import/pytorch/pt2_mapping.h"

typedef struct padding {
    uint32_t rank;
    int64_t pads[2 * PEN_RANK_LIMIT]; // before all dimensions, then behind all
} padding;

static pen_status padding_read(pen_pt2_draft *draft, const char *name, padding *work) {
    const pen_pt2_list list = pen_pt2_ints(draft, name);
    *work = (padding){.rank = pen_pt2_rank(draft, "self")};
    if (list.count % 2 != 0 || list.count / 2 > work->rank) {
        return pen_pt2_refuse(draft, "it has %u numbers for %u dimensions", list.count, work->rank);
    }
    for (uint32_t i = 0; i < list.count / 2; i++) {
        work->pads[work->rank - 1 - i] = list.integers[2 * i];
        work->pads[2 * work->rank - 1 - i] = list.integers[2 * i + 1];
    }
    return PEN_OK;
}

static pen_status padding_give(pen_pt2_draft *draft, const padding *work, const char *mode,
                               pen_value_id value) {
    const uint32_t count = 2 * work->rank;
    pen_value_id x, pads;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    PEN_TRY(pen_pt2_constant_ints(draft, count, work->pads, &pads));
    const pen_value_id inputs[] = {x, pads, value};
    return pen_pt2_give(draft, "pad", (pen_node_inputs){inputs, pen_value_is(value) ? 3 : 2},
                        PEN_WITH(pen_attribute_text("mode", mode)));
}

static pen_status padding_constant(pen_pt2_draft *draft, const padding *work) {
    const pen_element_type element = pen_pt2_own_element(draft);
    pen_value_id value;
    PEN_TRY(pen_pt2_scalar(draft, "value", element, 0, &value));
    return padding_give(draft, work, "constant", value);
}

// As if each dimension began again behind its end.
static pen_status padding_circular(pen_pt2_draft *draft, const padding *work) {
    pen_value_id x;
    PEN_TRY(pen_pt2_tensor(draft, "self", &x));
    for (uint32_t d = 0; d < work->rank; d++) {
        const int64_t before = work->pads[d], behind = work->pads[work->rank + d];
        pen_value_id parts[3];
        uint32_t count = 0;
        if (before < 0 || behind < 0) {
            return pen_pt2_refuse(draft, "it is circular, and its size is below 0");
        }
        if (before == 0 && behind == 0) continue;
        if (before > 0) {
            PEN_TRY(pen_pt2_slice(draft, "border", x, (pen_pt2_part){d, -before, INT64_MAX},
                                  &parts[count++]));
        }
        parts[count++] = x;
        if (behind > 0) {
            PEN_TRY(
                pen_pt2_slice(draft, "border", x, (pen_pt2_part){d, 0, behind}, &parts[count++]));
        }
        PEN_TRY(pen_pt2_emit(draft, "concat", "around", (pen_node_inputs){parts, count},
                             PEN_WITH(pen_attribute_int("axis", d)), &x));
    }
    return pen_pt2_set(draft, 0, x);
}

static pen_status convert_pad(pen_pt2_draft *draft) {
    static const char *const names[] = {"reflect", "replicate", "circular"};
    static const char *const modes[] = {"reflect", "edge"};
    const char *mode = pen_pt2_text(draft, "mode", "constant");
    padding work;
    PEN_TRY(padding_read(draft, "pad", &work));
    if (strcmp(mode, "constant") == 0) return padding_constant(draft, &work);
    for (uint32_t i = 0; i < 2; i++) {
        if (strcmp(mode, names[i]) == 0) {
            return padding_give(draft, &work, modes[i], PEN_VALUE_NONE);
        }
    }
    if (strcmp(mode, names[2]) == 0) return padding_circular(draft, &work);
    return pen_pt2_refuse(draft, "its mode is '%.32s'", mode);
}

static pen_status convert_constant_pad(pen_pt2_draft *draft) {
    padding work;
    PEN_TRY(padding_read(draft, "pad", &work));
    return padding_constant(draft, &work);
}

static pen_status convert_circular_pad(pen_pt2_draft *draft) {
    padding work;
    PEN_TRY(padding_read(draft, "pad", &work));
    return padding_circular(draft, &work);
}

static pen_status convert_named_pad(pen_pt2_draft *draft) {
    padding work;
    PEN_TRY(padding_read(draft, "padding", &work));
    return padding_give(draft, &work, pen_pt2_op_name(draft), PEN_VALUE_NONE);
}

#define NAMED(aten, mode)                                                                          \
    { .target = "aten." aten ".default", .op_name = mode, .convert = convert_named_pad }

static const pen_pt2_mapping padding_rows[] = {
    PEN_PT2_ROW("pad.default", pad),
    PEN_PT2_ROW("constant_pad_nd.default", constant_pad),
    PEN_PT2_ROW("_pad_circular.default", circular_pad),
    NAMED("reflection_pad1d", "reflect"),
    NAMED("reflection_pad2d", "reflect"),
    NAMED("reflection_pad3d", "reflect"),
    NAMED("replication_pad1d", "edge"),
    NAMED("replication_pad2d", "edge"),
    NAMED("replication_pad3d", "edge"),
};

PEN_PT2_FAMILY(pen_pt2_paddings, padding_rows);
