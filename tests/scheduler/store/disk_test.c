// What lies beneath one folder: names that lead out of it, by whatever way, are neither made, read,
// written nor removed.

#include "scheduler/store/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file_beneath.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define SHARD "g1-s1-w1.safetensors"

static const char *read_link(const char *name) {
    static char target[256];
    const ssize_t length = readlink(scratch_path(name), target, sizeof target - 1);
    target[length < 0 ? 0 : length] = '\0';
    return target;
}

static pen_status write_file(pen_disk *disk, const char *path) {
    pen_disk_file *file;
    PEN_TRY(disk->kind->create(disk, path, &file));
    pen_status status = disk->kind->append(file, "new", 3);
    if (status == PEN_OK) status = disk->kind->sync(file);
    disk->kind->close(file);
    return status;
}

static void is_refused(pen_disk *disk, const char *path) {
    uint64_t bytes;
    bool is_taken;
    char byte;
    const char *const *names;
    uint32_t count;
    pen_arena *arena = check_arena();
    CHECK_ERROR(write_file(disk, path), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->remove(disk, path), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->size(disk, path, &bytes), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->read(disk, path, 0, &byte, 1), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->sync_path(disk, path), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->list(disk, path, 10, arena, &names, &count), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->rename(disk, "own/" SHARD, path), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->rename(disk, path, "own/" SHARD), PEN_INVALID_INPUT, "");
    CHECK_ERROR(disk->kind->publish(disk, path, "own/other", &is_taken), PEN_INVALID_INPUT, "");
    pen_arena_destroy(arena);
}

// Files outside of the folder, and links to them and to their folder within.
static void open_store(pen_disk_beneath *store) {
    const char *outside = scratch_file("outside/" SHARD, "theirs", 6);
    (void)scratch_file("store/own/" SHARD, "ours", 4);
    CHECK_OK(pen_disk_beneath_init(store, scratch_path("store")));
    (void)unlink(scratch_path("store/link"));
    (void)unlink(scratch_path("store/own/linked"));
    (void)unlink(scratch_path("store/own/named"));
    assert_int_equal(symlink(scratch_path("outside"), scratch_path("store/link")), 0);
    assert_int_equal(symlink(outside, scratch_path("store/own/linked")), 0);
    assert_int_equal(link(outside, scratch_path("store/own/named")), 0);
}

static void outside_is_as_it_was(void) {
    struct stat about;
    assert_int_equal(stat(scratch_path("outside/" SHARD), &about), 0);
    assert_int_equal(about.st_size, 6);
    assert_int_equal(stat(scratch_path("outside/made"), &about), -1);
    assert_int_equal(stat(scratch_path("made"), &about), -1);
    assert_int_equal(stat(scratch_path("outside/" SHARD ".new"), &about), -1);
}

static void names_that_lead_out_are_refused(void **unused) {
    (void)unused;
    pen_disk_beneath store;
    open_store(&store);
    static const char *const names[] = {"../outside/" SHARD,
                                        "own/../../outside/" SHARD,
                                        "link/" SHARD,
                                        "./../outside/" SHARD,
                                        "..",
                                        "own/..",
                                        "own//" SHARD,
                                        "",
                                        "/",
                                        "own/./" SHARD};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        is_refused(&store.disk, names[i]);
    }
    is_refused(&store.disk, scratch_path("outside/" SHARD));
    static const char *const folders[] = {
        "../made", "link/made", "own/../../made", "", "/", "..", "own/g1-s1-w1.safetensors/made"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        CHECK_ERROR(store.disk.kind->make_folder(&store.disk, folders[i]), PEN_INVALID_INPUT, "");
    }
    CHECK_ERROR(store.disk.kind->make_folder(&store.disk, scratch_path("made")), PEN_INVALID_INPUT,
                "expected a name beneath");
    outside_is_as_it_was();
}

