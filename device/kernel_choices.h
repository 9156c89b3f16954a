// Which of several kernels to take for an op at a shape.
//
// Libraries differ by factors from one shape to the next, and no rule foretells the winner. So a
// device that has several kernels for a node measures them, once, when a job starts and measuring
// is allowed, and keeps the answer here; the answers are stored with the plan and the checkpoint,
// and never measured again elsewhere, since another kernel means other bits.
//
// A key is text that says all that a choice depends on, for people too:
//   matmul transA=0 transB=1 float32[128,784] float32[4096,784] accumulates=0 threads=2 level=v4
//
// Lifetime: lives in its arena.
// Threads:  one at a time.
#ifndef PEN_DEVICE_KERNEL_CHOICES_H
#define PEN_DEVICE_KERNEL_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct pen_kernel_choices pen_kernel_choices;

// No choices yet, measuring not allowed. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_kernel_choices_create(pen_arena *arena,
                                                   pen_kernel_choices **out_choices);

// Whether devices may measure what is not chosen yet, and add it.
void pen_kernel_choices_allow_measuring(pen_kernel_choices *choices, bool allowed);
bool pen_kernel_choices_may_measure(const pen_kernel_choices *choices);

uint32_t pen_kernel_choices_count(const pen_kernel_choices *choices);

// The name of the kernel chosen for `key`; NULL when none is.
const char *pen_kernel_choices_find(const pen_kernel_choices *choices, const char *key);

// Chooses `kernel_name`, or another than before. Both texts are copied. OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_kernel_choices_set(pen_kernel_choices *choices, const char *key,
                                                const char *kernel_name);

// One line a choice, "key: name\n", in the order of the keys.
PEN_NODISCARD pen_status pen_kernel_choices_format(const pen_kernel_choices *choices,
                                                   pen_arena *arena, const char **out_text);

// Adds the choices of such a text. `file` is for messages; may be NULL.
//   INVALID_INPUT  a line that is not "key: name", or a key twice with different names
PEN_NODISCARD pen_status pen_kernel_choices_parse(pen_kernel_choices *choices, const char *file,
                                                  const char *text);

#endif // PEN_DEVICE_KERNEL_CHOICES_H
