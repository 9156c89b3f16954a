#include "scheduler/plan/plan_kinds.h"

#include <string.h>

#include "base/libraries.h"
#include "device/on_host.h"
#include "partition/spec/cluster_spec.h"
#include "scheduler/compile/program_cut.h"

static bool kinds_are_all_cpu(const pen_cluster *cluster) {
    const char *cpu = pen_cluster_device_kind_name(PEN_CLUSTER_CPU);
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (strcmp(cluster->devices[d].kind, cpu) != 0) return false;
    }
    return true;
}

// "kind         cuda: g, h", a line for each kind, in the order of the devices.
static void kinds_add_names(const pen_plan_model *model, const pen_cluster *cluster,
                            pen_text *text) {
    for (uint32_t k = 0; k < model->device_count; k++) {
        const char *between = "";
        pen_text_print(text, "%-12s %s: ", k == 0 ? "kinds" : "", model->devices[k]->kind->name);
        for (uint32_t d = 0; d < cluster->device_count; d++) {
            if (model->number_of_device[d] != k) continue;
            pen_text_print(text, "%s%s", between, cluster->devices[d].name);
            between = ", ";
        }
        pen_text_add(text, "\n");
    }
}

// What no plan can know of a GPU: its driver's own share is told by none of its functions.
static void kinds_add_unproven(const pen_plan_model *model, pen_text *text) {
    for (uint32_t k = 0; k < model->device_count; k++) {
        if (!model->devices[k]->kind->has_own_memory) continue;
        pen_text_print(
            text,
            "unproven     what the driver of a device of kind %s takes for itself, its "
            "context and code,\n             and that of libraries, is in no figure: leave "
            "`reserve` for it\n",
            model->devices[k]->kind->name);
    }
}

// A plan does not know which machines have them.
static void kinds_add_libraries(const pen_plan_model *model, pen_text *text) {
    for (uint32_t k = 0; k < model->device_count; k++) {
        const char *library = model->devices[k]->kind->library;
        if (model->libraries == PEN_LIBRARIES_NONE || library == NULL) continue;
        pen_text_print(text, "libraries    %s: %s\n", pen_libraries_names[model->libraries],
                       library);
    }
}

// What runs on the host is found in the parts that the plan's cut gives: backward nodes are in
// them.
pen_status pen_plan_add_kinds(const pen_plan_model *model, const pen_cluster *cluster,
                              const pen_plan *plan, const pen_schedule *schedule, pen_arena *arena,
                              pen_text *text) {
    pen_program_parts parts;
    if (kinds_are_all_cpu(cluster)) return PEN_OK;
    pen_text_add(text, "\n");
    kinds_add_names(model, cluster, text);
    PEN_TRY(pen_program_cut(model->program, plan, schedule, arena, &parts));
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const pen_part *part = &parts.cut->parts[d];
        pen_on_host found;
        PEN_TRY(pen_on_host_find(model->devices[model->number_of_device[d]], part->graph,
                                 part->order, part->order_count, arena, &found));
        if (found.count == 0) continue;
        pen_text_print(text,
                       "on the host  %u of %u nodes of '%s', of operators without a kernel: %s\n",
                       found.count, found.of, plan->devices[d].name, found.list);
    }
    kinds_add_libraries(model, text);
    kinds_add_unproven(model, text);
    return PEN_OK;
}
