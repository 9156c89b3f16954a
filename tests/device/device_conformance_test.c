// What every device must do, whatever it is: walks the device list.
#include "base/memory.h"
#include "base/text.h"
#include "device/device.h"
#include "tests/support/check.h"

#define KIB 1024u

static pen_device *conformance_open(const pen_device_kind *kind, uint64_t memory_bytes,
                                    uint32_t thread_count) {
    const pen_device_options options = {
        .name = "tested", .memory_bytes = memory_bytes, .thread_count = thread_count};
    pen_device *device;
    CHECK_OK(kind->open(&options, &device));
    CHECK(device->kind == kind, "%s: another kind", kind->name);
    return device;
}

static void kinds_are_found_by_name(void **state) {
    (void)state;
    CHECK(pen_device_kind_count() >= 2, "only %u kinds", pen_device_kind_count());
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind;
        CHECK_OK(pen_device_kind_find(pen_device_kind_at(i)->name, &kind));
        CHECK(kind == pen_device_kind_at(i), "%s found as %s", pen_device_kind_at(i)->name,
              kind->name);
    }
    const pen_device_kind *none;
    CHECK_ERROR(pen_device_kind_find("gpu", &none), PEN_NOT_FOUND, "reference");
}

static void devices_describe_themselves(void **state) {
    (void)state;
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind = pen_device_kind_at(i);
        pen_arena *arena = check_arena();
        pen_device *device = conformance_open(kind, 0, 0);
        const char *text;
        CHECK_OK(kind->describe(device, arena, &text));
        CHECK(strstr(text, "tested") != NULL && strchr(text, '\n') == NULL, "%s", text);
        kind->close(device);
        kind->close(NULL);
        pen_arena_destroy(arena);
    }
}

static void buffers_start_as_zeros_and_keep_bytes(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 63, 64, 4096, 100000, (5u << 20) + 17};
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind = pen_device_kind_at(i);
        pen_device *device = conformance_open(kind, 0, 2);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const uint64_t size = sizes[s];
            uint8_t *host = pen_memory_allocate(size, 1);
            uint8_t *back = pen_memory_allocate(size, 1);
            pen_buffer *buffer;
            CHECK_OK(kind->buffer_create(device, size, &buffer));
            memset(back, 1, size);
            CHECK_OK(kind->read(device, (pen_operand){buffer, 0}, back, size));
            CHECK(memcmp(host, back, size) == 0, "%s: not zeroed", kind->name);
            for (uint64_t k = 0; k < size; k++) {
                host[k] = (uint8_t)(k * 7 + 1);
            }
            CHECK_OK(kind->write(device, (pen_operand){buffer, 0}, host, size));
            if (size > 128) { // the middle alone
                CHECK_OK(kind->write(device, (pen_operand){buffer, 64}, host, 64));
                memmove(host + 64, host, 64);
            }
            CHECK_OK(kind->synchronize(device));
            CHECK_OK(kind->read(device, (pen_operand){buffer, 0}, back, size));
            CHECK(memcmp(host, back, size) == 0, "%s: %llu bytes changed", kind->name,
                  (unsigned long long)size);
            const pen_memory_place place = kind->place(device, (pen_operand){buffer, 0});
            const void *address = pen_memory_place_address(place);
            CHECK(place.offset % 64 == 0, "%s: not aligned", kind->name);
            CHECK(address == NULL || memcmp(address, host, size) == 0, "%s: another memory",
                  kind->name);
            static const pen_memory_domain elsewhere = {.name = "another planet"};
            pen_buffer *wrapped = NULL;
            CHECK_OK(kind->buffer_wrap(device, place, size, &wrapped));
            CHECK_OK(kind->read(device, (pen_operand){wrapped, 0}, back, size));
            CHECK(memcmp(host, back, size) == 0, "%s: wrapped memory", kind->name);
            kind->buffer_destroy(device, wrapped);
            CHECK_ERROR(
                kind->buffer_wrap(device, (pen_memory_place){&elsewhere, 64}, size, &wrapped),
                PEN_UNSUPPORTED, "memory of another planet");
            kind->buffer_destroy(device, buffer);
            pen_memory_free(host);
            pen_memory_free(back);
        }
        kind->buffer_destroy(device, NULL);
        kind->close(device);
    }
}

