# A GPU that hangs (on an emulated one, a kernel that takes 10 s): a step does not get on, and the user reads which device
# that is and what is awaited of it, whether it is to compute or to copy, in another process or in this one. So does who
# asks (SIGUSR1).
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"
python3 "$top/tests/end_to_end/make_data.py" . 48

# job NAME LAYERS: the first stage on device g, the last on h
job() {
    cat >"$1.yaml" <<Y
version: 1
model: {inputs: {input: {shape: [1, 28, 28]}}, layers: [flatten, $2]}
data: {train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: adam, batch: 8, microbatches: 2, epochs: 1}
devices: [{name: g, kind: cuda, memory: 1GiB, host: localhost}, {name: h, kind: cuda, gpu: 1, memory: 1GiB, host: localhost}]
placement: {strategy: dynamic_programming, pin: [{nodes: "^first", to: g}, {nodes: "^answer", to: h}]}
recovery: {progress: 300 ms, on_loss: stop}
Y
}
job copies '{dense: {units: 8, activation: softmax, name: first}}, {dense: {units: 10, name: answer}}'
job computes '{dense: {units: 8, name: first}}, softmax: {name: answer_before}, {dense: {units: 10, name: answer}}'
here='devices=[{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}]'
export FAKE_CUDA='gpus=2 slow=softmax slow_us=10000000'
stands='error: the rounds under way do not get on \(0\.3 s\): '
awaited='awaited for [0-9.]+ s$'

fails 6 "${stands}worker 1 \(.*\), device 'g' \(cuda, gpu 0\) has not made '.*', or not copied it to the host: $awaited" \
    "$PENSTOCK" train copies.yaml -q
grep -q "^  worker 2 (.*): device 'h' waits for '.*' of 'g', to run forward of stage 1" fails.err || die "$(cat fails.err)"
ended="has not ended forward of stage 1, microbatch 0, or what came before it there: $awaited"
fails 6 "${stands}worker 2 \(.*\), device 'h' \(cuda, gpu 1\) $ended" "$PENSTOCK" train computes.yaml -q
fails 6 "${stands}this process, device 'h' \(cuda, gpu 1\) $ended" "$PENSTOCK" train computes.yaml -q --set "$here"

# ---- who asks
"$PENSTOCK" train computes.yaml --set recovery.progress=60s 2>asked &
training=$!
trap 'case $BASHPID in $$) kill -9 $training 2>/dev/null || true; rm -rf "$work" ;; esac' EXIT
until grep -q 'on 2 devices' asked; do sleep 0.05; done
for _ in {1..40}; do
    sleep 0.2
    kill -USR1 $training
    ! grep -qE "worker 2 .*: device 'h' \(cuda, gpu 1\) $ended" asked || break
done
grep -qE "worker 2 .*: device 'h' \(cuda, gpu 1\) $ended" asked || die "SIGUSR1: $(cat asked)"
kill -9 $training
wait $training 2>/dev/null || true
