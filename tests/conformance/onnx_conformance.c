// Runs ONNX's own tests (Debian's libonnx-testdata) on the reference kernels.
//
//   onnx_conformance [--update] [--verbose] [--device reference] [--only TEXT] [--data FOLDER]
//                    [--list FILE] [--export FOLDER]
//
// Ends with "onnx conformance: N of 1072". Those that do not pass are counted by cause. The list,
// tests/conformance/passing.txt, has the tests that pass, and behind them the others with their
// causes. One that passed and no longer does makes the exit code 1; --update rewrites the list.
// --only runs the tests whose name contains TEXT and says why each fails. --export writes
// each model that was read to FOLDER and goes on with what was written there.
//
// A test is a model, and inputs and expected outputs as TensorProto files. Each runs in a process
// of its own, so that one that crashes or hangs is a result like any other. Outputs are compared as
// ONNX's own runner does: |ours - theirs| <= 1e-7 + 1e-3 |theirs|; two steps of the element type
// are allowed where it is coarser than that, for sums of such numbers may be rounded in any order.

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "device/reference/reference_evaluate.h"
#include "graph/graph.h"
#include "graph/import/import.h"
#include "graph/import/onnx/onnx_export.h"
#include "graph/import/onnx/onnx_tensor.h"
#include "graph/passes/infer_shapes.h"
#include "tests/support/run_graph.h"

#define CONFORMANCE_DATA "/usr/share/libonnx-testdata/data"
#define CONFORMANCE_PASSING "tests/conformance/passing.txt"
#define CONFORMANCE_TEST_LIMIT 4096
#define CONFORMANCE_OPERANDS_LIMIT 64
#define CONFORMANCE_CAUSE_BYTES 4096
#define CONFORMANCE_SECONDS_LIMIT 60
#define CONFORMANCE_RELATIVE 1e-3
#define CONFORMANCE_ABSOLUTE 1e-7

typedef struct conformance_test {
    const char *name; // "node/test_abs"
    bool passed;
    const char *cause; // of a failure: lines, each one cause
} conformance_test;

typedef struct conformance {
    pen_arena *arena;
    const char *data;
    const char *list; // of what passes
    const char *only;
    const char *export_folder; // or NULL
    bool update, verbose;
    conformance_test tests[CONFORMANCE_TEST_LIMIT];
    uint32_t test_count;
} conformance;

// ---- one data set

typedef struct data_set {
    pen_arena *arena;
    pen_external_files files;
    pen_onnx_tensor inputs[CONFORMANCE_OPERANDS_LIMIT];
    pen_onnx_tensor outputs[CONFORMANCE_OPERANDS_LIMIT];
    const void *input_data[CONFORMANCE_OPERANDS_LIMIT];
    const void *output_data[CONFORMANCE_OPERANDS_LIMIT];
    uint32_t input_count, output_count;
} data_set;

// The contents, aligned: in the file they may lie anywhere.
static pen_status data_set_contents(data_set *set, const pen_onnx_tensor *tensor,
                                    const void **out_data) {
    const size_t bytes = pen_tensor_type_bytes(&tensor->type);
    const void *contents;
    char *copy;
    PEN_TRY(pen_onnx_tensor_data(tensor, &set->files, set->arena, &contents));
    PEN_TRY(PEN_NEW(set->arena, bytes, &copy));
    if (bytes > 0) memcpy(copy, contents, bytes);
    *out_data = copy;
    return PEN_OK;
}

static pen_status data_set_read(data_set *set, const char *folder, const char *kind,
                                pen_onnx_tensor *tensors, const void **data, uint32_t *out_count) {
    *out_count = 0;
    for (uint32_t i = 0; i < CONFORMANCE_OPERANDS_LIMIT; i++) {
        const char *path, *bytes;
        size_t length;
        PEN_TRY(pen_arena_format(set->arena, &path, "%s/%s_%u.pb", folder, kind, i));
        if (access(path, F_OK) != 0) return PEN_OK;
        PEN_TRY(pen_file_read(path, (size_t)1 << 30, set->arena, &bytes, &length));
        pen_protobuf_reader message;
        pen_protobuf_init(&message, bytes, length);
        PEN_TRY(pen_status_add_context(pen_onnx_tensor_open(&message, set->arena, &tensors[i]),
                                       "in the test's data"));
        PEN_TRY(data_set_contents(set, &tensors[i], &data[i]));
        *out_count = i + 1;
    }
    return PEN_OK;
}

