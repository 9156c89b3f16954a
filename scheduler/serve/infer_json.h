// The Open Inference Protocol over HTTP: JSON, and the extension for tensors in binary behind it.
//
// A body is JSON of `json_length` bytes (the header Inference-Header-Content-Length; without it,
// all of the body). An input has its numbers in `data`, nested or flat, or, with the parameter
// `binary_data_size`, as so many bytes behind the JSON, in the order of the inputs.
//
// Threads: none.
#ifndef PEN_SCHEDULER_SERVE_INFER_JSON_H
#define PEN_SCHEDULER_SERVE_INFER_JSON_H

#include <stddef.h>

#include "base/text.h"
#include "scheduler/serve/served_model.h"

// The request is made here; the caller destroys it.
//   INVALID_INPUT  it is no JSON, or says what the model does not take; bytes are too few or many
//   NOT_FOUND      an input or output that the model does not have
PEN_NODISCARD pen_status pen_infer_json_read(const pen_served_model *model, const char *body,
                                             size_t length, size_t json_length,
                                             pen_infer_request **out_request);

// The JSON of an answer. Outputs that are asked for in binary are left out of it: their bytes
// follow, in order.
void pen_infer_json_write(const pen_infer_request *request, pen_text *text);
void pen_infer_json_write_server(pen_text *text);
void pen_infer_json_write_model(const pen_served_model *model, pen_text *text);
// {"error": MESSAGE}
void pen_infer_json_write_error(const char *message, pen_text *text);

#endif // PEN_SCHEDULER_SERVE_INFER_JSON_H
