// What gRPC says of a connection that failed, in few words for people.
//
// Threads: any.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_FAILURE_WORDS_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_FAILURE_WORDS_H

#include <stdbool.h>

#define PEN_FAILURE_OTHER_HOST "TLS: the peer's certificate is for another host"
#define PEN_FAILURE_CLOSED "the peer closed the connection"

// What `text`, gRPC's, means. NULL: nobody knows. `has_tls`: certificates were to be shown.
const char *pen_failure_words(const char *text, bool has_tls);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_FAILURE_WORDS_H
