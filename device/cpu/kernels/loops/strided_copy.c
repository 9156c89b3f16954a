#include "device/cpu/kernels/loops/strided_copy.h"

#include <string.h>

#define STRIDED_TEAM_ELEMENTS 32768
#define STRIDED_TILE 16
#define STRIDED_NO_TILE UINT32_MAX

static void strided_remove_dim(strided_copy *copy, uint32_t dim) {
    for (uint32_t d = dim; d + 1 < copy->rank; d++) {
        copy->counts[d] = copy->counts[d + 1];
        copy->from_strides[d] = copy->from_strides[d + 1];
        copy->to_strides[d] = copy->to_strides[d + 1];
    }
    copy->rank -= 1;
}

// Dimensions of size 1 go, and neighbours that lie without gaps become one: most copies end as a
// few long runs.
void strided_copy_settle(strided_copy *copy) {
    copy->element_count = 1;
    for (uint32_t d = 0; d < copy->rank; d++) {
        copy->element_count *= copy->counts[d];
    }
    for (uint32_t d = copy->rank; d-- > 0;) {
        if (copy->counts[d] == 1) strided_remove_dim(copy, d);
    }
    for (uint32_t d = copy->rank; d-- > 1;) {
        const int64_t count = copy->counts[d];
        const bool joins = copy->from_strides[d - 1] == copy->from_strides[d] * count &&
                           copy->to_strides[d - 1] == copy->to_strides[d] * count;
        if (!joins) continue;
        copy->counts[d - 1] *= count;
        copy->from_strides[d - 1] = copy->from_strides[d];
        copy->to_strides[d - 1] = copy->to_strides[d];
        strided_remove_dim(copy, d);
    }
    if (copy->rank == 0) {
        copy->rank = 1;
        copy->counts[0] = 1;
        copy->from_strides[0] = copy->to_strides[0] = 1;
    }
    // rows of one side are columns of the other: go by tiles, so that both use whole cache lines
    copy->tile_dim = STRIDED_NO_TILE;
    const uint32_t last = copy->rank - 1;
    if (copy->to_strides[last] != 1 || copy->from_strides[last] < 2) return;
    for (uint32_t d = 0; d < last; d++) {
        if (copy->from_strides[d] == 1) copy->tile_dim = d;
    }
}

// A place in all dimensions but the last, and, when there are tiles, in steps of a tile along
// tile_dim.
typedef struct strided_walk {
    const strided_copy *copy;
    int64_t at[STRIDED_RANK_LIMIT];
    int64_t limits[STRIDED_RANK_LIMIT];
    int64_t from;
    int64_t to;
} strided_walk;

static int64_t strided_limit(const strided_copy *copy, uint32_t dim) {
    if (dim != copy->tile_dim) return copy->counts[dim];
    return (copy->counts[dim] + STRIDED_TILE - 1) / STRIDED_TILE;
}

static int64_t strided_step(const strided_copy *copy, uint32_t dim) {
    return dim == copy->tile_dim ? STRIDED_TILE : 1;
}

static void strided_walk_start(strided_walk *walk, const strided_copy *copy, int64_t index) {
    walk->copy = copy;
    walk->from = copy->from_start;
    walk->to = copy->to_start;
    for (uint32_t d = copy->rank - 1; d-- > 0;) {
        walk->limits[d] = strided_limit(copy, d);
        walk->at[d] = index % walk->limits[d];
        index /= walk->limits[d];
        walk->from += walk->at[d] * strided_step(copy, d) * copy->from_strides[d];
        walk->to += walk->at[d] * strided_step(copy, d) * copy->to_strides[d];
    }
}

static void strided_walk_next(strided_walk *walk) {
    const strided_copy *copy = walk->copy;
    for (uint32_t d = copy->rank - 1; d-- > 0;) {
        const int64_t step = strided_step(copy, d);
        walk->at[d] += 1;
        walk->from += step * copy->from_strides[d];
        walk->to += step * copy->to_strides[d];
        if (walk->at[d] < walk->limits[d]) return;
        walk->from -= walk->limits[d] * step * copy->from_strides[d];
        walk->to -= walk->limits[d] * step * copy->to_strides[d];
        walk->at[d] = 0;
    }
}

