# One job and one worker of the installed command, trained with by the command, by a C program that is linked to the installed
# library, and by the wheel for Python: they are of one build, take each other in, and have the same numbers.
. tests/end_to_end/common.sh
[ "$(basename "$PENSTOCK_BUILD")" = gcc ] || { echo "only the plain build is installed" && exit 77; }
python3 "$top/tests/end_to_end/make_data.py" . 70
env -u MAKEFLAGS -u MAKELEVEL make -C "$top" -s install DESTDIR="$work/root" prefix=/usr >/dev/null

# what there is of it
(cd "$top/python" && PYTHONDONTWRITEBYTECODE=1 python3 -c "import build_backend; build_backend.build_wheel('$work')")
cat >program.c <<'END'
#include <penstock/penstock.h>
#include <stdio.h>

int main(void) {
    pen_training *training = NULL;
    char text[2000];
    pen_status status = pen_training_open("job.yaml", NULL, &training);
    for (bool more = true; status == PEN_OK && more;) {
        pen_training_step_report step = {.struct_size = sizeof step};
        status = pen_training_step(training, &step, &more);
        if (status == PEN_OK && more) printf("%.17g\n", step.loss);
    }
    if (status == PEN_OK) status = pen_training_save(training, "program.safetensors");
    pen_training_close(training);
    if (status == PEN_OK) return 0;
    pen_status_format(status, text, sizeof text);
    fputs(text, stderr);
    pen_status_ignore(status, "printed");
    return 1;
}
END
export PKG_CONFIG_PATH=$work/root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
read -r -a flags < <(pkg-config --cflags --libs penstock)
gcc -std=c11 -pedantic -Wall -Werror program.c "${flags[@]}" -o program
cat >program.py <<'END'
import penstock
with penstock.Training("job.yaml") as training:
    for step in training:
        print("%.17g" % step.loss)
    training.save("wheel.safetensors")
END

mkfifo pipe
"$work/root/usr/bin/penstock" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>worker.log &
worker=$!
trap 'kill $worker 2>/dev/null || true; rm -rf "$work"' EXIT
read -r port <pipe
cat >job.yaml <<END
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, epochs: 2}
devices: [{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: "127.0.0.1:$port"}]
placement: {strategy: round_robin}
END

# same NAME COMMAND...: losses and parameters of a training over that worker
same() {
    local name=$1
    shift
    timeout 60 "$@" >"$name.losses" 2>"$name.err" || die "$name: exit code $?: $(cat "$name.err")"
    cmp "$name.losses" command.losses || die "$name: other losses than the command's"
    cmp "$name.safetensors" command.safetensors || die "$name: other parameters than the command's"
}
timeout 60 "$PENSTOCK" train --json --save command.safetensors job.yaml 2>messages >command.json || die "$(cat messages)"
json '"\n".join("%.17g" % s["loss"] for s in d["steps"])' <command.json >command.losses
[ "$(wc -l <command.losses)" = 10 ] || die "$(cat command.losses)"
LD_LIBRARY_PATH=$work/root/usr/lib same program ./program
wheel=$(echo penstock-*.whl)
PYTHONPATH=$work/$wheel PENSTOCK_LIBRARY=$work/root/usr/lib/libpenstock.so same wheel /usr/bin/python3 program.py
kill $worker
wait $worker || die "the worker does not end well: $(cat worker.log)"
