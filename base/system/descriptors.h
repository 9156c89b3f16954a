// File descriptors, which callers from the network use up: as many as the system grants, and going
// on when there are none left.
//
// This file also is accept4 of the whole program, for gRPC as well: gRPC gives a listening socket
// up for ever once accept4 fails for want of a descriptor. Ours turns away who waits, and says that
// nobody does.
//
// Threads: any; pen_descriptors_prepare is for one, before others are started.
#ifndef PEN_BASE_SYSTEM_DESCRIPTORS_H
#define PEN_BASE_SYSTEM_DESCRIPTORS_H

#include "base/system/callers.h"

// Raises the limit of open files (the soft one) to what the hard limit grants, at most
// PEN_CALLERS_DESCRIPTORS, and sets a few descriptors aside for turning callers away.
void pen_descriptors_prepare(void);

#endif // PEN_BASE_SYSTEM_DESCRIPTORS_H
