#include "device/running_statistic.h"

double pen_running_statistic(double running, double momentum, double batch) {
    return running * momentum + batch * (1 - momentum);
}
