// How a running statistic takes in that of a batch. Compiled once, for kernels of all levels: were
// it inlined, compilers would join a product and the sum in one place and not in another.
//
// Threads: pure.
#ifndef PEN_DEVICE_RUNNING_STATISTIC_H
#define PEN_DEVICE_RUNNING_STATISTIC_H

// running * momentum + batch * (1 - momentum), each rounded to float64.
double pen_running_statistic(double running, double momentum, double batch);

#endif // PEN_DEVICE_RUNNING_STATISTIC_H
