// The driver of a GPU that there is not is as strict as it says.
#include "device/cuda/cuda_driver.h"
#include "device/cuda/kernels/cuda_args.h"
#include "tests/support/check.h"
#include "tests/support/fake_cuda.h"

#define COUNT 100u
#define BYTES (COUNT * (uint32_t)sizeof(float))

static const pen_cuda_driver *driver;
static pen_cuda_context *context;
static pen_cuda_stream *stream;

static const char image[] = ".version 6.3\n.target sm_70\n.visible .entry function(\n";

#define WORKS(call) CHECK((call) == 0, "refused")

static void begin(const char *settings) {
    setenv("FAKE_CUDA", settings, 1);
    CHECK_OK(pen_cuda_driver_load(&driver));
    WORKS(driver->context_retain(&context, 0));
    WORKS(driver->context_set(context));
    WORKS(driver->stream_create(&stream, 0));
}

static void memory_is_limited_and_counted(void **state) {
    (void)state;
    pen_cuda_address a, b;
    begin("memory=1000");
    WORKS(driver->allocate(&a, 600));
    CHECK(driver->allocate(&b, 401) == PEN_CUDA_OUT_OF_MEMORY, "given");
    WORKS(driver->allocate(&b, 400));
    CHECK(fake_cuda_count().bytes == 1000, "%llu bytes",
          (unsigned long long)fake_cuda_count().bytes);
    WORKS(driver->free(a));
    WORKS(driver->free(b));
    CHECK(driver->free(b) != 0, "freed twice");
    CHECK(fake_cuda_count().bytes == 0 && fake_cuda_count().bytes_most == 1000, "counted wrong");
}

static void commands_are_late(void **state) {
    (void)state;
    float here[COUNT], back[COUNT];
    pen_cuda_address memory;
    begin("late=20000");
    WORKS(driver->allocate(&memory, BYTES));
    for (uint32_t i = 0; i < COUNT; i++) {
        here[i] = 1;
        back[i] = 0;
    }
    WORKS(driver->write(memory, here, BYTES, stream));
    WORKS(driver->read(back, memory, BYTES, stream));
    here[5] = 2; // too early
    const bool was_early = back[0] != 0;
    WORKS(driver->stream_wait(stream));
    CHECK(!was_early && back[0] == 1 && back[5] == 2, "%g %g", (double)back[0], (double)back[5]);
    CHECK(driver->write(memory, here, BYTES + 1, stream) != 0, "copied beyond the end");
    WORKS(driver->free(memory));
    WORKS(driver->stream_destroy(stream));
}