// A link in a file's place is not read over, and replaced itself, not what it leads to.
static void links_are_not_followed(void **unused) {
    (void)unused;
    pen_disk_beneath store;
    uint64_t bytes;
    char byte;
    open_store(&store);
    pen_disk *disk = &store.disk;
    CHECK_ERROR(disk->kind->size(disk, "own/linked", &bytes), PEN_IO, "no file");
    CHECK_ERROR(disk->kind->read(disk, "own/linked", 0, &byte, 1), PEN_IO, "own/linked");
    CHECK_ERROR(disk->kind->read(disk, "own/named", 0, &byte, 1), PEN_IO, "hard links");
    CHECK_OK(write_file(disk, "own/linked"));
    assert_string_equal(read_link("store/own/linked"), "");
    CHECK_OK(write_file(disk, "own/named"));
    CHECK_OK(disk->kind->rename(disk, "own/named", "own/" SHARD));
    CHECK_OK(disk->kind->remove(disk, "link")); // the link
    outside_is_as_it_was();
}

static void what_is_beneath_is_done(void **unused) {
    (void)unused;
    pen_disk_beneath store;
    pen_arena *arena = check_arena();
    const char *const *names;
    uint32_t count;
    uint64_t bytes;
    char text[4] = "";
    CHECK_OK(pen_disk_beneath_init(&store, scratch_path("not/there/yet")));
    pen_disk *disk = &store.disk;
    CHECK_ERROR(write_file(disk, "a"), PEN_NOT_FOUND, "not/there/yet");
    CHECK_OK(disk->kind->make_folder(disk, "one/two"));
    CHECK_OK(disk->kind->make_folder(disk, "one/two"));
    CHECK_OK(disk->kind->make_folder(disk, "."));
    CHECK_OK(write_file(disk, "one/two/a"));
    CHECK_OK(disk->kind->rename(disk, "one/two/a", "./b"));
    CHECK_OK(disk->kind->sync_path(disk, "one/two"));
    CHECK_OK(disk->kind->sync_path(disk, "."));
    CHECK_OK(disk->kind->size(disk, "b", &bytes));
    assert_int_equal(bytes, 3);
    CHECK_OK(disk->kind->read(disk, "./b", 0, text, 3));
    assert_string_equal(text, "new");
    CHECK_OK(disk->kind->list(disk, ".", 10, arena, &names, &count));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "b");
    CHECK_OK(disk->kind->remove(disk, "b"));
    CHECK_ERROR(disk->kind->remove(disk, "b"), PEN_NOT_FOUND, "not/there/yet/b");
    pen_arena_destroy(arena);
}

static void paths_are_seen_as_the_system_does(void **unused) {
    (void)unused;
    pen_arena *arena = check_arena();
    const char *path, *root;
    (void)scratch_file("real/file", "x", 1);
    (void)unlink(scratch_path("seen"));
    assert_int_equal(symlink("real", scratch_path("seen")), 0);
    CHECK_OK(pen_path_resolve(scratch_path("real"), arena, &root));
    CHECK_OK(pen_path_resolve(scratch_path("seen/a/b/"), arena, &path));
    assert_string_equal(pen_path_find_beneath(root, path), "a/b");
    assert_string_equal(pen_path_find_beneath(root, root), ".");
    assert_string_equal(pen_path_find_beneath("/", "/a/b"), "a/b");
    assert_string_equal(pen_path_find_beneath("/", "/"), ".");
    assert_null(pen_path_find_beneath("/a/b", "/a/bc"));
    assert_null(pen_path_find_beneath("/a/b", "/a"));
    assert_null(pen_path_find_beneath("", "/a"));
    CHECK_OK(pen_path_resolve("x/y", arena, &path));
    CHECK_OK(pen_path_resolve(".", arena, &root));
    assert_string_equal(pen_path_find_beneath(root, path), "x/y");
    CHECK_OK(pen_path_resolve("/none/at/all", arena, &path));
    assert_string_equal(path, "/none/at/all");
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(names_that_lead_out_are_refused),
              cmocka_unit_test(links_are_not_followed), cmocka_unit_test(what_is_beneath_is_done),
              cmocka_unit_test(paths_are_seen_as_the_system_does))