static pen_status data_set_open(data_set *set, pen_arena *arena, const char *folder) {
    set->arena = arena;
    pen_external_files_init(&set->files, folder, arena);
    PEN_TRY(data_set_read(set, folder, "input", set->inputs, set->input_data, &set->input_count));
    return data_set_read(set, folder, "output", set->outputs, set->output_data, &set->output_count);
}

// The tests keep bfloat16 in tensors that say uint16.
static void data_set_restore(pen_tensor_type *type, pen_element_type expected) {
    if (type->element == PEN_UINT16 && expected == PEN_BFLOAT16) type->element = expected;
}

// ---- comparison

static bool compare_numbers(double ours, double theirs, pen_element_type element) {
    const double steps = element == PEN_BFLOAT16 ? 0x1p-6 : element == PEN_FLOAT16 ? 0x1p-9 : 0;
    const double relative = fmax(CONFORMANCE_RELATIVE, steps);
    if (isnan(ours) || isnan(theirs)) return isnan(ours) && isnan(theirs);
    if (isinf(ours) || isinf(theirs)) return ours == theirs;
    return fabs(ours - theirs) <= CONFORMANCE_ABSOLUTE + relative * fabs(theirs);
}

static pen_status compare_tensors(const pen_tensor *ours, const pen_tensor *theirs,
                                  const char *name) {
    char found[PEN_SHAPE_TEXT_BYTES], expected[PEN_SHAPE_TEXT_BYTES];
    if (!pen_tensor_type_equal(&ours->type, &theirs->type)) {
        return pen_error(PEN_INTERNAL, "mismatch: output '%s' is %s, expected %s", name,
                         pen_tensor_type_format(&ours->type, found),
                         pen_tensor_type_format(&theirs->type, expected));
    }
    for (int64_t i = 0; i < pen_tensor_count(ours); i++) {
        bool equal;
        if (pen_element_is_float(ours->type.element)) {
            equal = compare_numbers(pen_tensor_get(ours, i), pen_tensor_get(theirs, i),
                                    ours->type.element);
        } else {
            equal = pen_tensor_get_int(ours, i) == pen_tensor_get_int(theirs, i);
        }
        if (equal) continue;
        return pen_error(PEN_INTERNAL,
                         "mismatch: output '%s', element %" PRId64 " is %.9g, expected %.9g", name,
                         i, pen_tensor_get(ours, i), pen_tensor_get(theirs, i));
    }
    return PEN_OK;
}

// ---- one test

// What the names of the model's inputs are, in the order of the files: those without initializers.
static const pen_onnx_tensor *test_find_input(const data_set *set, const pen_graph *graph,
                                              pen_value_id input, uint32_t *out_index) {
    const char *name = pen_value_name(graph, input);
    for (uint32_t i = 0; i < set->input_count; i++) {
        if (strcmp(set->inputs[i].name, name) == 0) {
            *out_index = i;
            return &set->inputs[i];
        }
    }
    // the files of some tests have no names: they are in order
    for (uint32_t i = 0; i < pen_graph_input_count(graph) && i < set->input_count; i++) {
        if (!pen_value_same(pen_graph_input(graph, i), input)) continue;
        if (pen_graph_input_count(graph) != set->input_count) break;
        *out_index = i;
        return &set->inputs[i];
    }
    return NULL;
}

static pen_status test_bind(const data_set *set, pen_graph *graph, pen_symbol_binding *bindings,
                            uint32_t *out_count) {
    *out_count = 0;
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        const pen_value_id input = pen_graph_input(graph, i);
        const pen_value *value = pen_graph_value(graph, input);
        uint32_t index;
        const pen_onnx_tensor *tensor = test_find_input(set, graph, input, &index);
        if (value->kind != PEN_VALUE_INPUT) continue;
        if (tensor == NULL) return pen_error(PEN_NOT_FOUND, "no data for input '%s'", value->name);
        for (uint32_t d = 0; d < value->type.shape.rank && d < tensor->type.shape.rank; d++) {
            const char *symbol = pen_graph_symbol_name(graph, value->type.shape.dims[d]);
            if (symbol == NULL) continue;
            if (*out_count == CONFORMANCE_OPERANDS_LIMIT) {
                return pen_error(PEN_UNSUPPORTED, "too many symbols");
            }
            bindings[(*out_count)++] =
                (pen_symbol_binding){.symbol = symbol, .size = tensor->type.shape.dims[d]};
        }
    }
    return PEN_OK;
}

