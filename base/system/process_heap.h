// The heap of a process that takes much from the network.
//
// Threads: called once, before others start.
#ifndef PEN_BASE_SYSTEM_PROCESS_HEAP_H
#define PEN_BASE_SYSTEM_PROCESS_HEAP_H

// Sets the heap so that memory of messages is kept for the next ones (it would be given back and
// faulted in anew for each of them), and is shared by all threads. For processes that train over
// links, before they do anything else.
void pen_process_heap_prepare(void);

#endif // PEN_BASE_SYSTEM_PROCESS_HEAP_H
