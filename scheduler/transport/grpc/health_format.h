// Messages of grpc.health.v1.Health (health.proto of gRPC), as far as they are used:
//   HealthCheckRequest { string service = 1; }
//   HealthCheckResponse { ServingStatus status = 1; }
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_HEALTH_FORMAT_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_HEALTH_FORMAT_H

#define PEN_HEALTH_METHOD "/grpc.health.v1.Health/Check"

enum {
    PEN_HEALTH_SERVICE_KEY = 0x0a,
    PEN_HEALTH_STATUS_KEY = 0x08,
    PEN_HEALTH_SERVING = 1,
};

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_HEALTH_FORMAT_H
