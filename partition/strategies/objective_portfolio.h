// What other strategies find for an objective that they do not know: starts for `auto`.
#ifndef PEN_PARTITION_STRATEGIES_OBJECTIVE_PORTFOLIO_H
#define PEN_PARTITION_STRATEGIES_OBJECTIVE_PORTFOLIO_H

#include "partition/search/initial_placement.h"
#include "partition/strategies/strategy.h"

// Runs a quick strategy on as many devices as may be used and on fewer, as long as `deadline` has
// not come and some of the nominal seconds `*work`, from which each run is taken, are left, and
// puts the best of what it finds in place of the start when it is better by the problem's
// objective. Never DOES_NOT_FIT. The strategy's other errors.
PEN_NODISCARD pen_status pen_objective_portfolio(const pen_problem *problem,
                                                 const pen_strategy_options *options,
                                                 double deadline, double *work, pen_arena *arena,
                                                 pen_initial_placement *io_start);

#endif // PEN_PARTITION_STRATEGIES_OBJECTIVE_PORTFOLIO_H
