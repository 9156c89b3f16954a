// What the fake driver was told by its setting (fake_driver.h), and what its files share.
#ifndef PEN_TESTS_CUDA_FAKE_GPUS_H
#define PEN_TESTS_CUDA_FAKE_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_GPUS 8u
#define FAKE_ALL_ROLES 99u
#define FAKE_ANY_MATH 99u
// A result of the driver, by cuda.h.
#define FAKE_INVALID 1u
// Addresses of the device have bits that no address of the host has.
#define FAKE_TAG ((uint64_t)0xDE1C << 48)
#define FAKE_TAG_BITS ((uint64_t)0xFFFF << 48)

typedef struct fake_told {
    unsigned gpu_count, model_count, first_model, late_us, order;
    unsigned late_gpu;                // whose commands are late; FAKE_ALL_ROLES: of all
    unsigned late_role;               // of streams whose commands are late; FAKE_ALL_ROLES: of all
    unsigned lost_stream, lost_event; // roles between which an event is not awaited
    unsigned slow_us;
    unsigned tick_ns; // in which times are told
    char slow[64];    // the kernel that is slow by that
    unsigned fails_at;
    char fails[64];        // the kernel that fails when it runs for that time
    uint64_t memory_bytes; // of each
    unsigned driver;       // the version of CUDA that it knows
    unsigned capability;   // of GPUs: 75 is 7.5
    // of fake_cublas.h and fake_cudnn.h
    unsigned blas_fails, blas_begins, dnn_begins, dnn_fails, dnn_where, dnn_none, dnn_math,
        dnn_cuda, dnn_minor, begins_gpu;
    bool has_peers;     // GPUs reach each other,
    bool refuses_peers; // or are said to, and do not
    bool is_told;       // counts, at the end
    bool is_graphless;  // memory for graphs is refused
} fake_told;

extern fake_told fake_settings; // as the last cuInit found them

#endif // PEN_TESTS_CUDA_FAKE_GPUS_H
