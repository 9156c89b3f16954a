// The values of several losses beside their sum, in what commands print. A program with one loss
// has none.
#ifndef PEN_CLI_LOSS_TERMS_H
#define PEN_CLI_LOSS_TERMS_H

#include <stddef.h>

#include "base/format/json_writer.h"
#include "scheduler/compile/compile_request.h"

#define PEN_LOSS_TERMS_TEXT_BYTES 256

// "losses": {"logits": 0.31, "boxes": 1.2}. `terms`: [term_count]
void pen_loss_terms_write(pen_json_writer *json, const pen_program *program, const double *terms);

// " (logits 0.3100, boxes 1.2000)", cut where there is no room; "" where there are none.
void pen_loss_terms_format(const pen_program *program, const double *terms,
                           char text[PEN_LOSS_TERMS_TEXT_BYTES]);

#endif // PEN_CLI_LOSS_TERMS_H
