// Batch normalization. A channel's elements go in pieces, a block for each, so that a few channels
// of many elements fill a GPU, too; pieces are joined in double, in one order.

// Element k of channel c, counted over all samples.
DEVICE uint64_t batch_at(const struct cuda_batch_norm_args *a, uint32_t c, uint32_t k) {
    return ((uint64_t)(k / a->size) * a->channels + c) * a->size + k % a->size;
}

DEVICE uint32_t batch_piece_end(const struct cuda_batch_norm_args *a, uint32_t piece) {
    const uint32_t first = piece * PEN_CUDA_BATCH_PIECE;
    return a->count - first < PEN_CUDA_BATCH_PIECE ? a->count : first + PEN_CUDA_BATCH_PIECE;
}

// The elements k that a thread takes of the block's piece.
#define EACH_OF_PIECE(a, k)                                                                        \
    for (uint32_t k = BLOCK_X * PEN_CUDA_BATCH_PIECE + THREAD; k < batch_piece_end(&(a), BLOCK_X); \
         k += THREADS)

// The mean of a piece, and the squared distances from it.
KERNEL(batch_moments, cuda_batch_norm_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    const uint32_t c = BLOCK_Y, first = BLOCK_X * PEN_CUDA_BATCH_PIECE;
    struct cuda_batch_sums found;
    float sum = 0.0f;
    EACH_OF_PIECE(a, k) sum += a.x[batch_at(&a, c, k)];
    found.first = block_sum(sum, room) / (float)(batch_piece_end(&a, BLOCK_X) - first);
    sum = 0.0f;
    EACH_OF_PIECE(a, k) {
        const float distance = a.x[batch_at(&a, c, k)] - found.first;
        sum += distance * distance;
    }
    found.second = block_sum(sum, room);
    if (THREAD == 0) a.sums[(uint64_t)c * a.pieces + BLOCK_X] = found;
}

DEVICE float batch_inverse(const struct cuda_batch_norm_args *a, float variance) {
    return 1.0f / square_root(variance + a->epsilon);
}

DEVICE void store_wide(double *y, uint32_t i, double value, uint32_t adds) {
    y[i] = adds ? y[i] + value : value;
}

// What a channel's mean and variance make, by one thread. A running statistic takes in that of the
// batch as device/running_statistic.h says.
DEVICE void batch_save(const struct cuda_batch_norm_args *a, uint32_t c, double mean,
                       double variance) {
    const double count = (double)a->count, rest = 1.0 - a->momentum;
    const double kept = a->is_unbiased ? variance * count / (count - 1.0) : variance;
    const float inverse = batch_inverse(a, (float)variance);
    if (a->running_mean) {
        const double old = (double)a->mean[c] * a->momentum;
        store(a->running_mean, c, (float)(old + mean * rest), a->adds);
    }
    if (a->running_variance) {
        const double old = (double)a->variance[c] * a->momentum;
        store(a->running_variance, c, (float)(old + kept * rest), a->adds);
    }
    if (a->saved_mean) store(a->saved_mean, c, (float)mean, a->adds);
    if (a->saved_inverse) store(a->saved_inverse, c, inverse, a->adds);
    if (a->batch_mean) store_wide(a->batch_mean, c, mean, a->adds);
    if (a->batch_variance) store_wide(a->batch_variance, c, kept, a->adds);
    a->totals[c].first = (float)mean;
    a->totals[c].second = inverse;
}

// The sum of what threads found of pieces, at least in thread 0: of one piece it is there.
DEVICE double batch_join(const struct cuda_batch_norm_args *a, double found, double *room) {
    return a->pieces > 1 ? block_sum_wide(found, room) : found;
}

// A block joins the pieces of a channel: distances from the mean of all are those from the piece's,
// and the piece's own.
KERNEL(batch_totals, cuda_batch_norm_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    const uint32_t c = BLOCK_X;
    const struct cuda_batch_sums *sums = a.sums + (uint64_t)c * a.pieces;
    double sum = 0.0;
    for (uint32_t p = THREAD; p < a.pieces; p += THREADS)
        sum += (double)sums[p].first * (double)(batch_piece_end(&a, p) - p * PEN_CUDA_BATCH_PIECE);
    const double mean = batch_join(&a, sum, room) / (double)a.count;
    sum = 0.0;
    for (uint32_t p = THREAD; p < a.pieces; p += THREADS) {
        const double distance = (double)sums[p].first - mean;
        const double count = (double)(batch_piece_end(&a, p) - p * PEN_CUDA_BATCH_PIECE);
        sum += (double)sums[p].second + count * distance * distance;
    }
    const double variance = batch_join(&a, sum, room) / (double)a.count;
    if (THREAD == 0) batch_save(&a, c, mean, variance);
}

