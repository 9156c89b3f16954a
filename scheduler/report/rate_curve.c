#include "scheduler/report/rate_curve.h"

void pen_rate_curve_write(const pen_rate_curve *curve, pen_json_writer *json) {
    if (curve == NULL || curve->found->count == 0) return;
    const pen_found_rate *found = curve->found;
    pen_json_key_object(json, "search");
    if (found->best < found->count) {
        pen_json_key_number(json, "suggested", found->points[found->best].rate);
    }
    pen_json_key_number(json, "job", curve->job);
    pen_json_key_array(json, "points");
    for (uint32_t i = 0; i < found->count; i++) {
        pen_json_begin_array(json);
        pen_json_number(json, found->points[i].rate);
        pen_json_number(json, found->points[i].loss);
        pen_json_number(json, found->points[i].smoothed);
        pen_json_end_array(json);
    }
    pen_json_end_array(json);
    pen_json_end_object(json);
}
