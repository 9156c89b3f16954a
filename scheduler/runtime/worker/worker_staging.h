// Copies from and to devices whose memory the host does not see, such as a GPU: of what their
// channels carry, and of pieces of their tensors. Where one such device reaches another of its
// process, it copies from there (is_direct). Else what it sends lies in the host's memory until the
// frame is let go, and what comes to it arrives there first.
//
// Copies go beside the work of such a device, in queues of their own (device/device.h). Fences keep
// the order, on the device and between devices of one process; worker_staging.c has a table of
// them. The host waits for a copy where it hands over what was copied, to a transport or to a
// device whose memory it sees, and before a place of what arrives is written again.
//
// Lifetime: the room is the run's. Threads: as each function says.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_STAGING_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_STAGING_H

#include "scheduler/runtime/worker/worker_device.h"

// How much room and which fences a device needs, once channels have their places.
// OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_staging_prepare(pen_worker_run *run);
// On a device's thread, once all devices are open: finds those from which it can copy without the
// host.
PEN_NODISCARD pen_status pen_worker_staging_reach(worker_device *device);
// On a device's thread, once it is known what each one reaches: makes its fences, and room for what
// leaves it by way of the host, and comes to it. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_worker_staging_open(worker_device *device);
// Whether the host does not see the memory of this worker's device.
bool pen_worker_is_staged(const pen_worker_run *run, uint32_t device);
// Whether the reader of a shared channel has memory of its own, into which values are copied.
bool pen_worker_is_copied(const pen_worker_run *run, const pen_run_channel *channel);
// Whether frames of the channel come into the host's memory, and go on from there: a place is free
// again when it was copied.
bool pen_worker_staging_holds(const pen_worker_run *run, uint32_t form, uint32_t c);
// Any thread: the frame, which tasks have read, is not in the host's memory any more.
PEN_NODISCARD pen_status pen_worker_staging_await_in(const pen_worker_run *run,
                                                     const worker_send *frame);
// The place of a frame in the host's memory: where it leaves, or arrives.
void *pen_worker_staging_place(const worker_staging *staging, uint64_t microbatch, uint32_t places);
// On the target device's thread: a frame that came into the host's memory goes on to its device,
// once.
PEN_NODISCARD pen_status pen_worker_staging_take_in(pen_worker_run *run, uint32_t form, uint32_t c,
                                                    uint64_t microbatch);
// On the device's thread, or its sender's: a frame that leaves it is in the host's memory.
PEN_NODISCARD pen_status pen_worker_staging_await(const worker_device *device,
                                                  const worker_send *send);
// Room for a piece of a device that the host does not see.
char *pen_worker_staging_piece(const pen_worker_run *run, const worker_piece *piece);
// On the device's thread, between its memory and that room: out where the piece is to be sent, in
// where it has come.
PEN_NODISCARD pen_status pen_worker_staging_move_piece(pen_worker_run *run, worker_device *device,
                                                       const worker_piece *piece);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_STAGING_H
