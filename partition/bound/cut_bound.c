#include "partition/bound/cut_bound.h"

#include <math.h>

#define CUT_HALVINGS 24 // of the range of T: to a millionth of it
#define CUT_ROUNDS 4    // in which the least of all cuts grows

// A run that may begin at a place.
typedef struct cut_run {
    double cuts; // least sum of those before it, with ways around
    double sure; // of these, what its begin waits for
    uint32_t place;
} cut_run;

// Runs, the one with the least cuts at the top.
typedef struct cut_heap {
    cut_run *runs; // [2 * place_count]
    uint32_t count;
} cut_heap;

typedef struct cut_bound {
    const pen_cut_path *path;
    double microbatches;
    double there_share; // at least, of what any cuts take there and back
    double *all;        // [place_count + 1] sums up to the place
    double *early;      // likewise, of all microbatches
    double *forward;    // likewise, of a microbatch
    double *backward;   // likewise
    double *first;      // [place_count] what a cut counts as that is the first of its segment,
    double *further;    // [place_count] and one that is not
    double *beyond;     // [place_count + 1] most that firsts from there on count beyond themselves
    cut_heap outer;     // runs that begin before the segment at hand,
    cut_heap inner;     // and within it
} cut_bound;

static void cut_heap_push(cut_heap *heap, cut_run run) {
    uint32_t at = heap->count++;
    for (; at > 0 && heap->runs[(at - 1) / 2].cuts > run.cuts; at = (at - 1) / 2)
        heap->runs[at] = heap->runs[(at - 1) / 2];
    heap->runs[at] = run;
}

static void cut_heap_pop(cut_heap *heap) {
    const cut_run run = heap->runs[--heap->count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count && heap->runs[child + 1].cuts < heap->runs[child].cuts) child++;
        if (heap->runs[child].cuts >= run.cuts) break;
        heap->runs[at] = heap->runs[child];
    }
    heap->runs[at] = run;
}

// Whether a run may go on up to place `end`, and a step take `step`. A run that may not, may not go
// on further either.
static bool cut_bound_holds(const cut_bound *bound, const cut_run *run, uint32_t end, double step,
                            double cuts) {
    const pen_cut_place *first = &bound->path->places[run->place];
    const uint32_t from = run->place, to = end + 1;
    const double more = bound->microbatches - 1.0;
    const double own = run->cuts - run->sure + bound->beyond[to];
    const double whole = bound->path->seconds + fmax(0.0, cuts - own);
    if (first->head + bound->there_share * run->sure + bound->all[to] - bound->all[from] > step) {
        return false;
    }
    if (bound->early[to] > bound->early[from] && first->backward > 0.0 &&
        first->head + run->sure + first->tail + bound->early[to] - bound->early[from] > step) {
        return false;
    }
    return whole + more * (bound->forward[to] - bound->forward[from]) <= step &&
           whole - bound->path->aside + more * (bound->backward[to] - bound->backward[from]) <=
               step;
}

// Drops runs that cannot go on up to place `end`. Returns the least sum of cuts of those that can,
// or INFINITY.
static double cut_bound_least(const cut_bound *bound, cut_heap *heap, uint32_t end, double step,
                              double cuts) {
    while (heap->count > 0 && !cut_bound_holds(bound, &heap->runs[0], end, step, cuts))
        cut_heap_pop(heap);
    return heap->count > 0 ? heap->runs[0].cuts : INFINITY;
}

// The least sum of cuts of all divisions that a step of `step` may have, where that sum is known to
// be no less than `cuts`; INFINITY if there is none.
static double cut_bound_divide(cut_bound *bound, double step, double cuts) {
    const pen_cut_path *path = bound->path;
    bound->outer.count = bound->inner.count = 0;
    cut_heap_push(&bound->outer, (cut_run){.cuts = 0.0, .place = 0});
    for (uint32_t p = 0;; p++) {
        const double outer = cut_bound_least(bound, &bound->outer, p, step, cuts);
        const double inner = cut_bound_least(bound, &bound->inner, p, step, cuts);
        const double least = fmin(outer, inner);
        if (!(least < INFINITY)) return INFINITY;
        if (p + 1 == path->place_count) return least;
        const pen_cut_place *next = &path->places[p + 1];
        const double cut = next->cut_there + next->cut_back;
        if (next->segment == 0 || next->segment != path->places[p].segment) {
            while (bound->inner.count > 0) // whatever way around they had, it is over
                cut_heap_push(&bound->outer, bound->inner.runs[--bound->inner.count]);
            cut_heap *heap = next->segment == 0 ? &bound->outer : &bound->inner;
            cut_heap_push(heap, (cut_run){least + bound->first[p + 1], least + cut, p + 1});
            continue;
        }
        if (outer < INFINITY) {
            cut_heap_push(&bound->inner,
                          (cut_run){outer + bound->first[p + 1], outer + cut, p + 1});
        }
        if (inner < INFINITY) {
            const double sum = inner + bound->further[p + 1];
            cut_heap_push(&bound->inner, (cut_run){sum, sum, p + 1});
        }
    }
}

