// Ways between processes of a test: who calls a proxy within this host asks the process behind it
// for tokens (scheduler/transport/ring/ring_door.h).
#ifndef PEN_TESTS_SUPPORT_DOOR_H
#define PEN_TESTS_SUPPORT_DOOR_H

#include <stdint.h>

// Callers of 127.0.0.1:`from` ask who takes links at 127.0.0.1:`to`, in place of anybody before.
void door_lead(uint16_t from, uint16_t to);
void door_close(uint16_t from); // nobody is asked any more

#endif // PEN_TESTS_SUPPORT_DOOR_H
