#include "tests/support/scratch.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check.h"

#define SCRATCH_PATH_COUNT_LIMIT 4096

static char scratch_root[] = "/tmp/penstock_test_XXXXXX";
static pid_t scratch_owner; // 0: the folder is not made yet
static char *scratch_paths[SCRATCH_PATH_COUNT_LIMIT];
static size_t scratch_path_count;

static int scratch_remove_entry(const char *path, const struct stat *facts, int kind,
                                struct FTW *position) {
    (void)facts;
    (void)kind;
    (void)position;
    return remove(path);
}

static void scratch_remove(void) {
    if (scratch_owner != getpid()) return; // a child process that ends leaves the files
    nftw(scratch_root, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    for (size_t i = 0; i < scratch_path_count; i++)
        free(scratch_paths[i]);
}

const char *scratch_path(const char *name) {
    if (scratch_owner == 0) {
        CHECK(mkdtemp(scratch_root) != NULL, "cannot make %s", scratch_root);
        scratch_owner = getpid();
        atexit(scratch_remove);
    }
    CHECK(scratch_path_count < SCRATCH_PATH_COUNT_LIMIT, "too many scratch files");
    const size_t size = sizeof scratch_root + strlen(name) + 1;
    char *path = malloc(size);
    CHECK(path != NULL, "no memory");
    snprintf(path, size, "%s/%s", scratch_root, name);
    scratch_paths[scratch_path_count++] = path;
    return path;
}

static void scratch_make_folders(const char *path) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *c = folder + sizeof scratch_root; *c != '\0'; c++) {
        if (*c != '/') continue;
        *c = '\0';
        mkdir(folder, 0700); // it may be there
        *c = '/';
    }
}

const char *scratch_file(const char *name, const void *bytes, size_t size) {
    const char *path = scratch_path(name);
    scratch_make_folders(path);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL, "cannot write %s", path);
    CHECK(fwrite(bytes, 1, size, file) == size, "cannot write %s", path);
    CHECK(fclose(file) == 0, "cannot write %s", path);
    return path;
}
