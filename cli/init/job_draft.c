#include "cli/init/job_draft.h"

#include "base/format/yaml_writer.h"

#define DRAFT_PICTURE_SIDE 224

// Height, width, channels of the pictures that the model's first input takes.
typedef struct draft_picture {
    int64_t height, width, channels;
    bool is_last; // the channels are behind the rest
} draft_picture;

static draft_picture draft_find_picture(const pen_graph *graph) {
    draft_picture picture = {DRAFT_PICTURE_SIDE, DRAFT_PICTURE_SIDE, 3, false};
    const pen_shape *shape = &pen_value_type(graph, pen_graph_input(graph, 0))->shape;
    const int64_t *dims = shape->dims;
    if (shape->rank != 4) return picture;
    picture.is_last = dims[1] != 1 && dims[1] != 3 && (dims[3] == 1 || dims[3] == 3);
    const int64_t *sides = picture.is_last ? dims + 1 : dims + 2;
    picture.channels = picture.is_last ? dims[3] : dims[1];
    if (picture.channels != 1) picture.channels = 3;
    if (sides[0] > 0) picture.height = sides[0];
    if (sides[1] > 0) picture.width = sides[1];
    return picture;
}

// Elements of an example of the first input; 0: not known.
static int64_t draft_sequence(const pen_graph *graph) {
    const pen_shape *shape = &pen_value_type(graph, pen_graph_input(graph, 0))->shape;
    return shape->rank == 2 && shape->dims[1] > 0 ? shape->dims[1] : 128;
}

static void draft_add_key(pen_text *text, const char *key, const char *value) {
    pen_text_print(text, "    %s: ", key);
    pen_yaml_add_text(text, value);
    pen_text_add(text, "\n");
}

static void draft_write_arrays(const pen_data_guess *data, pen_text *text) {
    pen_text_add(text, "    format: npy\n    inputs:\n");
    for (uint32_t i = 0; i < data->file_count; i++) {
        pen_text_add(text, "      ");
        pen_yaml_add_text(text, data->names[i]);
        pen_text_add(text, ": ");
        pen_yaml_add_text(text, data->files[i]);
        pen_text_add(text, "\n");
    }
    if (data->labels != NULL) draft_add_key(text, "labels", data->labels);
}

static void draft_write_pictures(const pen_job_draft *draft, pen_text *text) {
    const draft_picture picture = draft_find_picture(draft->graph);
    pen_text_add(text, "    format: images            # a folder of pictures for each class\n");
    draft_add_key(text, "folder", draft->data->files[0]);
    pen_text_print(text, "    size: [%lld, %lld]          # pictures are brought to it\n",
                   (long long)picture.height, (long long)picture.width);
    pen_text_print(text, "    channels: %lld\n", (long long)picture.channels);
    if (picture.is_last) pen_text_add(text, "    data_format: channels_last\n");
}

