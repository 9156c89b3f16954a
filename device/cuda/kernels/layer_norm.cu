// Layer, root mean square, instance and group normalization: a block takes a row. Element j of row
// r has the weight of its class of rows and its segment.
DEVICE uint64_t row_weight(const struct cuda_layer_norm_args *a, uint64_t row, uint64_t j) {
    if (a->is_plain) return j;
    return row % a->classes * a->segments + j / a->run % a->segments;
}

DEVICE struct cuda_moments row_moments(const struct cuda_layer_norm_args *a, uint64_t row,
                                       float *room) {
    const float *x = a->x + row * a->columns;
    const float columns = (float)a->columns;
    struct cuda_moments found;
    float sum = 0.0f;
    found.mean = 0.0f;
    if (a->is_centred) {
        for (uint64_t j = THREAD; j < a->columns; j += THREADS)
            sum += x[j];
        found.mean = block_sum(sum, room) / columns;
    }
    sum = 0.0f;
    for (uint64_t j = THREAD; j < a->columns; j += THREADS) {
        const float distance = x[j] - found.mean;
        sum += distance * distance;
    }
    found.inverse = 1.0f / square_root(block_sum(sum, room) / columns + a->epsilon);
    return found;
}

KERNEL(layer_norm, cuda_layer_norm_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t row = BLOCK_X; row < a.rows; row += BLOCKS_X) {
        const struct cuda_moments found = row_moments(&a, row, room);
        for (uint64_t j = THREAD; j < a.columns; j += THREADS) {
            const uint64_t at = row * a.columns + j;
            float y = (a.x[at] - found.mean) * found.inverse;
            const uint64_t w = row_weight(&a, row, j);
            if (a.scale) y = y * a.scale[w];
            if (a.bias) y = y + a.bias[w];
            store(a.y, at, y, a.adds);
        }
        if (THREAD == 0 && a.mean) store(a.mean, row, found.mean, a.adds);
        if (THREAD == 0 && a.inverse) store(a.inverse, row, found.inverse, a.adds);
    }
}

// Of each row, for the two that follow.
KERNEL(layer_norm_moments, cuda_layer_norm_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t row = BLOCK_X; row < a.rows; row += BLOCKS_X) {
        const struct cuda_moments found = row_moments(&a, row, room);
        if (THREAD == 0) a.moments[row] = found;
    }
}

// Gradients of the weights: a thread takes a column, in pieces of 64 rows. Before the gradient of
// x, which may be written over dy or x.
KERNEL(layer_norm_weights, cuda_layer_norm_args) {
    EACH(j, a.columns) {
        float scale = 0.0f, bias = 0.0f, scale_piece = 0.0f, bias_piece = 0.0f;
        for (uint64_t row = 0; row < a.rows; row++) {
            const uint64_t at = row * a.columns + j;
            const struct cuda_moments of = a.moments[row];
            scale_piece += a.dy[at] * ((a.x[at] - of.mean) * of.inverse);
            bias_piece += a.dy[at];
            if (row % 64 != 63) continue;
            scale += scale_piece;
            bias += bias_piece;
            scale_piece = bias_piece = 0.0f;
        }
        if (a.dscale) store(a.dscale, j, scale + scale_piece, a.adds);
        if (a.dbias) store(a.dbias, j, bias + bias_piece, a.adds);
    }
}

// The same of weights that several elements of a row share: a block takes a weight, whose elements
// are counted over all rows of its class.
KERNEL(layer_norm_shared_weights, cuda_layer_norm_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    const uint64_t in_row = a.columns / a.segments;
    for (uint64_t w = BLOCK_X; w < a.classes * a.segments; w += BLOCKS_X) {
        float scale = 0.0f, bias = 0.0f, scale_piece = 0.0f, bias_piece = 0.0f;
        uint32_t taken = 0;
        for (uint64_t k = THREAD; k < a.rows / a.classes * in_row; k += THREADS) {
            const uint64_t row = k / in_row * a.classes + w / a.segments, i = k % in_row;
            const uint64_t j = (i / a.run * a.segments + w % a.segments) * a.run + i % a.run;
            const uint64_t at = row * a.columns + j;
            const struct cuda_moments of = a.moments[row];
            scale_piece += a.dy[at] * ((a.x[at] - of.mean) * of.inverse);
            bias_piece += a.dy[at];
            if (++taken % 64 != 0) continue;
            scale += scale_piece;
            bias += bias_piece;
            scale_piece = bias_piece = 0.0f;
        }
        scale = block_sum(scale + scale_piece, room);
        bias = block_sum(bias + bias_piece, room);
        if (THREAD == 0 && a.dscale) store(a.dscale, w, scale, a.adds);
        if (THREAD == 0 && a.dbias) store(a.dbias, w, bias, a.adds);
    }
}

KERNEL(layer_norm_backward, cuda_layer_norm_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    for (uint64_t row = BLOCK_X; row < a.rows; row += BLOCKS_X) {
        const struct cuda_moments of = a.moments[row];
        float sum = 0.0f, product = 0.0f;
        for (uint64_t j = THREAD; j < a.columns; j += THREADS) {
            const uint64_t at = row * a.columns + j;
            const float g = a.scale ? a.dy[at] * a.scale[row_weight(&a, row, j)] : a.dy[at];
            sum += g;
            product += g * ((a.x[at] - of.mean) * of.inverse);
        }
        const float columns = (float)a.columns;
        const float shift = block_sum(sum, room) / columns;
        const float tilt = block_sum(product, room) / columns;
        for (uint64_t j = THREAD; j < a.columns; j += THREADS) {
            const uint64_t at = row * a.columns + j;
            const float g = a.scale ? a.dy[at] * a.scale[row_weight(&a, row, j)] : a.dy[at];
            const float normal = (a.x[at] - of.mean) * of.inverse;
            const float rest = a.is_centred ? g - shift : g;
            store(a.y, at, (rest - normal * tilt) * of.inverse, a.adds);
        }
    }
}
