// What Keras has and these layers have not: why, and what can be in its place.

#include "graph/keras_layers/layer_choices.h"

static const pen_text_word explain_options[] = {
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
    {NULL, NULL},
};

static const pen_text_word explain_layers[] = {
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
    {NULL, NULL},
};

const char *pen_layer_explain_option(const char *key) {
    return pen_text_find_word(explain_options, key);
}

const char *pen_layer_explain_layer(const char *name) {
    return pen_text_find_word(explain_layers, name);
}
