#include "partition/plan/plan.h"

#include <string.h>

#include "base/hash.h"
