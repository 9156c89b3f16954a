// Whether anybody listens at an address, found out by calling it.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_ANSWER_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_ANSWER_H

#include <stdbool.h>

// "host:port". Waits for `seconds` at most, but for the name to be found.
bool pen_address_answers(const char *address, double seconds);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_ANSWER_H
