// Fuzzes the reader of requests over gRPC: any bytes give a request with all its rows, or an error.
#include <stdlib.h>

#include "scheduler/serve/infer_proto.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/infer_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_infer_request *request;
    (void)fuzz_reads(pen_infer_proto_check_name(&infer_model, data, size));
    if (!fuzz_reads(pen_infer_proto_read(&infer_model, data, size, &request))) return 0;
    fuzz_must(request->rows > 0 && request->rows * 8 <= size); // its bytes have arrived
    fuzz_must(request->inputs[0] != NULL && request->inputs[1] != NULL);
    const pen_infer_reply reply = {.kind = PEN_INFER_ANSWER_INFERRED, .request = request};
    const size_t length = pen_infer_proto_write(&reply, NULL, 0);
    void *bytes = malloc(length);
    fuzz_must(bytes != NULL && pen_infer_proto_write(&reply, bytes, length) == length);
    free(bytes);
    pen_infer_request_destroy(request);
    return 0;
}
