# train.consistency: {async: …}: without staleness the numbers of synchronous lanes; else those that
# NumPy comes to from each step's order; the same twice, on any replicas and transport, after a stop
# and a kill; and what is refused.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp gpt embedding resnet18:16

# job FILE MODEL TRAIN [REPLICAS [DEVICES [HOST]]]: of 59 examples, or of `limit`
job() {
    local limit=${limit:-59} threads=mixed
    write_job "$1" "$2" "$3" "${5:-1}" "${6:-process}" "replicas: ${4:-1}, time_limit: 1s" ''
}

momentum='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 8, steps: 6'
adamw='optimizer: {adamw: {lr: 0.01}}, batch: 12, microbatches: 4, steps: 6'
rmsprop='optimizer: {rmsprop: {lr: 0.001, centered: true}}, batch: 12, microbatches: 4, steps: 6'

# ---- staleness 0 is synchronous training, whatever the ops in between

none() { # MODEL TRAIN LANES ASYNC
    job sync.yaml "$1" "$2, lanes: $3"
    job async.yaml "$1" "$2, lanes: $3, consistency: {async: {staleness: 0$4}}"
    local expected found
    expected=$(numbers sync.yaml)
    found=$(numbers async.yaml)
    [ "$found" = "$expected" ] || die "$*: $found without staleness, synchronous $expected"
}
none mlp "$momentum" 4 ''
none mlp "$momentum" 5 ', compensation: adaptive'
none gpt "$adamw" 3 ', compensation: constant' # a table that is used twice
none embedding "$rmsprop" 4 ''
none embedding 'optimizer: {lamb: {lr: 0.01}}, clip_value: 0.01, batch: 12, microbatches: 4, steps: 6' 4 ''
none gpt 'optimizer: adafactor, batch: 12, microbatches: 4, steps: 6' 4 ''
limit=35 none resnet18 "$adamw" 4 ', compensation: constant, lambda: 3' # batch normalization

# ---- one hash for a seed, and others for others

same() { # MODEL TRAIN ASYNC "REPLICAS DEVICES HOST"...
    local model=$1 train="$2, consistency: {async: {$3}}" expected found shape
    job one.yaml "$model" "$train"
    expected=$(numbers one.yaml)
    [ "$(numbers one.yaml)" = "$expected" ] || die "$model, $train: not the same twice"
    echo "${expected##* }" >>hashes
    for shape in "${@:4}"; do
        set -- $shape
        job many.yaml "$model" "$train" "$1" "$2" "$3"
        found=$(numbers many.yaml)
        [ "$found" = "$expected" ] || die "$model, $train, replicas $shape: $found, one device: $expected"
    done
}
same mlp "$momentum, lanes: 4" 'staleness: 6' '1 2 process' '2 2 process' '4 4 grpc' '2 4 grpc'
same mlp "$momentum, lanes: 4" 'staleness: 6, compensation: constant' '2 2 grpc'
same mlp "$momentum, lanes: 4" 'staleness: 6, compensation: adaptive' '4 4 process'
same mlp "$momentum, lanes: 4" 'staleness: 2' '3 3 process'
same gpt "$adamw, lanes: 4" 'staleness: 3, compensation: adaptive' '2 2 process' '4 4 grpc'
same embedding "$rmsprop, lanes: 4, groups: [{match: table, lr_scale: 0.2, weight_decay: 0.01}]" 'staleness: 5' '2 4 process'
limit=35 same resnet18 "$adamw, lanes: 4" 'staleness: 4, compensation: adaptive, lambda: 0.5' '2 2 process' '4 4 grpc'
[ "$(sort -u hashes | wc -l)" = 7 ] || die "numbers that do not depend on what is asked for: $(cat hashes)"

# ---- what NumPy comes to

# From a checkpoint to the next: who was applied when follows from the versions that lanes have then.
cat >step.py <<'END'
import glob, json, struct, sys
import numpy as np

def tensors(folder):
    types = {"F32": "<f4", "I64": "<i8"}
    found = {}
    for path in glob.glob(folder + "/shards/*"):
        whole = open(path, "rb").read()
        size, = struct.unpack("<Q", whole[:8])
        for name, e in json.loads(whole[8:8 + size]).items():
            if name == "__metadata__": continue
            first, end = e["data_offsets"]
            data = np.frombuffer(whole[8 + size + first:8 + size + end], types[e["dtype"]])
            found[name] = data.reshape(e["shape"]).astype("f8" if e["dtype"] == "F32" else "i8")
    return found

