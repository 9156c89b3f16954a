#include "device/cpu/onednn/onednn_layout.h"

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

static void layout_dims(const pen_shape *shape, dnnl_dims_t dims) {
    for (uint32_t d = 0; d < shape->rank; d++) {
        dims[d] = shape->dims[d];
    }
}

pen_status pen_onednn_layout_md(const pen_shape *shape, pen_layout layout,
                                dnnl_memory_desc_t *out_md) {
    const int rank = (int)shape->rank;
    dnnl_dims_t dims = {0};
    layout_dims(shape, dims);
    // a graph that came from elsewhere may ask for anything
    if (layout != PEN_LAYOUT_PLAIN && (rank < 3 || rank > 5 || layout >= PEN_CPU_LAYOUT_COUNT)) {
        return pen_error(PEN_UNSUPPORTED, "the cpu device has no layout %u of %d dimensions",
                         (unsigned)layout, rank);
    }
    const dnnl_status_t status =
        layout == PEN_LAYOUT_PLAIN
            ? dnnl_memory_desc_init_by_strides(out_md, rank, dims, dnnl_f32, NULL)
            : dnnl_memory_desc_init_by_tag(out_md, rank, dims, dnnl_f32,
                                           layout_tag(shape->rank, layout));
    return pen_onednn_status(status, "describing a tensor");
}

pen_status pen_onednn_layout_md_any(const pen_shape *shape, dnnl_memory_desc_t *out_md) {
    dnnl_dims_t dims = {0};
    layout_dims(shape, dims);
    return pen_onednn_status(
        dnnl_memory_desc_init_by_tag(out_md, (int)shape->rank, dims, dnnl_f32, dnnl_format_tag_any),
        "describing a tensor");
}

pen_status pen_onednn_layout_md_of_value(const pen_graph *graph, pen_value_id id,
                                         dnnl_memory_desc_t *out_md) {
    const pen_value *value = pen_graph_value(graph, id);
    PEN_ASSERT(value->type.element == PEN_FLOAT32);
    return pen_onednn_layout_md(&value->type.shape, value->layout, out_md);
}

pen_layout pen_onednn_layout_find(const pen_shape *shape, const dnnl_memory_desc_t *md) {
    for (int candidate_layout = 0; candidate_layout < PEN_CPU_LAYOUT_COUNT; candidate_layout++) {
        const pen_layout layout = (pen_layout)candidate_layout;
        dnnl_memory_desc_t candidate;
        const pen_status status = pen_onednn_layout_md(shape, layout, &candidate);
        if (status != PEN_OK) {
            pen_status_ignore(status, "not a layout of this shape");
            continue;
        }
        if (dnnl_memory_desc_equal(&candidate, md)) return layout;
    }
    return PEN_LAYOUT_PLAIN;
}