// What is missing has a name that says so.
static void draft_write_data(const pen_job_draft *draft, pen_text *text) {
    const pen_data_guess *data = draft->data;
    pen_text_add(text, "data:\n");
    if (data->kind == PEN_DATA_GUESS_NONE) {
        pen_text_add(text, "  # What is trained on: docs/job.md has all kinds of data.\n");
    }
    pen_text_add(text, "  train:\n");
    switch (data->kind) {
    case PEN_DATA_GUESS_NPY:
        draft_write_arrays(data, text);
        break;
    case PEN_DATA_GUESS_IMAGES:
        draft_write_pictures(draft, text);
        break;
    case PEN_DATA_GUESS_CSV:
        pen_text_add(text, "    format: csv\n");
        draft_add_key(text, "file", data->files[0]);
        pen_text_add(text, "    label_column: -1          # its name or number; -1: the last\n");
        pen_text_print(text,
                       draft->categories == NULL ? "    # categories: %-12s# columns of words\n"
                                                 : "    categories: %-14s# columns of words\n",
                       draft->categories == NULL ? "one_hot" : draft->categories);
        if (draft->has_gaps) pen_text_add(text, "    missing: mean             # empty fields\n");
        break;
    case PEN_DATA_GUESS_IDX:
        pen_text_add(text, "    format: idx\n");
        draft_add_key(text, "images", data->files[0]);
        if (data->labels != NULL) draft_add_key(text, "labels", data->labels);
        break;
    case PEN_DATA_GUESS_TEXT:
        pen_text_add(text, "    format: text              # bytes, to predict the next\n");
        draft_add_key(text, "file", data->files[0]);
        pen_text_print(text, "    sequence: %lld\n", (long long)draft_sequence(draft->graph));
        break;
    case PEN_DATA_GUESS_NONE:
        pen_text_add(text, "    format: npy\n    inputs:\n");
        for (uint32_t i = 0; i < pen_graph_input_count(draft->graph); i++) {
            pen_text_add(text, "      ");
            pen_yaml_add_text(text, pen_value_name(draft->graph, pen_graph_input(draft->graph, i)));
            pen_text_add(text, ": inputs.npy\n");
        }
        pen_text_add(text, "    labels: labels.npy\n");
        break;
    }
    pen_text_add(text, "  # eval: {…}                 # other data to evaluate on, as train\n"
                       "  holdout: 0.1                # share of train to evaluate on instead\n");
    if (draft->flattens) pen_text_add(text, "  flatten: true               # rows of numbers\n");
    if (data->kind == PEN_DATA_GUESS_IMAGES || data->kind == PEN_DATA_GUESS_IDX) {
        pen_text_add(text,
                     "  # normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}\n");
    }
    pen_text_add(text, "\n");
}

// Batch and epochs are those that many begin with.
static void draft_write_train(const pen_job_draft *draft, pen_text *text) {
    pen_text_add(text, "train:\n");
    if (draft->loss == NULL) {
        pen_text_add(text,
                     "  loss: softmax_cross_entropy # not known to fit: docs/job.md has all\n");
    } else {
        pen_text_print(text, "  loss: %s\n", draft->loss);
    }
    pen_text_print(text,
                   "  optimizer: {adamw: {lr: 0.001}}\n"
                   "  # learning_rate: cosine     # or one_cycle, plateau, …\n"
                   "  # warmup: 1 epoch\n"
                   "  # clip_norm: 1\n"
                   "  batch: %llu\n"
                   "  # microbatches: 4           # parts of a batch: less memory; what a pipeline "
                   "runs on\n"
                   "  epochs: 10\n"
                   "  # seed: 1\n\n",
                   (unsigned long long)draft->batch);
}

static void draft_write_rest(pen_text *text) {
    pen_text_add(
        text, "evaluation: {every: 1 epoch} # add patience: 3 to end when it gets no better\n"
              "checkpoint: {dir: checkpoints} # `penstock train --continue` goes on from there\n"
              "outputs: {dir: trained, from: best} # add export: trained.onnx\n"
              "\n"
              "# On several machines: `penstock worker --listen 0.0.0.0:7070` on each, with TLS\n"
              "# (`penstock certs`), and\n"
              "# devices:\n"
              "#   - {name: a, host: \"10.0.0.1:7070\", memory: 16GiB}\n"
              "#   - {name: b, host: \"10.0.0.2:7070\", memory: 16GiB}\n"
              "# tls: {ca: ca.pem, cert: coordinator.pem, key: coordinator.key}\n"
              "# On this machine, two processes: {name: a, host: localhost}, …\n");
}

void pen_job_draft_write(const pen_job_draft *draft, pen_text *text) {
    pen_text_add(text, "# A job: `penstock train` runs it, `penstock plan` says what it takes.\n"
                       "# docs/job.md explains each key; `penstock schema job` lists them.\n"
                       "version: 1\n\nmodel:\n  file: ");
    pen_yaml_add_text(text, draft->model);
    pen_text_add(text, "\n\n");
    draft_write_data(draft, text);
    draft_write_train(draft, text);
    draft_write_rest(text);
}
