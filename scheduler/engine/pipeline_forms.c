#include "scheduler/engine/pipeline_forms.h"

#include "graph/graph.h"
#include "scheduler/engine/collector.h"
#include "scheduler/plan/plan_forms.h"
#include "scheduler/protocol/run_table_check.h"
#include "scheduler/runner/feed.h"
#include "scheduler/runtime/run/run_form.h"

_Static_assert((int)PEN_METRIC_SEEN_COUNT <= (int)PEN_RUN_SEEN_LIMIT,
               "the coordinator can see what metrics see");

typedef struct forms_builder {
    const pen_pipeline_request *request;
    pen_arena *arena;
    pen_pipeline_forms *forms;
    pen_run_form *run_forms;  // [PEN_PIPELINE_FORM_LIMIT]
    pen_run_spec_form *specs; // [PEN_PIPELINE_FORM_LIMIT]
} forms_builder;

static uint64_t forms_value_bytes(const void *context, const pen_graph *graph, pen_value_id value) {
    const forms_builder *b = context;
    pen_device *device = b->request->device;
    return device != NULL && device->kind->value_bytes != NULL
               ? device->kind->value_bytes(device, graph, value)
               : pen_tensor_type_bytes(pen_value_type(graph, value));
}

// ---- what a form's parts are

// What the part of a device has of a value of the program, in which replica ever.
typedef struct forms_part {
    const forms_builder *builder;
    const pen_pipeline_form *form;
    const pen_part *part;
    uint32_t device;
} forms_part;

static pen_value_id forms_find(const forms_part *p, pen_value_id value) {
    const pen_program_parts *parts = &p->form->parts;
    pen_value_id found = pen_program_part_value(parts, p->builder->request->plan, p->device, value);
    if (!pen_value_is(found)) return PEN_VALUE_NONE;
    const pen_status status =
        pen_graph_find_value(p->part->graph, pen_value_name(parts->graph, found), &found);
    if (status == PEN_OK) return found;
    pen_status_ignore(status, "this part does not have it");
    return PEN_VALUE_NONE;
}

static pen_value_id forms_find_kept(const forms_part *p, pen_value_id value) {
    const pen_value_id found = forms_find(p, value);
    for (uint32_t k = 0; k < p->part->kept_count; k++) {
        if (pen_value_is(found) && pen_value_same(p->part->kept[k], found)) return found;
    }
    return PEN_VALUE_NONE;
}

// One part tells whether a step is skipped: without it, all would be counted as good ones.
static pen_status forms_check_applied(const pen_pipeline_form *form,
                                      const pen_run_spec_part *parts) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < form->parts.cut->device_count; d++) {
        count += pen_value_is(parts[d].applied);
    }
    if (count == pen_value_is(form->program->applied)) return PEN_OK;
    return pen_error(PEN_INTERNAL, "%u parts tell what is applied, expected %d", count,
                     pen_value_is(form->program->applied));
}

// A part may lack the loss or the learning rate: then the worker has nothing to report, or to set.
static pen_status forms_describe_parts(forms_builder *b, const pen_pipeline_form *form,
                                       const pen_part_buffers *buffers,
                                       const pen_run_spec_part **out_parts) {
    const pen_program *program = form->program;
    const pen_cut *cut = form->parts.cut;
    pen_run_spec_part *parts;
    PEN_TRY(PEN_NEW(b->arena, cut->device_count, &parts));
    for (uint32_t d = 0; d < cut->device_count; d++) {
        const forms_part part = {b, form, &cut->parts[d], d};
        parts[d] = (pen_run_spec_part){.part = part.part,
                                       .copies = buffers[d].copies,
                                       .loss = forms_find_kept(&part, program->loss),
                                       .accuracy = forms_find_kept(&part, program->accuracy),
                                       .loss_weight = forms_find(&part, program->loss_weight),
                                       .learning_rate = forms_find(&part, program->learning_rate),
                                       .step = forms_find(&part, program->step),
                                       .unscale = forms_find(&part, program->unscale),
                                       .applied = forms_find_kept(&part, program->applied),
                                       .term_count = pen_program_term_count(program)};
        for (uint32_t i = 0; i < pen_program_term_count(program); i++) {
            parts[d].terms[i] = forms_find_kept(&part, pen_program_term(program, i));
        }
        if (program->metrics.choice.metrics == 0) continue;
        parts[d].seen_count = PEN_METRIC_SEEN_COUNT;
        for (uint32_t i = 0; i < PEN_METRIC_SEEN_COUNT; i++) {
            parts[d].seen[i] = forms_find_kept(&part, program->metrics.values[i]);
        }
    }
    *out_parts = parts;
    return forms_check_applied(form, parts);
}

