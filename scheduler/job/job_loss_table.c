// The keys that say what is made small: `loss` with what belongs to it, and `losses`.
#include "scheduler/job/job.h"
#include "scheduler/job/job_table.h"
#include "scheduler/job/job_words.h"

const pen_option_field pen_job_class_weight_item = {
    .kind = PEN_OPTION_NUMBER,
    .minimum = PEN_OPTION_FROM(0),
};

static pen_status loss_refuse(const pen_option_source *source, const void *field, const char *key,
                              const char *expected) {
    return pen_option_blame(
        source, field,
        pen_error(PEN_INVALID_INPUT, "%s: found, expected only with %s", key, expected));
}

// What belongs to losses over classes.
static pen_status loss_check_classes(const pen_job_loss *loss, const pen_option_source *source) {
    const char *classes = "softmax_cross_entropy or negative_log_likelihood";
    if (loss->class_axis == 0) {
        return pen_option_blame(source, &loss->class_axis,
                                pen_error(PEN_INVALID_INPUT,
                                          "class_axis: found 0, expected another dimension: the "
                                          "first counts the examples"));
    }
    if (loss->label_smoothing > 0 && loss->kind != PEN_LOSS_SOFTMAX_CROSS_ENTROPY) {
        return loss_refuse(source, &loss->label_smoothing, "label_smoothing",
                           "softmax_cross_entropy");
    }
    if (loss->has_probabilities && loss->kind != PEN_LOSS_SOFTMAX_CROSS_ENTROPY) {
        return loss_refuse(source, &loss->has_probabilities, "probabilities",
                           "softmax_cross_entropy");
    }
    if (loss->has_probabilities && loss->ignores) {
        return loss_refuse(source, &loss->ignore_index, "ignore_index",
                           "class indices, not with probabilities");
    }
    if (pen_loss_is_over_classes(loss->kind)) return PEN_OK;
    if (loss->class_axis != -1) {
        return loss_refuse(source, &loss->class_axis, "class_axis", classes);
    }
    if (loss->ignores) return loss_refuse(source, &loss->ignore_index, "ignore_index", classes);
    if (loss->class_weights.count > 0 || loss->class_weights_file != NULL) {
        return loss_refuse(source, &loss->class_weights, "class_weights", classes);
    }
    return PEN_OK;
}

pen_status pen_job_check_loss(const pen_job_loss *loss, const pen_option_source *source) {
    PEN_TRY(loss_check_classes(loss, source));
    if (loss->has_beta && loss->kind != PEN_LOSS_SMOOTH_L1) {
        return loss_refuse(source, &loss->beta, "beta", "smooth_l1; huber has delta");
    }
    if (loss->has_delta && loss->kind != PEN_LOSS_HUBER) {
        return loss_refuse(source, &loss->delta, "delta", "huber; smooth_l1 has beta");
    }
    if (loss->labels != NULL && loss->kind == PEN_LOSS_OUTPUT) {
        return pen_option_blame(source, &loss->labels,
                                pen_error(PEN_INVALID_INPUT,
                                          "labels: found with the loss output, which the model "
                                          "computes; expected none"));
    }
    return PEN_OK;
}

static pen_status job_check_entry(const void *object, const pen_option_source *source) {
    return pen_job_check_loss(object, source);
}

static const pen_option_field job_entry_fields[] = {
    PEN_OPTION(TEXT, pen_job_loss, output,
               "the model's output that it is taken of, when it has several"),
    PEN_OPTION(TEXT, pen_job_loss, labels,
               "name of the labels in the data; as the output's when not given"),
    PEN_OPTION(CHOICE, pen_job_loss, kind, "as loss", .is_required = true,
               .choices = pen_loss_kind_names, .words = pen_job_loss_words),
    PEN_OPTION(NUMBER, pen_job_loss, weight, "by which it is multiplied in the sum",
               .default_text = "1"),
    PEN_JOB_LOSS_FIELDS(pen_job_loss, ),
};
static const pen_option_table job_entry_table = {
    PEN_OPTION_FIELDS(pen_job_loss, job_entry_fields),
    .check = job_check_entry,
};
const pen_option_field pen_job_loss_item = {.kind = PEN_OPTION_MAPPING, .table = &job_entry_table};
