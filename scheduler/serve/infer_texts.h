// What the protocol's two forms have in common: names, codes, and checks of a whole request.
#ifndef PEN_SCHEDULER_SERVE_INFER_TEXTS_H
#define PEN_SCHEDULER_SERVE_INFER_TEXTS_H

#include "scheduler/serve/served_model.h"

#define PEN_INFER_SERVER "penstock"
#define PEN_INFER_PLATFORM "penstock"
#define PEN_INFER_VERSION "1" // of the model: there is one

// NOT_FOUND: another model is asked for
PEN_NODISCARD pen_status pen_infer_check_model(const pen_served_model *model, const char *name);
// NOT_FOUND: a version other than the one that there is; "" is any
PEN_NODISCARD pen_status pen_infer_check_version(const pen_served_model *model,
                                                 const char *version);
// INVALID_INPUT: an input has no contents; is_filled [input_count]
PEN_NODISCARD pen_status pen_infer_check_filled(const pen_served_model *model,
                                                const bool *is_filled);

// What an error is over HTTP, and over gRPC (google.rpc.Code).
typedef struct pen_infer_codes {
    int http;
    int grpc;
} pen_infer_codes;
pen_infer_codes pen_infer_codes_of(pen_status_code code);

// The error of a node that cannot take a value of a request, in one line for its caller: what is
// wrong, and what the node reads. It has seen the rows from first_row on. INVALID_INPUT
PEN_NODISCARD pen_status pen_infer_blame_rows(uint64_t first_row, pen_status take_status);

// Whether a header "Bearer TOKEN" (`length` bytes) has the token; always, where it is NULL. Takes
// as long whatever is wrong.
bool pen_infer_is_allowed(const char *token, const char *header, size_t length);

#endif // PEN_SCHEDULER_SERVE_INFER_TEXTS_H
