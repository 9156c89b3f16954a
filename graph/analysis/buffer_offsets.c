#include "graph/analysis/buffer_offsets.h"

#include <stdlib.h>

#include "base/integer.h"
#include "graph/analysis/first_fit.h"

// By what buffers are ranked. None is best for every graph; planning is cheap, so all are tried.
typedef enum offset_ranking {
    OFFSETS_BY_BYTES,
    OFFSETS_BY_AREA, // bytes times the time for which they are alive
    OFFSETS_BY_LIFE, // time, then bytes
    OFFSETS_BY_START,
    OFFSETS_RANKING_COUNT,
} offset_ranking;

typedef struct offset_turn {
    uint64_t rank; // buffers of higher rank are placed first
    uint64_t bytes;
    uint32_t index;
} offset_turn;

// The times at which buffers begin are all that matters: two that are alive at once both are when
// the later one begins. Counting these keeps the tree small.
typedef struct offset_finder {
    pen_buffer *buffers; // [count]
    uint32_t count;
    uint32_t *begin_times; // [begin_count], rising
    uint32_t begin_count;
    pen_buffer *lives;  // [count]: first and last are indices of `begin_times`; bytes are aligned
    offset_turn *turns; // [count]
    pen_first_fit *fit;
} offset_finder;

static int offset_compare_times(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static int offset_compare_turns(const void *left, const void *right) {
    const offset_turn *a = left, *b = right;
    if (a->rank != b->rank) return a->rank < b->rank ? 1 : -1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a->index < b->index ? -1 : a->index > b->index;
}

// How many buffers begin at `time` or earlier, those that begin at once counted once.
static uint32_t offset_begun(const offset_finder *finder, uint32_t time) {
    uint32_t low = 0, high = finder->begin_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (finder->begin_times[middle] <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Lives in counted times, and the tree over these.
static pen_status offset_find_lives(offset_finder *finder, pen_arena *arena) {
    PEN_TRY(PEN_NEW(arena, finder->count, &finder->begin_times));
    PEN_TRY(PEN_NEW(arena, finder->count, &finder->lives));
    PEN_TRY(PEN_NEW(arena, finder->count, &finder->turns));
    for (uint32_t i = 0; i < finder->count; i++) {
        finder->begin_times[i] = finder->buffers[i].first;
    }
    qsort(finder->begin_times, finder->count, sizeof(uint32_t), offset_compare_times);
    for (uint32_t i = 0; i < finder->count; i++) {
        const uint32_t begun = finder->begin_count;
        if (begun > 0 && finder->begin_times[begun - 1] == finder->begin_times[i]) continue;
        finder->begin_times[finder->begin_count++] = finder->begin_times[i];
    }
    for (uint32_t i = 0; i < finder->count; i++) {
        const pen_buffer *buffer = &finder->buffers[i];
        finder->lives[i] = (pen_buffer){.bytes = pen_align_up(buffer->bytes, PEN_BUFFER_ALIGNMENT),
                                        .first = offset_begun(finder, buffer->first) - 1,
                                        .last = offset_begun(finder, buffer->last) - 1};
    }
    return pen_first_fit_new(finder->begin_count, arena, &finder->fit);
}

// Most bytes alive at once: of buffers as they are, and as they lie, each up to where the next
// may begin.
static pen_status offset_find_peaks(const offset_finder *finder, pen_arena *arena,
                                    uint64_t *out_bytes, uint64_t *out_aligned) {
    int64_t *changes[2];
    uint64_t *const peaks[2] = {out_bytes, out_aligned};
    for (int i = 0; i < 2; i++) {
        PEN_TRY(PEN_NEW(arena, (size_t)finder->begin_count + 1, &changes[i]));
        const pen_buffer *sized = i == 0 ? finder->buffers : finder->lives;
        for (uint32_t b = 0; b < finder->count; b++) {
            changes[i][finder->lives[b].first] += (int64_t)sized[b].bytes;
            changes[i][finder->lives[b].last + 1] -= (int64_t)sized[b].bytes;
        }
        int64_t live = 0, peak = 0;
        for (uint32_t t = 0; t < finder->begin_count; t++) {
            live += changes[i][t];
            peak = pen_max_i64(peak, live);
        }
        *peaks[i] = (uint64_t)peak;
    }
    return PEN_OK;
}

static uint64_t offset_rank(const pen_buffer *buffer, offset_ranking ranking) {
    const uint64_t life = (uint64_t)buffer->last - buffer->first + 1;
    uint64_t area;
    switch (ranking) {
    case OFFSETS_BY_BYTES:
        return buffer->bytes;
    case OFFSETS_BY_AREA:
        return pen_u64_mul(buffer->bytes, life, &area) ? area : UINT64_MAX;
    case OFFSETS_BY_LIFE:
        return life;
    case OFFSETS_BY_START:
        return UINT32_MAX - buffer->first;
    case OFFSETS_RANKING_COUNT:
        break;
    }
    return 0;
}

// Gives every life its offset; the bytes of all together.
static pen_status offset_try(offset_finder *finder, offset_ranking ranking, uint64_t *out_bytes) {
    for (uint32_t i = 0; i < finder->count; i++) {
        finder->turns[i] = (offset_turn){.rank = offset_rank(&finder->buffers[i], ranking),
                                         .bytes = finder->buffers[i].bytes,
                                         .index = i};
    }
    qsort(finder->turns, finder->count, sizeof(offset_turn), offset_compare_turns);
    pen_first_fit_clear(finder->fit);
    *out_bytes = 0;
    for (uint32_t i = 0; i < finder->count; i++) {
        pen_buffer *life = &finder->lives[finder->turns[i].index];
        PEN_TRY(
            pen_first_fit_take(finder->fit, life->first, life->last, life->bytes, &life->offset));
        *out_bytes = pen_max_u64(*out_bytes, life->offset + life->bytes);
    }
    return PEN_OK;
}

// Tries all rankings, until one needs no more than what is alive at once.
static pen_status offset_find(offset_finder *finder, pen_arena *arena, pen_buffer_sums *sums) {
    uint64_t least_bytes, bytes;
    PEN_TRY(offset_find_lives(finder, arena));
    PEN_TRY(offset_find_peaks(finder, arena, &sums->live_bytes_peak, &least_bytes));
    sums->bytes = UINT64_MAX;
    for (int r = 0; r < OFFSETS_RANKING_COUNT && sums->bytes > least_bytes; r++) {
        PEN_TRY(offset_try(finder, (offset_ranking)r, &bytes));
        if (bytes >= sums->bytes) continue;
        sums->bytes = bytes;
        for (uint32_t i = 0; i < finder->count; i++) {
            finder->buffers[i].offset = finder->lives[i].offset;
        }
    }
    sums->steps = pen_first_fit_steps(finder->fit);
    return PEN_OK;
}

pen_status pen_buffer_offsets_find(pen_buffer *buffers, uint32_t count, pen_buffer_sums *out_sums) {
    offset_finder finder = {.buffers = buffers, .count = count};
    pen_arena *arena;
    *out_sums = (pen_buffer_sums){0};
    if (count == 0) return PEN_OK;
    PEN_TRY(pen_arena_create(&arena));
    const pen_status status = offset_find(&finder, arena, out_sums);
    pen_arena_destroy(arena);
    return status;
}
