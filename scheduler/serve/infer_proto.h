// The Open Inference Protocol's messages over gRPC, read and written by hand: what this server
// needs of KServe's grpc_predict_v2.proto.
//
// Tensors come as raw_input_contents, one for each input in order, or in an input's own contents
// (fp32_contents, int64_contents). They are answered with as raw_output_contents.
//
// Threads: none.
#ifndef PEN_SCHEDULER_SERVE_INFER_PROTO_H
#define PEN_SCHEDULER_SERVE_INFER_PROTO_H

#include <stddef.h>

#include "scheduler/serve/served_model.h"

// A ModelInferRequest. The request is made here; the caller destroys it.
//   CORRUPT        it is no such message
//   INVALID_INPUT, NOT_FOUND  as pen_infer_request_find_input and _ask; another model, an input is
//                  missing, or its bytes are not those of its shape
PEN_NODISCARD pen_status pen_infer_proto_read(const pen_served_model *model, const void *bytes,
                                              size_t length, pen_infer_request **out_request);

// Of ModelReadyRequest and ModelMetadataRequest: whether it asks for this model. NOT_FOUND, CORRUPT
PEN_NODISCARD pen_status pen_infer_proto_check_name(const pen_served_model *model,
                                                    const void *bytes, size_t length);

typedef enum pen_infer_answer {
    PEN_INFER_ANSWER_LIVE,     // ServerLive, ServerReady, ModelReady: `truth`
    PEN_INFER_ANSWER_SERVER,   // ServerMetadata
    PEN_INFER_ANSWER_MODEL,    // ModelMetadata: `model`
    PEN_INFER_ANSWER_INFERRED, // ModelInfer: `request`, which is done
} pen_infer_answer;

typedef struct pen_infer_reply {
    pen_infer_answer kind;
    bool truth;
    const pen_served_model *model;
    const pen_infer_request *request;
} pen_infer_reply;

// Writes up to `size` bytes of the message; returns how many it has.
size_t pen_infer_proto_write(const pen_infer_reply *reply, void *bytes, size_t size);

#endif // PEN_SCHEDULER_SERVE_INFER_PROTO_H