// Row and tile copies for one size of element.
#define STRIDED_DEFINE(type)                                                                       \
    static void strided_row_##type(const strided_copy *copy, const type *from, type *to) {         \
        const uint32_t last = copy->rank - 1;                                                      \
        const int64_t count = copy->counts[last];                                                  \
        const int64_t from_stride = copy->from_strides[last], to_stride = copy->to_strides[last];  \
        if (from_stride == 1 && to_stride == 1) {                                                  \
            memcpy(to, from, (size_t)count * sizeof(type));                                        \
        } else if (from_stride == 0 && to_stride == 1) {                                           \
            const type element = *from;                                                            \
            for (int64_t i = 0; i < count; i++) {                                                  \
                to[i] = element;                                                                   \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                to[i * to_stride] = from[i * from_stride];                                         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void strided_tiles_##type(const strided_copy *copy, int64_t width, const type *from,    \
                                     type *to) {                                                   \
        const uint32_t last = copy->rank - 1;                                                      \
        const int64_t count = copy->counts[last], from_stride = copy->from_strides[last];          \
        const int64_t to_stride = copy->to_strides[copy->tile_dim];                                \
        for (int64_t first = 0; first < count; first += STRIDED_TILE) {                            \
            const int64_t rest = count - first;                                                    \
            const int64_t height = rest < STRIDED_TILE ? rest : STRIDED_TILE;                      \
            for (int64_t w = 0; w < width; w++) {                                                  \
                const type *column = from + first * from_stride + w;                               \
                type *row = to + w * to_stride + first;                                            \
                for (int64_t h = 0; h < height; h++) {                                             \
                    row[h] = column[h * from_stride];                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void strided_part_##type(const strided_copy *copy, const type *from, type *to,          \
                                    int64_t first, int64_t last) {                                 \
        strided_walk walk;                                                                         \
        strided_walk_start(&walk, copy, first);                                                    \
        for (int64_t i = first; i < last; i++, strided_walk_next(&walk)) {                         \
            if (copy->tile_dim == STRIDED_NO_TILE) {                                               \
                strided_row_##type(copy, from + walk.from, to + walk.to);                          \
                continue;                                                                          \
            }                                                                                      \
            const int64_t rest =                                                                   \
                copy->counts[copy->tile_dim] - walk.at[copy->tile_dim] * STRIDED_TILE;             \
            strided_tiles_##type(copy, rest < STRIDED_TILE ? rest : STRIDED_TILE,                  \
                                 from + walk.from, to + walk.to);                                  \
        }                                                                                          \
    }

STRIDED_DEFINE(uint8_t)
STRIDED_DEFINE(uint16_t)
STRIDED_DEFINE(uint32_t)
STRIDED_DEFINE(uint64_t)

static void strided_part(const strided_copy *copy, const void *from, void *to, int64_t first,
                         int64_t last) {
    switch (copy->element_bytes) {
    case 1:
        strided_part_uint8_t(copy, from, to, first, last);
        return;
    case 2:
        strided_part_uint16_t(copy, from, to, first, last);
        return;
    case 4:
        strided_part_uint32_t(copy, from, to, first, last);
        return;
    default:
        strided_part_uint64_t(copy, from, to, first, last);
    }
}

// One long row: shared out by bytes.
static void strided_long_row(const strided_copy *copy, const void *from, void *to) {
    const int64_t bytes = copy->element_count * copy->element_bytes;
    const int64_t piece = 1 << 18;
    const char *source = (const char *)from + copy->from_start * copy->element_bytes;
    char *target = (char *)to + copy->to_start * copy->element_bytes;
#pragma omp parallel for schedule(static) if (bytes > 4 * piece)
    for (int64_t at = 0; at < bytes; at += piece) {
        memcpy(target + at, source + at, (size_t)(bytes - at < piece ? bytes - at : piece));
    }
}

void strided_copy_run(const strided_copy *copy, const void *from, void *to) {
    if (copy->element_count == 0) return;
    if (copy->rank == 1 && copy->from_strides[0] == 1 && copy->to_strides[0] == 1) {
        strided_long_row(copy, from, to);
        return;
    }
    int64_t units = 1;
    for (uint32_t d = 0; d + 1 < copy->rank; d++) {
        units *= strided_limit(copy, d);
    }
    const int64_t wanted = copy->element_count / (STRIDED_TEAM_ELEMENTS / 4);
    const int64_t chunks = wanted < 1 ? 1 : wanted < units ? wanted : units;
#pragma omp parallel for schedule(static) if (chunks > 4)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        strided_part(copy, from, to, units * chunk / chunks, units * (chunk + 1) / chunks);
    }
}
