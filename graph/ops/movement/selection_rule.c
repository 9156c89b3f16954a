#include "graph/ops/movement/selection_rule.h"

#include <math.h>
#include <string.h>

#define ORDER_SIGN (UINT64_C(1) << 63)

uint64_t pen_order_of_number(double number) {
    uint64_t bits;
    if (isnan(number)) return UINT64_MAX;
    if (number == 0) number = 0; // without a sign
    memcpy(&bits, &number, sizeof bits);
    return (bits & ORDER_SIGN) != 0 ? ~bits : bits | ORDER_SIGN;
}

uint64_t pen_order_of_integer(int64_t integer) {
    return (uint64_t)integer ^ ORDER_SIGN;
}

// Whether `a` comes before `b`; neither does where they are equal.
typedef bool (*selection_precedes)(const void *context, int64_t a, int64_t b);

// Merge sort of numbers; equals stay in the order that they have. `spare` as long as `order`.
static void selection_sort(selection_precedes precedes, const void *context, int64_t count,
                           int64_t *order, int64_t *spare) {
    for (int64_t half = 1; half < count; half *= 2) {
        for (int64_t start = 0; start < count; start += 2 * half) {
            const int64_t middle = start + half < count ? start + half : count;
            const int64_t end = middle + half < count ? middle + half : count;
            int64_t a = start, b = middle;
            for (int64_t k = start; k < end; k++) {
                const bool from_a =
                    a < middle && (b == end || !precedes(context, order[b], order[a]));
                spare[k] = from_a ? order[a++] : order[b++];
            }
        }
        memcpy(order, spare, (size_t)count * sizeof *order);
    }
}

static bool unique_precedes(const void *context, int64_t a, int64_t b) {
    const pen_unique_rows *rows = context;
    const uint64_t *first = rows->keys + a * rows->width, *second = rows->keys + b * rows->width;
    for (int64_t i = 0; i < rows->width; i++) {
        if (first[i] != second[i]) return first[i] < second[i];
    }
    return false;
}

static bool unique_is_equal(const pen_unique_rows *rows, int64_t a, int64_t b) {
    const size_t bytes = (size_t)rows->width * sizeof *rows->keys;
    return bytes == 0 ||
           memcmp(rows->keys + a * rows->width, rows->keys + b * rows->width, bytes) == 0;
}

// Groups in the order of their first rows instead of in that of their keys.
static pen_status unique_by_appearance(const pen_unique_rows *rows, pen_arena *arena,
                                       pen_unique_found *found) {
    int64_t *place, *first, *counts;
    PEN_TRY(PEN_NEW(arena, (size_t)found->count, &place));
    PEN_TRY(PEN_NEW(arena, (size_t)found->count, &first));
    PEN_TRY(PEN_NEW(arena, (size_t)found->count, &counts));
    int64_t next = 0;
    for (int64_t row = 0; row < rows->row_count; row++) {
        const int64_t group = found->place[row];
        if (found->first[group] != row) continue;
        place[group] = next;
        first[next] = row;
        counts[next++] = found->counts[group];
    }
    for (int64_t row = 0; row < rows->row_count; row++) {
        found->place[row] = place[found->place[row]];
    }
    found->first = first;
    found->counts = counts;
    return PEN_OK;
}

