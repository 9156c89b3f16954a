// Copies beside the work, from one GPU to another by way of the host: fences keep the order, and
// each of them is needed.
#include "device/device.h"
#include "tests/support/check.h"
#include "tests/support/fake_cuda.h"

#define COUNT 1024u
#define BYTES (COUNT * (uint32_t)sizeof(float))
#define ROUNDS 4u

enum { WORK, IN, OUT, FENCES }; // a fence of each queue

typedef struct queues_gpu {
    pen_device *device;
    const pen_device_kind *kind;
    pen_operand value;
} queues_gpu;

static void gpu_open(queues_gpu *gpu, uint32_t number) {
    CHECK_OK(pen_device_kind_find("cuda", &gpu->kind));
    CHECK_OK(gpu->kind->open(&(pen_device_options){.name = "g", .gpu = number}, &gpu->device));
    CHECK_OK(gpu->kind->buffer_create(gpu->device, BYTES, &gpu->value.buffer));
    CHECK_OK(gpu->kind->fence_reserve(gpu->device, FENCES));
    CHECK_OK(gpu->kind->synchronize(gpu->device));
}

static void gpu_close(queues_gpu *gpu) {
    gpu->kind->buffer_destroy(gpu->device, gpu->value.buffer);
    gpu->kind->close(gpu->device);
}

static void gpu_set(const queues_gpu *gpu, pen_queue queue, uint32_t fence) {
    CHECK_OK(gpu->kind->fence_set(gpu->device, queue, fence));
}

static void gpu_pass(const queues_gpu *gpu, pen_queue queue, const queues_gpu *of, uint32_t fence) {
    CHECK_OK(gpu->kind->fence_pass(gpu->device, queue, of->device, fence));
}

// A value is made on `a` and read on `b`, again and again in the same places, and nobody waits.
static void queues_run(const queues_gpu *a, const queues_gpu *b, void *host,
                       float seen[ROUNDS][COUNT]) {
    static float made[COUNT];
    const uint64_t waits = fake_cuda_count().waits;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < COUNT; i++)
            made[i] = (float)(round * COUNT + i);
        gpu_pass(a, PEN_QUEUE_WORK, a, OUT); // the copy has read what was there
        CHECK_OK(a->kind->write(a->device, a->value, made, BYTES));
        gpu_set(a, PEN_QUEUE_WORK, WORK);
        gpu_pass(a, PEN_QUEUE_OUT, a, WORK); // it is made
        gpu_pass(a, PEN_QUEUE_OUT, b, IN);   // the host's memory was read
        CHECK_OK(a->kind->copy_out(a->device, a->value, host, BYTES));
        gpu_set(a, PEN_QUEUE_OUT, OUT);
        gpu_pass(b, PEN_QUEUE_IN, a, OUT);  // it is in the host's memory
        gpu_pass(b, PEN_QUEUE_IN, b, WORK); // who read what was there is done
        CHECK_OK(b->kind->copy_in(b->device, b->value, host, BYTES));
        gpu_set(b, PEN_QUEUE_IN, IN);
        gpu_pass(b, PEN_QUEUE_WORK, b, IN); // it is here
        CHECK_OK(b->kind->fetch(b->device, b->value, seen[round], BYTES));
        gpu_set(b, PEN_QUEUE_WORK, WORK);
    }
    CHECK(fake_cuda_count().waits == waits, "it waited");
    CHECK_OK(b->kind->synchronize(b->device));
}

// Whether all rounds were read as they were made.
static bool queues_are_in_order(const char *settings) {
    static float seen[ROUNDS][COUNT];
    queues_gpu a = {0}, b = {0};
    void *host;
    bool is_right = true;
    setenv("FAKE_CUDA", settings, 1);
    CHECK(fake_cuda_is_here(), "no fake driver");
    gpu_open(&a, 0);
    gpu_open(&b, 1);
    CHECK_OK(a.kind->host_allocate(a.device, BYTES, &host));
    queues_run(&a, &b, host, seen);
    for (uint32_t i = 0; i < ROUNDS * COUNT; i++)
        if (seen[i / COUNT][i % COUNT] != (float)i) is_right = false;
    CHECK_OK(a.kind->fence_wait(a.device, OUT));
    a.kind->host_free(a.device, host);
    gpu_close(&b);
    gpu_close(&a);
    CHECK(fake_cuda_count().blocks == 0, "%llu things are left",
          (unsigned long long)fake_cuda_count().blocks);
    return is_right;
}

static void late_queues_change_nothing(void **state) {
    (void)state;
    static const char *const settings[] = {
        "gpus=2", "gpus=2 late=500", "gpus=2 late=2000 late_role=0", "gpus=2 late=2000 late_role=1",
        "gpus=2 late=2000 late_role=2"};
    for (uint32_t i = 0; i < sizeof settings / sizeof *settings; i++)
        CHECK(queues_are_in_order(settings[i]), "%s", settings[i]);
}

// Of each kind of fence, where what it waits for is late.
static void every_fence_is_needed(void **state) {
    (void)state;
    static const char *const settings[] = {
        "gpus=2 late=3000 late_gpu=0 late_role=2 lost_stream=0 lost_event=2",
        "gpus=2 late=3000 late_gpu=0 late_role=0 lost_stream=2 lost_event=0",
        "gpus=2 late=3000 late_gpu=1 late_role=1 lost_stream=2 lost_event=1",
        "gpus=2 late=3000 late_gpu=0 late_role=2 lost_stream=1 lost_event=2",
        "gpus=2 late=3000 late_gpu=1 late_role=0 lost_stream=1 lost_event=0",
        "gpus=2 late=3000 late_gpu=1 late_role=1 lost_stream=0 lost_event=1",
    };
    for (uint32_t i = 0; i < sizeof settings / sizeof *settings; i++)
        CHECK(!queues_are_in_order(settings[i]), "not found: %s", settings[i]);
}

PEN_TEST_MAIN(cmocka_unit_test(late_queues_change_nothing), cmocka_unit_test(every_fence_is_needed))
