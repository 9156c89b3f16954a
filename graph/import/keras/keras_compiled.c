#include "graph/import/keras/keras_compiled.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

#define COMPILED_NAME_BYTES 64

typedef struct compiled_name {
    const char *keras; // letters in lower case
    const char *job;
} compiled_name;

static const compiled_name compiled_losses[] = {
    {"sparsecategoricalcrossentropy", "softmax_cross_entropy"},
    {"categoricalcrossentropy", "softmax_cross_entropy"},
    {"meansquarederror", "mean_squared_error"},
    {"mse", "mean_squared_error"},
    {"binarycrossentropy", "binary_cross_entropy"},
};

static const compiled_name compiled_optimizers[] = {
    {"sgd", "sgd"},
    {"adam", "adam"},
    {"adamw", "adamw"},
};

// The option of the optimizer's, and of ours.
static const compiled_name compiled_options[] = {
    {"learning_rate", "lr"},          {"momentum", "momentum"}, {"nesterov", "nesterov"},
    {"weight_decay", "weight_decay"}, {"beta_1", "beta1"},      {"beta_2", "beta2"},
};

// "Custom>SparseCategoricalCrossentropy" and "sparse_categorical_crossentropy" as one.
static void compiled_plain(const char *name, char out[COMPILED_NAME_BYTES]) {
    const char *last = strrchr(name, '>');
    size_t used = 0;
    for (const char *c = last == NULL ? name : last + 1; *c != '\0'; c++) {
        if (*c == '_' || used + 1 == COMPILED_NAME_BYTES) continue;
        out[used++] = (char)tolower((unsigned char)*c);
    }
    out[used] = '\0';
}

static const char *compiled_find(const compiled_name *names, size_t count, const char *name) {
    char plain[COMPILED_NAME_BYTES];
    compiled_plain(name, plain);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i].keras, plain) == 0) return names[i].job;
    }
    return NULL;
}

// The name of an object or text; NULL: it is neither.
static const char *compiled_name_of(const json_t *value) {
    if (json_is_string(value)) return json_string_value(value);
    return json_string_value(json_object_get(value, "class_name"));
}

static void compiled_add_loss(pen_text *text, const json_t *loss) {
    const char *name = compiled_name_of(loss);
    if (name == NULL) return;
    const char *ours =
        compiled_find(compiled_losses, sizeof compiled_losses / sizeof *compiled_losses, name);
    const bool is_logits =
        json_is_true(json_object_get(json_object_get(loss, "config"), "from_logits"));
    if (ours == NULL) {
        pen_text_print(text, "loss: (%.100s)", name);
        return;
    }
    const bool is_binary = strcmp(ours, "binary_cross_entropy") == 0;
    pen_text_print(text, "loss: %s%s", ours, is_binary && is_logits ? "_with_logits" : "");
}

static void compiled_add_options(pen_text *text, const json_t *config) {
    bool is_first = true;
    for (size_t i = 0; i < sizeof compiled_options / sizeof *compiled_options; i++) {
        const json_t *value = json_object_get(config, compiled_options[i].keras);
        const double number = json_number_value(value);
        const bool is_standard = (strcmp(compiled_options[i].job, "beta1") == 0 && number == 0.9) ||
                                 (strcmp(compiled_options[i].job, "beta2") == 0 && number == 0.999);
        if (is_standard || (number == 0 && !json_is_true(value))) continue;
        pen_text_print(text, "%s", is_first ? "" : ", ");
        is_first = false;
        if (json_is_true(value)) {
            pen_text_print(text, "%s: true", compiled_options[i].job);
        } else {
            pen_text_print(text, "%s: %.6g", compiled_options[i].job, number);
        }
    }
}

static void compiled_add_optimizer(pen_text *text, const json_t *optimizer) {
    const char *name = compiled_name_of(optimizer);
    if (name == NULL) return;
    const char *ours = compiled_find(
        compiled_optimizers, sizeof compiled_optimizers / sizeof *compiled_optimizers, name);
    if (text->length > 0) pen_text_add(text, ", ");
    if (ours == NULL) {
        pen_text_print(text, "optimizer: (%.100s)", name);
        return;
    }
    const json_t *config = json_object_get(optimizer, "config");
    if (json_number_value(json_object_get(config, "learning_rate")) == 0) { // a name, or a schedule
        pen_text_print(text, "optimizer: %s", ours);
        return;
    }
    pen_text_print(text, "optimizer: {%s: {", ours);
    compiled_add_options(text, config);
    pen_text_add(text, "}}");
}

pen_status pen_keras_compiled_read(const json_t *compiled, pen_arena *arena,
                                   const char **out_text) {
    const json_t *optimizer = json_object_get(compiled, "optimizer_config");
    pen_text text;
    *out_text = NULL;
    pen_text_init(&text, arena);
    compiled_add_loss(&text, json_object_get(compiled, "loss"));
    compiled_add_optimizer(&text,
                           optimizer != NULL ? optimizer : json_object_get(compiled, "optimizer"));
    if (text.length == 0 && !text.failed) return PEN_OK;
    return pen_text_finish(&text, out_text);
}
