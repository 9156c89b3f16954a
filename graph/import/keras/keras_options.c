#include "graph/import/keras/keras_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/keras_layers/layer_json.h"

#define OPTIONS_PROBLEMS_SHOWN 20

typedef struct options_reader {
    const char *file;
    pen_arena *arena;
    pen_text problems;
    uint32_t problem_count;
} options_reader;

static void options_complain(options_reader *reader, const pen_keras_layer *layer, const char *what,
                             const char *name) {
    reader->problem_count += 1;
    if (reader->problem_count > OPTIONS_PROBLEMS_SHOWN) return;
    pen_text_print(&reader->problems, "%s%s '%.100s' of %.100s '%.200s'",
                   reader->problem_count > 1 ? ", " : "", what, name, layer->class_name,
                   layer->name);
    const char *why = strcmp(what, "option") == 0  ? pen_layer_explain_option(name)
                      : strcmp(what, "layer") == 0 ? pen_layer_explain_layer(name)
                                                   : NULL;
    if (why != NULL) pen_text_print(&reader->problems, " (%s)", why);
}

// ---- what may be left out

typedef struct options_spare {
    const char *key;
    const char *only; // the one value with which it may be left out, as JSON; NULL: any
} options_spare;

// What our layers have no option for. Options that a layer does have are not looked for here.
static const options_spare options_spares[] = {
    {"name", NULL},
    {"batch_input_shape", NULL},
    {"batch_shape", NULL},
    {"input_length", NULL},
    {"implementation", NULL}, // how it is computed, not what
    {"unroll", NULL},
    {"seed", NULL}, // of numbers that are ours
    {"autocast", NULL},
    {"query_shape", NULL},
    {"key_shape", NULL},
    {"value_shape", NULL},
    {"unit_forget_bias", NULL}, // first contents
    {"trainable", NULL},
    {"sparse", "false"},
    {"ragged", "false"},
    {"time_major", "false"},
    {"stateful", "false"},
    {"zero_output_for_mask", "false"},
    {"crop_to_aspect_ratio", "false"},
    {"num_bins", "null"},
    {"epsilon", "0.01"}, // of bins that are found
    {"synchronized", "false"},
    {"renorm", "false"},
    {"renorm_clipping", NULL},
    {"renorm_momentum", NULL},
    {"use_gate", "false"},
    {"sliding_window", "null"},
    {"data_format", "\"channels_last\""}, // of layers that work on any channels
    {"axis", "-1"},
    {"keepdims", "false"},
    {"supports_masking", NULL},
    {"groups", "1"},
    {"attention_axes", "[1]"},
    {"dilation_rate", "[1, 1]"},
    {"output_padding", "null"},
    {"go_backwards", "false"},
    {"return_state", "false"},
    {"recurrent_dropout", "0.0"},
    {"use_scale", "false"},
    {"threshold", "0.0"},
    {"interpolation", "\"nearest\""},
    {"rms_scaling", "false"},
    {"normalize", "false"},
    {"score_mode", "\"dot\""},
    {"quantization_config", "null"},
    {"lora_rank", "null"},
};

