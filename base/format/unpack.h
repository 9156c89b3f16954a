// How much may be made of what was packed.
//
// Packed bytes can stand for a thousand times as many, so a small file of a stranger could fill the
// memory of whoever unpacks it. Data that means something packs less well: text to a fifth, masks
// of a few smooth shapes to a four-hundredth. So whatever is unpacked has this limit:
// PEN_UNPACK_BYTES, or the packed bytes PEN_UNPACK_RATIO times, whichever is more. It is the same
// on every machine. What is unpacked into memory must fit there, too. Bytes that are stored as they
// are have no such limit: what a user unpacks beforehand always works.
//
// Threads: functions share nothing.
#ifndef PEN_BASE_FORMAT_UNPACK_H
#define PEN_BASE_FORMAT_UNPACK_H

#include <stdint.h>

#include "base/status.h"

// Bytes that may be made of `packed` ones.
uint64_t pen_unpack_limit(uint64_t packed);

// Whether `packed` bytes of the file `name` may become `unpacked` ones; `remedy` says what a user
// does who needs them: "gunzip it first".
//   UNSUPPORTED  they are more than the limit: names file, limit and remedy
PEN_NODISCARD pen_status pen_unpack_check(const char *name, uint64_t packed, uint64_t unpacked,
                                          const char *remedy);

// Whether the machine has `bytes` free, into which `name` is to be unpacked. Asked before they are
// taken. Where the system does not say what is free, they fit.
//   DOES_NOT_FIT  names file, both sizes and remedy
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_unpack_check_memory(const char *name, uint64_t bytes,
                                                 const char *remedy);

#endif // PEN_BASE_FORMAT_UNPACK_H
