#include "cli/loss_terms.h"

#include <stdio.h>
#include <string.h>

void pen_loss_terms_write(pen_json_writer *json, const pen_program *program, const double *terms) {
    if (program->term_count == 0) return;
    pen_json_key_object(json, "losses");
    for (uint32_t i = 0; i < program->term_count; i++) {
        pen_json_key_number(json, program->losses[i].name, terms[i]);
    }
    pen_json_end_object(json);
}

void pen_loss_terms_format(const pen_program *program, const double *terms,
                           char text[PEN_LOSS_TERMS_TEXT_BYTES]) {
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < program->term_count; i++) {
        const size_t room = PEN_LOSS_TERMS_TEXT_BYTES - length;
        const int count = snprintf(text + length, room, "%s%s %.4f", i == 0 ? " (" : ", ",
                                   program->losses[i].name, terms[i]);
        if (count < 0 || (size_t)count + 1 >= room) break; // what was cut off has no ')'
        length += (size_t)count;
        if (i + 1 == program->term_count) memcpy(text + length, ")", 2);
    }
}
