// Whether anybody listens at an address, found out by calling it.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_ANSWER_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_ANSWER_H

#include <stdbool.h>

typedef enum pen_address_answer {
    PEN_ADDRESS_ANSWERS,
    PEN_ADDRESS_REFUSES, // nobody listens there, for sure
    PEN_ADDRESS_SILENT,  // nobody answered so far
    PEN_ADDRESS_AWAY,    // no way there was found
    PEN_ADDRESS_UNKNOWN, // nobody knows the host's name
    PEN_ADDRESS_WRONG,   // it is no "host:port"; nobody listens there, for sure
} pen_address_answer;

// What an answer other than PEN_ADDRESS_ANSWERS means to a user: "connection refused: …".
const char *pen_address_answer_words(pen_address_answer answer);

// "host:port". Waits for `seconds` at most, but for the name to be found.
pen_address_answer pen_address_ask(const char *address, double seconds);
bool pen_address_answers(const char *address, double seconds);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_ADDRESS_ANSWER_H
