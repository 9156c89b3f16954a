// Fuzzes the reader of requests over HTTP. The first two bytes say how much of the rest is JSON.
#include "scheduler/serve/infer_json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/infer_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_infer_request *request;
    if (size < 2) return 0;
    const size_t length = size - 2, asked = (size_t)data[0] | (size_t)data[1] << 8;
    const size_t json_length = asked < length ? asked : length;
    const char *body = (const char *)data + 2;
    if (!fuzz_reads(pen_infer_json_read(&infer_model, body, length, json_length, &request))) {
        return 0;
    }
    fuzz_must(request->rows > 0 && request->rows <= size);
    fuzz_must(request->inputs[0] != NULL && request->inputs[1] != NULL);
    pen_arena *arena;
    if (fuzz_works(pen_arena_create(&arena))) {
        pen_text text;
        const char *whole;
        pen_text_init(&text, arena);
        pen_infer_json_write(request, &text);
        (void)fuzz_works(pen_text_finish(&text, &whole));
        pen_arena_destroy(arena);
    }
    pen_infer_request_destroy(request);
    return 0;
}
