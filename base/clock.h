// The monotonic clock.
//
// Threads: any.
#ifndef PEN_BASE_CLOCK_H
#define PEN_BASE_CLOCK_H

// Seconds since some fixed moment; never goes back. Readings are for measuring and for progress:
// nothing that is written into a plan, a dump or a checkpoint may depend on one.
double pen_clock_seconds(void);

// Gives the processor away for that long, or until a signal comes.
void pen_clock_pause(double seconds);

#endif // PEN_BASE_CLOCK_H
