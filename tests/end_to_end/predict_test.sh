# Predictions and evaluations over threads, processes and workers: the bytes of one device, within memory that no
# device has for all of the model, and when a worker is lost.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70


# job NAME DEVICES [MORE [MODEL]]: 70 examples, so that the last batch is short
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: ${4:-reference/mlp/model.onnx}}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 16, microbatches: 4, epochs: 1}
devices: [$2]
placement: {strategy: round_robin}
outputs: {dir: run}
${3:-}
END
}

device() { # NAME [MORE]
    printf '{name: %s, threads: 1%s}, ' "$1" "${2:-}"
}
own=', host: localhost'

# predict JOB FORM [OPTION...]: the outputs, in JOB.FORM
predict() {
    local name=$1 form=$2
    shift 2
    timeout 120 "$PENSTOCK" predict "$name.yaml" -o "$name.$form" "$@" 2>messages ||
        die "predict $name: $(cat messages)"
}

# same JOB WHAT: predictions, and the evaluation, of one device
same() {
    predict "$1" npy
    cmp -s one.npy "$1.npy" || die "the predictions of $2 differ from one device"
    timeout 120 "$PENSTOCK" eval --json "$1.yaml" >"$1.eval" 2>messages || die "eval $1: $(cat messages)"
    [ "$(json '(d["loss"], d["correct"], d["examples"])' <"$1.eval")" = "$evaluated" ] ||
        die "the evaluation of $2 differs from one device"
}

job one "$(device a)"
penstock train one.yaml 2>messages >numbers || die "train: $(cat messages)"
predict one npy
evaluated=$(penstock eval --json one.yaml | json '(d["loss"], d["correct"], d["examples"])')

# ---- threads, processes, both
job threads "$(device a)$(device b)"
same threads 'two threads'
job four "$(device a)$(device b)$(device c)$(device d)"
same four 'four threads'
job processes "$(device a "$own")$(device b "$own")"
same processes 'two processes'
job many "$(device a "$own")$(device b "$own")$(device c "$own")$(device d "$own")"
same many 'four processes'
job both "$(device a)$(device b "$own")$(device c)"
same both 'threads and a process'

# ---- other models, forms and lengths
for model in normed_cnn branching_cnn; do
    mkdir "$model"
    cp "reference/$model/inputs.npy" "reference/$model/labels.npy" "$model/"
    for devices in "$(device a)" "$(device a)$(device b "$own")$(device c)"; do
        job several "$devices" '' "reference/$model/model.onnx"
        sed -i "s,inputs.npy,$model/inputs.npy,; s,labels.npy,$model/labels.npy,; s,batch: 16,batch: 4," several.yaml
        sed -i 's,outputs: .*,,' several.yaml
        predict several npy
        mv several.npy "$model/$([ -e "$model/first.npy" ] && echo second || echo first).npy"
    done
    cmp "$model/first.npy" "$model/second.npy" || die "$model: the predictions of three devices differ from one"
done
predict one csv --limit 21 --batch 10
predict both csv --limit 21 --batch 10
[ "$(wc -l <both.csv)" -eq 22 ] || die "21 rows: $(wc -l <both.csv) lines"
cmp one.csv both.csv || die 'the first rows of three devices differ from one'
fails 2 "no output 'nothing'" "$PENSTOCK" predict both.yaml -o nothing.npy --name nothing
[ ! -e nothing.npy ] || die 'a file was left'

# ---- a worker that dies: the others go on, or it comes back; every row is written once
start_worker() { # NAME [PORT]: sets `started` and `port`
    mkfifo "$1.pipe"
    "$PENSTOCK" worker --listen "127.0.0.1:${2:-0}" --announce 9 9>"$1.pipe" 2>"$1.log" &
    started=$!
    read -r port <"$1.pipe"
    rm "$1.pipe"
}
start_worker first
first=$started first_port=$port
PENSTOCK_FAILPOINT=worker.task_done:4:kill start_worker second
workers="$(device a ", host: 127.0.0.1:$first_port")$(device b ", host: 127.0.0.1:$port")"
job replanned "$workers" 'recovery: {on_loss: replan, grace: 0.1s}'
predict replanned npy
grep -q "goes on without device 'b'" messages || die "nobody was lost: $(cat messages)"
cmp one.npy replanned.npy || die 'predictions differ after a worker was lost'

PENSTOCK_FAILPOINT=worker.task_done:4:kill start_worker third "$port"
third=$started
job waited "$workers" 'recovery: {on_loss: wait, grace: 60s}'
(
    while kill -0 "$third" 2>/dev/null; do sleep 0.05; done
    start_worker fourth "$port"
    echo "$started" >fourth.pid
) &
predict waited npy
grep -q 'goes on after [0-9]* examples' messages || die "nobody was waited for: $(cat messages)"
cmp one.npy waited.npy || die 'predictions differ after a worker came back'
timeout 60 "$PENSTOCK" eval --json waited.yaml >waited.eval 2>messages || die "eval: $(cat messages)"
kill "$(cat fourth.pid)"
PENSTOCK_FAILPOINT=worker.task_done:3:kill start_worker fifth "$port"
job stopped "$workers" 'recovery: {on_loss: stop}'
fails 6 'worker 3' "$PENSTOCK" predict stopped.yaml -o stopped.npy
[ ! -e stopped.npy ] || die 'a file was left of predictions that ended early'
kill "$first"
wait

# ---- a model that no device holds
case $PENSTOCK in *address* | *thread*) exit 0 ;; esac
python3 "$top/tests/end_to_end/make_training_models.py" . wide:2048 # 128 MiB of weights
wide() { # NAME DEVICES
    cat >"$1.yaml" <<END
version: 1
model: {file: wide.onnx}
data:
  train: {format: npy, inputs: {x: wide_x.npy}, labels: wide_y.npy}
  eval: {format: npy, inputs: {x: wide_x.npy}, labels: wide_y.npy}
train: {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.001}}, batch: 16, steps: 6, seed: 3}
placement: {time_limit: 2s}
devices: [$2]
END
}
wide whole "$(device a)"
wide limited "$(device a ', memory: 40MiB')"
wide quarters "$(for name in a b c d; do device "$name" ', memory: 40MiB, host: localhost'; done)"
predict whole npy
fails 5 'does not fit' "$PENSTOCK" predict limited.yaml -o limited.npy
fails 5 'does not fit|memory' "$PENSTOCK" train quarters.yaml
predict quarters npy
cmp whole.npy quarters.npy || die 'four workers of a quarter each predict something else'
