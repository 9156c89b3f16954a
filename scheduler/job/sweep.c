#include "scheduler/job/sweep.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "scheduler/job/job.h"

#define SWEEP_VALUE_CHARACTERS 40 // of a value in a name
#define SWEEP_NAME_CHARACTERS 160

typedef struct sweep_axis { // of the grid
    const char *path;
    pen_option_list values; // const char *
} sweep_axis;

typedef struct sweep_value { // of an item of the list
    const char *path;
    const char *value;
} sweep_value;

static const pen_option_field sweep_text = {.kind = PEN_OPTION_SCALAR};
static const pen_option_field sweep_axis_values = {.kind = PEN_OPTION_LIST,
                                                   .offset = offsetof(sweep_axis, values),
                                                   .item = &sweep_text,
                                                   .count_minimum = 1,
                                                   .is_list_optional = true};
static const pen_option_field sweep_value_item = {.kind = PEN_OPTION_SCALAR,
                                                  .offset = offsetof(sweep_value, value)};
static const pen_option_field sweep_list_item = {
    .kind = PEN_OPTION_MAP, .item = &sweep_value_item, .entry_bytes = sizeof(sweep_value)};

static const pen_option_field sweep_stop_fields[] = {
    PEN_OPTION(NUMBER, pen_sweep_stop, worst, "share of the runs that end early",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_BELOW(1),
               .default_text = "0.5"),
    PEN_OPTION(NUMBER, pen_sweep_stop, at, "share of their steps that all runs do",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_BELOW(1),
               .default_text = "0.5"),
};
static const pen_option_table sweep_stop_table = {
    PEN_OPTION_FIELDS(pen_sweep_stop, sweep_stop_fields)};

static const pen_option_field sweep_fields[] = {
    PEN_OPTION(INTEGER, pen_sweep, version, "of this format", .is_required = true,
               PEN_OPTION_RANGE(1, 1)),
    PEN_OPTION(PATH, pen_sweep, job, "the job that is changed", .is_required = true),
    PEN_OPTION(PATH, pen_sweep, dir, "folder that gets a folder for each run", .is_required = true),
    PEN_OPTION(MAP, pen_sweep, grid,
               "values by path, as of --set; each is tried with each of the others. Lists and "
               "mappings stand in quotes",
               .item = &sweep_axis_values, .entry_bytes = sizeof(sweep_axis)),
    PEN_OPTION(LIST, pen_sweep, list,
               "mappings of paths to a value each, that are tried together; each with each of the "
               "grid",
               .item = &sweep_list_item),
    PEN_OPTION(INTEGER, pen_sweep, parallel, "runs at once", PEN_OPTION_RANGE(1, 1000),
               .default_text = "1"),
    PEN_OPTION(CHOICE, pen_sweep, sort,
               "what the best run has least or most of: that of the evaluation, or where there is "
               "none of the last tenth of the steps",
               .choices = pen_metric_names, .default_text = "loss"),
    PEN_OPTION(MAPPING, pen_sweep, stop, "ends the worst runs early", .table = &sweep_stop_table,
               .present_offset = offsetof(pen_sweep, has_stop)),
};
// Keys of a job.
static const char *sweep_explain(const char *key) {
    for (uint32_t i = 0; i < pen_job_table.field_count; i++) {
        if (strcmp(pen_job_table.fields[i].key, key) != 0) continue;
        return "it is a key of jobs; a sweep names a job, as in `job: job.yaml`, and its `grid` "
               "changes values of it";
    }
    return NULL;
}

const pen_option_table pen_sweep_table = {.help = "A sweep: values to try in a job.",
                                          PEN_OPTION_FIELDS(pen_sweep, sweep_fields),
                                          .explain = sweep_explain};

// ---- names

// The last key of a path: what people call the value.
static const char *sweep_last_key(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot == NULL ? path : dot + 1;
}

static void sweep_add_name(pen_text *name, const char *path, const char *value) {
    pen_text_print(name, "%s%.40s=", name->length > 0 ? "," : "", sweep_last_key(path));
    for (size_t i = 0; i < SWEEP_VALUE_CHARACTERS && value[i] != '\0'; i++) {
        const char c = value[i];
        const bool is_plain = isalnum((unsigned char)c) || strchr("._+-", c) != NULL;
        pen_text_append(name, is_plain ? &c : "_", 1);
    }
}

static int sweep_compare(const void *a, const void *b) {
    return strcmp((*(pen_sweep_run *const *)a)->name, (*(pen_sweep_run *const *)b)->name);
}

// A name that says too little, or that another run has too, gets a sum of all settings behind it.
static pen_status sweep_sum_name(pen_sweep_run *run, pen_arena *arena) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < run->setting_count; i++) {
        sum = pen_checksum_continue(sum, run->settings[i], strlen(run->settings[i]) + 1);
    }
    return pen_arena_format(arena, &run->name, "%.*s-%08x", SWEEP_NAME_CHARACTERS, run->name,
                            (unsigned)sum);
}