static pen_status test_run(const data_set *set, pen_model *model, pen_arena *arena) {
    pen_graph *graph = model->graph;
    pen_symbol_binding bindings[CONFORMANCE_OPERANDS_LIMIT];
    pen_infer_options options = {.bindings = bindings, .evaluate = pen_reference_evaluate};
    PEN_TRY(test_bind(set, graph, bindings, &options.binding_count));
    PEN_TRY(pen_infer_shapes(graph, &options));
    run_graph run;
    PEN_TRY(run_graph_init(&run, graph, arena));
    for (uint32_t i = 0; i < pen_graph_input_count(graph); i++) {
        const pen_value_id input = pen_graph_input(graph, i);
        uint32_t index;
        const pen_onnx_tensor *tensor = test_find_input(set, graph, input, &index);
        if (tensor == NULL) continue;
        pen_tensor_type type = tensor->type;
        data_set_restore(&type, pen_value_type(graph, input)->element);
        if (!pen_tensor_type_equal(&type, pen_value_type(graph, input))) {
            return pen_error(PEN_INVALID_INPUT, "the data of an input is not of the input's type");
        }
        memcpy(run.tensors[input.index].data, set->input_data[index],
               pen_tensor_type_bytes(&tensor->type));
    }
    PEN_TRY(run_graph_all(&run));
    if (set->output_count != pen_graph_output_count(graph)) {
        return pen_error(PEN_INTERNAL, "mismatch: %u outputs, expected %u",
                         pen_graph_output_count(graph), set->output_count);
    }
    for (uint32_t i = 0; i < set->output_count; i++) {
        const pen_value_id output = pen_graph_output(graph, i);
        pen_tensor theirs = {.type = set->outputs[i].type};
        data_set_restore(&theirs.type, run.tensors[output.index].type.element);
        memcpy(&theirs.data, &set->output_data[i], sizeof theirs.data); // only read
        PEN_TRY(
            compare_tensors(&run.tensors[output.index], &theirs, pen_value_name(graph, output)));
    }
    return PEN_OK;
}

// Data that is no tensor belongs to a model that says so itself, and better.
static pen_status test_explain(const char *model_path, pen_status status) {
    pen_model *model = NULL;
    const pen_status better = pen_model_open(model_path, NULL, &model);
    pen_model_destroy(model);
    if (better == PEN_OK) return status;
    pen_status_ignore(status, "the model's own error says more");
    return better;
}

typedef struct conformance_paths {
    const char *model;
    const char *exported; // or NULL
} conformance_paths;

// Puts in the place of *model what is read back of its export.
static pen_status test_export(const char *path, const pen_import_options *options,
                              pen_model **model) {
    const pen_onnx_export_options how = {.output_types = (*model)->output_types};
    pen_model *again = NULL;
    pen_status status = pen_onnx_export((*model)->graph, &how, path);
    if (status == PEN_OK) status = pen_model_open(path, options, &again);
    if (status != PEN_OK) return status;
    pen_model_destroy(*model);
    *model = again;
    return PEN_OK;
}

// Which inputs are constants.
typedef enum test_constants {
    TEST_CONSTANTS_NEEDED, // those that operators need so
    TEST_CONSTANTS_INTEGERS,
    TEST_CONSTANTS_ALL,
} test_constants;

