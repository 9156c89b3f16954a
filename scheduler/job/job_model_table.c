// The keys of a job's model.

#include "graph/import/import.h"
#include "scheduler/job/job_table.h"

static const pen_option_field job_weight_name_fields[] = {
    {.key = "from",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_weight_name, from),
     .help = "a beginning of names in the file; none fits all"},
    {.key = "to",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_weight_name, to),
     .help = "what it is in the model; none takes it away"},
};
static const pen_option_table job_weight_name_table = {
    .size = sizeof(pen_job_weight_name),
    PEN_OPTION_FIELDS(job_weight_name_fields),
};
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
    {.key = "file",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_model, file),
     .help = "the model's file; or layers, below"},
    {.key = "unfreeze",
     .kind = PEN_OPTION_PATTERN,
     .offset = offsetof(pen_job_model, unfreeze),
     .help = "of a TensorFlow graph: constants whose names match are trained"},
    {.key = "input_shapes",
     .kind = PEN_OPTION_MAP,
     .offset = offsetof(pen_job_model, input_shapes),
     .item = &job_input_shape_item,
     .entry_bytes = sizeof(pen_import_input_shape),
     .count_minimum = 1,
     .help = "of a Keras model: shapes of inputs, without the batch, where its file says None"},
    {.key = "use_device_strings",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_model, use_device_strings),
     .default_text = "false",
     .help = "of a TensorFlow graph: the devices that its nodes name are pins"},
    {.key = "train_batch_norm",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_model, train_batch_norm),
     .default_text = "false",
     .help = "of a TensorFlow graph: batch normalization whose scale or offset is trained takes "
             "the batch's statistics, and updates the running ones"},
    {.key = "batch_norm_momentum",
     .kind = PEN_OPTION_NUMBER,
     .offset = offsetof(pen_job_model, batch_norm_momentum),
     .default_text = "0.99",
     .minimum = PEN_OPTION_FROM(0),
     .maximum = PEN_OPTION_TO(1),
     .help = "what running statistics keep of themselves in a step, with train_batch_norm"},
    {.key = "signature",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_job_model, signature),
     .help = "of a SavedModel; when left out, serving_default"},
    PEN_LAYER_MODEL_FIELDS(pen_job_model, layers),
    {.key = "weights",
     .kind = PEN_OPTION_PATH,
     .offset = offsetof(pen_job_model, weights),
     .help = "first contents of parameters, by name: FILE.safetensors or FILE.npz"},
    {.key = "weight_names",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_job_model, weight_names),
     .item = &job_weight_name_item,
     .count_maximum = 256,
     .help = "how names in that file become the model's"},
    {.key = "weights_partial",
     .kind = PEN_OPTION_BOOL,
     .offset = offsetof(pen_job_model, weights_partial),
     .default_text = "false",
     .help = "the file may lack tensors of the model, and have others"},
    {.key = "weights_layout",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_job_model, weights_layout),
     .choices = job_weight_layouts,
     .default_text = "auto",
     .help = "of models of layers: whose shapes that file has; auto: told by the shapes"},
};
const pen_option_table pen_job_model_table = {
    .size = sizeof(pen_job_model),
    PEN_OPTION_FIELDS(job_model_fields),
};
