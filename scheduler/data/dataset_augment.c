// Reading for training: pictures are changed by chance once they are read, by the dataset's team if
// it has one.
#include "base/thread.h"
#include "scheduler/data/augment/augment.h"
#include "scheduler/data/augment/augment_mix.h"
#include "scheduler/data/dataset_format.h"
#include "scheduler/data/decode_team.h"

// Examples that were read, shared by all who change them.
typedef struct changing {
    const pen_dataset *dataset;
    const uint64_t *indices;
    void *const *inputs;
    pen_mutex lock;
    uint64_t failed;   // the first that could not be changed; UINT64_MAX: none. Guarded by lock,
    pen_status status; // as why
} changing;

static pen_status changing_apply(const changing *all, uint32_t member, uint64_t place) {
    const pen_dataset *dataset = all->dataset;
    for (uint32_t i = 0; i < dataset->info.input_count; i++) {
        const uint64_t bytes = dataset->info.inputs[i].bytes;
        if (all->inputs[i] == NULL) continue;
        void *example = (char *)all->inputs[i] + place * bytes;
        PEN_TRY(pen_augment_apply(dataset->augment, member, dataset->epoch, all->indices[place], i,
                                  example));
    }
    return PEN_OK;
}

static bool changing_take(void *context, uint32_t member, uint64_t place) {
    changing *all = context;
    pen_status status = changing_apply(all, member, place);
    if (status == PEN_OK) return true;
    pen_mutex_lock(&all->lock);
    if (place < all->failed) {
        const pen_status later = all->status;
        all->failed = place;
        all->status = status;
        status = later;
    }
    pen_mutex_unlock(&all->lock);
    pen_status_ignore(status, "one before it could not be changed either");
    return false;
}

pen_status pen_dataset_open_augment(pen_dataset *dataset, const pen_dataset_options *options) {
    const uint32_t member_count =
        dataset->team == NULL ? 1 : pen_decode_team_member_count(dataset->team);
    if (pen_mix_is_wished(&options->mix)) {
        PEN_TRY(pen_mix_create(options, &dataset->info, &dataset->mix));
    }
    if (options->augment_count == 0) return PEN_OK;
    return pen_augment_create(options, &dataset->info, member_count, &dataset->augment);
}

pen_status pen_dataset_change(const pen_dataset *dataset, const uint64_t *indices, uint64_t count,
                              void *const *inputs) {
    changing all = {.dataset = dataset, .indices = indices, .inputs = inputs, .failed = UINT64_MAX};
    if (!dataset->is_changed) return PEN_OK;
    pen_mutex_init(&all.lock);
    if (dataset->team != NULL) {
        pen_decode_team_run(dataset->team, count, changing_take, &all);
    }
    for (uint64_t i = 0; dataset->team == NULL && i < count; i++) {
        if (!changing_take(&all, 0, i)) break;
    }
    pen_mutex_deinit(&all.lock);
    return all.status;
}

pen_status pen_dataset_read_epoch(pen_dataset *dataset, uint64_t epoch, const uint64_t *indices,
                                  uint64_t count, void *const *out_inputs,
                                  void *const *out_labels) {
    dataset->epoch = epoch;
    dataset->is_changed = dataset->augment != NULL;
    const pen_status status = pen_dataset_read(dataset, indices, count, out_inputs, out_labels);
    dataset->is_changed = false;
    dataset->epoch = 0;
    return status;
}

void pen_dataset_mix(pen_dataset *dataset, uint64_t epoch, uint64_t batch, uint64_t count,
                     void *const *inputs, void *const *labels) {
    if (dataset->mix == NULL) return;
    const pen_mix_share share = pen_mix_draw(dataset->mix, epoch, batch);
    pen_mix_apply(dataset->mix, &share, count, inputs, labels);
}
