#include "cli/model_view.h"

#include <string.h>

#include "base/format/quantity.h"
#include "scheduler/compile/compile.h"

#define VIEW_SIZES_LIMIT 64

// NAME=NUMBER, separated by commas, for `inspect` and `show`, which have no data to take sizes
// from.
static pen_status view_bind(const pen_model_view_sizes *sizes, const pen_model *model,
                            pen_arena *arena, pen_symbol_binding *bindings, uint32_t *out_count) {
    const char *given = sizes->sizes != NULL ? sizes->sizes : "";
    uint32_t count = 0;
    if (model->batch_symbol != NULL) {
        bindings[count++] = (pen_symbol_binding){model->batch_symbol, sizes->batch};
    }
    for (given += strspn(given, ","); *given != '\0'; given += strspn(given, ",")) {
        const size_t length = strcspn(given, ",");
        const char *part, *symbol;
        int64_t size = 0;
        PEN_TRY(pen_arena_copy_text(arena, given, length, &part));
        const size_t name_length = strcspn(part, "=");
        const bool is_number =
            name_length < length && pen_integer_parse(part + name_length + 1, &size);
        if (!is_number || size <= 0 || count == VIEW_SIZES_LIMIT) {
            return pen_error(PEN_INVALID_INPUT, "--sizes: found '%s', expected NAME=NUMBER", part);
        }
        PEN_TRY(pen_arena_copy_text(arena, part, name_length, &symbol));
        bindings[count++] = (pen_symbol_binding){symbol, size};
        given += length;
    }
    *out_count = count;
    return PEN_OK;
}

static pen_status view_blame(const void *context, pen_compile_part part, uint32_t index,
                             pen_status status) {
    (void)index;
    const pen_model *model = context;
    if (part != PEN_COMPILE_PART_SHAPES) return status;
    return pen_status_add_context(
        status, "in %s (--sizes NAME=N,… gives sizes other than the batch's)", model->path);
}

pen_status pen_model_view(pen_command_context *context, const pen_model_view_sizes *sizes,
                          pen_model *model, const pen_graph **out_graph) {
    pen_symbol_binding bindings[VIEW_SIZES_LIMIT];
    // the batch is one of the sizes: a model may fix it
    pen_compile_request request = {.mode = sizes->fused ? PEN_COMPILE_LOOK_FUSED : PEN_COMPILE_LOOK,
                                   .sizes = bindings,
                                   .blame = view_blame,
                                   .blame_context = model,
                                   .watch = sizes->watch,
                                   .watch_context = sizes->watch_context};
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(view_bind(sizes, model, context->arena, bindings, &request.size_count));
    context->input_exit_code = PEN_EXIT_MODEL;
    return pen_compile_look(&request, model, out_graph);
}
