# penstock rate: a rate that grows step by step, the same on any devices, and nothing of it is kept.
. tests/end_to_end/common.sh

/usr/bin/python3 - <<'PY'
import numpy as np
random = np.random.RandomState(1)
inputs = random.randn(96, 12).astype(np.float32)
np.save("x.npy", inputs)
np.save("y.npy", (inputs @ random.randn(12, 4)).argmax(1))
PY
cat >job.yaml <<'YAML'
version: 1
model:
  inputs: {x: {shape: [12]}}
  layers: [dense: {units: 32, activation: relu}, dense: {units: 4}]
data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}, holdout: 0.25}
train: {loss: softmax_cross_entropy, seed: 3, optimizer: {sgd: {lr: 0.001}}, batch: 16, microbatches: 2, epochs: 1,
        warmup: 2 steps, learning_rate: {cosine: {final: 0.0001}}}
devices: [{name: a, threads: 1}]
evaluation: {every: 1 steps}
checkpoint: {dir: kept}
outputs: {dir: out}
YAML

penstock rate --json --from 0.001 --to 1000 --steps 61 job.yaml >found.json 2>messages
[ ! -s messages ] || die "$(cat messages)"
check 'all(abs(s["rate"] - 0.001 * 10 ** (i / 10)) < 1e-9 * s["rate"] for i, s in enumerate(d["steps"]))' found.json
check 'd["diverged"] and d["job"] == 0.001 and 0.005 < d["suggested"] < 20 and len(d["steps"]) < 61' found.json
check 'd["suggested"] in [s["rate"] for s in d["steps"]]' found.json
if [ -e kept ] || [ -e out ]; then die "something was written: $(ls)"; fi

# the first loss is that of a training; with two processes all are
penstock train -q --json --steps 1 job.yaml >run.json
[ "$(json 'd["steps"][0]["loss"]' <found.json)" = "$(json 'd["steps"][0]["loss"]' <run.json)" ] || die 'another first loss'
penstock rate --json --from 0.001 --to 1000 --steps 61 \
    --set 'devices=[{name: a, threads: 1, host: localhost}, {name: b, threads: 1, host: localhost}]' job.yaml >two.json
[ "$(json 'd["steps"], d["suggested"]' <found.json)" = "$(json 'd["steps"], d["suggested"]' <two.json)" ] ||
    die "$(cat two.json)"

# a rate so large that the loss is no number ends the search, too
penstock rate --json --from 1e20 --to 1e30 --steps 20 job.yaml >large.json
check 'd["diverged"] and d["suggested"] is None and len(d["steps"]) < 20' large.json

penstock rate --from 0.001 --to 1000 --steps 61 job.yaml >text
grep -qE '^suggested: [0-9.e+-]+, where the loss falls fastest; .*The job has 0.001$' text || die "$(cat text)"
[ "$(grep -c ' <$' text)" = 1 ] || die "$(cat text)"
fails 2 'error: --from: found 1, expected less than --to, which is 0.1' "$PENSTOCK" rate --from 1 --to 0.1 job.yaml

# the page has the same curve, and nothing else is left
penstock rate --json --from 0.001 --to 1000 --steps 61 --report rate.html job.yaml >again.json
cmp -s again.json found.json || die 'other numbers with a page'
python3 - <<'END' || die 'the page has another curve'
import json
text = open("rate.html").read()
at = text.index('"search":') + len('"search":')
search, found = json.JSONDecoder().raw_decode(text[at:].lstrip())[0], json.load(open("found.json"))
assert search["points"] == [[s["rate"], s["loss"], s["smoothed"]] for s in found["steps"]]
assert search["suggested"] == found["suggested"] and search["job"] == 0.001
END
if command -v chromium >/dev/null; then
    timeout 120 chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 --enable-logging=stderr \
        --user-data-dir="$work/browser" --dump-dom "file://$work/rate.html" >dom 2>browser.err ||
        die "the browser fails: $(tail -n 3 browser.err)"
    if grep -q ':CONSOLE' browser.err; then die "$(grep ':CONSOLE' browser.err)"; fi
    for text in 'Search for a learning rate' 'Loss by learning rate' 'suggested: '; do
        grep -qF -- "$text" dom || die "rate.html: '$text' is missing"
    done
fi
fails 2 "--report: found 'rate.txt', expected a file that ends with .html" "$PENSTOCK" rate --report rate.txt job.yaml
