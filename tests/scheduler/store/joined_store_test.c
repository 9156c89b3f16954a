#include "scheduler/store/joined_store.h"

#include "tests/support/check.h"
#include "tests/support/dice.h"

#define WAYS 5
#define TENSORS (WAYS + 1) // the slices of one, and one by itself

// Tensors in memory, which ask to be asked as stores are.
typedef struct memory_store {
    pen_tensor_store store;
    pen_stored_tensor tensors[TENSORS];
    uint8_t *bytes[TENSORS];
} memory_store;

static void check_piece(const pen_stored_tensor *tensor, uint64_t first, uint64_t bytes) {
    assert_true(first + bytes <= tensor->bytes && bytes <= PEN_TENSOR_PIECE_BYTES);
    assert_true(first % 8 == 0 && (bytes % 8 == 0 || first + bytes == tensor->bytes));
}

static pen_status memory_read(void *context, uint32_t index, uint64_t first, void *host,
                              uint64_t bytes) {
    const memory_store *memory = context;
    check_piece(&memory->tensors[index], first, bytes);
    memcpy(host, memory->bytes[index] + first, bytes);
    return PEN_OK;
}

static pen_status memory_write(void *context, uint32_t index, uint64_t first, const void *host,
                               uint64_t bytes) {
    const memory_store *memory = context;
    check_piece(&memory->tensors[index], first, bytes);
    memcpy(memory->bytes[index] + first, host, bytes);
    return PEN_OK;
}

// A tensor of the shape in slices along an axis of so many blocks, with bounds by chance.
static memory_store *make_slices(pen_shape shape, uint32_t axis, int64_t blocks, dice *d,
                                 pen_arena *arena) {
    memory_store *memory;
    pen_tensor_slice *slices;
    const int64_t extent = shape.dims[axis] / blocks;
    int64_t first = 0;
    CHECK_OK(PEN_NEW(arena, 1, &memory));
    CHECK_OK(PEN_NEW(arena, WAYS, &slices));
    for (uint32_t s = 0; s < WAYS; s++) {
        const int64_t most = extent - first - (WAYS - 1 - s);
        const int64_t count = s + 1 == WAYS ? extent - first : dice_between(d, 1, most);
        pen_shape own = shape;
        own.dims[axis] = blocks * count;
        slices[s] = pen_tensor_slice_of("whole", &shape, axis, blocks, first, count);
        const pen_tensor_type type = {PEN_FLOAT32, own};
        assert_int_equal(pen_tensor_slice_count(&slices[s]), pen_shape_element_count(&own));
        memory->tensors[s] = (pen_stored_tensor){.name = "slice",
                                                 .type = type,
                                                 .bytes = pen_tensor_type_bytes(&type),
                                                 .is_model = true,
                                                 .slice = &slices[s]};
        first += count;
    }
    const int64_t seven = 7;
    const pen_tensor_type other = pen_tensor_type_make(PEN_FLOAT32, 1, &seven);
    memory->tensors[WAYS] =
        (pen_stored_tensor){.name = "other", .type = other, .bytes = pen_tensor_type_bytes(&other)};
    for (uint32_t t = 0; t < TENSORS; t++) {
        CHECK_OK(PEN_NEW(arena, memory->tensors[t].bytes, &memory->bytes[t]));
    }
    memory->store = (pen_tensor_store){.count = TENSORS,
                                       .tensors = memory->tensors,
                                       .context = memory,
                                       .read = memory_read,
                                       .write = memory_write};
    return memory;
}