// Equal names stand beside each other when sorted; two runs of equal settings are a mistake.
static pen_status sweep_separate(const pen_sweep *sweep, pen_arena *arena) {
    pen_sweep_run **sorted;
    bool *is_double;
    PEN_TRY(PEN_NEW(arena, sweep->run_count, &sorted));
    PEN_TRY(PEN_NEW(arena, sweep->run_count, &is_double));
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < sweep->run_count; i++)
            sorted[i] = &sweep->runs[i];
        qsort(sorted, sweep->run_count, sizeof *sorted, sweep_compare);
        for (uint32_t i = 0; i < sweep->run_count; i++) {
            const bool is_next =
                i + 1 < sweep->run_count && strcmp(sorted[i]->name, sorted[i + 1]->name) == 0;
            is_double[i] = is_next || (i > 0 && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0);
            if (round == 0 || !is_next) continue;
            return pen_error(PEN_INVALID_INPUT, "two runs are the same: %.200s", sorted[i]->name);
        }
        for (uint32_t i = 0; round == 0 && i < sweep->run_count; i++) {
            const bool is_long = strlen(sorted[i]->name) > SWEEP_NAME_CHARACTERS;
            if (is_double[i] || is_long) PEN_TRY(sweep_sum_name(sorted[i], arena));
        }
    }
    return PEN_OK;
}

// ---- runs

static pen_status sweep_add_setting(pen_sweep_run *run, const char **settings, pen_text *name,
                                    const sweep_value *setting) {
    sweep_add_name(name, setting->path, setting->value);
    return pen_arena_format(name->arena, &settings[run->setting_count++], "%s=%s", setting->path,
                            setting->value);
}

// Run `index` as a number whose digits are the places in the list and in each axis; the last axis
// changes quickest.
static pen_status sweep_make_run(const pen_sweep *sweep, uint32_t index, pen_arena *arena,
                                 pen_sweep_run *run) {
    const sweep_axis *axes = sweep->grid.items;
    const pen_option_list *items = sweep->list.items;
    uint32_t at = index, together = 1;
    const char **settings;
    uint32_t *places;
    pen_text name;
    PEN_TRY(PEN_NEW(arena, (size_t)sweep->grid.count + 1, &places));
    for (uint32_t a = sweep->grid.count; a-- > 0;) {
        places[a] = at % axes[a].values.count;
        at /= axes[a].values.count;
    }
    const pen_option_list none = {.count = 0};
    const pen_option_list item = sweep->list.count > 0 ? items[at % sweep->list.count] : none;
    together = sweep->grid.count + item.count;
    pen_text_init(&name, arena);
    PEN_TRY(PEN_NEW(arena, (size_t)together + 1, &settings));
    for (uint32_t a = 0; a < sweep->grid.count; a++) {
        const char *const *values = axes[a].values.items;
        const sweep_value setting = {axes[a].path, values[places[a]]};
        PEN_TRY(sweep_add_setting(run, settings, &name, &setting));
    }
    for (uint32_t i = 0; i < item.count; i++) {
        PEN_TRY(sweep_add_setting(run, settings, &name, &((const sweep_value *)item.items)[i]));
    }
    if (run->setting_count == 0) pen_text_add(&name, "base");
    run->settings = settings;
    return pen_text_finish(&name, &run->name);
}

static pen_status sweep_make_runs(pen_sweep *sweep, const pen_yaml_node *root, pen_arena *arena) {
    const sweep_axis *axes = sweep->grid.items;
    uint64_t count = sweep->list.count > 0 ? sweep->list.count : 1;
    for (uint32_t a = 0; a < sweep->grid.count && count <= PEN_SWEEP_RUNS_LIMIT; a++) {
        count *= axes[a].values.count;
    }
    if (count > PEN_SWEEP_RUNS_LIMIT) {
        return pen_yaml_blame(root, pen_error(PEN_INVALID_INPUT,
                                              "these are more than %d runs, the most possible",
                                              PEN_SWEEP_RUNS_LIMIT));
    }
    sweep->run_count = (uint32_t)count;
    PEN_TRY(PEN_NEW(arena, count, &sweep->runs));
    for (uint32_t i = 0; i < sweep->run_count; i++) {
        PEN_TRY(sweep_make_run(sweep, i, arena, &sweep->runs[i]));
    }
    return pen_yaml_blame(root, sweep_separate(sweep, arena));
}

static pen_status sweep_take(const char *path, const pen_yaml_node *root, pen_arena *arena,
                             pen_sweep **out_sweep) {
    const pen_option_settings settings = {.file = path};
    const pen_option_source *source;
    pen_sweep *sweep;
    PEN_TRY(PEN_NEW(arena, 1, &sweep));
    PEN_TRY(pen_option_read(&pen_sweep_table, root, &settings, arena, sweep, &source));
    const bool is_of_steps = sweep->sort == PEN_METRIC_LOSS || sweep->sort == PEN_METRIC_ACCURACY;
    if (sweep->has_stop && !is_of_steps) {
        return pen_option_blame(source, &sweep->sort,
                                pen_error(PEN_INVALID_INPUT,
                                          "sort: found %s beside stop, which compares steps of "
                                          "trainings: expected loss or accuracy",
                                          pen_metric_names[sweep->sort]));
    }
    PEN_TRY(sweep_make_runs(sweep, root, arena));
    *out_sweep = sweep;
    return PEN_OK;
}

pen_status pen_sweep_parse(const char *path, const char *bytes, size_t length, pen_arena *arena,
                           pen_sweep **out_sweep) {
    const pen_yaml_node *root;
    PEN_TRY(pen_yaml_parse(path, bytes, length, arena, &root));
    return sweep_take(path, root, arena, out_sweep);
}

pen_status pen_sweep_read(const char *path, pen_arena *arena, pen_sweep **out_sweep) {
    const pen_yaml_node *root;
    PEN_TRY(pen_yaml_read(path, arena, &root));
    return sweep_take(path, root, arena, out_sweep);
}