compensation, lam, lanes, batch = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rate, momentum, share = 0.05, 0.9, batch // lanes
x, y = np.load("mlp_x.npy").astype("f8"), np.load("mlp_y.npy")

def gradients(w, x, y, layers):
    kept, a = [], x
    for i, (weight, bias) in enumerate(layers):
        kept.append(a)
        a = a @ w[weight].T + w[bias]
        if i + 1 < len(layers): a = np.maximum(a, 0)
    p = np.exp(a - a.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    d, g = p / len(y), {}
    for i in reversed(range(len(layers))):
        weight, bias = layers[i]
        g[weight], g[bias] = d.T @ kept[i], d.sum(0)
        d = (d @ w[weight]) * (kept[i] > 0)
    return g

moved = versions = 0
for step in range(1, 5):
    old, new = tensors(f"at_{step}"), tensors(f"at_{step + 1}")
    names = [n[:-len("/arrivals")] for n in old if n.endswith("/arrivals")]
    weights = sorted((n for n in names if old[n].ndim == 2), key=lambda n: int("".join(filter(str.isdigit, n))))
    layers = [(n, next(b for b in names if old[b].ndim == 1 and "".join(filter(str.isdigit, b)) == "".join(filter(str.isdigit, n)))) for n in weights]
    before, after = old[names[0] + "/arrivals"], new[names[0] + "/arrivals"]
    made = after[6:6 + lanes] - before[0] - 1  # which of the step's versions each lane went into
    w = {n: old[n].copy() for n in names}
    v = {n: old[n + "/velocity"].copy() for n in names}
    square = {n: old.get(n + "/square", np.zeros(())).copy() for n in names}
    first = step * batch
    own = [gradients({n: old[n + "/lanes"][l] for n in names}, x[first + l * share:first + (l + 1) * share],
                     y[first + l * share:first + (l + 1) * share], layers) for l in range(lanes)]
    for version in range(after[0] - before[0]):
        of = [l for l in range(lanes) if made[l] == version]
        assert of, "a version of no lane"
        versions += 1
        for n in names:
            total = np.zeros_like(w[n])
            for l in of:
                g, then = own[l][n], old[n + "/lanes"][l]
                scale = lam
                if compensation == "adaptive":
                    square[n] = 0.95 * square[n] + 0.05 * g * g
                    scale = lam / np.sqrt(square[n] + 1e-7)
                if compensation != "none":
                    moved = max(moved, np.abs(scale * g * g * (w[n] - then)).max())
                    g = g + scale * g * g * (w[n] - then)
                total += g
            v[n] = momentum * v[n] + total / len(of)
            w[n] = w[n] - rate * v[n]
        for l in of:
            for n in names:
                error = np.abs(w[n] - new[n + "/lanes"][l]).max() / np.abs(w[n]).max()
                assert error < 3e-6, f"step {step + 1}: lane {l} has another {n}, by {error}"
    for n in names:
        error = np.abs(w[n] - new[n]).max() / np.abs(w[n]).max()
        assert error < 3e-6, f"step {step + 1}: {n} is another, by {error}"
        if compensation == "adaptive":
            assert np.allclose(square[n], new[n + "/square"], rtol=2e-4, atol=1e-12), f"step {step + 1}: square of {n}"
assert versions > 4, "no version is of some lanes only"
assert compensation == "none" or moved > 1e-6, "nothing was compensated"
END
given='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, lanes: 4, shuffle: false'
by_hand() { # COMPENSATION LAMBDA STALENESS
    local step more=''
    [ "$1" = none ] || more=", compensation: $1, lambda: $2"
    limit=90 job hand.yaml mlp "$given, steps: 5, consistency: {async: {staleness: $3$more}}"
    rm -rf at_*
    for step in 1 2 3 4 5; do
        penstock train -q hand.yaml --steps $step --checkpoint at_$step >out 2>messages || die "$*: $(cat messages)"
    done
    /usr/bin/python3 step.py "$1" "$2" 4 16 >out 2>&1 || die "$*: $(cat out)"
}
by_hand none 0 6
by_hand constant 3 6
by_hand adaptive 2 2

# ---- what is kept

whole=$(numbers one.yaml)
train="$momentum, lanes: 4, consistency: {async: {staleness: 5, compensation: adaptive}}"
job one.yaml mlp "$train"
job two.yaml mlp "$train" 2 2
whole=$(numbers one.yaml)
first=$(numbers two.yaml --steps 3 --checkpoint kept)
[ "${first% *} $(numbers one.yaml --resume kept)" = "$whole" ] || die 'a stop and a resume have other numbers'

# killed while it trains, and gone on with, by other replicas
longer=${train/steps: 6/steps: 400}
longer=${longer/lr: 0.05/lr: 0.005} # at ten times that the last bit of a sum decides whether it stays finite
job long.yaml mlp "$longer"
job many.yaml mlp "$longer" 2 2
long=$(numbers long.yaml)
"$PENSTOCK" train -q long.yaml --checkpoint killed --every '5 steps' >out 2>messages &
training=$!
for ((i = 0; i < 400; i++)); do
    [ "$(ls killed/shards 2>/dev/null | wc -l)" -lt 3 ] || break
    sleep 0.05
done
kill -9 $training 2>/dev/null || die "it was over before it could be killed: $(cat messages)"
wait $training 2>/dev/null || true
rest=$(numbers many.yaml --resume killed)
case $long in *" $rest") ;; *) die "killed and gone on with: $rest, not the end of $long" ;; esac

