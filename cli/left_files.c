#include "cli/left_files.h"

#include <sys/stat.h>

#include "base/system/file.h"

pen_status pen_left_files_check_apart(const pen_left_file *files, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (files[i].path == NULL || files[k].path == NULL) continue;
            if (!pen_path_is_same(files[i].path, files[k].path)) continue;
            return pen_error(PEN_INVALID_INPUT, "%s and %s: found %s for both, expected two files",
                             files[k].name, files[i].name, files[i].path);
        }
    }
    return PEN_OK;
}

pen_status pen_left_files_check_earlier(const pen_left_file *files, uint32_t count,
                                        bool are_checkpoints) {
    for (uint32_t i = 0; i < count; i++) {
        struct stat about;
        if (!files[i].is_trained || files[i].path == NULL) continue;
        if (stat(files[i].path, &about) != 0 || about.st_size == 0) continue;
        return pen_error(PEN_INVALID_INPUT,
                         "%s: found %s, which is there from before; another name keeps both, "
                         "--overwrite replaces it%s",
                         files[i].name, files[i].path,
                         are_checkpoints ? ", and --continue goes on from the checkpoints" : "");
    }
    return PEN_OK;
}
