// What Keras has and these layers have not: why, and what can be in its place.

#include <string.h>

#include "graph/keras_layers/layer_choices.h"

typedef struct explain_entry {
    const char *name; // one that begins with * stands for all with that end
    const char *why;
} explain_entry;

static const explain_entry explain_options[] = {
    {"*_constraint", "weights cannot be held to constraints"},
    {"orthogonal_regularizer", "regularizers are l1 and l2"},
    {"factor", "orthogonal_regularizer is not there; l1 and l2 are"},
    {"stateful", "a state does not go on into the next batch"},
    {"unroll", "it says how Keras computes, and is not needed"},
    {"implementation", "it says how Keras computes, and is not needed"},
    {"time_major", "the batch is the first dimension; permute swaps others"},
    {"input_shape", "the model's 'inputs' say it, or a first layer 'input: {shape: …}'"},
    {"batch_input_shape", "the model's 'inputs' say it, and 'train: {batch: …}'"},
    {"input_dim", "the model's 'inputs' say it, or a first layer 'input: {shape: …}'"},
    {"input_length", "the model's 'inputs' say it, or a first layer 'input: {shape: …}'"},
    {"batch_size", "'train: {batch: …}' says it"},
    {"weights", "'model: {weights: …}' loads them"},
    {"dtype", "layers compute with float32; inputs have a dtype"},
    {"sparse", "tensors are dense"},
    {"ragged", "tensors are dense: pad them, and use a mask"},
    {"seed", "'train: {seed: …}' decides what is random in training"},
    {"synchronized", "statistics are those of a microbatch"},
    {"renorm", "batch renormalisation is not there"},
    {"virtual_batch_size", "statistics are those of a microbatch"},
    {"fused", "it says how Keras computes, and is not needed"},
    {"backward_layer", "both directions have one layer's options"},
    {"dynamic", "layers are static"},
    {"autocast", "layers compute with float32"},
    {"attention_axes", "attention is over the rows, dimension 1"},
    {"use_causal_mask", "the option is called causal"},
    {"return_attention_scores", "attention gives its result alone"},
    {"rms_scaling", "means are subtracted"},
    {"vocabulary", "texts become indices before training"},
};

static const explain_entry explain_layers[] = {
    {"lambda", "code of Python cannot be run; activation, rescaling, multiply and the like may do "
               "what it does"},
    {"rnn", "cells of one's own are not possible; lstm, gru and simple_rnn are"},
    {"*_cell", "cells alone are not possible; lstm, gru and simple_rnn are"},
    {"stacked_rnn_cells", "recurrent layers with return_sequences can be stacked"},
    {"conv_lstm*", "recurrent convolutions are not there"},
    {"locally_connected*", "kernels that differ from place to place are not there"},
    {"string_lookup", "texts become indices before training"},
    {"integer_lookup", "indices are looked up before training"},
    {"text_vectorization", "texts become indices before training"},
    {"hashing", "texts become indices before training"},
    {"hashed_crossing", "texts become indices before training"},
    {"dense_features", "columns of features become numbers before training"},
    {"random_*", "of random changes to pictures there is random_flip"},
    {"spectral_normalization", "normalisations are batch, layer, group and unit"},
    {"wrapper", "wrappers are bidirectional and time_distributed"},
};

static bool explain_fits(const char *pattern, const char *name) {
    const size_t length = strlen(pattern);
    const size_t name_length = strlen(name);
    if (pattern[0] == '*') {
        return name_length >= length - 1 &&
               strcmp(name + name_length - (length - 1), pattern + 1) == 0;
    }
    if (pattern[length - 1] == '*') return strncmp(name, pattern, length - 1) == 0;
    return strcmp(name, pattern) == 0;
}

static const char *explain_find(const explain_entry *entries, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (explain_fits(entries[i].name, name)) return entries[i].why;
    }
    return NULL;
}

const char *pen_layer_explain_option(const char *key) {
    return explain_find(explain_options, sizeof explain_options / sizeof *explain_options, key);
}

// "ConvLSTM2D" as "conv_lstm2d"
static void explain_snake(const char *name, char *out, size_t bytes) {
    size_t used = 0;
    for (size_t i = 0; name[i] != '\0' && used + 2 < bytes; i++) {
        const bool is_upper = name[i] >= 'A' && name[i] <= 'Z';
        const bool was_lower = i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z';
        const bool lower_next = name[i + 1] >= 'a' && name[i + 1] <= 'z';
        if (is_upper && i > 0 && (was_lower || lower_next) && out[used - 1] != '_') {
            out[used++] = '_';
        }
        out[used++] = (char)(is_upper ? name[i] - 'A' + 'a' : name[i]);
    }
    out[used] = '\0';
}

const char *pen_layer_explain_layer(const char *name) {
    char snake[64] = "";
    explain_snake(name, snake, sizeof snake);
    return explain_find(explain_layers, sizeof explain_layers / sizeof *explain_layers, snake);
}
