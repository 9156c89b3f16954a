// The longest path of a microbatch as a row of places, and what each of them costs where it is cut.
//
// The path goes through forward nodes and back through backward ones. A place is a group that its
// forward nodes go through; what the path does of a group that it went through before, and
// gradients that do not go back place by place, are time of the path and of no place.
//
// Ways around: the result of a node of the path that another one of it, further on, reads as well
// (residual connections), or a gradient that goes so. Places between are a segment. If the path is
// cut just once there, the two are on different devices, and the path's end waits for the way
// around where that is longer than the path. If besides the places are closed, which is that they
// read nothing of others, those before the cut are of one stage and those behind it of one, and a
// stage waits for all that the other sends it: both results take the same line one after the other.
// Cut twice, the two ends may be on one device again, and nothing of this holds.
//
// Of the groups' work only that counts which has to wait for the path up to the place (`all`), and
// of that what the rest of the path has to wait for (`early`).
//
// Lifetime: in the arena it was made with.
#ifndef PEN_PARTITION_BOUND_CUT_PATH_H
#define PEN_PARTITION_BOUND_CUT_PATH_H

#include "partition/bound/kept_edges.h"

// Seconds, at their least. What is of a microbatch is said so.
typedef struct pen_cut_place {
    double head;         // of the path before the place's first node
    double tail;         // of the path after the place's last node
    double all;          // work of a step that cannot begin before the path is there
    double early;        // work of a microbatch that the path's tail waits for, besides
    double forward;      // of a microbatch, the path's own forward nodes
    double backward;     // of a microbatch, the path's own backward nodes
    double cut_there;    // longer is the path's way from the place before, from another device
    double cut_back;     // longer is its way back to that
    uint32_t segment;    // that this cut is in; 0: none
    double around_there; // as cut_there, of a way around, if this is the only cut of the segment
    double around_back;  // likewise
} pen_cut_place;

typedef struct pen_cut_path {
    uint32_t place_count;
    pen_cut_place *places; // [place_count]
    double seconds;        // of the whole path, uncut
    double aside;          // of it, spent in backward nodes of no place
} pen_cut_path;

// `least` [node_count] is what nodes cost at their cheapest, `begin` [node_count] the longest path
// of kept edges to each. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cut_path_find(const pen_kept_edges *kept, const double *least,
                                           const double *begin, pen_arena *arena,
                                           pen_cut_path *out_path);

#endif // PEN_PARTITION_BOUND_CUT_PATH_H