// What workers read by themselves: of each channel from the host which field of an example it is.
static pen_status forms_find_fields(forms_builder *b, const pen_pipeline_form *form,
                                    uint32_t **out_fields) {
    const pen_pipeline_request *request = b->request;
    const pen_cut *cut = form->parts.cut;
    PEN_TRY(PEN_NEW(b->arena, cut->channel_count, out_fields));
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        if (channel->source != PEN_CHANNEL_HOST || channel->is_per_step) continue;
        PEN_TRY(
            pen_feed_find_field(form->program, request->info, channel->value, &(*out_fields)[c]));
    }
    return PEN_OK;
}

static pen_status forms_describe_channels(forms_builder *b, const pen_cut *cut,
                                          const uint32_t *fields,
                                          const pen_run_spec_channel **out_channels) {
    pen_run_spec_channel *channels;
    PEN_TRY(PEN_NEW(b->arena, cut->channel_count, &channels));
    for (uint32_t c = 0; c < cut->channel_count; c++) {
        const pen_channel *channel = &cut->channels[c];
        const pen_value *value = pen_graph_value(cut->parts[channel->target].graph, channel->to);
        channels[c] =
            (pen_run_spec_channel){.value = channel->value,
                                   .from = channel->from,
                                   .to = channel->to,
                                   .type = value->type,
                                   .layout = value->layout,
                                   .field = fields == NULL ? PEN_RUN_FIELD_NONE : fields[c]};
    }
    *out_channels = channels;
    return PEN_OK;
}

// ---- a form

static pen_status forms_cut(forms_builder *b, pen_pipeline_form *form) {
    if (b->request->mode == PEN_COMPILE_PREDICT) {
        return pen_collector_cut(form->program, b->request->plan, b->request->schedule, b->arena,
                                 &form->parts);
    }
    return pen_program_cut(form->program, b->request->plan, b->request->schedule, b->arena,
                           &form->parts);
}

// Microbatches of a step that a form is for.
typedef struct forms_range {
    uint32_t first;
    uint32_t count;
} forms_range;

// A form is one program in one size, cut and turned into tasks: whole microbatches, the short one,
// evaluation. All share their parameters by name.
static pen_status forms_add(forms_builder *b, const pen_program *program, bool trains,
                            const forms_range *range, uint32_t *out_index) {
    const uint32_t index = b->forms->form_count;
    pen_pipeline_form *form = &b->forms->forms[index];
    form->program = program;
    b->forms->form_count += 1; // from now on it is released
    *out_index = index;
    uint32_t *fields = NULL;
    PEN_TRY(forms_cut(b, form));
    if (trains && b->request->data != NULL) PEN_TRY(forms_find_fields(b, form, &fields));
    const pen_run_form_request request = {.cut = form->parts.cut,
                                          .schedule = b->request->schedule,
                                          .first_microbatch = range->first,
                                          .microbatch_count = range->count,
                                          .microbatch_size = program->microbatch_size,
                                          .trains = trains,
                                          .skips = trains && pen_value_is(program->applied),
                                          .tells_gradients =
                                              trains && b->request->compile->asynchrony.is_free,
                                          .worker_of_device = b->request->worker_of_device,
                                          .field_of_channel = fields,
                                          .value_bytes = forms_value_bytes,
                                          .value_bytes_context = b};
    pen_run_form_built built;
    PEN_TRY(pen_run_form_build(&request, b->arena, &built));
    b->run_forms[index] = built.form;
    PEN_TRY(forms_describe_parts(b, form, built.buffers, &b->specs[index].parts));
    return forms_describe_channels(b, form->parts.cut, fields, &b->specs[index].channels);
}

