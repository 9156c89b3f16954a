// Limits on what is read from outside. Every reader checks these before it allocates; tests name
// them, so a change here is seen.
#ifndef PEN_BASE_LIMITS_H
#define PEN_BASE_LIMITS_H

#include <stdint.h>

#define PEN_RANK_LIMIT 8                          // dimensions of a tensor
#define PEN_NODE_COUNT_LIMIT (1u << 24)           // nodes in a graph
#define PEN_VALUE_COUNT_LIMIT (1u << 26)          // values in a graph
#define PEN_NODE_ARITY_LIMIT 4096                 // inputs, or outputs, of one node
#define PEN_NAME_BYTES_LIMIT 4096                 // a name in a model
#define PEN_TENSOR_BYTES_LIMIT (1ull << 46)       // bytes of one tensor
#define PEN_NESTING_LIMIT 32                      // messages in messages, mappings in mappings
#define PEN_SPEC_BYTES_LIMIT (1u << 20)           // a YAML file
#define PEN_SPEC_NODES_LIMIT (1u << 16)           // scalars, lists and mappings of a YAML file
#define PEN_FOLD_BYTES_LIMIT (64u << 20)          // largest constant made by folding
#define PEN_FOLD_TOTAL_BYTES_LIMIT (512u << 20)   // all constants of a graph made by folding
#define PEN_SPLAT_BYTES_LIMIT (64u << 20)         // constants of a graph that repeat a number
#define PEN_MODEL_OUTPUTS_LIMIT 4096              // outputs of a model
#define PEN_LOSSES_LIMIT 16                       // losses of a job; labels
#define PEN_TERMS_LIMIT 32                        // numbers of a step: losses, and for metrics
#define PEN_IMAGE_SIDE_LIMIT 16384                // pixels a side of an image file
#define PEN_IMAGE_PIXELS_LIMIT (1u << 26)         // of an image file
#define PEN_IMAGE_FILE_LIMIT (1ull << 30)         // bytes of one
#define PEN_DATA_FILES_LIMIT 16384u               // files of a dataset, each mapped
#define PEN_TEXT_BYTES_LIMIT (1ull << 34)         // of a text that was compressed
#define PEN_UNPACK_RATIO 500                      // unpacked bytes of a packed one, and at least
#define PEN_UNPACK_BYTES (64u << 20)              // these: base/format/unpack.h
#define PEN_SEQUENCE_LIMIT (1u << 20)             // tokens of an example
#define PEN_SAFETENSORS_HEADER_LIMIT (16u << 20)  // bytes of a header
#define PEN_SAFETENSORS_COUNT_LIMIT 65536u        // tensors of a file
#define PEN_HDF5_CHILDREN_LIMIT 65536u            // entries of a group
#define PEN_HDF5_TEXTS_LIMIT 65536u               // texts of an attribute
#define PEN_HDF5_TEXT_LIMIT (64u << 20)           // bytes of an attribute's texts
#define PEN_HDF5_CHUNK_BYTES_LIMIT (1ull << 30)   // a piece of a dataset
#define PEN_HDF5_OBJECTS_LIMIT (1u << 18)         // groups and datasets of a file
#define PEN_HDF5_CATALOGUE_LIMIT (128u << 20)     // bytes of what is said of them
#define PEN_ZIP_MEMBERS_LIMIT 65536u              // files in an archive
#define PEN_KERAS_CONFIG_LIMIT (64u << 20)        // bytes of a model's configuration
#define PEN_KERAS_LAYERS_LIMIT 65536u             // layers of a model
#define PEN_LOCATION_BYTES_LIMIT 1024             // the name of a file of a model's contents
#define PEN_EXTERNAL_FILES_LIMIT 4096             // files that a model's contents are in
#define PEN_FUNCTION_COUNT_LIMIT 4096             // functions of a model
#define PEN_INLINED_NODES_LIMIT (1u << 18)        // nodes of a model, its functions inlined
#define PEN_INLINED_BYTES_LIMIT (128u << 20)      // memory for that
#define PEN_LOOP_ROUNDS_LIMIT 4096                // rounds of a model's loop
#define PEN_OPSET_COUNT_LIMIT 256                 // operator sets that a model names
#define PEN_NODE_ATTRIBUTES_LIMIT 256             // attributes of one node
#define PEN_SYMBOL_COUNT_LIMIT 4096               // named dimensions of a graph
#define PEN_LAYER_ELEMENTS_LIMIT (1ll << 31)      // of a tensor of a model of layers, an example's
#define PEN_LAYER_CONSTANT_BYTES_LIMIT (1u << 28) // a constant that a layer makes
#define PEN_LAYER_CONTENTS_BYTES_LIMIT (1ull << 36) // first contents of a model's weights
#define PEN_RUN_WORKERS_LIMIT 4096u                 // workers of a run
#define PEN_RUN_DEVICES_LIMIT 4096u                 // devices of a run
#define PEN_RUN_FORMS_LIMIT 256u                    // forms of a run
#define PEN_RUN_PLACES_LIMIT (1u << 20)             // of a channel
#define PEN_PART_BYTES_LIMIT (128u << 20)           // what is sent of a part, without its contents
#define PEN_PART_CONSTANT_BYTES_LIMIT (64u << 10)   // a constant that is sent with its part
#define PEN_PART_LISTS_LIMIT (1u << 20)             // lists, files or fed inputs of a part
#define PEN_COMMIT_RECORD_BYTES_LIMIT (64u << 20)   // a record of a commit log
#define PEN_ORDER_RECORD_BYTES_LIMIT (1u << 30)     // the order of lanes of a training
#define PEN_COMMIT_RECORD_LIMIT (1u << 16)          // records in a commit log
#define PEN_COMMIT_NUMBER_LIMIT 999999999999ull     // of a record: twelve digits of its name
#define PEN_GENERATION_LIMIT 999999999999ull        // likewise; one more is always a number
#define PEN_COUNTER_LIMIT (1ull << 53)              // steps, rounds, examples, epochs, sequences
#define PEN_COMMIT_SHARD_LIMIT 4096u                // shards of a checkpoint
#define PEN_SHARD_TENSOR_LIMIT (1u << 16)           // tensors, or ranges of them, in a shard
#define PEN_SHARD_HEADER_BYTES_LIMIT (16u << 20)    // what a shard says of them
#define PEN_SHARD_BYTES_LIMIT (1ull << 46)          // a shard

#endif // PEN_BASE_LIMITS_H
