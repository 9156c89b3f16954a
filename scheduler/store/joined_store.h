// Whole tensors over a store that has some of them in slices.
//
// Lifetime: as long as the store of slices, in the arena that it was made in.
// Threads:  one.
#ifndef PEN_SCHEDULER_STORE_JOINED_STORE_H
#define PEN_SCHEDULER_STORE_JOINED_STORE_H

#include "base/arena.h"
#include "scheduler/store/tensor_store.h"

// The tensors of `slices`, under their own names, in the order of their first slices. Without a
// slice it is `slices` itself.
//   INTERNAL  the slices of a tensor are not all of it. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_joined_store_create(const pen_tensor_store *slices, pen_arena *arena,
                                                 const pen_tensor_store **out_store);

#endif // PEN_SCHEDULER_STORE_JOINED_STORE_H