static pen_status test_run_set(const conformance_paths *paths, const char *folder,
                               test_constants constants) {
    pen_arena *arena = NULL;
    pen_model *model = NULL;
    data_set *set = NULL;
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = PEN_NEW(arena, 1, &set);
    if (status == PEN_OK) status = data_set_open(set, arena, folder);
    if (status != PEN_OK) status = test_explain(paths->model, status);
    pen_import_fixed_input fixed[CONFORMANCE_OPERANDS_LIMIT];
    pen_import_options options = {.fixed_inputs = fixed, .evaluate = pen_reference_evaluate};
    for (uint32_t i = 0; status == PEN_OK && i < set->input_count; i++) {
        const pen_tensor_type *type = &set->inputs[i].type;
        const bool is_float = pen_element_is_float(type->element);
        const bool always =
            constants == TEST_CONSTANTS_ALL || (constants == TEST_CONSTANTS_INTEGERS && !is_float);
        fixed[options.fixed_input_count++] = (pen_import_fixed_input){
            set->inputs[i].name, *type, set->input_data[i], .where_needed = !always};
    }
    if (status == PEN_OK) status = pen_model_open(paths->model, &options, &model);
    if (status == PEN_OK && paths->exported != NULL) {
        status = test_export(paths->exported, &options, &model);
    }
    if (status == PEN_OK) status = test_run(set, model, arena);
    pen_model_destroy(model);
    if (set != NULL) pen_external_files_deinit(&set->files);
    pen_arena_destroy(arena);
    return status;
}

static pen_status test_run_all(const conformance *run, const char *name, pen_arena *arena) {
    conformance_paths paths = {0};
    const char *folder;
    PEN_TRY(pen_arena_format(arena, &folder, "%s/%s", run->data, name));
    PEN_TRY(pen_arena_format(arena, &paths.model, "%s/model.onnx", folder));
    if (run->export_folder != NULL) {
        PEN_TRY(pen_arena_format(arena, &paths.exported, "%s/%s.onnx", run->export_folder,
                                 pen_path_name(name)));
    }
    for (uint32_t i = 0;; i++) {
        const char *set;
        PEN_TRY(pen_arena_format(arena, &set, "%s/test_data_set_%u", folder, i));
        if (access(set, F_OK) != 0) return PEN_OK;
        pen_status status = test_run_set(&paths, set, TEST_CONSTANTS_NEEDED);
        if (pen_status_get_code(status) == PEN_UNSUPPORTED) {
            pen_status_ignore(status, "tried again with more constants");
            status = test_run_set(&paths, set, TEST_CONSTANTS_INTEGERS);
        }
        if (pen_status_get_code(status) == PEN_UNSUPPORTED) {
            pen_status_ignore(status, "tried again with constants alone");
            status = test_run_set(&paths, set, TEST_CONSTANTS_ALL);
        }
        PEN_TRY(status);
    }
}

// ---- causes

// "  MaxPool (operator set 12): storage_order=1: 1 at 'x'" without the parts that vary.
static void cause_print_trouble(const char *line, size_t length, FILE *stream) {
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)length, line);
    char *at = strstr(text, " at '");
    if (at != NULL) *at = '\0';
    char *count = strrchr(text, ':');
    if (count != NULL) *count = '\0';
    char *set = strstr(text, " (operator set ");
    if (set == NULL) {
        fprintf(stream, "not supported: %s\n", text);
        return;
    }
    const char *rest = strchr(set, ')') + 1;
    *set = '\0';
    fprintf(stream, "not supported: %s%s\n", text, rest);
}

// One line for each cause, equal for tests that fail alike.
static void cause_print(pen_status status, FILE *stream) {
    const char *message = pen_status_message(status);
    const char *line = strchr(message, '\n');
    if (strstr(message, "not supported:\n") != NULL) {
        while (line != NULL) {
            line += strspn(line, "\n ");
            const size_t length = strcspn(line, "\n");
            cause_print_trouble(line, length, stream);
            line = strchr(line, '\n');
        }
        return;
    }
    if (strncmp(message, "mismatch", 8) == 0) message = "outputs differ";
    fprintf(stream, "%s: ", pen_status_code_name(pen_status_get_code(status)));
    bool quoted = false;
    for (const char *c = message; *c != '\0' && *c != '\n'; c++) {
        if (*c == '\'') quoted = !quoted;
        if (!quoted || *c == '\'') fputc(*c, stream);
    }
    fputc('\n', stream);
}

static void child_run(const conformance *run, const char *name, int descriptor) {
    FILE *stream = fdopen(descriptor, "w");
    pen_arena *arena = NULL;
    alarm(CONFORMANCE_SECONDS_LIMIT);
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = test_run_all(run, name, arena);
    if (status != PEN_OK && run->only != NULL) {
        char text[CONFORMANCE_CAUSE_BYTES];
        pen_status_format(status, text, sizeof text);
        fputs(text, stderr);
    }
    if (status == PEN_OK) {
        fputs("passed\n", stream);
    } else {
        cause_print(status, stream);
    }
    pen_status_ignore(status, "told to the parent");
    pen_arena_destroy(arena);
    fclose(stream);
    _exit(0);
}

