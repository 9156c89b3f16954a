#include "graph/ops/product/einsum_equation.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "graph/op.h"

#define EINSUM_NONE 255

// One term of the text: letters, and where "..." stands among them.
typedef struct einsum_text {
    const char *start;
    const char *end;
    uint32_t letter_count;
    bool has_dots;
} einsum_text;

static uint8_t einsum_label(char letter) {
    if (letter >= 'A' && letter <= 'Z') return (uint8_t)(letter - 'A');
    if (letter >= 'a' && letter <= 'z') return (uint8_t)(26 + letter - 'a');
    return EINSUM_NONE;
}

static char einsum_letter(uint32_t label) {
    return (char)(label < 26 ? 'A' + (char)label : 'a' + (char)(label - 26));
}

static pen_status einsum_bad(const char *equation, const char *what) {
    return pen_error(PEN_INVALID_INPUT, "equation '%.200s': %s", equation, what);
}

// Counts the term from `text` on; leaves *text at its end.
static pen_status einsum_scan(const char *equation, const char **text, einsum_text *out_term) {
    einsum_text term = {.start = *text};
    const char *c = *text;
    for (; *c != '\0' && *c != ',' && !(c[0] == '-' && c[1] == '>'); c++) {
        if (*c == ' ') continue;
        if (strncmp(c, "...", 3) == 0) {
            if (term.has_dots) return einsum_bad(equation, "a term has '...' twice");
            term.has_dots = true;
            c += 2;
            continue;
        }
        if (einsum_label(*c) == EINSUM_NONE) {
            return einsum_bad(equation, "a term may have letters, spaces and '...' only");
        }
        term.letter_count++;
    }
    term.end = c;
    *text = c;
    *out_term = term;
    return PEN_OK;
}

// Fills a term whose "..." stands for `dot_count` dimensions.
static void einsum_fill(const einsum_text *text, uint32_t dot_count, pen_einsum_term *out_term) {
    pen_einsum_term term = {0};
    for (const char *c = text->start; c < text->end; c++) {
        if (*c == '.') {
            for (uint32_t d = dot_count; d-- > 0;) {
                term.labels[term.rank++] = (uint8_t)(PEN_EINSUM_LETTERS + d);
            }
            c += 2;
        } else if (*c != ' ') {
            term.labels[term.rank++] = einsum_label(*c);
        }
    }
    *out_term = term;
}

static pen_status einsum_note_sizes(const char *equation, const pen_shape *shape,
                                    const pen_einsum_term *term, int64_t *sizes) {
    for (uint32_t d = 0; d < term->rank; d++) {
        int64_t *size = &sizes[term->labels[d]];
        const int64_t dim = shape->dims[d];
        if (dim == 0) return einsum_bad(equation, "an operand has no elements");
        if (*size == 0 || *size == 1) {
            *size = dim;
        } else if (dim != 1 && dim != *size) {
            const bool is_letter = term->labels[d] < PEN_EINSUM_LETTERS;
            return pen_error(PEN_INVALID_INPUT,
                             "equation '%.200s': '%c' is both %lld and %lld elements", equation,
                             is_letter ? einsum_letter(term->labels[d]) : '.', (long long)*size,
                             (long long)dim);
        }
    }
    return PEN_OK;
}

// What the result has when the equation does not say.
static pen_status einsum_default_output(const char *equation, uint32_t dot_count,
                                        pen_einsum *einsum) {
    uint32_t uses[PEN_EINSUM_LETTERS] = {0};
    for (uint32_t o = 0; o < einsum->operand_count; o++) {
        for (uint32_t d = 0; d < einsum->operands[o].rank; d++) {
            const uint8_t label = einsum->operands[o].labels[d];
            if (label < PEN_EINSUM_LETTERS) uses[label]++;
        }
    }
    pen_einsum_term *output = &einsum->output;
    for (uint32_t d = dot_count; d-- > 0;) {
        output->labels[output->rank++] = (uint8_t)(PEN_EINSUM_LETTERS + d);
    }
    for (uint32_t label = 0; label < PEN_EINSUM_LETTERS; label++) {
        if (uses[label] != 1) continue;
        if (output->rank == PEN_RANK_LIMIT) return einsum_bad(equation, "the result is too deep");
        output->labels[output->rank++] = (uint8_t)label;
    }
    return PEN_OK;
}

// What follows the arrow: each letter once, and none that no operand has.
static pen_status einsum_given_output(const char *equation, const char *text, uint32_t dot_count,
                                      pen_einsum *einsum) {
    einsum_text term;
    PEN_TRY(einsum_scan(equation, &text, &term));
    if (*text != '\0') return einsum_bad(equation, "text follows the result");
    if (term.letter_count + (term.has_dots ? dot_count : 0) > PEN_RANK_LIMIT) {
        return einsum_bad(equation, "the result has too many dimensions");
    }
    einsum_fill(&term, dot_count, &einsum->output);
    for (uint32_t d = 0; d < einsum->output.rank; d++) {
        const uint8_t label = einsum->output.labels[d];
        if (einsum->sizes[label] == 0) {
            return einsum_bad(equation, "the result has a dimension that no operand has");
        }
        for (uint32_t e = 0; e < d; e++) {
            if (einsum->output.labels[e] == label) {
                return einsum_bad(equation, "the result has a dimension twice");
            }
        }
    }
    return PEN_OK;
}

