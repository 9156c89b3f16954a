#include "device/cpu/onednn/onednn_layout.h"

#include "device/cpu/onednn/onednn_operation.h"
#include "graph/graph.h"

static dnnl_format_tag_t layout_tag(uint32_t rank, pen_layout layout) {
    static const dnnl_format_tag_t tags[3][PEN_CPU_LAYOUT_COUNT] = {
        {dnnl_abc, dnnl_aBc8b, dnnl_aBc16b, dnnl_acb},
        {dnnl_abcd, dnnl_aBcd8b, dnnl_aBcd16b, dnnl_acdb},
        {dnnl_abcde, dnnl_aBcde8b, dnnl_aBcde16b, dnnl_acdeb},
    };
    PEN_ASSERT(rank >= 3 && rank <= 5 && layout < PEN_CPU_LAYOUT_COUNT);
    return tags[rank - 3][layout];
}

static void layout_dims(const pen_shape *shape, pen_onednn_tensor *tensor) {
    *tensor = (pen_onednn_tensor){.rank = (int)shape->rank};
    for (uint32_t d = 0; d < shape->rank; d++) {
        tensor->dims[d] = shape->dims[d];
    }
}

static void layout_plain_strides(pen_onednn_tensor *tensor) {
    dnnl_dim_t stride = 1;
    tensor->tag = dnnl_format_tag_undef;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        tensor->strides[d] = stride;
        stride *= tensor->dims[d];
    }
}

pen_status pen_onednn_layout_tensor(const pen_shape *shape, pen_layout layout,
                                    pen_onednn_tensor *out_tensor) {
    const uint32_t rank = shape->rank;
    layout_dims(shape, out_tensor);
    if (layout == PEN_LAYOUT_PLAIN) {
        layout_plain_strides(out_tensor);
        return PEN_OK;
    }
    // a graph that came from elsewhere may ask for anything
    if (rank < 3 || rank > 5 || layout >= PEN_CPU_LAYOUT_COUNT) {
        return pen_error(PEN_UNSUPPORTED, "the cpu device has no layout %u of %u dimensions",
                         (unsigned)layout, rank);
    }
    out_tensor->tag = layout_tag(rank, layout);
    return PEN_OK;
}

void pen_onednn_layout_any(const pen_shape *shape, pen_onednn_tensor *out_tensor) {
    layout_dims(shape, out_tensor);
    out_tensor->tag = dnnl_format_tag_any;
}

pen_status pen_onednn_layout_of_value(const pen_graph *graph, pen_value_id id,
                                      pen_onednn_tensor *out_tensor) {
    const pen_value *value = pen_graph_value(graph, id);
    PEN_ASSERT(value->type.element == PEN_FLOAT32);
    return pen_onednn_layout_tensor(&value->type.shape, value->layout, out_tensor);
}

static bool layout_is_wanted(const_dnnl_primitive_desc_t primitive, int argument,
                             const pen_onednn_tensor *tensor) {
    dnnl_memory_t memory;
    if (pen_onednn_memory_create(tensor, pen_onednn_engine(), &memory) != dnnl_success) {
        return false;
    }
    const bool is_wanted = pen_onednn_is_wanted(primitive, argument, memory);
    dnnl_memory_destroy(memory);
    return is_wanted;
}

pen_layout pen_onednn_layout_wanted(const_dnnl_primitive_desc_t primitive, int argument,
                                    const pen_shape *shape) {
    for (int candidate = 0; candidate < PEN_CPU_LAYOUT_COUNT; candidate++) {
        const pen_layout layout = (pen_layout)candidate;
        pen_onednn_tensor tensor;
        const pen_status status = pen_onednn_layout_tensor(shape, layout, &tensor);
        if (status != PEN_OK) {
            pen_status_ignore(status, "not a layout of this shape");
            continue;
        }
        if (layout_is_wanted(primitive, argument, &tensor)) return layout;
    }
    return PEN_LAYOUT_PLAIN;
}