static pen_status test_fork(const conformance *run, conformance_test *test) {
    int ends[2];
    if (pipe(ends) != 0) return pen_error(PEN_IO, "no pipe");
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return pen_error(PEN_IO, "no process");
    if (child == 0) {
        close(ends[0]);
        child_run(run, test->name, ends[1]);
    }
    close(ends[1]);
    char *text;
    size_t length = 0;
    PEN_TRY(PEN_NEW(run->arena, CONFORMANCE_CAUSE_BYTES, &text));
    for (ssize_t count = 1; count > 0 && length + 1 < CONFORMANCE_CAUSE_BYTES;) {
        count = read(ends[0], text + length, CONFORMANCE_CAUSE_BYTES - 1 - length);
        if (count > 0) length += (size_t)count;
    }
    close(ends[0]);
    int how = 0;
    waitpid(child, &how, 0);
    test->passed = strcmp(text, "passed\n") == 0;
    test->cause = text;
    if (WIFSIGNALED(how)) test->cause = WTERMSIG(how) == SIGALRM ? "takes too long\n" : "crashes\n";
    return PEN_OK;
}

// ---- all tests

static int test_compare(const void *a, const void *b) {
    const conformance_test *first = a, *second = b;
    return strcmp(first->name, second->name);
}

static pen_status conformance_find_in(conformance *run, const char *group) {
    const char *path;
    PEN_TRY(pen_arena_format(run->arena, &path, "%s/%s", run->data, group));
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return pen_error(PEN_NOT_FOUND, "no folder '%s': is libonnx-testdata installed?", path);
    }
    pen_status status = PEN_OK;
    for (const struct dirent *entry; status == PEN_OK && (entry = readdir(folder)) != NULL;) {
        const char *name, *model;
        if (entry->d_name[0] == '.' || run->test_count == CONFORMANCE_TEST_LIMIT) continue;
        status = pen_arena_format(run->arena, &name, "%s/%s", group, entry->d_name);
        if (status != PEN_OK) break;
        status = pen_arena_format(run->arena, &model, "%s/%s/model.onnx", run->data, name);
        if (status != PEN_OK || access(model, F_OK) != 0) continue;
        run->tests[run->test_count++] = (conformance_test){.name = name};
    }
    closedir(folder);
    return status;
}

static pen_status conformance_find(conformance *run) {
    static const char *const groups[] = {"node", "pytorch-converted", "pytorch-operator", "real",
                                         "simple"};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        PEN_TRY(conformance_find_in(run, groups[i]));
    }
    qsort(run->tests, run->test_count, sizeof run->tests[0], test_compare);
    return PEN_OK;
}

typedef struct cause_count {
    const char *text;
    size_t length;
    uint32_t count;
} cause_count;

static int cause_compare(const void *a, const void *b) {
    const cause_count *first = a, *second = b;
    if (first->count != second->count) return first->count < second->count ? 1 : -1;
    return strcmp(first->text, second->text);
}

static void conformance_print_causes(const conformance *run) {
    static cause_count causes[CONFORMANCE_TEST_LIMIT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->test_count; i++) {
        if (run->tests[i].passed || run->tests[i].cause == NULL) continue;
        for (const char *line = run->tests[i].cause; *line != '\0';) {
            const size_t length = strcspn(line, "\n");
            uint32_t c = 0;
            while (c < count &&
                   (causes[c].length != length || strncmp(causes[c].text, line, length) != 0)) {
                c++;
            }
            if (c == CONFORMANCE_TEST_LIMIT) return;
            if (c == count) causes[count++] = (cause_count){line, length, 0};
            causes[c].count += 1;
            line += length + (line[length] == '\n');
        }
    }
    qsort(causes, count, sizeof causes[0], cause_compare);
    for (uint32_t c = 0; c < count; c++) {
        printf("  %4u  %.*s\n", causes[c].count, (int)causes[c].length, causes[c].text);
    }
}

