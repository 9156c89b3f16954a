#include "graph/keras_layers/layer_choices.h"

const char *const pen_layer_format_names[] = {"channels_last", "channels_first", NULL};
const char *const pen_layer_padding_names[] = {"valid", "same", NULL};
const char *const pen_layer_causal_padding_names[] = {"valid", "same", "causal", NULL};

#define ACTIVATION_NAME(constant, name, make, op, recurrent) name,
const char *const pen_layer_activation_names[] = {PEN_LAYER_ACTIVATIONS(ACTIVATION_NAME) NULL};

const pen_option_field pen_layer_text_item = {.kind = PEN_OPTION_TEXT};
const pen_option_field pen_layer_size_item = {
    .kind = PEN_OPTION_INTEGER, .minimum = PEN_OPTION_FROM(1), .maximum = PEN_OPTION_TO(1e9)};
const pen_option_field pen_layer_window_item = {
    .kind = PEN_OPTION_INTEGER, .minimum = PEN_OPTION_FROM(1), .maximum = PEN_OPTION_TO(65536)};
const pen_option_field pen_layer_integer_item = {.kind = PEN_OPTION_INTEGER};