static bool options_ends_with(const char *text, const char *end) {
    const size_t length = strlen(text);
    const size_t end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

// Whether a number, text or list is written like `text`.
static bool options_is(const json_t *value, const char *text) {
    char written[64];
    const size_t length = json_dumpb(value, written, sizeof written - 1, JSON_ENCODE_ANY);
    if (length >= sizeof written) return false;
    written[length] = '\0';
    if (strcmp(written, text) == 0) return true;
    char *end;
    const double wanted = strtod(text, &end);
    return json_is_number(value) && *end == '\0' && json_number_value(value) == wanted;
}

// No regularizer, or one that adds nothing.
static bool options_adds_nothing(const json_t *value) {
    const json_t *config = json_object_get(value, "config");
    const double l1 = json_number_value(json_object_get(config, "l1"));
    const double l2 = json_number_value(json_object_get(config, "l2"));
    return json_is_object(config) && json_object_get(config, "factor") == NULL && l1 == 0 &&
           l2 == 0 && json_object_size(config) > 0;
}

// A policy by its name, or as Keras 3 writes it.
static bool options_is_float32(const json_t *value) {
    const char *name = json_string_value(value);
    if (name == NULL) {
        name = json_string_value(json_object_get(json_object_get(value, "config"), "name"));
    }
    return name != NULL && strcmp(name, "float32") == 0;
}

// The backward layer of Keras' own making has the options of the forward one, but for its name and
// direction. First contents do not count.
static bool options_is_mirror(const json_t *config, const json_t *backward) {
    const json_t *forward = json_object_get(json_object_get(config, "layer"), "config");
    const json_t *own = json_object_get(backward, "config");
    const char *key;
    json_t *value;
    if (json_object_size(forward) == 0 || json_object_size(forward) != json_object_size(own)) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)forward, key, value) {
        const json_t *other = json_object_get(own, key);
        const bool is_direction = strcmp(key, "go_backwards") == 0;
        const bool is_free = strcmp(key, "name") == 0 || strcmp(key, "dtype") == 0 ||
                             options_ends_with(key, "_initializer");
        if (is_direction && json_is_true(value) == json_is_true(other)) return false;
        if (!is_direction && !is_free && !json_equal(value, other)) return false;
    }
    return true;
}

static bool options_may_be_left_out(const json_t *config, const char *key, const json_t *value) {
    if (strcmp(key, "dtype") == 0)
        return options_is_float32(value) || options_is(value, "\"int64\"");
    if (strcmp(key, "backward_layer") == 0) return options_is_mirror(config, value);
    if (options_ends_with(key, "_initializer")) return true;
    if (options_ends_with(key, "_regularizer")) return options_adds_nothing(value);
    for (size_t i = 0; i < sizeof options_spares / sizeof *options_spares; i++) {
        if (strcmp(options_spares[i].key, key) != 0) continue;
        return options_spares[i].only == NULL || options_is(value, options_spares[i].only);
    }
    return false;
}

// ---- options

static const pen_option_field *options_find_field(const pen_layer *layer, const char *key) {
    for (uint32_t i = 0; i < layer->options->field_count; i++) {
        if (strcmp(layer->options->fields[i].key, key) == 0) return &layer->options->fields[i];
    }
    return NULL;
}

static bool options_is_list(const pen_option_field *field) {
    return field->kind == PEN_OPTION_LIST;
}

static json_t *options_convert(options_reader *reader, const pen_keras_layer *named,
                               const pen_layer *layer, const json_t *config);

// {"class_name": "LSTM", "config": {…}} as {"lstm": {…}}. NULL when memory is out, or the layer
// was complained of.
static json_t *options_convert_inner(options_reader *reader, const pen_keras_layer *named,
                                     const json_t *value) {
    const pen_layer *inner;
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    const pen_status status = pen_layer_find_class(class_name, &inner);
    if (status != PEN_OK) {
        pen_status_ignore(status, "complained of with all others");
        options_complain(reader, named, "inner layer", class_name);
        return NULL;
    }
    json_t *converted = options_convert(reader, named, inner, json_object_get(value, "config"));
    json_t *whole = json_object();
    (void)json_object_set_new(whole, inner->name, converted);
    return whole;
}

// [null, 1, 1, 1] as [0, 1, 1, 1]: a size of the data.
static json_t *options_convert_sizes(const json_t *value) {
    json_t *sizes = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *member = json_array_get(value, i);
        (void)json_array_append_new(sizes,
                                    json_is_null(member) ? json_integer(0) : json_incref(member));
    }
    return sizes;
}

// [[1, 0], [0, 1]] as [1, 0, 0, 1]: paddings are one list here.
static json_t *options_flatten(const json_t *value) {
    json_t *flat = json_array();
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *member = json_array_get(value, i);
        if (json_is_array(member)) {
            (void)json_array_extend(flat, member);
        } else {
            (void)json_array_append(flat, member);
        }
    }
    return flat;
}

