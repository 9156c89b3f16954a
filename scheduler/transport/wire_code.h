// Codes of errors on the wire: the number that stands for one in a farewell, and as the status of
// an RPC. They are gRPC's.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_WIRE_CODE_H
#define PEN_SCHEDULER_TRANSPORT_WIRE_CODE_H

#include <stdint.h>

#include "base/status.h"

uint32_t pen_wire_code(pen_status_code code);
pen_status_code pen_wire_code_read(uint32_t number);

#endif // PEN_SCHEDULER_TRANSPORT_WIRE_CODE_H
