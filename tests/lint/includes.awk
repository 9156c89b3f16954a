# Checks the includes of the files given: directions between top folders and between the floors within one (STYLE,
# section 1), own header first, and that each foreign header stays in its home.

BEGIN {
    # what a folder may include, besides itself; the longest folder that matches counts
    may["base"] = "base"
    may["graph"] = "base graph"
    may["partition"] = "base graph partition"
    may["device"] = "base graph device"
    may["scheduler"] = "base graph partition device scheduler"
    may["scheduler/runtime"] = "base graph partition device scheduler/runtime scheduler/protocol " \
        "scheduler/schedule scheduler/transport scheduler/store scheduler/data scheduler/trace"
    # stage_graph.h and task.h are plain data
    may["scheduler/schedule"] = "base scheduler/schedule partition/problem/stage_graph.h graph/task.h"
    may["scheduler/transport"] = "base scheduler/transport graph/element.h graph/tensor_type.h"
    may["scheduler/protocol"] = "base scheduler/protocol graph/task.h graph/lanes.h graph/arrivals.h"
    may["scheduler/audit"] = "base scheduler/audit scheduler/protocol/run_table.h"
    may["scheduler/store"] = "base scheduler/store graph/element.h graph/tensor_slice.h graph/tensor_type.h"
    may["scheduler/data"] = "base graph scheduler/data scheduler/store"
    may["scheduler/trace"] = "base graph scheduler/trace scheduler/store"
    may["cli"] = "base graph partition device scheduler cli"
    may["tests"] = "base graph partition device scheduler cli tests"
    may["examples"] = "base graph partition device scheduler examples"

    # The floors of a folder, from the ground up: a file may include its own floor and those before it in the list,
    # never one after. A folder with a list names all its floors here; files beside the floors are not checked.
    floors["base"] = "sets system format record option"
    floors["scheduler"] = "schedule store data metric trace transport protocol audit runtime compile runner job plan checkpoint " \
        "engine launched inference serve train measure report"
    floors["graph"] = "ops analysis passes dump wire keras_layers import"
    floors["scheduler/runtime"] = "run executor worker coordinator"
    floors["scheduler/transport"] = "ring admit grpc"
    floors["partition"] = "spec costs problem objective bound search strategies lower plan replicas"

    # header: where it may be included (tests may include all)
    home["yaml.h"] = "^base/format/yaml_reader\\.c$"
    home["cblas.h"] = "^device/cpu/blas\\.c$"
    home["dnnl.h"] = "^device/cpu/onednn/onednn_version\\.h$"
    home["jansson.h"] = "^(scheduler/store/safetensors|scheduler/trace/trace_file_read|partition/problem/workload|base/format/json_reader|scheduler/data/cache/array_cache|scheduler/report/run_log|graph/keras_layers/layer_json|graph/import/keras/keras_(config|build|compiled|options|import)|graph/import/pytorch/pt2_(json|graph|model|weights))\\.[ch]$"
    home["png.h"] = "^scheduler/data/image/image_png\\.c$"
    home["jpeglib.h"] = "^scheduler/data/image/image_jpeg\\.c$"
    home["webp/decode.h"] = "^scheduler/data/image/image_webp\\.c$"
    home["zlib.h"] = "^(scheduler/data/gzip_reader|graph/import/stored_zip)\\.c$"
    home["omp.h"] = "^device/cpu/"
    home["hdf5.h"] = "^graph/import/keras/hdf5_library\\.h$"
    home["libpq-fe.h"] = "^scheduler/data/sql/postgres_source\\.c$"
    home["sqlite3.h"] = "^scheduler/data/sql/sqlite_source\\.c$"
    home["archive.h"] = "^scheduler/data/tar/tar_archive\\.c$"
    home["archive_entry.h"] = "^scheduler/data/tar/tar_archive\\.c$"
    home["zip.h"] = "^graph/import/zip_file\\.c$"
    home["metis.h"] = "^partition/strategies/metis_strategy\\.c$"
    home["grpc/"] = "^scheduler/(transport/grpc/grpc_[a-z_]*|serve/grpc_front)\\.[ch]$" # all that begin so
    home["microhttpd.h"] = "^scheduler/serve/http_door\\.h$"
    home["setjmp.h"] = "^(tests/|scheduler/data/image/image_(jpeg|png)\\.c$)" # these libraries leave by a jump
    home["cmocka.h"] = "^tests/"
}

function folder_of(path,    folder) {
    folder = path
    while (sub(/\/[^\/]*$/, "", folder)) {
        if (folder in may) return folder
    }
    return ""
}

# The place of PATH's floor in the list of ROOT, from 1; 0: it is not in ROOT, or stands beside the floors.
function floor_of(path, root,    rest, count, list, i) {
    if (index(path, root "/") != 1) return 0
    rest = substr(path, length(root) + 2)
    if (!sub(/\/.*/, "", rest)) return 0
    count = split(floors[root], list, " ")
    for (i = 1; i <= count; i++) {
        if (list[i] == rest) return i
    }
    return -1
}

function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    failed = 1
}

FNR == 1 {
    folder = folder_of(FILENAME)
    for (root in floors) {
        if (floor_of(FILENAME, root) < 0) complain("its floor is not in the list of floors of " root)
    }
    own = FILENAME
    sub(/\.c$/, ".h", own)
    has_own = FILENAME ~ /\.c$/ && (getline unused < own) >= 0
    close(own)
    first = 1
}

/^# *include *"/ {
    path = $0
    sub(/^# *include *"/, "", path)
    sub(/".*/, "", path)
    if (first && has_own && path != own) complain("does not include its own header first: " own)
    first = 0
    to = folder_of(path)
    if (to == "") {
        if (path !~ /\//) complain("include '" path "' is not from the top of the tree")
    } else if (to != folder && index(" " may[folder] " ", " " to " ") == 0) {
        allowed = 0
        count = split(may[folder], list, " ")
        for (i = 1; i <= count; i++) {
            # a folder allowed as a whole allows what is in it, but for cli and scheduler's own parts
            if (index(to, list[i] "/") == 1 || path == list[i]) allowed = 1
        }
        if (!allowed) complain(folder " may not include " path)
    }
    for (root in floors) {
        floor = floor_of(FILENAME, root)
        if (floor > 0 && floor_of(path, root) > floor) complain(folder " may not include " path ": its floor is above")
    }
}

/^# *include *</ {
    name = $0
    sub(/^# *include *</, "", name)
    sub(/>.*/, "", name)
    if (first && has_own) complain("does not include its own header first: " own)
    first = 0
    if (sub(/^grpc\/.*/, "grpc/", name)) name = "grpc/"
    if (name in home && FILENAME !~ home[name] && FILENAME !~ /^tests\//) {
        complain("<" name "> belongs in " home[name])
    }
}

END { exit failed }