// Whether some division may take `step`. The least sum of cuts makes the path longer, which allows
// less, and so on.
static bool cut_bound_may(cut_bound *bound, double step) {
    double cuts = 0.0;
    for (int i = 0; i < CUT_ROUNDS; i++) {
        const double least = cut_bound_divide(bound, step, cuts);
        if (bound->path->seconds + least > step) return false;
        if (least <= cuts) return true;
        cuts = least;
    }
    return true;
}

// What the cuts of places [from, to), a segment, count as.
static void cut_bound_weigh(cut_bound *bound, uint32_t from, uint32_t to) {
    const pen_cut_place *places = bound->path->places;
    double least = INFINITY, second = INFINITY, most = 0.0;
    for (uint32_t p = from; p < to; p++) {
        const double cut = places[p].cut_there + places[p].cut_back;
        second = fmin(second, fmax(least, cut));
        least = fmin(least, cut);
    }
    for (uint32_t p = from; p < to; p++) {
        const pen_cut_place *place = &places[p];
        const double cut = place->cut_there + place->cut_back;
        const double there = fmax(place->cut_there, place->around_there);
        const double alone = there + fmax(place->cut_back, place->around_back);
        bound->first[p] = fmin(alone, cut + (cut > least ? least : second));
        most = fmax(most, bound->first[p] - cut);
        if (alone > 0.0) bound->there_share = fmin(bound->there_share, there / alone);
    }
    for (uint32_t p = from; p < to; p++) {
        bound->further[p] = fmax(0.0, places[p].cut_there + places[p].cut_back - most);
        bound->beyond[p] = most;
    }
}

// Cuts of no segment are segments of one cut that nothing goes around.
static void cut_bound_weigh_all(cut_bound *bound) {
    const pen_cut_path *path = bound->path;
    for (uint32_t p = 0, end; p < path->place_count; p = end) {
        const uint32_t segment = path->places[p].segment;
        end = p + 1;
        while (segment > 0 && end < path->place_count && path->places[end].segment == segment)
            end++;
        cut_bound_weigh(bound, p, end);
    }
    for (uint32_t p = path->place_count; p-- > 0;)
        bound->beyond[p] = fmax(bound->beyond[p], bound->beyond[p + 1]);
}

static void cut_bound_sum(cut_bound *bound) {
    bound->there_share = 1.0;
    cut_bound_weigh_all(bound);
    for (uint32_t p = 0; p < bound->path->place_count; p++) {
        const pen_cut_place *place = &bound->path->places[p];
        const double both = place->cut_there + place->cut_back;
        if (both > 0.0) bound->there_share = fmin(bound->there_share, place->cut_there / both);
        bound->all[p + 1] = bound->all[p] + place->all;
        bound->early[p + 1] = bound->early[p] + place->early * bound->microbatches;
        bound->forward[p + 1] = bound->forward[p] + place->forward;
        bound->backward[p + 1] = bound->backward[p] + place->backward;
    }
}

// All on one device, one place after the other, is a division; no T above that needs a look.
pen_status pen_cut_bound(const pen_cut_path *path, double microbatch_count, double known,
                         pen_arena *arena, double *out_bound) {
    const uint32_t count = path->place_count;
    cut_bound bound = {.path = path, .microbatches = microbatch_count};
    *out_bound = known;
    if (count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, count + 1, &bound.all));
    PEN_TRY(PEN_NEW(arena, count + 1, &bound.early));
    PEN_TRY(PEN_NEW(arena, count + 1, &bound.forward));
    PEN_TRY(PEN_NEW(arena, count + 1, &bound.backward));
    PEN_TRY(PEN_NEW(arena, count, &bound.first));
    PEN_TRY(PEN_NEW(arena, count, &bound.further));
    PEN_TRY(PEN_NEW(arena, count + 1, &bound.beyond));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)count, &bound.outer.runs));
    PEN_TRY(PEN_NEW(arena, 2 * (size_t)count, &bound.inner.runs));
    cut_bound_sum(&bound);
    double low = known;
    double high = fmax(known, path->seconds * microbatch_count + bound.all[count]);
    if (!(high < PEN_PROBLEM_COST_LIMIT) || cut_bound_may(&bound, low)) return PEN_OK;
    for (int i = 0; i < CUT_HALVINGS; i++) {
        const double middle = (low + high) / 2.0;
        if (cut_bound_may(&bound, middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    *out_bound = low;
    return PEN_OK;
}
