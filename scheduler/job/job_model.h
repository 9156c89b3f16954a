// The key `model` of a job: where the model is, and how it is read.
//
// Threads: plain data.
#ifndef PEN_SCHEDULER_JOB_JOB_MODEL_H
#define PEN_SCHEDULER_JOB_JOB_MODEL_H

#include <stdbool.h>

#include "base/option/option.h"
#include "graph/keras_layers/layer_model.h"
#include "scheduler/compile/weight_file.h"

typedef struct pen_job_weight_name {
    const char *from; // a beginning of names in the file of weights; NULL: of all
    const char *to;   // what it is in the model; NULL: nothing
} pen_job_weight_name;

typedef struct pen_job_model {
    const char *file;       // with layers: that of the job, or the part of it that has them
    pen_layer_model layers; // or none; `outputs` is for files of TensorFlow, too
    const char *unfreeze;  // ONNX, TensorFlow: pattern of constants that become parameters; or NULL
    const char *signature; // of a SavedModel; NULL: serving_default
    const char *weights;   // a file of first contents; NULL: the model's own
    pen_option_list weight_names; // of pen_job_weight_name
    bool weights_partial;         // the file may lack tensors, and have others
    pen_weight_layout weights_layout;
    bool use_device_strings; // TensorFlow: the devices of nodes are pins
    bool train_batch_norm;   // ONNX, TensorFlow: batch normalization is in training mode
    bool train_what_is_left; // ONNX: though the file has lost parameters of the model
    double batch_norm_momentum;
    pen_option_list input_shapes; // of pen_import_input_shape
} pen_job_model;

#endif // PEN_SCHEDULER_JOB_JOB_MODEL_H