// {"class_name": "L2", "config": {"l2": 0.01}} as {"l2": 0.01}, numbers being such as float32 has.
static json_t *options_convert_regularizer(options_reader *reader, const pen_keras_layer *named,
                                           const pen_option_field *field, const json_t *value) {
    static const char *const factors[2] = {"l1", "l2"};
    const json_t *config = json_object_get(value, "config");
    json_t *converted = json_object();
    const char *key;
    json_t *number;
    bool is_known = json_is_object(config);
    json_object_foreach((json_t *)(uintptr_t)config, key, number) {
        bool is_factor = false;
        for (size_t i = 0; i < 2; i++) {
            is_factor = is_factor || (strcmp(key, factors[i]) == 0 && json_is_number(number));
        }
        is_known = is_known && (is_factor || json_is_null(number));
        if (!is_factor) continue;
        const double rounded = (double)(float)json_number_value(number);
        (void)json_object_set_new(converted, key, json_real(rounded));
    }
    if (is_known) return converted;
    options_complain(reader, named, "option", field->key);
    json_decref(converted);
    return NULL;
}

// Keras writes some single numbers as lists of one, and activations of Keras 3 as objects.
static json_t *options_convert_value(options_reader *reader, const pen_keras_layer *named,
                                     const pen_option_field *field, json_t *value) {
    if (field->table == &pen_layer_regularizer_table) {
        return options_convert_regularizer(reader, named, field, value);
    }
    if (strcmp(field->key, "noise_shape") == 0) return options_convert_sizes(value);
    const json_t *class_name = json_object_get(value, "class_name");
    if (json_is_string(class_name) && json_is_object(json_object_get(value, "config"))) {
        return options_convert_inner(reader, named, value);
    }
    if (json_array_size(value) == 1 && !options_is_list(field)) {
        return json_incref(json_array_get(value, 0));
    }
    if (json_is_array(json_array_get(value, 0))) return options_flatten(value);
    return json_incref(value);
}

static const char *options_our_key(const pen_layer *layer, const char *key) {
    static const char *const renamed[][2] = {{"negative_slope", "alpha"},
                                             {"alpha", "negative_slope"}};
    if (options_find_field(layer, key) != NULL) return key;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        if (strcmp(key, renamed[i][0]) == 0 && options_find_field(layer, renamed[i][1]) != NULL) {
            return renamed[i][1];
        }
    }
    return key;
}

// Whether None says what no value at all says here.
static bool options_may_be_null(const pen_layer *layer, const char *key) {
    if (strcmp(layer->name, "bidirectional") == 0) return strcmp(key, "merge_mode") != 0;
    if (strcmp(layer->name, "normalization") == 0) return strcmp(key, "axis") != 0;
    return true;
}

// Options of Keras become ours by name. What we do not know is complained of, unless it changes
// nothing.
static json_t *options_convert(options_reader *reader, const pen_keras_layer *named,
                               const pen_layer *layer, const json_t *config) {
    json_t *converted = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)config, key, value) {
        const char *ours = options_our_key(layer, key);
        const pen_option_field *field = options_find_field(layer, ours);
        const bool is_spare = strcmp(key, "name") == 0 || strcmp(key, "dtype") == 0 ||
                              options_ends_with(key, "_initializer");
        if (json_is_null(value)) {
            if (!options_may_be_null(layer, key)) options_complain(reader, named, "option", key);
            continue;
        }
        if (field != NULL && !is_spare) {
            json_t *ready = options_convert_value(reader, named, field, value);
            if (ready != NULL) (void)json_object_set_new(converted, ours, ready);
            continue;
        }
        if (!options_may_be_left_out(config, key, value))
            options_complain(reader, named, "option", key);
    }
    return converted;
}

// ---- layers

// Keras says it in each call; the layers here say it once.
static bool options_is_causal(const pen_keras_layer *layer, const char *key, const json_t *value) {
    return strcmp(key, "use_causal_mask") == 0 && json_is_true(value) && layer->builds != NULL &&
           options_find_field(layer->builds, "causal") != NULL && layer->call_count == 1;
}

// Whether a call's mask says which steps some Embedding with mask_zero reads no 0 at. Its layers
// pass that on by themselves, as those of Keras did when the model was made.
static bool options_is_own_mask(const pen_keras_model *model, const pen_keras_call *call) {
    if (!call->is_masked || !model->layers[call->mask.layer].is_mask) return false;
    const pen_keras_reference *of = &model->layers[call->mask.layer].calls->inputs[0];
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const pen_keras_layer *layer = &model->layers[l];
        if (!json_is_true(json_object_get(layer->config, "mask_zero"))) continue;
        for (uint32_t c = 0; c < layer->call_count; c++) {
            const pen_keras_call *reads = &layer->calls[c];
            if (reads->input_count == 1 && memcmp(&reads->inputs[0], of, sizeof *of) == 0) {
                return true;
            }
        }
    }
    return false;
}