// Another form of the model than that which was planned. Nothing where its size is 0.
static pen_status forms_compile(forms_builder *b, pen_compile_mode mode, uint64_t size,
                                uint32_t *out_index) {
    // the rest of a batch is run by whoever has its lane; without replicas, by all stages
    const bool has_replicas = b->request->plan->replica_count > 1;
    const bool is_rest = mode == PEN_COMPILE_TRAIN && has_replicas;
    const forms_range range = {is_rest ? b->request->rest_index : 0, 1};
    const pen_plan *plan = b->request->plan;
    const pen_compile_form form = {.mode = mode,
                                   .microbatch_size = size,
                                   .microbatches = plan->microbatch_count,
                                   .most_examples = plan->microbatch_size,
                                   .accumulates = plan->microbatch_count > 1,
                                   .device = b->request->device};
    const pen_compile_request request = pen_compile_request_of(b->request->compile, &form);
    const pen_program *program;
    *out_index = PEN_PIPELINE_FORM_NONE;
    if (size == 0) return PEN_OK;
    PEN_TRY(pen_compile(&request, &program));
    return forms_add(b, program, mode == PEN_COMPILE_TRAIN, &range, out_index);
}

// ---- all

// What all workers are told, around the forms that are built.
static pen_status forms_make_spec(forms_builder *b) {
    const pen_pipeline_request *request = b->request;
    pen_run_table *table;
    pen_run_spec *spec;
    PEN_TRY(PEN_NEW(b->arena, 1, &table));
    PEN_TRY(PEN_NEW(b->arena, 1, &spec));
    *table = (pen_run_table){.worker_count = request->worker_count,
                             .device_count = request->plan->device_count,
                             .form_count = b->forms->form_count,
                             .forms = b->run_forms};
    *spec = (pen_run_spec){.table = table,
                           .workers = request->workers,
                           .devices = request->devices,
                           .forms = b->specs,
                           .seed = request->seed,
                           .lanes = {request->plan->lane_count, request->plan->microbatch_count},
                           .trace_limit = request->trace_limit,
                           .shares_memory = request->shares_memory,
                           .data = request->data};
    b->forms->spec = spec;
    return pen_run_table_check(table);
}

// Over whole batches, and over the last one.
static pen_status forms_build_forward(forms_builder *b, pen_compile_mode mode) {
    const pen_pipeline_request *request = b->request;
    PEN_TRY(forms_compile(b, mode, request->evaluate_batch, &b->forms->evaluate));
    return forms_compile(b, mode, request->evaluate_rest, &b->forms->evaluate_rest);
}

static pen_status forms_build_training(forms_builder *b) {
    const pen_pipeline_request *request = b->request;
    const pen_plan *plan = request->plan;
    uint32_t whole;
    const forms_range range = {0, plan->microbatch_count};
    PEN_TRY(forms_add(b, request->program, true, &range, &whole));
    PEN_TRY(pen_plan_blame_rest(forms_compile(b, PEN_COMPILE_TRAIN, request->rest, &b->forms->rest),
                                request->rest));
    return forms_build_forward(b, PEN_COMPILE_EVALUATE);
}

static pen_status forms_build(forms_builder *b) {
    const pen_compile_mode mode = b->request->mode;
    b->forms->borrowed = b->request->program;
    PEN_TRY(PEN_NEW(b->arena, PEN_PIPELINE_FORM_LIMIT, &b->run_forms));
    PEN_TRY(PEN_NEW(b->arena, PEN_PIPELINE_FORM_LIMIT, &b->specs));
    PEN_TRY(mode == PEN_COMPILE_TRAIN ? forms_build_training(b) : forms_build_forward(b, mode));
    return forms_make_spec(b);
}

pen_status pen_pipeline_forms_build(const pen_pipeline_request *request, pen_arena *arena,
                                    pen_pipeline_forms *out_forms) {
    *out_forms = (pen_pipeline_forms){0};
    forms_builder b = {.request = request, .arena = arena, .forms = out_forms};
    const pen_status status = forms_build(&b);
    if (status != PEN_OK) pen_pipeline_forms_release(out_forms);
    return status;
}

void pen_pipeline_forms_release(pen_pipeline_forms *forms) {
    for (uint32_t f = 0; f < forms->form_count; f++) {
        if (forms->forms[f].program == forms->borrowed) continue;
        pen_program_destroy(forms->forms[f].program);
    }
    *forms = (pen_pipeline_forms){0};
}