// Sorted by value first; if the order of appearance is wanted, the classes are numbered anew.
pen_status pen_unique_find(const pen_unique_rows *rows, pen_arena *arena,
                           pen_unique_found *out_found) {
    const size_t count = (size_t)rows->row_count;
    pen_unique_found found = {0};
    int64_t *order, *spare;
    PEN_TRY(PEN_NEW(arena, count, &order));
    PEN_TRY(PEN_NEW(arena, count, &spare));
    PEN_TRY(PEN_NEW(arena, count, &found.first));
    PEN_TRY(PEN_NEW(arena, count, &found.counts));
    PEN_TRY(PEN_NEW(arena, count, &found.place));
    for (int64_t row = 0; row < rows->row_count; row++) {
        order[row] = row;
    }
    selection_sort(unique_precedes, rows, rows->row_count, order, spare);
    for (int64_t k = 0; k < rows->row_count; k++) {
        const bool is_new = k == 0 || !unique_is_equal(rows, order[k - 1], order[k]);
        if (is_new) found.first[found.count++] = order[k];
        found.place[order[k]] = found.count - 1;
        found.counts[found.count - 1] += 1;
    }
    if (!rows->sorted) PEN_TRY(unique_by_appearance(rows, arena, &found));
    *out_found = found;
    return PEN_OK;
}

// ---- boxes

typedef struct box_edges {
    double top, left, bottom, right;
} box_edges;

static box_edges box_read(const pen_box_request *request, int64_t batch, int64_t box) {
    const double *b = request->boxes + (batch * request->box_count + box) * 4;
    if (request->is_centered) {
        return (box_edges){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    }
    return (box_edges){fmin(b[0], b[2]), fmin(b[1], b[3]), fmax(b[0], b[2]), fmax(b[1], b[3])};
}

// The area of both together that they share.
static double box_overlap(const box_edges *a, const box_edges *b) {
    const double height = fmin(a->bottom, b->bottom) - fmax(a->top, b->top);
    const double width = fmin(a->right, b->right) - fmax(a->left, b->left);
    if (!(height > 0) || !(width > 0)) return 0;
    const double shared = height * width;
    const double sum =
        (a->bottom - a->top) * (a->right - a->left) + (b->bottom - b->top) * (b->right - b->left);
    return shared / (sum - shared);
}

static bool box_precedes(const void *scores, int64_t a, int64_t b) {
    return ((const double *)scores)[a] > ((const double *)scores)[b];
}

// The boxes of one class by falling score, the first of equals first.
static int64_t box_order(const pen_box_request *request, const double *scores, int64_t *order,
                         int64_t *spare) {
    int64_t count = 0;
    for (int64_t box = 0; box < request->box_count; box++) {
        if (request->has_score_limit && !(scores[box] > request->score_limit)) continue;
        order[count++] = box;
    }
    selection_sort(box_precedes, scores, count, order, spare);
    return count;
}

// Best scores first; a box stays if it overlaps none of the same class that stayed before it.
pen_status pen_boxes_select(const pen_box_request *request, pen_arena *arena, int64_t *out_count,
                            int64_t **out_triples) {
    const int64_t boxes = request->box_count, classes = request->class_count;
    const int64_t limit = request->limit < boxes ? request->limit : boxes;
    int64_t *order, *spare, *triples;
    int64_t found = 0;
    *out_count = 0;
    *out_triples = NULL;
    if (limit <= 0) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, (size_t)boxes, &order));
    PEN_TRY(PEN_NEW(arena, (size_t)boxes, &spare));
    PEN_TRY(PEN_NEW(arena, (size_t)(3 * request->batch_count * classes * limit), &triples));
    for (int64_t pair = 0; pair < request->batch_count * classes; pair++) {
        const int64_t batch = pair / classes, first = found;
        const int64_t count = box_order(request, request->scores + pair * boxes, order, spare);
        for (int64_t k = 0; k < count && found - first < limit; k++) {
            const box_edges edges = box_read(request, batch, order[k]);
            bool keeps = true;
            for (int64_t other = first; keeps && other < found; other++) {
                const box_edges better = box_read(request, batch, triples[3 * other + 2]);
                keeps = !(box_overlap(&edges, &better) > request->overlap_limit);
            }
            if (!keeps) continue;
            triples[3 * found] = batch;
            triples[3 * found + 1] = pair % classes;
            triples[3 * found + 2] = order[k];
            found++;
        }
    }
    *out_count = found;
    *out_triples = triples;
    return PEN_OK;
}