// Dimensions under "..." count from the end, so the longest run of them is found first.
pen_status pen_einsum_read(const char *equation, uint32_t operand_count,
                           const pen_shape *const *shapes, pen_einsum *out_einsum) {
    pen_einsum einsum = {.operand_count = operand_count};
    const char *text = equation;
    uint32_t dot_count = 0;
    if (operand_count > PEN_EINSUM_OPERANDS_LIMIT) {
        return pen_error(PEN_INVALID_INPUT,
                         "equation '%.200s': %u operands, at most %d are possible", equation,
                         operand_count, PEN_EINSUM_OPERANDS_LIMIT);
    }
    for (uint32_t o = 0; o < operand_count; o++) {
        einsum_text term;
        PEN_TRY(einsum_scan(equation, &text, &term));
        const uint32_t rank = shapes[o]->rank;
        const bool fits = term.has_dots ? term.letter_count <= rank : term.letter_count == rank;
        if (!fits) {
            return pen_error(PEN_INVALID_INPUT,
                             "equation '%.200s': operand %u has %u dimensions, its term %u",
                             equation, o, rank, term.letter_count);
        }
        const uint32_t dots = rank - term.letter_count;
        if (dots > dot_count) dot_count = dots;
        einsum_fill(&term, dots, &einsum.operands[o]);
        PEN_TRY(einsum_note_sizes(equation, shapes[o], &einsum.operands[o], einsum.sizes));
        const bool is_last = o + 1 == operand_count;
        if (!is_last && *text != ',') return einsum_bad(equation, "it has too few terms");
        if (is_last && *text == ',') return einsum_bad(equation, "it has too many terms");
        if (*text == ',') text++;
    }
    if (*text == '\0') {
        PEN_TRY(einsum_default_output(equation, dot_count, &einsum));
    } else {
        PEN_TRY(einsum_given_output(equation, text + 2, dot_count, &einsum));
    }
    *out_einsum = einsum;
    return PEN_OK;
}

pen_status pen_einsum_of(const pen_graph *graph, const pen_node *node, pen_einsum *out_einsum) {
    const pen_shape *shapes[PEN_EINSUM_OPERANDS_LIMIT] = {NULL};
    for (uint32_t i = 0; i < node->input_count && i < PEN_EINSUM_OPERANDS_LIMIT; i++) {
        if (!pen_value_is(node->inputs[i])) {
            return pen_error(PEN_INVALID_INPUT, "operand %u is left out", i);
        }
        shapes[i] = &pen_value_type(graph, node->inputs[i])->shape;
    }
    return pen_einsum_read(pen_node_text(node, "equation"), node->input_count, shapes, out_einsum);
}

pen_shape pen_einsum_shape(const pen_einsum *einsum, const pen_einsum_term *term) {
    pen_shape shape = {.rank = term->rank};
    for (uint32_t d = 0; d < term->rank; d++) {
        shape.dims[d] = einsum->sizes[term->labels[d]];
    }
    return shape;
}

// Labels become letters in the order of their appearance, so that equal equations get equal text.
pen_status pen_einsum_write(const pen_einsum_term *operands, uint32_t operand_count,
                            const pen_einsum_term *output, char out_text[PEN_EINSUM_TEXT_BYTES]) {
    uint8_t letters[PEN_EINSUM_LABELS + PEN_RANK_LIMIT];
    uint8_t next = 0;
    char *to = out_text;
    memset(letters, EINSUM_NONE, sizeof letters);
    for (uint32_t o = 0; o <= operand_count; o++) {
        const pen_einsum_term *term = o < operand_count ? &operands[o] : output;
        for (uint32_t d = 0; d < term->rank; d++) {
            uint8_t *letter = &letters[term->labels[d]];
            if (*letter == EINSUM_NONE) {
                // small letters first: they are what people write
                if (next == PEN_EINSUM_LETTERS) {
                    return pen_error(PEN_INVALID_INPUT, "an equation of more than %d dimensions",
                                     PEN_EINSUM_LETTERS);
                }
                *letter = (uint8_t)((next++ + 26) % PEN_EINSUM_LETTERS);
            }
            *to++ = einsum_letter(*letter);
        }
        if (o + 1 < operand_count) *to++ = ',';
        if (o + 1 == operand_count) {
            *to++ = '-';
            *to++ = '>';
        }
    }
    *to = '\0';
    return PEN_OK;
}
