# Callers of `penstock serve` that mean no good, or mean too much: what they send is bounded in time and memory, and
# others are answered meanwhile.
. tests/end_to_end/serve.sh
client() { timeout 100 /usr/bin/python3 "$top/tests/end_to_end/serve_refusals.py" "$@"; }

# job NAME SERVE [MODEL] [DATA]
job() {
    cat >"$1.yaml" <<END_OF_JOB
version: 1
model: {file: ${3:-reference/mlp/model.onnx}}
data: {train: {format: npy, inputs: ${4:-{input: inputs.npy\}}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 16, epochs: 1}
devices: [{name: a, threads: 1, kind: reference}]
outputs: {dir: run-$1}
serve: {name: net, max_batch: 16, $2}
END_OF_JOB
    penstock train -q "$1.yaml"
}

# at all addresses: over IPv4 as well, which the client speaks
job small 'max_bytes: 1MiB, timeout: 1 s, queue: 4'
http_at='*:0' serve small --insecure
client http "$http" net || die "bodies: $(cat small.log)"
client grpc "$grpc" net "$server" || die "calls: $(cat small.log)"
client long "$grpc" "$server" || die "long messages: $(cat small.log)" # 64 MiB, and 1 for each of 68 calls
finish small

job few 'max_bytes: 1MiB, timeout: 1 s, queue: 4, connections: 32'
serve few
client untaken "$grpc" "$server" || die "answers: $(cat few.log)"
client strangers "$grpc" "$server" || die "strangers: $(cat few.log)"
client door "$http" net || die "strangers over HTTP: $(cat few.log)"
grep -q 'refused a connection from 127\.0\.0\.1:[0-9]* over gRPC: its address has 12 connections that have not said' few.log ||
    die "$(cat few.log)"
[ "$(wc -l <few.log)" -le 20 ] || die "too many words: $(cat few.log)"
finish few

job slow 'max_wait: 8 s, timeout: 300 ms'
serve slow
client late "$http" net || die "late: $(cat slow.log)"
finish slow

# ---- what a row takes
cat >wide.yaml <<'END_OF_MODEL'
inputs: {x: {shape: [1]}}
layers:
  - dense: {units: 500, name: logits}
END_OF_MODEL
/usr/bin/python3 -c 'import numpy; numpy.save("x.npy", numpy.zeros([64, 1], numpy.float32))'
job wider 'max_bytes: 16KiB' wide.yaml '{x: x.npy}'
serve wider
client rows "$http" net || die "rows: $(cat wider.log)"
finish wider
job narrow 'max_bytes: 2KiB'
fails 3 'narrow.yaml:.*serve.max_bytes: found 2048, expected 3136 at least' "$PENSTOCK" serve narrow.yaml --http 127.0.0.1:0
