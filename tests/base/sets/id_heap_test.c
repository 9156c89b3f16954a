#include "base/sets/id_heap.h"

#include "base/random.h"
#include "tests/support/check.h"

#define COUNT 500

// Pushed in any order, ids come out by rising keys.
static void lowest_first(void **state) {
    (void)state;
    static uint32_t keys[COUNT], storage[COUNT];
    const pen_random_key dice = {1, pen_random_stream("id_heap_test", 0, 0)};
    for (uint32_t i = 0; i < COUNT; i++) {
        keys[i] = i;
    }
    for (uint32_t i = COUNT - 1; i > 0; i--) {
        const uint32_t other = (uint32_t)pen_random_below(dice, i, i + 1), key = keys[i];
        keys[i] = keys[other];
        keys[other] = key;
    }
    for (int own = 0; own < 2; own++) {
        pen_id_heap heap = {.keys = own == 0 ? keys : NULL, .ids = storage};
        for (uint32_t i = 0; i < COUNT; i++) {
            pen_id_heap_push(&heap, own == 0 ? i : keys[i]);
        }
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t id = pen_id_heap_pop(&heap);
            assert_int_equal(own == 0 ? keys[id] : id, i);
        }
        assert_int_equal(heap.count, 0);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(lowest_first))
