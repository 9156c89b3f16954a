# A request to `penstock serve` that has a wrong index, such as token 20 of a table of 20 rows, is refused by itself:
# those that shared its batch have their answers, and the server goes on. On one device, on two in one process, and
# over workers, where a wrong index ends what they run. In these the embedding reads tokens that were turned before.
. tests/end_to_end/serve.sh
client() { timeout 200 /usr/bin/python3 "$top/tests/end_to_end/serve_wrong_index.py" "$@"; }

/usr/bin/python3 - <<'P'
import numpy
random = numpy.random.default_rng(3)
numpy.save("tokens.npy", random.integers(0, 20, [64, 2, 3]))
numpy.save("labels.npy", random.integers(0, 5, [64]))
P

# job NAME DEVICES [MORE]
job() {
    cat >"$1.yaml" <<Y
version: 1
model:
  inputs: {tokens: {shape: [2, 3], dtype: int64}}
  layers:
    - ${order:-permute: {dims: [2, 1], name: turned\}}
    - embedding: {input_dim: 20, output_dim: 8, name: table}
    - flatten: {name: flat}
    - dense: {units: 5, name: answer}
data:
  train: {format: npy, inputs: {tokens: tokens.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {tokens: tokens.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.1}}, batch: 16, epochs: 1}
devices: [$2]
placement: {strategy: round_robin}
outputs: {dir: run}
serve: {name: net, max_batch: 16, max_wait: 100 ms}
${3:-}
Y
}

# lives NAME: callers with good and wrong tokens, at once. `refuses`: who finds those
refuses=node
lives() {
    serve "$1"
    lives_on "$1"
}
lives_on() {
    client "$http" "$grpc" "$refuses" tokens.npy outputs.npy || die "$1: $(cat "$1.log")"
    kill -0 "$server" || die "$1: it has ended: $(cat "$1.log")"
}

kind=', kind: reference'
own=", host: localhost$kind"
job one "{name: a, threads: 1$kind}"
penstock train -q one.yaml
penstock predict -q one.yaml -o outputs.npy --batch 16
lives one
finish one

# ---- devices of this process, and workers: what they run is ended by a wrong index, and begins again
job two "{name: a, threads: 1$kind}, {name: b, threads: 1$kind}"
lives two
finish two
job workers "{name: a, threads: 1$own}, {name: b, threads: 1$own}"
serve workers
pgrep -P "$server" -f ' worker ' >before
lives_on workers
pgrep -P "$server" -f ' worker ' >after
cmp before after || die "workers were started again: $(cat workers.log)"
! grep -qE 'lost worker|started again' workers.log || die "a worker was lost: $(cat workers.log)"
finish workers
job stops "{name: a, threads: 1$own}, {name: b, threads: 1$own}" 'recovery: {on_loss: stop}'
lives stops
finish stops

# ---- where the table reads the tokens as they are, a wrong one is refused before anything runs
refuses=door
order='reshape: {target_shape: [6]}'
job door "{name: a, threads: 1$own}, {name: b, threads: 1$own}"
penstock train -q --overwrite door.yaml
penstock predict -q door.yaml -o outputs.npy --batch 16
lives door
finish door
