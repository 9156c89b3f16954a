#include "graph/import/pytorch/pt2_formula.h"

#include <stdlib.h>
#include <string.h>

#include "graph/import/pytorch/pt2_importer.h"

#define FORMULA_DEPTH_LIMIT 32

typedef struct formula_reader {
    pen_pt2_draft *draft;
    const char *whole;
    const char *at;
    uint32_t depth;
} formula_reader;

// Functions of two or more operands, which are joined from the left.
typedef struct formula_function {
    const char *name;
    const char *op_name;
    bool is_floored; // of integers that are divided, down
} formula_function;

static const formula_function formula_functions[] = {
    {"Add", "add", false},     {"Mul", "mul", false},      {"Max", "max", false},
    {"Min", "min", false},     {"Mod", "mod", false},      {"PythonMod", "mod", false},
    {"FloorDiv", "div", true}, {"CleanDiv", "div", false},
};

static pen_status formula_refuse(const formula_reader *reader) {
    return pen_error(PEN_UNSUPPORTED, "a size of it is %.200s, which Penstock cannot compute",
                     reader->whole);
}

bool pen_pt2_formula_is_symbol(const char *formula, char out_name[PEN_PT2_SYMBOL_BYTES]) {
    if (formula == NULL || strncmp(formula, "Symbol('", 8) != 0) return false;
    const size_t length = strcspn(formula + 8, "'");
    const char *rest = formula + 8 + length;
    const char *end = strchr(rest, ')');
    if (length == 0 || length >= PEN_PT2_SYMBOL_BYTES || end == NULL || end[1] != '\0') {
        return false;
    }
    memcpy(out_name, formula + 8, length);
    out_name[length] = '\0';
    return true;
}

// The size of an input that is a symbol, by the symbol's name.
static pen_status formula_find_input(const formula_reader *reader, const char *name,
                                     pen_value_id *out_value) {
    pen_pt2_draft *draft = reader->draft;
    const pen_pt2_importer *import = draft->import;
    char found[PEN_PT2_SYMBOL_BYTES];
    pen_value_id axis, sizes;
    for (uint32_t i = 0; i < import->model->graph.input_count; i++) {
        const pen_pt2_slot *slot = import->ports[i];
        const bool is_input = import->model->ports[i].role == PEN_PT2_USER_INPUT;
        for (uint32_t d = 0; is_input && slot != NULL && d < slot->meta->shape.rank; d++) {
            if (!pen_pt2_formula_is_symbol(slot->meta->symbols[d], found)) continue;
            if (strcmp(found, name) != 0) continue;
            PEN_TRY(pen_pt2_map(draft, "shape", "shape", import->port_values[i], &sizes));
            PEN_TRY(pen_pt2_constant_number(draft, PEN_INT64, d, &axis));
            return pen_pt2_pair(draft, "gather", "size", sizes, axis, out_value);
        }
    }
    return formula_refuse(reader);
}

static pen_status formula_read(formula_reader *reader, pen_value_id *out_value);

static pen_status formula_symbol(formula_reader *reader, pen_value_id *out_value) {
    const size_t length = strcspn(reader->at, "'");
    const char *end = strchr(reader->at, ')');
    char name[PEN_PT2_SYMBOL_BYTES];
    if (length == 0 || length >= sizeof name || end == NULL) return formula_refuse(reader);
    memcpy(name, reader->at, length);
    name[length] = '\0';
    reader->at = end + 1;
    return formula_find_input(reader, name, out_value);
}

static pen_status formula_integer(formula_reader *reader, pen_value_id *out_value) {
    char *end;
    const long long number = strtoll(reader->at, &end, 10);
    if (end == reader->at || *end != ')') return formula_refuse(reader);
    reader->at = end + 1;
    return pen_pt2_constant_number(reader->draft, PEN_INT64, (double)number, out_value);
}

static pen_status formula_join(pen_pt2_draft *draft, const formula_function *function,
                               pen_value_id a, pen_value_id b, pen_value_id *out_value) {
    if (function->is_floored) {
        pen_value_id rest;
        PEN_TRY(pen_pt2_pair(draft, "mod", "rest", a, b, &rest));
        PEN_TRY(pen_pt2_pair(draft, "sub", "whole", a, rest, &a));
    }
    return pen_pt2_pair(draft, function->op_name, "size", a, b, out_value);
}

// "a, b, …)" behind the name of a function.
static pen_status formula_call(formula_reader *reader, const formula_function *function,
                               pen_value_id *out_value) {
    pen_value_id joined = PEN_VALUE_NONE, next = PEN_VALUE_NONE;
    if (++reader->depth > FORMULA_DEPTH_LIMIT) return formula_refuse(reader);
    PEN_TRY(formula_read(reader, &joined));
    while (strncmp(reader->at, ", ", 2) == 0) {
        reader->at += 2;
        PEN_TRY(formula_read(reader, &next));
        PEN_TRY(formula_join(reader->draft, function, joined, next, &joined));
    }
    if (*reader->at != ')') return formula_refuse(reader);
    reader->at++;
    reader->depth--;
    *out_value = joined;
    return PEN_OK;
}

// One term: a symbol, an integer, or a function with its operands.
static pen_status formula_read(formula_reader *reader, pen_value_id *out_value) {
    const char *at = reader->at;
    const size_t length = strcspn(at, "(");
    if (strncmp(at, "Symbol('", 8) == 0) {
        reader->at += 8;
        return formula_symbol(reader, out_value);
    }
    if (strncmp(at, "Integer(", 8) == 0) {
        reader->at += 8;
        return formula_integer(reader, out_value);
    }
    for (size_t i = 0; i < sizeof formula_functions / sizeof formula_functions[0]; i++) {
        const formula_function *function = &formula_functions[i];
        if (strlen(function->name) != length || strncmp(function->name, at, length) != 0) continue;
        if (at[length] != '(') break;
        reader->at += length + 1;
        return formula_call(reader, function, out_value);
    }
    return formula_refuse(reader);
}

// Symbols that nodes have computed are taken as they are.
pen_status pen_pt2_formula_emit(pen_pt2_draft *draft, const char *formula,
                                pen_value_id *out_value) {
    const pen_pt2_scope *scope = draft->scope;
    formula_reader reader = {.draft = draft, .whole = formula, .at = formula};
    if (formula == NULL) return pen_error(PEN_UNSUPPORTED, "a size of it is not known");
    for (uint32_t i = 0; i < scope->symbol_index.count; i++) {
        const pen_pt2_known_symbol *symbol = &scope->symbols[i];
        if (symbol->meta == NULL || symbol->meta->formula == NULL) continue;
        if (strcmp(symbol->meta->formula, formula) != 0) continue;
        *out_value = symbol->value;
        return PEN_OK;
    }
    PEN_TRY(formula_read(&reader, out_value));
    return *reader.at == '\0' ? PEN_OK : formula_refuse(&reader);
}
