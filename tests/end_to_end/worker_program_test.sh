# A program with the library and devices at `localhost`: the command is started for them, never the
# program again; what is said when there is none or another; and no worker outlives the program.
. tests/end_to_end/common.sh
[ "$(basename "$PENSTOCK_BUILD")" = gcc ] || { echo "only the plain build is linked" && exit 77; }
build=$(cd "$top/$PENSTOCK_BUILD" && pwd)

cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, steps: 3}
devices: [{name: a, threads: 1}, {name: b, threads: 1, host: localhost}, {name: c, threads: 1, host: localhost}]
placement: {strategy: round_robin}
END
cat >program.c <<'END'
#include <penstock/penstock.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Notes that it was started, trains, and prints the losses; with an argument it then waits.
int main(int count, char **arguments) {
    FILE *starts = fopen("starts", "a");
    char text[2000];
    if (starts == NULL) return 9;
    fprintf(starts, "%d\n", (int)getpid());
    fclose(starts);
    pen_training *training = NULL;
    pen_status status = pen_training_open("job.yaml", NULL, &training);
    bool more = status == PEN_OK;
    while (status == PEN_OK && more) {
        pen_training_step_report step = {.struct_size = sizeof step};
        status = pen_training_step(training, &step, &more);
        if (more) printf("%.17g\n", step.loss);
    }
    fflush(stdout);
    if (status == PEN_OK && count > 1) pause();
    pen_training_close(training);
    if (status == PEN_OK) return 0;
    pen_status_format(status, text, sizeof text);
    fputs(text, stderr);
    const int code = pen_status_exit_code(status, 3);
    pen_status_ignore(status, "printed");
    (void)arguments;
    return code;
}
END

# place FOLDER LIBRARY_FOLDER: an installation there, and ./program linked to its library
place() {
    mkdir -p "$1/$2" include/penstock
    cp "$build/libpenstock.so" "$1/$2/libpenstock.so.0"
    ln -sf libpenstock.so.0 "$1/$2/libpenstock.so"
    ln -sfn "$top/base" include/base
    cp "$top/scheduler/penstock.h" include/penstock/
    gcc -std=c11 -Wall -Werror -Iinclude program.c "$1/$2/libpenstock.so" -Wl,-rpath,"$PWD/$1/$2" -o program
}

# runs_well NAME: the program was started once, and its losses are the command's
runs_well() {
    rm -f starts
    timeout 60 ./program >losses 2>messages || die "$1: exit code $?: $(cat messages)"
    [ "$(wc -l <starts)" = 1 ] || die "$1: it was started $(wc -l <starts) times"
    cmp losses expected || die "$1: other losses than the command's"
}

penstock train --json job.yaml 2>messages | json '"\n".join("%.17g" % s["loss"] for s in d["steps"])' >expected

# where the command is found: in `bin` beside `lib`, two folders up, beside the library, on PATH, or given
place installed lib/any-linux
fails 6 "found no command .penstock. .*installed/lib/any-linux/libpenstock.so.0' nor on PATH.*PENSTOCK_WORKER" \
    env PATH=/usr/sbin ./program
mkdir installed/bin
cp "$PENSTOCK" installed/bin/penstock
runs_well "two folders up"
place installed lib
runs_well "bin beside lib"
place flat .
mkdir flat/penstock # a folder of that name, as a Python module has, is no program
fails 6 'found no command' env PATH=/usr/sbin ./program
PATH=$PWD/installed/bin:$PATH runs_well "on PATH"
rmdir flat/penstock
ln "$PENSTOCK" flat/penstock 2>/dev/null || cp "$PENSTOCK" flat/penstock
runs_well "beside the library"
rm flat/penstock
PENSTOCK_WORKER=$PWD/installed/bin/penstock runs_well "given"
PENSTOCK_WORKER=$PWD/installed/bin/penstock penstock train -q job.yaml

