// Which build of Penstock this is.
//
// Two processes that train together must be of one build: another may number what they say to each
// other differently, or compute other bits.
#ifndef PEN_BASE_SYSTEM_BUILD_H
#define PEN_BASE_SYSTEM_BUILD_H

// The version, and a hash of the library's sources, its compiler and the flags: "0.1.0+5f0c2a91";
// sanitizers, which change what is computed, are named behind it: "0.1.0+77ab0c1d-address".
// Builds of the same sources on different machines have the same name. Static; any thread.
const char *pen_build_name(void);

#endif // PEN_BASE_SYSTEM_BUILD_H
