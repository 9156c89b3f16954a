// A libcuda.so.1 for machines without a GPU: what tests tell it, and what it tells them.
//
// It is stricter than a driver must be. Addresses in the device's memory are none of the host's, so
// that who reads one without a copy dies at once. Streams are threads; with a delay, each command
// is late, so that a host's buffer that is read or used again too early shows. Memory is given with
// 0xA5 in it, between guards that are looked at when it is freed. An error that a kernel causes
// stays: each later call gives it. Kernels are those of the emulator.
//
// FAKE_CUDA in the environment has settings, `gpus=2 memory=1000000 late=100 order=1`, read by each
// cuInit: how many GPUs there are (1), bytes of memory of each (4 GiB), microseconds by which a
// command is late (0), and the emulator's order (0). With `models=2` every other GPU is of another
// model, with `model=1` all are. With `tell=FILE`, a process that ends adds a line to the file for
// each GPU whose memory it had: its number, the most bytes at once, and the most bytes that the
// process had pinned. With `count=1` a process says at its end, on stderr, what it left, how often
// it launched, how often a thread that launches waited, how often others did, and how often it
// launched while a copy out beside the work was under way. With `graphless=1` there is no memory
// for graphs. With `peers=1` GPUs can reach each other; with `peers=2` they are said to, and the
// driver refuses it when it is asked for. With `driver=13000` it knows CUDA 13.0, else 12.4. With
// `capability=70` GPUs are of compute capability 7.0, else of 9.0. With
// `slow=NAME` a kernel of that name takes `slow_us=50000` microseconds more. With `fails=NAME
// fails_at=1` one fails as if it read where nothing is, when it runs for that time.
//
// Events have the time at which their stream came to them, by the host's monotonic clock: at once,
// where it had nothing else to do. Times between them are told in steps of `tick_ns=500`.
//
// Streams of a GPU have numbers, from 0, as they are made: the device's are of work, of copies in,
// and of copies out. With `late_role=1` only commands of such a stream are late, with `late_gpu=0`
// only those of this GPU. With `lost_stream=0 lost_event=1` streams of the first number do not wait
// for events that were recorded on those of the second: a missing event, which must show.
//
// Captured launches become a graph by the rules of a driver: a wait, or memory that is taken or
// given back, while a thread captures is an error, and the capture is of no use any more.
//
// Tests take these functions from the library that the device has loaded, by fake_driver_find.
#ifndef PEN_TESTS_CUDA_FAKE_DRIVER_H
#define PEN_TESTS_CUDA_FAKE_DRIVER_H

#include <stdint.h>

typedef struct fake_counts {
    uint64_t bytes;      // of the device's memory, now
    uint64_t bytes_most; // at once
    uint64_t host_bytes; // that are pinned, now
    uint64_t host_bytes_most;
    uint64_t bytes_written; // host to device
    uint64_t bytes_read;
    uint64_t bytes_across;   // from GPU to GPU
    uint64_t launches;       // of kernels and graphs, by the host
    uint64_t kernels;        // that have run
    uint64_t launches_ahead; // of them, while a copy out on a stream of its own was not done
    uint64_t waits;          // of the host, for a stream or an event
    uint64_t waits_beside;   // of them, by threads that never launched
    uint64_t passes;         // of a stream, for an event
    uint64_t contexts;       // retained now
    uint64_t blocks;         // of memory, streams, events, modules and graphs that nobody released
} fake_counts;

typedef void (*fake_counts_fn)(fake_counts *out_counts);
// So many seconds pass on the clocks of GPUs, at once.
typedef void (*fake_pass_fn)(double seconds);
// The next kernel of this name fails as one that reads where nothing is; NULL: none.
typedef void (*fake_break_fn)(const char *kernel);

#endif // PEN_TESTS_CUDA_FAKE_DRIVER_H