// What a channel is normalized with.
struct batch_channel {
    float mean, inverse, scale, bias;
};

DEVICE struct batch_channel batch_channel_of(const struct cuda_batch_norm_args *a, uint32_t c,
                                             uint32_t is_backward) {
    struct batch_channel channel;
    const uint32_t is_saved = a->is_training && is_backward;
    channel.mean = a->is_training && !is_backward ? a->totals[c].first : a->mean[c];
    channel.inverse = is_saved         ? a->variance[c]
                      : a->is_training ? a->totals[c].second
                                       : batch_inverse(a, a->variance[c]);
    channel.scale = a->scale[c];
    channel.bias = a->bias ? a->bias[c] : 0.0f;
    return channel;
}

// Rounded alike in both directions, since relu's gradient asks for the sign again.
DEVICE float batch_normal(const struct batch_channel *channel, float x) {
    return (x - channel->mean) * channel->inverse * channel->scale + channel->bias;
}

KERNEL(batch_norm, cuda_batch_norm_args) {
    const uint32_t c = BLOCK_Y;
    const struct batch_channel channel = batch_channel_of(&a, c, 0);
    EACH_OF_PIECE(a, k) {
        const uint64_t at = batch_at(&a, c, k);
        float y = batch_normal(&channel, a.x[at]);
        if (a.residual) y += a.residual[at];
        if (a.rectifies && y <= 0.0f) y = 0.0f;
        store(a.y, at, y, a.adds);
    }
}

// The gradient behind relu.
DEVICE float batch_gradient(const struct cuda_batch_norm_args *a,
                            const struct batch_channel *channel, uint64_t at) {
    float dy = a->dy[at];
    if (a->more_dy) dy += a->more_dy[at];
    if (a->rectified) return a->rectified[at] > 0.0f ? dy : 0.0f;
    if (a->rectifies) return batch_normal(channel, a->x[at]) > 0.0f ? dy : 0.0f;
    return dy;
}

KERNEL(batch_backward_sums, cuda_batch_norm_args) {
    SHARED float room[PEN_CUDA_BLOCK / 32];
    const uint32_t c = BLOCK_Y;
    const struct batch_channel channel = batch_channel_of(&a, c, 1);
    float bias = 0.0f, scale = 0.0f;
    EACH_OF_PIECE(a, k) {
        const uint64_t at = batch_at(&a, c, k);
        const float dy = batch_gradient(&a, &channel, at);
        bias += dy;
        scale += dy * ((a.x[at] - channel.mean) * channel.inverse);
    }
    struct cuda_batch_sums found;
    found.first = block_sum(bias, room);
    found.second = block_sum(scale, room);
    if (THREAD == 0) a.sums[(uint64_t)c * a.pieces + BLOCK_X] = found;
}

KERNEL(batch_backward_totals, cuda_batch_norm_args) {
    SHARED double room[PEN_CUDA_BLOCK];
    const uint32_t c = BLOCK_X;
    const struct cuda_batch_sums *sums = a.sums + (uint64_t)c * a.pieces;
    double bias = 0.0, scale = 0.0;
    for (uint32_t p = THREAD; p < a.pieces; p += THREADS) {
        bias += (double)sums[p].first;
        scale += (double)sums[p].second;
    }
    bias = batch_join(&a, bias, room);
    scale = batch_join(&a, scale, room);
    if (THREAD > 0) return;
    const struct batch_channel channel = batch_channel_of(&a, c, 1);
    const double slope = (double)channel.scale * (double)channel.inverse;
    if (a.dscale) store(a.dscale, c, (float)scale, a.adds);
    if (a.dbias) store(a.dbias, c, (float)bias, a.adds);
    if (a.dmean) store(a.dmean, c, (float)(-slope * bias), a.adds);
    if (a.dvariance)
        store(a.dvariance, c, (float)(-slope * (double)channel.inverse * scale / 2.0), a.adds);
    a.totals[c].first = (float)(bias / (double)a.count);
    a.totals[c].second = (float)(scale / (double)a.count);
}

KERNEL(batch_norm_backward, cuda_batch_norm_args) {
    const uint32_t c = BLOCK_Y;
    const struct batch_channel channel = batch_channel_of(&a, c, 1);
    struct cuda_batch_sums means = {0.0f, 0.0f};
    if (a.is_training) means = a.totals[c];
    EACH_OF_PIECE(a, k) {
        const uint64_t at = batch_at(&a, c, k);
        const float dy = batch_gradient(&a, &channel, at);
        const float normal = (a.x[at] - channel.mean) * channel.inverse;
        const float rest = a.is_training ? dy - means.first - normal * means.second : dy;
        if (a.dresidual) store(a.dresidual, at, dy, a.adds);
        if (a.y) store(a.y, at, channel.scale * channel.inverse * rest, a.adds);
    }
}
