// The average of parameters in their place: in what is evaluated, predicted, hashed and written of
// a training whose job says so. Checkpoints have both. Before the first step there is no average
// yet: pen_trainer_uses_average says whether there is one, and is the `uses` of the functions here.
//
// Threads: one, that of the trainer.
#ifndef PEN_SCHEDULER_TRAIN_TRAIN_AVERAGE_H
#define PEN_SCHEDULER_TRAIN_TRAIN_AVERAGE_H

#include "base/arena.h"
#include "scheduler/engine/engine.h"

// Whether the job has them in their place.
bool pen_train_uses_average(const pen_job *job);

// The same tensors, but reading a parameter that has an average reads that; without `uses`, the
// store as it is. Not written through. As long as store and arena.
PEN_NODISCARD pen_status pen_train_average_view(bool uses, const pen_tensor_store *store,
                                                pen_arena *arena, pen_tensor_store *out_view);

// As `save`, pen_parameter_file_save say, and pen_tensor_store_hash, of such a view.
typedef pen_status (*pen_train_save_fn)(const char *path, const pen_tensor_store *store);
PEN_NODISCARD pen_status pen_train_average_save(bool uses, const pen_tensor_store *store,
                                                pen_train_save_fn save, const char *path);
PEN_NODISCARD pen_status pen_train_average_hash(bool uses, const pen_tensor_store *store,
                                                uint64_t *out_hash);

// As evaluate of the engine. Parameters and averages change places for as long as it takes: between
// steps, and with no checkpoint under way. Where a worker is lost meanwhile, neither is what it
// was: recovery loads both.
PEN_NODISCARD pen_status pen_train_average_evaluate(bool uses, pen_engine *engine,
                                                    pen_dataset *dataset, uint64_t batch,
                                                    pen_evaluation *out_evaluation);

#endif // PEN_SCHEDULER_TRAIN_TRAIN_AVERAGE_H