static pen_status conformance_write_passing(const conformance *run) {
    pen_file *file = NULL;
    pen_status status = pen_file_create_beside(run->list, &file);
    if (status != PEN_OK) return status;
    for (uint32_t i = 0; i < run->test_count; i++) {
        if (run->tests[i].passed) fprintf(pen_file_stream(file), "%s\n", run->tests[i].name);
    }
    for (uint32_t i = 0; i < run->test_count; i++) {
        const conformance_test *test = &run->tests[i];
        if (test->passed || test->cause == NULL) continue;
        fprintf(pen_file_stream(file), "%s: %.*s\n", test->name, (int)strcspn(test->cause, "\n"),
                test->cause);
    }
    status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}

// Counts tests of the list that fail now, naming them.
static pen_status conformance_check_passing(const conformance *run, uint32_t *out_lost) {
    const char *list;
    size_t length;
    *out_lost = 0;
    PEN_TRY(pen_file_read(run->list, 1u << 20, run->arena, &list, &length));
    for (const char *line = list; *line != '\0';) {
        const size_t name_length = strcspn(line, "\n");
        bool passed = false, ran = false;
        const bool is_cause = memchr(line, ':', name_length) != NULL;
        for (uint32_t i = 0; i < run->test_count; i++) {
            const conformance_test *test = &run->tests[i];
            if (strlen(test->name) != name_length) continue;
            if (strncmp(test->name, line, name_length) != 0) continue;
            ran = test->cause != NULL;
            passed = test->passed;
        }
        if (!is_cause && !passed && (ran || run->only == NULL)) {
            *out_lost += 1;
            printf("passed once and fails now: %.*s\n", (int)name_length, line);
        }
        line += name_length + (line[name_length] == '\n');
    }
    return PEN_OK;
}

static pen_status conformance_run(conformance *run, int *out_exit_code) {
    uint32_t passed = 0, lost = 0;
    PEN_TRY(conformance_find(run));
    for (uint32_t i = 0; i < run->test_count; i++) {
        conformance_test *test = &run->tests[i];
        if (run->only != NULL && strstr(test->name, run->only) == NULL) continue;
        PEN_TRY(test_fork(run, test));
        passed += test->passed;
        if (run->verbose) printf("%s: %s", test->name, test->cause);
    }
    conformance_print_causes(run);
    if (run->update) {
        PEN_TRY(conformance_write_passing(run));
    } else {
        PEN_TRY(conformance_check_passing(run, &lost));
    }
    printf("onnx conformance: %u of %u\n", passed, run->test_count);
    *out_exit_code = lost == 0 ? 0 : 1;
    return PEN_OK;
}

static bool conformance_read_options(conformance *run, int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        const bool more = i + 1 < count;
        if (strcmp(arguments[i], "--update") == 0) {
            run->update = true;
        } else if (strcmp(arguments[i], "--verbose") == 0) {
            run->verbose = true;
        } else if (strcmp(arguments[i], "--only") == 0 && more) {
            run->only = arguments[++i];
        } else if (strcmp(arguments[i], "--data") == 0 && more) {
            run->data = arguments[++i];
        } else if (strcmp(arguments[i], "--list") == 0 && more) {
            run->list = arguments[++i];
        } else if (strcmp(arguments[i], "--export") == 0 && more) {
            run->export_folder = arguments[++i];
        } else if (strcmp(arguments[i], "--device") == 0 && more) {
            if (strcmp(arguments[++i], "reference") == 0) continue;
            fprintf(stderr, "device '%s' is not known here; there is: reference\n", arguments[i]);
            return false;
        } else {
            fprintf(stderr,
                    "'%s' is not possible; there is: --update --verbose --only TEXT --data "
                    "FOLDER --list FILE --device NAME --export FOLDER\n",
                    arguments[i]);
            return false;
        }
    }
    return true;
}

int main(int count, char **arguments) {
    static conformance run = {.data = CONFORMANCE_DATA, .list = CONFORMANCE_PASSING};
    if (!conformance_read_options(&run, count, arguments)) return 2;
    int exit_code = 1;
    pen_status status = pen_arena_create(&run.arena);
    if (status == PEN_OK) status = conformance_run(&run, &exit_code);
    if (status != PEN_OK) {
        char text[CONFORMANCE_CAUSE_BYTES];
        pen_status_format(status, text, sizeof text);
        fputs(text, stderr);
        pen_status_ignore(status, "printed");
    }
    pen_arena_destroy(run.arena);
    return exit_code;
}