// What a slice has, by its indices: element `at` of the tensor is the number `at`.
static void check_slices(const memory_store *memory, pen_shape shape, uint32_t axis,
                         int64_t blocks) {
    const int64_t extent = shape.dims[axis] / blocks;
    const int64_t inner = pen_shape_count(&shape, axis + 1, shape.rank);
    const int64_t outer = pen_shape_count(&shape, 0, axis) * blocks;
    int64_t first = 0;
    for (uint32_t s = 0; s < WAYS; s++) {
        const int64_t count = memory->tensors[s].type.shape.dims[axis] / blocks;
        const float *found = (const float *)(const void *)memory->bytes[s];
        for (int64_t o = 0; o < outer; o++) {
            for (int64_t i = 0; i < count * inner; i++) {
                const int64_t at = (o * extent + first) * inner + i;
                assert_true(found[o * count * inner + i] == (float)at);
            }
        }
        first += count;
    }
}

static void whole_tensors_are_cut_and_joined(void **state) {
    (void)state;
    static const struct {
        pen_shape shape;
        uint32_t axis;
        int64_t blocks;
    } cases[] = {
        {{2, {37, 11}}, 0, 1}, {{2, {37, 11}}, 1, 1},     {{1, {53}}, 0, 1},
        {{2, {5, 33}}, 1, 3},  {{3, {4, 26, 3}}, 1, 2},   {{2, {1031, 1021}}, 1, 1},
        {{2, {24, 9}}, 0, 4},  {{2, {2053, 2051}}, 0, 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        pen_arena *arena = check_arena();
        dice thrown = {.seed = c + 1};
        memory_store *memory =
            make_slices(cases[c].shape, cases[c].axis, cases[c].blocks, &thrown, arena);
        const pen_tensor_store *joined;
        CHECK_OK(pen_joined_store_create(&memory->store, arena, &joined));
        assert_int_equal(joined->count, 2);
        assert_string_equal(joined->tensors[0].name, "whole");
        assert_string_equal(joined->tensors[1].name, "other");
        const uint64_t bytes = joined->tensors[0].bytes;
        assert_true(pen_shape_equal(&joined->tensors[0].type.shape, &cases[c].shape));
        float *given, *found;
        CHECK_OK(PEN_NEW(arena, bytes / 4, &given));
        CHECK_OK(PEN_NEW(arena, bytes / 4, &found));
        for (uint64_t i = 0; i < bytes / 4; i++) {
            given[i] = (float)i;
        }
        CHECK_OK(pen_tensor_store_write(joined, 0, given, bytes));
        check_slices(memory, cases[c].shape, cases[c].axis, cases[c].blocks);
        CHECK_OK(pen_tensor_store_read(joined, 0, found, bytes));
        assert_memory_equal(given, found, bytes);
        // a piece from within changes that piece alone
        const uint64_t first = bytes / 24 * 8, some = bytes / 16 * 8;
        for (uint64_t i = first / 4; i < (first + some) / 4; i++) {
            given[i] = -1;
        }
        CHECK_OK(joined->write(joined->context, 0, first, given + first / 4, some));
        CHECK_OK(pen_tensor_store_read(joined, 0, found, bytes));
        assert_memory_equal(given, found, bytes);
        CHECK_OK(joined->read(joined->context, 0, first, found, some));
        assert_memory_equal(given + first / 4, found, some);
        pen_arena_destroy(arena);
    }
}

static void slices_must_be_all(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    dice thrown = {.seed = 1};
    memory_store *memory = make_slices((pen_shape){2, {40, 6}}, 0, 1, &thrown, arena);
    const pen_tensor_store *joined;
    memory->store.count = WAYS;
    CHECK_OK(pen_joined_store_create(&memory->store, arena, &joined));
    memory->store.count = WAYS - 1;
    CHECK_ERROR(pen_joined_store_create(&memory->store, arena, &joined), PEN_INTERNAL,
                "the slices of 'whole' are not all of it");
    // without a slice there is nothing to join
    memory->store.tensors = &memory->tensors[WAYS];
    memory->store.count = 1;
    CHECK_OK(pen_joined_store_create(&memory->store, arena, &joined));
    assert_ptr_equal(joined, &memory->store);
    pen_arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_tensors_are_cut_and_joined),
        cmocka_unit_test(slices_must_be_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
