#include "scheduler/data/balance.h"

#include <stdlib.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/random.h"

#define BALANCE_PIECE 4096 // examples whose labels are read at once

typedef struct balance_member {
    int64_t class_index;
    uint64_t example;
} balance_member;

struct pen_balance {
    balance_member *members; // [member_count], by class, then as the data has them
    uint64_t member_count;
    uint64_t *firsts; // [class_count + 1] in members
    uint64_t class_count;
};

static int balance_compare(const void *left, const void *right) {
    const balance_member *a = left, *b = right;
    if (a->class_index != b->class_index) return a->class_index < b->class_index ? -1 : 1;
    return a->example < b->example ? -1 : a->example > b->example;
}

static pen_status balance_check(const pen_dataset_info *info) {
    const bool is_alone = info->label_count == 1 && info->target_count == 1;
    if (is_alone && info->labels[0].element == PEN_DATASET_INT64 &&
        info->labels[0].element_count == 1) {
        return PEN_OK;
    }
    return pen_error(PEN_INVALID_INPUT, "balance: found %s, expected one class index an example",
                     info->label_count == 0                         ? "no labels"
                     : !is_alone                                    ? "several labels"
                     : info->labels[0].element != PEN_DATASET_INT64 ? "labels that are numbers"
                                                                    : "several labels an example");
}

// Goes through the labels piece by piece, without the inputs.
static pen_status balance_read(pen_balance *balance, pen_dataset *dataset, uint64_t *indices,
                               int64_t *labels) {
    const uint64_t count = pen_dataset_get_info(dataset)->example_count;
    for (uint64_t first = 0; first < count; first += BALANCE_PIECE) {
        const uint64_t piece = pen_min_u64(BALANCE_PIECE, count - first);
        for (uint64_t i = 0; i < piece; i++) {
            indices[i] = first + i;
        }
        PEN_TRY(pen_dataset_read(dataset, indices, piece, NULL, (void *const[]){labels}));
        for (uint64_t i = 0; i < piece; i++) {
            if (pen_dataset_weigh(dataset, 0, &indices[i], 1, (void *const[]){&labels[i]}).count ==
                0) {
                continue;
            }
            balance->members[balance->member_count++] = (balance_member){labels[i], indices[i]};
        }
    }
    return PEN_OK;
}

static pen_status balance_sort(pen_balance *balance) {
    const uint64_t count = balance->member_count;
    balance_member *members = balance->members;
    if (count == 0) return pen_error(PEN_INVALID_INPUT, "balance: no example has a class");
    qsort(members, count, sizeof *members, balance_compare);
    for (uint64_t m = 0; m < count; m++) {
        const bool is_first = m == 0 || members[m].class_index != members[m - 1].class_index;
        balance->class_count += is_first;
    }
    balance->firsts = pen_memory_allocate(balance->class_count + 1, sizeof *balance->firsts);
    if (balance->firsts == NULL) return pen_error_out_of_memory();
    uint64_t c = 0;
    for (uint64_t m = 0; m < count; m++) {
        const bool is_first = m == 0 || members[m].class_index != members[m - 1].class_index;
        if (is_first) balance->firsts[c++] = m;
    }
    balance->firsts[c] = count;
    return PEN_OK;
}

static pen_status balance_fill(pen_balance *balance, pen_dataset *dataset) {
    const uint64_t count = pen_dataset_get_info(dataset)->example_count;
    uint64_t *indices = pen_memory_allocate(BALANCE_PIECE, sizeof *indices);
    int64_t *labels = pen_memory_allocate(BALANCE_PIECE, sizeof *labels);
    balance->members = pen_memory_allocate(count, sizeof *balance->members);
    pen_status status = pen_error_out_of_memory();
    if (indices != NULL && labels != NULL && balance->members != NULL) {
        status = balance_read(balance, dataset, indices, labels);
    }
    pen_memory_free(indices);
    pen_memory_free(labels);
    return status == PEN_OK ? balance_sort(balance) : status;
}

pen_status pen_balance_create(pen_dataset *dataset, pen_balance **out_balance) {
    PEN_TRY(balance_check(pen_dataset_get_info(dataset)));
    pen_balance *balance = pen_memory_allocate(1, sizeof *balance);
    if (balance == NULL) return pen_error_out_of_memory();
    const pen_status status = balance_fill(balance, dataset);
    if (status != PEN_OK) {
        pen_balance_destroy(balance);
        return status;
    }
    *out_balance = balance;
    return PEN_OK;
}

void pen_balance_destroy(pen_balance *balance) {
    if (balance == NULL) return;
    pen_memory_free(balance->members);
    pen_memory_free(balance->firsts);
    pen_memory_free(balance);
}

void pen_balance_draw(const pen_balance *balance, uint64_t seed, uint64_t epoch, uint64_t count,
                      uint64_t *out_order) {
    const pen_random_key key = {seed, pen_random_stream("balance", epoch, 0)};
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t c = pen_random_below(key, 2 * i, balance->class_count);
        const uint64_t first = balance->firsts[c];
        const uint64_t members = balance->firsts[c + 1] - first;
        const uint64_t member = first + pen_random_below(key, 2 * i + 1, members);
        out_order[i] = balance->members[member].example;
    }
}
