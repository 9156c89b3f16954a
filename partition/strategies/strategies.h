// The list of strategies, and the one door through which a problem is placed.
#ifndef PEN_PARTITION_STRATEGIES_STRATEGIES_H
#define PEN_PARTITION_STRATEGIES_STRATEGIES_H

#include "partition/objective/placement.h"
#include "partition/strategies/strategy.h"

// The strategies, ended by NULL, in the order of --help.
extern const pen_strategy *const pen_strategies[];

// Finds a strategy by name. NOT_FOUND lists the names there are.
PEN_NODISCARD pen_status pen_strategy_find(const char *name, pen_arena *arena,
                                           const pen_strategy **out_strategy);

// Runs a strategy, evaluates what it found, bounds it from below, and checks it. Errors are the
// strategy's; INTERNAL when its placement does not pass the check.
PEN_NODISCARD pen_status pen_place(const pen_problem *problem, const pen_strategy *strategy,
                                   const pen_strategy_options *options, pen_arena *arena,
                                   pen_placement **out_placement);

#endif // PEN_PARTITION_STRATEGIES_STRATEGIES_H
