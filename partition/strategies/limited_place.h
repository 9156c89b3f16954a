// The door behind the door: runs a strategy on a problem that it may know only in part.
//
// Strategies that do not judge every objective get the problem that stands in for it; those that do
// not count devices are run on some of them, chosen in several ways, and spread their result over
// more where as many must be used.
#ifndef PEN_PARTITION_STRATEGIES_LIMITED_PLACE_H
#define PEN_PARTITION_STRATEGIES_LIMITED_PLACE_H

#include "partition/strategies/strategy.h"

// As the strategy's `place`, for any objective and any bounds of devices used.
PEN_NODISCARD pen_status pen_limited_place(const pen_problem *problem, const pen_strategy *strategy,
                                           const pen_strategy_options *options, pen_arena *arena,
                                           pen_strategy_result *out_result);

#endif // PEN_PARTITION_STRATEGIES_LIMITED_PLACE_H
