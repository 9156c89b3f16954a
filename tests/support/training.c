#include "tests/support/training.h"

#include "tests/support/check.h"

const pen_job *training_job(pen_arena *arena, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(length >= 0 && (size_t)length < sizeof text, "a job of %d bytes", length);
    const pen_job *job = NULL;
    CHECK_OK(pen_job_parse("job.yaml", text, (size_t)length, arena, &job));
    return job;
}

pen_trainer *training_start(const pen_job *job) {
    pen_trainer *trainer = NULL;
    CHECK_OK(pen_trainer_create(job, &(pen_trainer_options){0}, &trainer));
    return trainer;
}

pen_step_report training_step(pen_trainer *trainer) {
    pen_step_report report;
    bool more = false;
    CHECK_OK(pen_trainer_step(trainer, &report, &more));
    CHECK(more, "no more steps");
    return report;
}

float *training_read(const pen_tensor_store *store, pen_arena *arena, uint64_t *out_count) {
    const uint32_t count = pen_tensor_store_model_count(store);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pen_stored_tensor *tensor = &store->tensors[i];
        CHECK(tensor->type.element == PEN_FLOAT32, "'%s' is not float32", tensor->name);
        bytes += tensor->bytes;
    }
    float *numbers, *at;
    CHECK_OK(PEN_NEW(arena, bytes / sizeof *numbers, &numbers));
    at = numbers;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t tensor_bytes = store->tensors[i].bytes;
        CHECK_OK(pen_tensor_store_read(store, i, at, tensor_bytes));
        at += tensor_bytes / sizeof *at;
    }
    if (out_count != NULL) *out_count = bytes / sizeof *numbers;
    return numbers;
}

uint32_t training_find(const pen_tensor_store *store, const char *name) {
    const uint32_t index = pen_tensor_store_find(store, name);
    CHECK(index != PEN_TENSOR_NONE, "no tensor is called '%s'", name);
    return index;
}

uint64_t training_hash(pen_trainer *trainer) {
    uint64_t hash = 0;
    CHECK_OK(pen_tensor_store_hash(pen_trainer_tensors(trainer), &hash));
    return hash;
}