# a checkpoint goes on as it began
job other.yaml mlp "${train/staleness: 5/staleness: 4}"
fails 3 "other.yaml:4:.*consistency 'async, staleness 5, compensation adaptive, lambda 2', the job has 'async, staleness 4" \
    "$PENSTOCK" train other.yaml --resume kept
job other.yaml mlp "$momentum, lanes: 4"
fails 3 "with consistency 'async, .*', the job has 'sync'" "$PENSTOCK" train other.yaml --resume kept

# ---- what is told

penstock train -q one.yaml --json >losses.json 2>messages
check 'd["asynchronous"]["gradients"] == 23 and d["asynchronous"]["staleness_worst"] <= 5' losses.json
check '1 < d["asynchronous"]["staleness_mean"] < 4 and 6 < d["asynchronous"]["versions"] <= 23' losses.json
check '0 < d["asynchronous"]["drawn_time"] < d["asynchronous"]["drawn_time_synchronous"]' losses.json
penstock train one.yaml >out 2>messages
grep -q 'asynchronous lanes: .* versions behind on average .* waited for all lanes' messages || die "$(cat messages)"
job sync.yaml mlp "$momentum, lanes: 4"
penstock train -q sync.yaml --json >losses.json 2>messages
check '"asynchronous" not in d' losses.json

# parameters are changed gradient by gradient, so a bad one may come too late
job bad.yaml mlp "${train/lr: 0.05/lr: 1e30}"
fails 8 'a gradient of step 1 is not finite; with asynchronous lanes, parameters are changed as gradients' \
    "$PENSTOCK" train -q bad.yaml

# memory as it is planned
for shape in '1 1' '2 2' '1 2'; do
    job many.yaml mlp "$train" ${shape}
    penstock plan many.yaml --json >plan.json 2>messages || die "plan: $(cat messages)"
    numbers many.yaml >/dev/null
    planned=$(json 'sum(v["memory"]["total"] for v in d["devices"])' <plan.json)
    check "0.97 < $planned / d['predicted']['device_bytes'] < 1.03" losses.json "$shape, planned $planned"
done

# ---- what is refused

refused() { # TRAIN PATTERN
    job bad.yaml mlp "$1"
    fails 3 "bad.yaml:4:.*$2" "$PENSTOCK" train bad.yaml
}
async() { echo "$momentum, lanes: ${2:-4}, consistency: {async: {$1}}"; }
refused "$(async 'staleness: -1')" 'staleness: found .-1., expected an integer from 0 to 65535'
refused "$(async 'staleness: 65536')" 'staleness: found .65536., expected an integer from 0 to 65535'
refused "$(async 'compensation: none')" "'staleness' is missing"
refused "$(async 'staleness: 2, lambda: 0.1')" 'lambda: found 0.1, but no compensation, expected compensation: constant or adaptive'
refused "$(async 'staleness: 2, compensation: constant, lambda: 0')" 'lambda: found .0., expected a number above 0'
refused "$(async 'staleness: 2' 1)" 'found async with lanes 1, expected lanes: 2 to 16'
refused "$(async 'staleness: 2' 17 | sed 's/batch: 16, microbatches: 8/batch: 17, microbatches: 17/')" 'found async with lanes 17, expected at most 16'
refused "$(async 'staleness: 2'), clip_norm: 1" 'clip_norm: found 1 with consistency async'
refused "$momentum, lanes: 4, consistency: loose" 'consistency: unknown key .loose., possible: sync, async'
