// Low-rank adapters (LoRA; Hu and others, arXiv:2106.09685): a product with a weight W becomes a
// product with W + scale * (B A), of which A and B are small and trained, and W is not. The sum is
// never made: the node stays as it is, and what A and B make of its input is added behind it,
//
//   y = x W + ((x A) * scale) B
//
// so that nothing of the size of W is kept or computed beside W itself.
//
// What can be adapted: matmul and gemm by a parameter of two dimensions, and conv by a kernel that
// all channels share (group 1): A is then a convolution to `rank` channels, of the same kernel,
// strides and padding, and B one of a single point.
//
// Of a parameter "fc1.weight" these are added, of any other name behind the whole of it:
//   fc1.lora_A.weight, fc1.lora_B.weight   parameters. (rank, in) and (out, rank) where W is
//       (out, in), as PyTorch has it, and for convolutions; (in, rank) and (rank, out) where W is
//       (in, out), as Keras has it. A product of the two in the one order or the other has the
//       shape of W, and since the rank is smaller than either, there is only one such order.
//   fc1.lora_scale                         [1], a parameter that is not trained
// A begins as torch.nn.Linear does (Kaiming uniform: up to 1 / sqrt(in) either way), from numbers
// that the seed, its name and the place of an element decide; B begins as zeros.
//
// Nodes of N: N/lora_A, N/lora_scale, N/lora_B, N/lora.
#ifndef PEN_GRAPH_PASSES_ADAPT_WEIGHTS_H
#define PEN_GRAPH_PASSES_ADAPT_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph_types.h"

typedef struct pen_adapters {
    const bool *chosen; // [node_count]: whose weights; nodes that have none are passed over
    uint32_t rank;
    double scale;
    uint64_t seed;
} pen_adapters;

// `graph` is typed, and without gradients. `out_values` as of any rewrite. Weights that are adapted
// are no longer trained; of all others nothing changes.
//   INVALID_INPUT  no chosen node can be adapted, or one that multiplies by a parameter cannot:
//   says
//                  of each why not
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_adapt_weights(const pen_graph *graph, const pen_adapters *adapters,
                                           uint32_t kept_count, const pen_value_id *kept,
                                           pen_graph **out_graph, const pen_value_id **out_values);

// Whether a parameter was added here: an adapter, or its scale.
bool pen_adapter_has_name(const char *name);
bool pen_adapter_is_scale(const char *name);
bool pen_adapter_begins_zero(const char *name); // B
// Of the name of a weight, that of its adapters up to what tells them apart: "fc1" of "fc1.weight".
// Returns its length; the name begins with it.
uint32_t pen_adapter_stem(const char *name);

#define PEN_ADAPTER_A ".lora_A.weight"
#define PEN_ADAPTER_B ".lora_B.weight"
#define PEN_ADAPTER_SCALE ".lora_scale"
#define PEN_ADAPTERS_PREFIX "base_model.model." // of names in files of adapters alone

#endif // PEN_GRAPH_PASSES_ADAPT_WEIGHTS_H