// An argument of a call that is no tensor must say nothing.
static void options_check_arguments(options_reader *reader, const pen_keras_model *model,
                                    const pen_keras_layer *layer) {
    static const char *const tensors[] = {"query", "value", "key", "initial_state", "y"};
    for (uint32_t i = 0; i < layer->call_count; i++) {
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)layer->calls[i].arguments, key, value) {
            bool is_known =
                json_is_null(value) || json_is_false(value) || strcmp(key, "training") == 0;
            for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++)
                is_known = is_known || strcmp(key, tensors[t]) == 0;
            is_known = is_known || options_is_causal(layer, key, value) ||
                       (strcmp(key, "mask") == 0 && options_is_own_mask(model, &layer->calls[i]));
            if (!is_known) options_complain(reader, layer, "argument", key);
        }
    }
}

static bool options_asks_for_causal(const pen_keras_layer *layer) {
    if (layer->call_count != 1) return false;
    const json_t *value = json_object_get(layer->calls[0].arguments, "use_causal_mask");
    return options_is_causal(layer, "use_causal_mask", value);
}

// Problems are collected over all layers, so that one run shows everything that is missing.
static pen_status options_read_layer(options_reader *reader, const pen_keras_model *model,
                                     pen_keras_layer *layer) {
    const pen_status found = pen_layer_find_class(layer->class_name, &layer->builds);
    if (found != PEN_OK) {
        if (pen_status_get_code(found) != PEN_NOT_FOUND) return found;
        pen_status_ignore(found, "complained of with all others");
        options_complain(reader, layer, "layer", layer->class_name);
        layer->builds = NULL;
        return PEN_OK;
    }
    const pen_yaml_node *node;
    const uint32_t before = reader->problem_count;
    options_check_arguments(reader, model, layer);
    json_t *converted = options_convert(reader, layer, layer->builds, layer->config);
    if (converted == NULL) return pen_error_out_of_memory();
    if (options_asks_for_causal(layer)) (void)json_object_set_new(converted, "causal", json_true());
    pen_status status = PEN_OK;
    if (reader->problem_count == before) {
        status = pen_layer_node_from_json(converted, reader->file, reader->arena, &node);
    }
    if (status == PEN_OK && reader->problem_count == before) {
        status = pen_layer_read_options(layer->builds, node, reader->arena, &layer->options);
    }
    json_decref(converted);
    return pen_status_add_context(status, "in layer '%.200s' of class %.100s", layer->name,
                                  layer->class_name);
}

static pen_status options_read_model(options_reader *reader, pen_keras_model *model) {
    for (uint32_t i = 0; i < model->layer_count; i++) {
        pen_keras_layer *layer = &model->layers[i];
        if (layer->is_input || layer->is_mask) continue;
        if (layer->model != NULL) {
            options_check_arguments(reader, model, layer);
            PEN_TRY(options_read_model(reader, layer->model));
        } else {
            PEN_TRY(options_read_layer(reader, model, layer));
        }
    }
    return PEN_OK;
}

pen_status pen_keras_options_read(pen_keras_model *model, const char *file, pen_arena *arena) {
    options_reader reader = {.file = file, .arena = arena};
    const char *problems;
    pen_text_init(&reader.problems, arena);
    PEN_TRY(options_read_model(&reader, model));
    if (reader.problem_count == 0) return PEN_OK;
    if (reader.problem_count > OPTIONS_PROBLEMS_SHOWN) {
        pen_text_print(&reader.problems, " and %u more",
                       reader.problem_count - OPTIONS_PROBLEMS_SHOWN);
    }
    PEN_TRY(pen_text_finish(&reader.problems, &problems));
    return pen_error(PEN_UNSUPPORTED, "the model has what Penstock's layers have not: %s",
                     problems);
}