// What is given to write is the caller's at once; what is fetched, of one place after each write,
// is there when work was awaited, however much it is.
static void bytes_are_fetched_when_work_is_awaited(void **state) {
    (void)state;
    enum { COUNT = 1500, SIZE = 100000 };
    static uint32_t fetched[COUNT];
    static uint8_t all[SIZE];
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind = pen_device_kind_at(i);
        pen_device *device = conformance_open(kind, 0, 1);
        pen_buffer *buffer;
        CHECK_OK(kind->buffer_create(device, SIZE, &buffer));
        const pen_operand place = {buffer, 64};
        for (uint32_t k = 0; k < COUNT; k++) {
            uint32_t number = k + 1;
            CHECK_OK(kind->write(device, place, &number, sizeof number));
            number = 0;
            CHECK_OK(kind->fetch(device, place, &fetched[k], sizeof number));
        }
        CHECK_OK(kind->fetch(device, (pen_operand){buffer, 0}, all, SIZE));
        CHECK_OK(kind->fetch(device, place, all, 0));
        CHECK_OK(kind->synchronize(device));
        for (uint32_t k = 0; k < COUNT; k++)
            CHECK(fetched[k] == k + 1, "%s: %u after write %u", kind->name, fetched[k], k);
        CHECK(memcmp(all + 64, &fetched[COUNT - 1], sizeof *fetched) == 0, "%s", kind->name);
        kind->buffer_destroy(device, buffer);
        kind->close(device);
    }
}

static void limits_hold(void **state) {
    (void)state;
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind = pen_device_kind_at(i);
        char used[PEN_QUANTITY_TEXT_BYTES];
        pen_device *device = conformance_open(kind, 0, 1);
        pen_buffer *first, *second;
        const uint64_t own = pen_device_own_bytes(device); // which count, too
        kind->close(device);
        device = conformance_open(kind, own + 64 * KIB, 1);
        CHECK_OK(kind->buffer_create(device, 48 * KIB, &first));
        CHECK_ERROR(kind->buffer_create(device, 16 * KIB + 1, &second), PEN_DOES_NOT_FIT,
                    pen_bytes_format(own + 48 * KIB, used));
        CHECK_OK(kind->buffer_create(device, 16 * KIB, &second));
        kind->buffer_destroy(device, second);
        CHECK_OK(kind->buffer_create(device, 16 * KIB, &second));
        kind->buffer_destroy(device, first);
        CHECK_ERROR(kind->buffer_create(device, UINT64_MAX, &first), PEN_DOES_NOT_FIT, "tested");
        kind->buffer_destroy(device, second);
        kind->close(device);
    }
}

static void refused_memory_is_an_error(void **state) {
    (void)state;
    for (uint32_t i = 0; i < pen_device_kind_count(); i++) {
        const pen_device_kind *kind = pen_device_kind_at(i);
        pen_device *device = conformance_open(kind, 0, 1);
        pen_buffer *buffer;
        pen_memory_fail_at(1, 1);
        const pen_status status = kind->buffer_create(device, KIB, &buffer);
        pen_memory_fail_at(0, 0);
        CHECK_ERROR(status, PEN_OUT_OF_MEMORY, "memory");
        kind->close(device);
    }
}

static void levels_are_checked(void **state) {
    (void)state;
    const pen_device_kind *cpu;
    pen_device *device;
    CHECK_OK(pen_device_kind_find("cpu", &cpu));
    const pen_kernel_level best = pen_kernel_level_best();
    if (best < PEN_KERNEL_LEVEL_V4) { // more than the machine has
        const pen_device_options options = {.name = "tested", .level = best + 1};
        CHECK_ERROR(cpu->open(&options, &device), PEN_UNSUPPORTED, "cannot run here");
    }
    CHECK_OK(cpu->open(&(pen_device_options){.name = "tested"}, &device));
    cpu->close(device);
    if (best > PEN_KERNEL_LEVEL_V2) { // a process runs at one
        const pen_device_options options = {.name = "tested", .level = PEN_KERNEL_LEVEL_V2};
        CHECK_ERROR(cpu->open(&options, &device), PEN_UNSUPPORTED, "this process runs at");
    }
    const pen_device_options many = {.name = "tested", .thread_count = 100000};
    CHECK_ERROR(cpu->open(&many, &device), PEN_INVALID_INPUT, "100000 threads");
}

PEN_TEST_MAIN(cmocka_unit_test(kinds_are_found_by_name),
              cmocka_unit_test(devices_describe_themselves),
              cmocka_unit_test(buffers_start_as_zeros_and_keep_bytes),
              cmocka_unit_test(bytes_are_fetched_when_work_is_awaited),
              cmocka_unit_test(limits_hold), cmocka_unit_test(refused_memory_is_an_error),
              cmocka_unit_test(levels_are_checked))
