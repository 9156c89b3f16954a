// What a server knows of its model, and a request for it: rows of every input in, rows of every
// output out. Plain data that the protocol's readers fill and the batcher runs.
//
// A request's memory is taken when its shape is known, and bounded by what has arrived: each reader
// checks the length of the bytes that came against the shape before.
//
// Lifetime: the model outlives its requests. A request is its maker's until it is submitted, and
//           again when it is done.
// Threads:  one at a time.
#ifndef PEN_SCHEDULER_SERVE_SERVED_MODEL_H
#define PEN_SCHEDULER_SERVE_SERVED_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/status.h"
#include "graph/tensor_type.h"

#define PEN_SERVED_TENSORS_LIMIT 64 // inputs, and outputs, of a model
#define PEN_SERVED_ID_BYTES 256     // of a request's id, with the 0 behind it

typedef struct pen_served_tensor {
    const char *name;
    pen_tensor_type row; // without the first dimension
    uint64_t row_bytes;
    // Of an int64 input that a node reads as indices, before anything else is made of it: they are
    // -index_limit to index_limit - 1. 0: nothing is known
    int64_t index_limit;
    const char *index_node; // that has that limit: "gather 'table'"
} pen_served_tensor;

typedef struct pen_served_model {
    const char *name;
    uint32_t input_count;
    uint32_t output_count;
    const pen_served_tensor *inputs;  // [input_count]
    const pen_served_tensor *outputs; // [output_count]
    uint64_t rows_limit;              // of a request
} pen_served_model;

typedef struct pen_infer_request pen_infer_request;

// Called once, on any thread, when the outputs are there, or with why not.
typedef void (*pen_infer_done)(void *context, pen_infer_request *request, pen_status take_status);

struct pen_infer_request {
    const pen_served_model *model;
    char id[PEN_SERVED_ID_BYTES]; // "": none
    uint64_t rows;
    char *inputs[PEN_SERVED_TENSORS_LIMIT];      // [rows] of each
    char *outputs[PEN_SERVED_TENSORS_LIMIT];     // likewise
    bool is_asked[PEN_SERVED_TENSORS_LIMIT];     // of outputs: to be answered with
    bool is_in_binary[PEN_SERVED_TENSORS_LIMIT]; // HTTP: of outputs, behind the JSON
    double deadline;                             // seconds of the clock
    pen_infer_done done;
    void *context;
    // the batcher's
    uint64_t rows_taken;
    uint64_t rows_done;
    pen_status failure; // what it will be answered with when no row of it is under way
    double queued_at;
    pen_infer_request *next;
};

// A request without rows, for which all outputs are asked. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_infer_request_create(const pen_served_model *model,
                                                  pen_infer_request **out_request);
// Accepts NULL.
void pen_infer_request_destroy(pen_infer_request *request);

// Room for the rows of all inputs and outputs, once they are known. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_infer_request_allocate(pen_infer_request *request);

// What a request says of one of its inputs.
typedef struct pen_infer_claim {
    const char *name;
    const char *datatype;
    uint32_t rank;
    const int64_t *dims; // [rank]
} pen_infer_claim;

// An input of a request as it says of itself. Its rows are noted, or must be those of the inputs
// before it. *out_bytes: what it must have.
//   NOT_FOUND      there is no such input
//   INVALID_INPUT  another type, shape, or number of rows; named twice
PEN_NODISCARD pen_status pen_infer_request_find_input(pen_infer_request *request,
                                                      const pen_infer_claim *claim,
                                                      uint32_t *out_index, uint64_t *out_bytes);
// The output of that name. From the first call on, only those that are named are asked for.
// NOT_FOUND
PEN_NODISCARD pen_status pen_infer_request_ask(pen_infer_request *request, const char *name,
                                               bool *is_first, uint32_t *out_index);

// Whether all of a request's indices lie in their tables, as far as that is known before anything
// runs. INVALID_INPUT: names the input, the index and the node
PEN_NODISCARD pen_status pen_infer_request_check_indices(const pen_infer_request *request);

// "FP32": as the protocol calls element types; NULL: it has no name for it.
const char *pen_served_datatype(pen_element_type element);

#endif // PEN_SCHEDULER_SERVE_SERVED_MODEL_H
