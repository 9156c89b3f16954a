// A lower bound of the step time that counts what cuts must send.
//
// Say a step takes T. Any placement divides the places of a path (cut_path.h) into runs, each on
// one device, with cuts between them. Then
//   a cut     makes the path longer, on the way there and on the way back
//   a run     has a device that does one thing at a time. All its work, m microbatches and updates,
//             begins after what of the path comes before, cuts included:  head + all <= T
//             what the rest of the path waits for also ends before that:  head + m·early + tail <=
//             T all m forward passes of the run come after the path's head, and after the last of
//             them the path goes on: path + (m - 1) · forward <= T, all cuts counted; likewise
//             backward
//   the path  itself: path + cuts <= T
// A segment that is cut once has a way around the cut (cut_path.h): what both ends of it wait for
// then takes the longer of the two ways. Cut twice it has not, if the ends are on one device. So
// the first cut p of a segment counts as the lesser of
//   alone = max(cut, way around), there and back
//   cut p + the least other cut of the segment
// and each further one as what it is less the most that a first one counts for beyond itself, so
// that no division counts for more than it takes. A run within the segment begins before its end,
// where the way around arrives: for its head only the cuts themselves count. Nor do ways around
// count for m passes of a run that has one end of them: others may pass while one waits.
//
// Few cuts leave runs with much work, many make the path long. Whether any division keeps all this
// is decided place by place: what counts of the cuts before a run is only their sum, and the least
// is the best. The largest T that none keeps, found by halving, is a bound.
#ifndef PEN_PARTITION_BOUND_CUT_BOUND_H
#define PEN_PARTITION_BOUND_CUT_BOUND_H

#include "partition/bound/cut_path.h"

// `known` is a bound already; the answer is never below it. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cut_bound(const pen_cut_path *path, double microbatch_count,
                                       double known, pen_arena *arena, double *out_bound);

#endif // PEN_PARTITION_BOUND_CUT_BOUND_H
