// The table, and the reading of options.

#include "graph/keras_layers/layer.h"

#include <stdalign.h>
#include <string.h>

#include "base/text.h"
#include "graph/keras_layers/layer_list.h"

static const pen_layer layer_table[] = {
#define LAYER_ENTRY(symbol, keras, table, function, rank, least, most, says)                       \
    {.name = #symbol,                                                                              \
     .class_name = (keras),                                                                        \
     .summary = (says),                                                                            \
     .options = &pen_layer_##table##_options,                                                      \
     .input_rank = (rank),                                                                         \
     .input_min = (least),                                                                         \
     .input_max = (most),                                                                          \
     .build = pen_layer_##function##_build},
    PEN_LAYERS(LAYER_ENTRY)
#undef LAYER_ENTRY
};
#define LAYER_COUNT (sizeof layer_table / sizeof layer_table[0])

uint32_t pen_layer_count(void) {
    return LAYER_COUNT;
}

const pen_layer *pen_layer_at(uint32_t index) {
    PEN_ASSERT(index < LAYER_COUNT);
    return &layer_table[index];
}

// Says what layers there are, those like `name` first.
static pen_status layer_refuse(const char *name, bool is_class) {
    const char *names[LAYER_COUNT];
    pen_arena *arena = NULL;
    const char *possible = "";
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        names[i] = is_class ? layer_table[i].class_name : layer_table[i].name;
    }
    PEN_TRY(pen_arena_create(&arena));
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add_names(&text, name, names, LAYER_COUNT, LAYER_COUNT);
    pen_status status = pen_text_finish(&text, &possible);
    if (status == PEN_OK) {
        status =
            pen_error(PEN_NOT_FOUND, "no layer is called '%.100s'; possible: %s", name, possible);
    }
    pen_arena_destroy(arena);
    return status;
}

pen_status pen_layer_find(const char *name, const pen_layer **out_layer) {
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        if (strcmp(layer_table[i].name, name) != 0) continue;
        *out_layer = &layer_table[i];
        return PEN_OK;
    }
    return layer_refuse(name, false);
}

pen_status pen_layer_find_class(const char *class_name, const pen_layer **out_layer) {
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        if (strcmp(layer_table[i].class_name, class_name) != 0) continue;
        *out_layer = &layer_table[i];
        return PEN_OK;
    }
    return layer_refuse(class_name, true);
}

pen_status pen_layer_read_options(const pen_layer *layer, const pen_yaml_node *node,
                                  pen_arena *arena, const void **out_options) {
    const pen_option_source *source;
    const pen_option_settings settings = {.file = node->file};
    void *options = pen_arena_allocate(arena, 1, layer->options->size, alignof(max_align_t));
    if (options == NULL) return pen_error_out_of_memory();
    if (pen_yaml_is_nothing(node)) {
        pen_yaml_node *mapping = NULL;
        PEN_TRY(PEN_NEW(arena, 1, &mapping));
        *mapping = *node;
        mapping->kind = PEN_YAML_MAPPING;
        node = mapping;
    }
    PEN_TRY(pen_option_read(layer->options, node, &settings, arena, options, &source));
    *out_options = options;
    return PEN_OK;
}
