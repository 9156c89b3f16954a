// Builds a convolutional network of layers, trains it on Fashion-MNIST over two devices, evaluates
// it, and saves it: as ONNX, and its parameters as safetensors.
//
//   cc -std=c11 fashion.c $(pkg-config --cflags --libs penstock) -o fashion && ./fashion

#include <penstock/layers.h>
#include <penstock/penstock.h>
#include <stdio.h>

#define DATA "/usr/share/datasets/fashion-mnist/"

static const char job[] =
    "data:\n"
    "  train: {format: idx, images: " DATA "train-images-idx3-ubyte.gz,\n"
    "          labels: " DATA "train-labels-idx1-ubyte.gz}\n"
    "  eval: {format: idx, images: " DATA "t10k-images-idx3-ubyte.gz,\n"
    "         labels: " DATA "t10k-labels-idx1-ubyte.gz}\n"
    "  normalize: {mean: 0.286, std: 0.353}\n"
    "train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.002}}, batch: 128,\n"
    "        microbatches: 2, steps: 300, seed: 1}\n"
    "devices: [{name: first, threads: 1}, {name: second, threads: 1}]\n"
    "placement: {strategy: auto}\n";

static pen_status build(pen_layers *model) {
    static const char *const layers[][2] = {
        {"conv2d", "filters: 16, kernel_size: 3, padding: same, activation: relu"},
        {"max_pooling2d", "pool_size: 2"},
        {"conv2d", "filters: 32, kernel_size: 3, padding: same, activation: relu"},
        {"max_pooling2d", "pool_size: 2"},
        {"flatten", NULL},
        {"dense", "units: 64, activation: relu"},
        {"dense", "units: 10"},
    };
    PEN_TRY(pen_layers_input(model, "picture", 3, (const int64_t[]){28, 28, 1}));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        PEN_TRY(pen_layers_add(model, layers[i][0], layers[i][1]));
    }
    return pen_layers_save(model, "fashion.yaml", job);
}

static pen_status train(pen_training *training) {
    pen_training_step_report step = {.struct_size = sizeof step};
    pen_training_evaluation evaluation = {.struct_size = sizeof evaluation};
    for (bool more = true; more;) {
        PEN_TRY(pen_training_step(training, &step, &more));
        if (more && step.step % 50 == 0) {
            printf("step %llu: loss %.4f\n", (unsigned long long)step.step, step.loss);
        }
    }
    PEN_TRY(pen_training_evaluate(training, &evaluation));
    printf("accuracy %.4f over %llu pictures\n",
           (double)evaluation.correct_count / (double)evaluation.target_count,
           (unsigned long long)evaluation.example_count);
    PEN_TRY(pen_training_export(training, "fashion.onnx"));
    return pen_training_save(training, "fashion.safetensors");
}

int main(void) {
    pen_layers *model = NULL;
    pen_training *training = NULL;
    char text[2048];
    pen_status status = pen_layers_create(&model);
    if (status == PEN_OK) status = build(model);
    if (status == PEN_OK) status = pen_training_open("fashion.yaml", NULL, &training);
    if (status == PEN_OK) status = train(training);
    pen_training_close(training);
    pen_layers_destroy(model);
    if (status == PEN_OK) return 0;
    pen_status_format(status, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    pen_status_ignore(status, "printed");
    return 1;
}
