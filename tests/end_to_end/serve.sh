# shellcheck shell=bash
# What the tests of `penstock serve` share: `. tests/end_to_end/serve.sh` first. A server that a test leaves behind is
# ended with it.
. tests/end_to_end/common.sh
server=
trap 'case $BASHPID in $$) [ -z "$server" ] || kill -9 "$server" 2>/dev/null; rm -rf "$work" ;; esac' EXIT
python3 "$top/tests/end_to_end/make_data.py" . 64
client() { timeout 200 /usr/bin/python3 "$top/tests/end_to_end/serving.py" "$@"; }

# job NAME DEVICES [MORE]
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 16, epochs: 1}
devices: [$2]
placement: {strategy: round_robin}
outputs: {dir: run}
${3:-serve: {name: net, max_batch: 16, max_bytes: 1MiB\}}
END
}

# serve NAME [OPTION...]: sets `server`, and the ports `http` and `grpc`. At $http_at and $grpc_at, where these are set
serve() {
    local name=$1
    shift
    : >"$name.out" # of a server before, which else would be read
    "$PENSTOCK" serve "$name.yaml" --json --http "${http_at:-127.0.0.1:0}" --grpc "${grpc_at:-127.0.0.1:0}" "$@" >"$name.out" 2>"$name.log" &
    server=$!
    for ((i = 0; i < 600; i++)); do
        [ ! -s "$name.out" ] || break
        kill -0 "$server" 2>/dev/null || die "serve $name: $(cat "$name.log")"
        sleep 0.1
    done
    http=$(json 'd["http_port"]' <"$name.out")
    grpc=$(json 'd["grpc_port"]' <"$name.out")
}

# finish NAME [CODE]: ends the server, which must end with that code
finish() {
    local code=0
    kill "$server" 2>/dev/null || true
    wait "$server" || code=$?
    server=
    [ "$code" -eq "${2:-0}" ] || die "serve $1 ended with $code: $(cat "$1.log")"
}
