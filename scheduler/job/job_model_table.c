// The keys of a job's model.

#include "graph/import/import.h"
#include "scheduler/job/job_table.h"

static const pen_option_field job_weight_name_fields[] = {
    PEN_OPTION(TEXT, pen_job_weight_name, from, "a beginning of names in the file; none fits all"),
    PEN_OPTION(TEXT, pen_job_weight_name, to, "what it is in the model; none takes it away"),
};
static const pen_option_table job_weight_name_table = {
    PEN_OPTION_FIELDS(pen_job_weight_name, job_weight_name_fields)};
static const pen_option_field job_weight_name_item = {.kind = PEN_OPTION_MAPPING,
                                                      .table = &job_weight_name_table};

static const char *const job_weight_layouts[] = {
    [PEN_WEIGHTS_BY_SHAPE] = "auto",
    [PEN_WEIGHTS_KERAS] = "keras",
    [PEN_WEIGHTS_PENSTOCK] = "penstock",
    NULL,
};
static const pen_option_field job_size_item = {
    .kind = PEN_OPTION_INTEGER, .minimum = PEN_OPTION_FROM(1), .maximum = PEN_OPTION_TO(1e9)};
static const pen_option_field job_input_shape_item = {
    .kind = PEN_OPTION_LIST,
    .offset = offsetof(pen_import_input_shape, sizes),
    .item = &job_size_item,
    .is_list_optional = true,
    .count_minimum = 1,
    .count_maximum = 7,
};

static const pen_option_field job_model_fields[] = {
    PEN_OPTION(PATH, pen_job_model, file, "the model's file; or layers, below"),
    PEN_OPTION(PATTERN, pen_job_model, unfreeze,
               "of an ONNX model or a TensorFlow graph: constants whose names match are trained"),
    PEN_OPTION(MAP, pen_job_model, input_shapes,
               "of a Keras model: shapes of inputs, without the batch, where its file says None",
               .item = &job_input_shape_item, .entry_bytes = sizeof(pen_import_input_shape),
               .count_minimum = 1),
    PEN_OPTION(BOOL, pen_job_model, use_device_strings,
               "of a TensorFlow graph: the devices that its nodes name are pins",
               .default_text = "false"),
    PEN_OPTION(
        BOOL, pen_job_model, train_batch_norm,
        "of an ONNX model or a TensorFlow graph: batch normalization whose scale or offset is "
        "trained takes the batch's statistics, and updates the running ones",
        .default_text = "false"),
    PEN_OPTION(NUMBER, pen_job_model, batch_norm_momentum,
               "what running statistics keep of themselves in a step, with train_batch_norm; an "
               "ONNX model says it itself",
               .default_text = "0.99", PEN_OPTION_RANGE(0, 1)),
    PEN_OPTION(BOOL, pen_job_model, train_what_is_left,
               "of an ONNX model that lost parameters when it was exported: it is trained as it is",
               .default_text = "false"),
    PEN_OPTION(TEXT, pen_job_model, signature, "of a SavedModel; when left out, serving_default"),
    PEN_LAYER_MODEL_FIELDS(pen_job_model, layers),
    PEN_OPTION(PATH, pen_job_model, weights,
               "first contents of parameters, by name: FILE.safetensors or FILE.npz"),
    PEN_OPTION(LIST, pen_job_model, weight_names, "how names in that file become the model's",
               .item = &job_weight_name_item, .count_maximum = 256),
    PEN_OPTION(BOOL, pen_job_model, weights_partial,
               "the file may lack tensors of the model, and have others", .default_text = "false"),
    PEN_OPTION(CHOICE, pen_job_model, weights_layout,
               "of models of layers: whose shapes that file has; auto: told by the shapes",
               .choices = job_weight_layouts, .default_text = "auto"),
};
const pen_option_table pen_job_model_table = {PEN_OPTION_FIELDS(pen_job_model, job_model_fields)};
