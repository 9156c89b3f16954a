#include "partition/problem/device_classes.h"

#include <string.h>

#include "base/random.h"
#include "base/sets/order.h"

#define DEVICE_STATE_LIMIT 192 // beyond this many states devices are taken in sequence

// Mean cost factors of the links out of each device, and into each: [device_count]. Row by row, as
// the table lies.
static void device_classes_mean_links(const pen_problem_given *given, double *out, double *in) {
    const uint32_t count = given->device_count;
    if (given->link == NULL || count < 2) return;
    for (uint32_t from = 0; from < count; from++) {
        const double *row = &given->link[(size_t)from * count];
        for (uint32_t to = 0; to < count; to++)
            out[from] += to == from ? 0.0 : row[to];
        for (uint32_t to = 0; to < count; to++)
            in[to] += to == from ? 0.0 : row[to];
    }
    for (uint32_t d = 0; d < count; d++) {
        out[d] /= (double)(count - 1);
        in[d] /= (double)(count - 1);
    }
}

static bool device_classes_same(const pen_problem_given *given, const bool *is_pinned, uint32_t a,
                                uint32_t b) {
    if (is_pinned[a] || is_pinned[b]) return false;
    const pen_problem_device *x = &given->devices[a], *y = &given->devices[b];
    return x->kind == y->kind && x->slowness == y->slowness && x->send == y->send &&
           x->receive == y->receive && x->bytes_limit == y->bytes_limit &&
           x->microbatches == y->microbatches && x->is_parallel == y->is_parallel;
}

// Devices that cannot be told apart are one class: exact searches then try one of them instead of
// all. A device that something is pinned to stands alone.
static pen_status device_classes_group(const pen_problem *problem, pen_arena *arena,
                                       pen_device_classes *classes) {
    const pen_problem_given *given = &problem->given;
    bool *is_pinned; // of each device: some group is
    double *out, *in;
    PEN_TRY(PEN_NEW(arena, given->device_count, &is_pinned));
    PEN_TRY(PEN_NEW(arena, given->device_count, &out));
    PEN_TRY(PEN_NEW(arena, given->device_count, &in));
    device_classes_mean_links(given, out, in);
    for (uint32_t g = 0; g < problem->group_count; g++) {
        if (problem->group_pin[g] != PEN_PROBLEM_ANY) is_pinned[problem->group_pin[g]] = true;
    }
    PEN_TRY(PEN_NEW(arena, given->device_count, &classes->classes));
    PEN_TRY(PEN_NEW(arena, given->device_count, &classes->class_of_device));
    for (uint32_t d = 0; d < given->device_count; d++) {
        uint32_t c = given->link != NULL ? classes->class_count : 0; // each differs by its links
        while (c < classes->class_count &&
               !device_classes_same(given, is_pinned, classes->classes[c].devices[0], d)) {
            c++;
        }
        pen_device_class *class = &classes->classes[c];
        if (c == classes->class_count) {
            const pen_problem_device *device = &given->devices[d];
            classes->class_count += 1;
            *class = (pen_device_class){
                .kind = device->kind,
                .slowness = device->slowness,
                .send = device->send + out[d],
                .receive = device->receive + in[d],
                .bytes_limit = pen_problem_bytes_limit(problem, d),
                .microbatches = device->microbatches,
                .is_parallel = device->is_parallel,
            };
            const uint32_t most = given->link != NULL ? 1 : given->device_count - d;
            PEN_TRY(PEN_NEW(arena, most, &class->devices));
        }
        class->devices[class->device_count++] = d;
        classes->class_of_device[d] = c;
    }
    return PEN_OK;
}

// States are counts of used devices, mixed radix.
static pen_status device_classes_count_states(pen_device_classes *classes, uint32_t state_count,
                                              pen_arena *arena) {
    PEN_TRY(PEN_NEW(arena, (size_t)state_count * classes->class_count, &classes->next));
    classes->state_count = state_count;
    for (uint32_t s = 0; s < state_count; s++) {
        uint32_t rest = s;
        uint32_t stride = 1;
        for (uint32_t c = 0; c < classes->class_count; c++) {
            const uint32_t radix = classes->classes[c].device_count + 1;
            PEN_ASSERT(radix > 1);
            const bool is_free = rest % radix + 1 < radix;
            classes->next[(size_t)s * classes->class_count + c] =
                is_free ? s + stride : PEN_DEVICE_STATE_NONE;
            rest /= radix;
            stride *= radix;
        }
    }
    return PEN_OK;
}

// Devices in one fixed order, the fastest first or as the seed has it: searches that go along it
// have device_count + 1 states instead of one for each multiset of classes.
static pen_status device_classes_put_in_sequence(const pen_problem *problem, uint64_t seed,
                                                 pen_arena *arena, pen_device_classes *classes) {
    const uint32_t device_count = problem->given.device_count;
    pen_ranked *speeds; // by the mean cost of the groups it can run
    double *sum;        // of each kind
    PEN_TRY(PEN_NEW(arena, device_count, &speeds));
    PEN_TRY(PEN_NEW(arena, problem->given.kind_count, &sum));
    for (size_t i = 0; i < (size_t)problem->given.kind_count * problem->group_count; i++) {
        const double cost = problem->group_compute[i];
        if (cost < PEN_PROBLEM_COST_LIMIT) sum[i / problem->group_count] += cost;
    }
    PEN_TRY(PEN_NEW(arena, device_count, &classes->sequence));
    for (uint32_t d = 0; d < device_count; d++) {
        const pen_problem_device *device = &problem->given.devices[d];
        speeds[d] = (pen_ranked){sum[device->kind] * device->slowness, d};
    }
    pen_ranked_sort_up(speeds, device_count);
    for (uint32_t d = 0; d < device_count; d++)
        classes->sequence[d] = speeds[d].id;
    const pen_random_key key = {seed, pen_random_stream("device sequence", 0, 0)};
    for (uint32_t i = device_count; seed != 0 && i > 1; i--) {
        const uint32_t j = (uint32_t)pen_random_below(key, i, i);
        const uint32_t kept = classes->sequence[i - 1];
        classes->sequence[i - 1] = classes->sequence[j];
        classes->sequence[j] = kept;
    }
    classes->is_sequence = true;
    classes->state_count = device_count + 1;
    const size_t cells = (size_t)classes->state_count * classes->class_count;
    PEN_TRY(PEN_NEW(arena, cells, &classes->next));
    memset(classes->next, 0xff, cells * sizeof *classes->next);
    for (uint32_t s = 0; s < device_count; s++) {
        const uint32_t c = classes->class_of_device[classes->sequence[s]];
        classes->next[(size_t)s * classes->class_count + c] = s + 1;
    }
    return PEN_OK;
}

pen_status pen_device_classes_new(const pen_problem *problem, uint64_t seed, pen_arena *arena,
                                  pen_device_classes **out_classes) {
    pen_device_classes *classes;
    uint64_t state_count = 1;
    PEN_TRY(PEN_NEW(arena, 1, &classes));
    PEN_TRY(device_classes_group(problem, arena, classes));
    for (uint32_t c = 0; c < classes->class_count && state_count <= DEVICE_STATE_LIMIT; c++) {
        state_count *= classes->classes[c].device_count + 1;
    }
    *out_classes = classes;
    return state_count <= DEVICE_STATE_LIMIT
               ? device_classes_count_states(classes, (uint32_t)state_count, arena)
               : device_classes_put_in_sequence(problem, seed, arena, classes);
}