static void kernels_run_and_their_errors_stay(void **state) {
    (void)state;
    pen_cuda_module *module;
    pen_cuda_function *relu, *none;
    pen_cuda_address x, y;
    float here[COUNT], back[COUNT];
    begin("");
    CHECK(driver->module_load(&module, "no such text") != 0, "loaded");
    WORKS(driver->module_load(&module, image));
    WORKS(driver->module_function(&relu, module, "function"));
    CHECK(driver->module_function(&none, module, "product") != 0, "which is not in the text");
    WORKS(driver->allocate(&x, BYTES));
    WORKS(driver->allocate(&y, BYTES));
    for (uint32_t i = 0; i < COUNT; i++)
        here[i] = (float)i - 50;
    WORKS(driver->write(x, here, BYTES, stream));
    struct cuda_function_args args = {.what = PEN_CUDA_RELU, .count = COUNT, .x = x, .y = y};
    void *arguments[] = {&args};
    WORKS(driver->launch(relu, 1, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
    WORKS(driver->read(back, y, BYTES, stream));
    WORKS(driver->stream_wait(stream));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(back[i] == (here[i] > 0 ? here[i] : 0), "%g at %u", (double)back[i], i);
    }
    CHECK(driver->launch(relu, 0, 1, 1, 256, 1, 1, 0, stream, arguments, NULL) != 0, "no block");
    CHECK(driver->launch(relu, 1, 65536, 1, 256, 1, 1, 0, stream, arguments, NULL) != 0, "a grid");
    args.count = COUNT + 1; // one float more than there is room for
    WORKS(driver->launch(relu, 1, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
    WORKS(driver->stream_wait(stream));
    const pen_cuda_result beyond = driver->free(y);
    CHECK(strcmp(pen_cuda_error_name(driver, beyond), "CUDA_ERROR_ILLEGAL_ADDRESS") == 0, "%u",
          beyond);
    CHECK(driver->allocate(&y, BYTES) == beyond, "the error did not stay");
    CHECK(driver->stream_wait(stream) == beyond, "the error did not stay");
    (void)driver->module_unload(module); // the error is told again
}

static bool is_named(pen_cuda_result result, const char *name) {
    return strcmp(pen_cuda_error_name(driver, result), name) == 0;
}

// What is captured runs when the graph is launched, and as often.
static void captured_launches_run_as_a_graph(void **state) {
    (void)state;
    pen_cuda_module *module;
    pen_cuda_function *relu;
    pen_cuda_address x;
    pen_cuda_graph *graph, *none;
    pen_cuda_graph_exec *exec;
    float numbers[COUNT] = {-1, 2};
    begin("late=200");
    const uint64_t blocks = fake_cuda_count().blocks; // with the stream
    WORKS(driver->module_load(&module, image));
    WORKS(driver->module_function(&relu, module, "function"));
    WORKS(driver->allocate(&x, BYTES));
    struct cuda_function_args args = {.what = PEN_CUDA_NEG, .count = COUNT, .x = x, .y = x};
    void *arguments[] = {&args};
    WORKS(driver->write(x, numbers, BYTES, stream));
    CHECK(driver->capture_end(stream, &none) != 0, "nothing was captured");
    WORKS(driver->capture_begin(stream, PEN_CUDA_CAPTURE_THREAD_LOCAL));
    WORKS(driver->launch(relu, 1, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
    args.count = 0; // arguments were taken when it was captured
    CHECK(driver->graph_launch(NULL, stream) != 0, "in a capture");
    WORKS(driver->capture_end(stream, &graph));
    WORKS(driver->graph_instantiate(&exec, graph, 0));
    WORKS(driver->graph_destroy(graph));
    WORKS(driver->stream_wait(stream));
    CHECK(fake_cuda_count().kernels == 0, "it ran while it was captured");
    for (uint32_t i = 0; i < 3; i++)
        WORKS(driver->graph_launch(exec, stream));
    WORKS(driver->read(numbers, x, BYTES, stream));
    WORKS(driver->stream_wait(stream));
    CHECK(numbers[0] == 1 && numbers[1] == -2, "%g %g", (double)numbers[0], (double)numbers[1]);
    CHECK(fake_cuda_count().kernels == 3 && fake_cuda_count().launches == 3, "counted wrong");
    WORKS(driver->graph_exec_destroy(exec));
    WORKS(driver->free(x));
    WORKS(driver->module_unload(module));
    WORKS(driver->stream_destroy(stream));
    CHECK(fake_cuda_count().blocks == blocks - 1, "something is left");
}

// A wait, and memory that is taken, make a capture useless; what comes after it is not.
static void captures_have_rules(void **state) {
    (void)state;
    pen_cuda_graph *graph;
    pen_cuda_address memory, other;
    begin("");
    WORKS(driver->allocate(&memory, BYTES));
    for (uint32_t i = 0; i < 3; i++) {
        WORKS(driver->capture_begin(stream, PEN_CUDA_CAPTURE_THREAD_LOCAL));
        const pen_cuda_result result = i == 0   ? driver->stream_wait(stream)
                                       : i == 1 ? driver->allocate(&other, BYTES)
                                                : driver->free(memory);
        CHECK(is_named(result, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "%u", result);
        CHECK(is_named(driver->fill(memory, 0, BYTES, stream),
                       "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
              "it goes on");
        graph = (pen_cuda_graph *)&memory;
        CHECK(
            is_named(driver->capture_end(stream, &graph), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
            "it has a graph");
        CHECK(graph == NULL, "a graph of a capture that is useless");
        WORKS(driver->fill(memory, 0, BYTES, stream));
        WORKS(driver->stream_wait(stream));
    }
    WORKS(driver->free(memory));
    WORKS(driver->stream_destroy(stream));
}

// The error that stays is the last test's.
// Events are as far from each other as what lies between took, where they have times at all.
static void events_have_times(void **state) {
    (void)state;
    pen_cuda_event *first, *second, *untimed;
    pen_cuda_address memory;
    float milliseconds = 0;
    begin("late=20000");
    WORKS(driver->allocate(&memory, BYTES));
    WORKS(driver->event_create(&first, 0));
    WORKS(driver->event_create(&second, 0));
    WORKS(driver->event_create(&untimed, PEN_CUDA_EVENT_NO_TIMING));
    WORKS(driver->event_record(first, stream));
    WORKS(driver->fill(memory, 0, BYTES, stream));
    WORKS(driver->event_record(second, stream));
    WORKS(driver->event_record(untimed, stream));
    CHECK(is_named(driver->event_elapsed(&milliseconds, first, second), "CUDA_ERROR_NOT_READY"),
          "it is late");
    WORKS(driver->stream_wait(stream));
    WORKS(driver->event_elapsed(&milliseconds, first, second));
    CHECK(milliseconds >= 20, "%g ms", (double)milliseconds);
    CHECK(driver->event_elapsed(&milliseconds, first, untimed) != 0, "it has no time");
    WORKS(driver->event_destroy(first));
    WORKS(driver->event_destroy(second));
    WORKS(driver->event_destroy(untimed));
    WORKS(driver->free(memory));
    WORKS(driver->stream_destroy(stream));
}

PEN_TEST_MAIN(cmocka_unit_test(events_have_times), cmocka_unit_test(memory_is_limited_and_counted),
              cmocka_unit_test(commands_are_late),
              cmocka_unit_test(captured_launches_run_as_a_graph),
              cmocka_unit_test(captures_have_rules),
              cmocka_unit_test(kernels_run_and_their_errors_stay))
