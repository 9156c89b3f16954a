#include "device/memory_budget.h"

#include "base/text.h"

pen_status pen_memory_budget_check(const pen_memory_budget *budget, uint64_t bytes) {
    char wanted[PEN_QUANTITY_TEXT_BYTES], used[PEN_QUANTITY_TEXT_BYTES];
    char limit[PEN_QUANTITY_TEXT_BYTES];
    if (budget->bytes_limit == 0 || bytes <= budget->bytes_limit - budget->bytes_in_use) {
        return PEN_OK;
    }
    return pen_error(
        PEN_DOES_NOT_FIT, "device '%s': a buffer of %s does not fit, %s of %s are in use",
        budget->device, pen_bytes_format(bytes, wanted),
        pen_bytes_format(budget->bytes_in_use, used), pen_bytes_format(budget->bytes_limit, limit));
}