# a program of the user's own that is called penstock is not taken for the command
cp program penstock-program
mkdir own
mv program own/penstock
rm -f starts
PATH=$PWD/own:/usr/bin:/bin fails 6 'found no command' own/penstock
[ "$(wc -l <starts)" = 1 ] || die "called penstock: it was started $(wc -l <starts) times"
mv own/penstock program

# what is given but cannot be it
fails 6 "worker program '/nowhere/penstock' .given by PENSTOCK_WORKER. is no file that can be run" \
    env PENSTOCK_WORKER=/nowhere/penstock ./program
fails 6 "worker program '.*' .given by PENSTOCK_WORKER. is no file that can be run" env PENSTOCK_WORKER="$work" ./program
fails 6 "is this program itself, expected the command" env PENSTOCK_WORKER=./program ./program
rm -f starts
fails 6 'started as a worker, but wants workers of its own' env PENSTOCK_WORKER=./penstock-program ./program
grep -q "the worker program './penstock-program' .* took no links and ended with code 6" fails.err || die "$(cat fails.err)"
[ "$(wc -l <starts)" -le 3 ] || die "a copy: it was started $(wc -l <starts) times"
fails 6 "the worker program '/bin/true' .* took no links and ended with code 0, expected the command .penstock. of build" \
    env PENSTOCK_WORKER=/bin/true ./program
printf '#!/nowhere/shell\n' >shell
chmod +x shell
fails 6 "the system does not start the worker program './shell' .*No such file" env PENSTOCK_WORKER=./shell ./program
printf '#!/bin/sh\nprintf "40000\\n0.0.1+00000000\\n" >&3\nexec sleep 60\n' >older
chmod +x older
fails 6 "worker program './older' .* is of build 0.0.1.00000000, but '.*flat/libpenstock.so.0' is of build $(penstock --version | cut -d' ' -f2)[+]" \
    env PENSTOCK_WORKER=./older ./program
printf '#!/bin/sh\nprintf "40000\\n" >&3\n' >oldest
chmod +x oldest
fails 6 "the worker program './oldest' .* took no links and ended with code 0" env PENSTOCK_WORKER=./oldest ./program
printf '#!/bin/sh\nprintf "hello\\nworld\\n" >&3\n' >stranger
chmod +x stranger
fails 3 "the worker program './stranger' .* announced no port" env PENSTOCK_WORKER=./stranger ./program
printf '#!/bin/sh\nexec %s "$@"\n' "$PENSTOCK" >wrapper # a script that starts the command in its place will do
chmod +x wrapper
PENSTOCK_WORKER=./wrapper runs_well "a script"

PENSTOCK_WORKER=./wrapper penstock doctor | grep -q '^worker        ./wrapper (given by PENSTOCK_WORKER)$' || die "doctor names another"
PENSTOCK_WORKER=./none penstock doctor | grep -q "^worker        the worker program './none' .* can be run" || die "doctor finds it"

# found on PATH, it names its own file, not a folder of that name that is here (a clone of the source tree)
mkdir -p clone/penstock
(cd clone && PATH=$work/installed/bin:$PATH command penstock doctor) | grep -q "^worker        $work/installed/bin/penstock (this program)$" ||
    die "doctor names $(cd clone && PATH=$work/installed/bin:$PATH command penstock doctor | grep '^worker')"

# a program that is killed leaves no worker
PENSTOCK_WORKER=$PENSTOCK ./program wait >losses 2>messages &
pid=$!
for _ in $(seq 300); do
    [ "$(wc -l <losses)" = 3 ] && break
    sleep 0.1
done
workers=$(pgrep -P "$pid" -x penstock || true)
[ "$(wc -w <<<"$workers")" = 2 ] || die "found the workers '$workers', expected two"
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
for _ in $(seq 100); do
    left=0
    for worker in $workers; do
        if [ -e "/proc/$worker" ] && ! grep -q '^State:.Z' "/proc/$worker/status"; then left=$((left + 1)); fi
    done
    [ "$left" = 0 ] && break
    sleep 0.05
done
[ "$left" = 0 ] || die "$left workers outlive the program that started them"
