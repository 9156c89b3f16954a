# --sandbox of the verbs that connect: whoever reads a model or picture of others, the verb itself or a worker of its
# own, cannot write elsewhere or start a program, even where a file made for it has taken its reader over.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/data_jobs.sh"
python3 "$top/tests/end_to_end/make_data.py" . 42
trap 'kill $(jobs -p) 2>kill.log || :; wait; rm -rf "$work"' EXIT

# A library that takes over whoever opens a file whose path ends as $TAKEN says. It tries what such code would, and adds
# a line to the file $TAKEN_SAYS about who it is in, what the system says of that, and what it was able to do. `open` is
# what our readers call for regular files.
cat >taken.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static int (*real)(const char *, int, ...);
static void attack(const char *name) {
    char path[4096], line[4096], verb[4096] = "";
    char *const arguments[] = {"true", NULL};
    pid_t child;
    int at = real("/proc/self/cmdline", O_RDONLY);
    const ssize_t length = read(at, verb, sizeof verb - 1);
    close(at);
    const char *second = length > 0 ? verb + strlen(verb) + 1 : "";
    snprintf(path, sizeof path, "%s/stolen.%d", getenv("TAKEN_AT"), getpid());
    at = real(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const char *wrote = at >= 0 ? "yes" : strerror(errno);
    const int code = posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
    if (code == 0) waitpid(child, NULL, 0);
    const char *looked = syscall(SYS_kcmp, getpid(), getpid(), 0, 1, 1) >= 0 ? "yes" : strerror(errno);
    const int count = snprintf(line, sizeof line, "%s reads %s; filter %d; writes: %s; runs: %s; looks: %s\n", second, name,
                               prctl(PR_GET_SECCOMP), wrote, code == 0 ? "yes" : strerror(code), looked);
    const int says = real(getenv("TAKEN_SAYS"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (says < 0 || write(says, line, (size_t)count) != count) _exit(99);
    close(says);
}
int open(const char *path, int flags, ...) {
    va_list rest;
    const char *taken = getenv("TAKEN"), *end = path + strlen(path);
    va_start(rest, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (real == NULL) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    const int opened = real(path, flags, mode);
    if (opened >= 0 && taken != NULL && strlen(path) >= strlen(taken) && strcmp(end - strlen(taken), taken) == 0) {
        const int kept = errno;
        attack(taken);
        errno = kept;
    }
    return opened;
}
END
cc -shared -fPIC -O1 taken.c -o taken.so -ldl
mkdir in out

# "${taken[@]}" TAKEN=FILE COMMAND...: runs it, taken over by that file
taken=(env "LD_PRELOAD=$PWD/taken.so" "TAKEN_AT=$PWD/in" "TAKEN_SAYS=$PWD/out/says" "TMPDIR=$PWD/out"
    "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0")

# held VERB FILE: each reader of the file was in a sandbox, and a process with that verb was among them
held() {
    grep -q "^$1 reads $2;" out/says || die "no '$1' has read $2: $(cat out/says)"
    if [ -n "$(ls in)" ] || grep -qv 'filter 2; writes: Permission denied; runs: \(Permission denied\|Operation not permitted\); looks: Operation not permitted$' out/says; then
        die "$1, $2: $(cat out/says)"
    fi
    rm out/says
}

# ---- what the library can do where nothing holds it
"${taken[@]}" TAKEN=model.onnx "$PENSTOCK" inspect reference/mlp/model.onnx >/dev/null
grep -q '^inspect reads model.onnx; filter 0; writes: yes; runs: yes; looks: yes$' out/says || die "it can do nothing: $(cat out/says)"
rm in/* out/says

png='{format: images, folder: pictures, size: 28, channels: 1}'
first=$(find pictures -name '*.png' | sort | head -n 1)
first=${first##*pictures/}

# ---- probe: it reads no model; a job of others is a file like any. It takes a while, beside the rest
job probe "$png" '{name: a, memory: 1GiB, threads: 1}, {name: b, host: localhost, memory: 1GiB, threads: 1}'
echo 'costs: probed/costs.yaml' >>probe.yaml
mkdir probed
"${taken[@]}" TAKEN=probe.yaml "TAKEN_SAYS=$PWD/probed/says" "TMPDIR=$PWD/probed" \
    "$PENSTOCK" probe probe.yaml --sandbox probed >probe.table 2>probe.log &
probe=$!

# ---- verify: the verb reads the model, its workers the pictures
job verify "$png" "$started" workers
for file in model.onnx "$first"; do
    "${taken[@]}" TAKEN="$file" "$PENSTOCK" verify verify.yaml --steps 2 --sandbox out >table 2>messages || die "verify: $(cat messages table)"
    [ "$file" = model.onnx ] || grep -q '^worker reads' out/says || die "no worker has read a picture: $(cat out/says)"
    held verify "$file"
done

# ---- worker: what others coordinate, it reads by itself
: >port
"${taken[@]}" TAKEN="$first" "$PENSTOCK" worker --sandbox out --store out/kept --data "$PWD/pictures" --listen 127.0.0.1:0 --announce 3 3>port 2>worker.log &
reader=$!
for ((i = 0; i < 600; i++)); do
    [ "$(wc -l <port)" -lt 2 ] || break
    sleep 0.1
done
job worker "$png" "{name: a, host: \"127.0.0.1:$(head -n 1 port)\", memory: 1GiB, threads: 1}" workers
"$PENSTOCK" train -q worker.yaml --save out/hand.safetensors 2>messages || die "worker: $(cat messages worker.log)"
held worker "$first"
kill "$reader"
wait "$reader" || die "worker: it ended with $?: $(cat worker.log)"

# ---- serve: model and parameters, from the start and once more
: >ports
job serve "$png" "$started"
printf 'outputs: {dir: out/run}\nserve: {name: net, max_batch: 16, max_bytes: 1MiB}\n' >>serve.yaml
"$PENSTOCK" train -q serve.yaml 2>messages || die "serve: $(cat messages)"
for file in model.onnx parameters.safetensors; do
    "${taken[@]}" TAKEN="$file" "$PENSTOCK" serve serve.yaml --sandbox out --json --http 127.0.0.1:0 --grpc 127.0.0.1:0 >ports 2>serve.log &
    reader=$!
    for ((i = 0; i < 600; i++)); do
        [ ! -s ports ] || break
        sleep 0.1
    done
    json 'd["http_port"]' <ports >/dev/null || die "serve: $(cat serve.log)"
    kill "$reader"
    wait "$reader" || die "serve: it ended with $?: $(cat serve.log)"
    : >ports
    held serve "$file"
done

wait "$probe" || die "probe: $(cat probe.log)"
[ -s probed/costs.yaml ] || die 'probe has written nothing'
mv probed/says out/says
held probe probe.yaml
