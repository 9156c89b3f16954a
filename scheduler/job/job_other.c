#include "scheduler/job/job_other.h"

#include "graph/import/import.h"

pen_status pen_job_check_name(const char *path) {
    if (!pen_model_is_named(path)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "'%s' is a model by its name, and no job: `penstock init %s DATA` writes one "
                     "for it",
                     path, path);
}

// Only what is not read as a job is looked at, so a job never pays for it.
pen_status pen_job_explain_other(const pen_job_origin *origin, const pen_yaml_node *root,
                                 pen_status status) {
    if (status == PEN_OK || origin->text != NULL) return status;
    if (root->kind != PEN_YAML_MAPPING) {
        return pen_status_add_context(
            status,
            "it is no job: `penstock init MODEL DATA…` writes one for a model and its data");
    }
    if (pen_yaml_find(root, "train") != NULL) return status;
    if (pen_yaml_find(root, "layers") != NULL) {
        return pen_status_add_context(
            status, "it is a model of layers, and no job: `penstock init %s DATA…` writes one",
            origin->path);
    }
    if (pen_yaml_find(root, "stages") != NULL && pen_yaml_find(root, "nodes") != NULL) {
        return pen_status_add_context(status, "it is a plan, and no job");
    }
    return status;
}
