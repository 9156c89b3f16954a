#include "tests/support/fake_cuda.h"

#include <dlfcn.h>

#include "tests/support/check.h"

static void *fake_cuda_find(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == NULL ? NULL : dlsym(library, name);
}

bool fake_cuda_is_here(void) {
    return fake_cuda_find("fake_driver_count") != NULL;
}

fake_counts fake_cuda_count(void) {
    fake_counts counts = {0};
    fake_counts_fn count;
    void *found = fake_cuda_find("fake_driver_count");
    CHECK(found != NULL, "libcuda.so.1 is not the fake one");
    memcpy(&count, &found, sizeof count);
    count(&counts);
    return counts;
}

void fake_cuda_break(const char *kernel) {
    fake_break_fn break_next;
    void *found = fake_cuda_find("fake_driver_break");
    CHECK(found != NULL, "libcuda.so.1 is not the fake one");
    memcpy(&break_next, &found, sizeof break_next);
    break_next(kernel);
}

void fake_cuda_pass(double seconds) {
    fake_pass_fn pass;
    void *found = fake_cuda_find("fake_driver_pass");
    CHECK(found != NULL, "libcuda.so.1 is not the fake one");
    memcpy(&pass, &found, sizeof pass);
    pass(seconds);
}
