// Loops of the older kind (Enter, Merge, Switch, NextIteration, Exit) as loops of the newer one.
//
// A frozen graph of TensorFlow 2 has them too, unless it was frozen otherwise. What computes the
// condition and what computes the next values become two functions; a While calls them, and each
// Exit becomes an Identity of one of its outputs. The nodes of the loop itself stay in the list,
// where nothing needs them any more.
//
// Threads: one thread at a time.
#ifndef PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FRAMES_H
#define PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FRAMES_H

#include "base/status.h"
#include "graph/import/tensorflow/graphdef_flatten.h"

//   INVALID_INPUT  a loop without all of its parts
//   UNSUPPORTED    too many loops
PEN_NODISCARD pen_status pen_graphdef_frames_fold(pen_graphdef_flat *flat);

#endif // PEN_GRAPH_IMPORT_TENSORFLOW_GRAPHDEF_FRAMES_H
