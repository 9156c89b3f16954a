# What a training over several devices shows: progress, the table, the trace, the page with the run
# beside the plan.
. tests/end_to_end/common.sh

cat >job.yaml <<'EOF'
version: 1
model: {file: reference/branching_cnn/model.onnx}
data: {train: {format: npy, inputs: {INPUT: reference/branching_cnn/inputs.npy}, labels: reference/branching_cnn/labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, epochs: 100, seed: 1}
devices:
  - {name: "<b>first</b>", threads: 1}
  - {name: second, threads: 1}
  - {name: third, threads: 1}
placement: {strategy: greedy, objective: step_time}
EOF
input=$(penstock inspect --json reference/branching_cnn/model.onnx | json 'd["inputs"][0]["name"]')
sed -i "s/INPUT/$input/" job.yaml

penstock train job.yaml --steps 12 --trace run.trace.json --report run.html >out 2>said ||
    die "train: $(cat said)"
[ ! -s out ] || die "standard output: $(cat out)"
grep -qE "^epoch .* left  bubble [0-9]+ %, slowest stage [0-9]+ on '(<b>first</b>|second|third)'$" said ||
    die "progress: $(cat said)"
grep -qE '^ +predicted +measured +ratio$' said || die "no table: $(cat said)"
grep -qE '^step +[0-9.]+ (us|ms|s) +[0-9.]+ (us|ms|s) +[0-9.]+$' said || die "step: $(cat said)"
grep -qE '^bubble +[0-9.]+ % +[0-9.]+ %$' said || die "bubble: $(cat said)"
grep -qE '^busy in a step +<b>first</b> ' said || die "busy: $(cat said)"

# a terminal's line is cut to its width, so that it can be rewritten
script -qec "stty cols 66; $PENSTOCK train job.yaml --steps 6" /dev/null </dev/null | tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[Km]//g' >lines
grep -q '^epoch .* bubble' lines || die "on a terminal: $(cat lines)"
[ "$(grep '^epoch ' lines | awk '{ if (length($0) > most) most = length($0) } END { print most }')" -eq 65 ] ||
    die "lines are not cut: $(cat lines)"

# the trace keeps the rules of its format, and has all tasks of all steps
/usr/bin/python3 "$top/tests/end_to_end/check_trace.py" run.trace.json '
sum(s["cat"] == "compute" and s["args"]["task"] == "forward" for s in spans) ==
    12 * 4 * (1 + max(s["args"]["stage"] for s in spans if s["cat"] == "compute"))
and {r for r in rows.values() if r.endswith("compute")} == {"<b>first</b> compute", "second compute", "third compute"}
and len(counters) == 6
and [r for r in order if r.endswith("compute")] == ["<b>first</b> compute", "second compute", "third compute"]' ||
    die "the trace is wrong"

# rows stand in the order of the job, not of names, processes or time
for host in '' ', host: localhost'; do
    cat >order.yaml <<EOF
version: 1
model:
  seed: 1
  inputs: {x: {shape: [8]}}
  layers: [dense: {units: 8, activation: relu}, dense: {units: 8, activation: relu}, dense: {units: 4}]
data: {train: {format: npy, inputs: {x: order_x.npy}, labels: order_y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 2, epochs: 2}
devices: [{name: zeta, threads: 1$host}, {name: mid, threads: 1$host}, {name: alpha, threads: 1$host}]
placement: {pin: [{nodes: "^dense_2", to: zeta}, {nodes: "^dense_1", to: alpha}, {nodes: "^dense(_kernel|_bias|$|[^_])", to: mid}]}
EOF
    /usr/bin/python3 -c 'import numpy as np
np.save("order_x.npy", np.ones((16, 8), np.float32)); np.save("order_y.npy", np.arange(16) % 4)'
    penstock train -q order.yaml --trace order.json
    /usr/bin/python3 "$top/tests/end_to_end/check_trace.py" order.json '
[r for r in order if r.endswith("compute")] == ["zeta compute", "mid compute", "alpha compute"]' || die "the order of rows"
done

# in JSON
penstock train --json job.yaml --steps 12 >out 2>said || die "train --json: $(cat said)"
check '[v["name"] for v in d["predicted"]["devices"]] == d["devices"]' out
check '0 <= d["measured"]["bubble"] < 1 and d["measured"]["step_seconds"] > 0' out
check 'all(v["busy_seconds"] > 0 and v["bytes"] > 0 for v in d["measured"]["devices"])' out

# workers with nothing to do are done with a round at once: what the others take is waited for
cat >idle.yaml <<'EOF'
version: 1
model:
  seed: 1
  inputs: {x: {shape: [512]}}
  layers: [dense: {units: 2048, activation: relu}, dense: {units: 2048, activation: relu}, dense: {units: 10}]
data: {train: {format: npy, inputs: {x: idle_x.npy}, labels: idle_y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 64, microbatches: 2, epochs: 100}
devices:
  - {name: first, host: localhost, threads: 1}
  - {name: second, host: localhost, threads: 1}
  - {name: third, host: localhost, threads: 1}
placement: {pin: [{nodes: "^.", to: second}]}
EOF
/usr/bin/python3 -c '
import numpy
numpy.save("idle_x.npy", numpy.ones((128, 512), dtype=numpy.float32))
numpy.save("idle_y.npy", numpy.arange(128) % 10)'
penstock train --json idle.yaml --steps 6 >out 2>said || die "train --json: $(cat said)"
check '0 < d["measured"]["step_seconds"] < d["measured"]["seconds"]' out
check '[v["busy_seconds"] > 0 for v in d["measured"]["devices"]] == [False, True, False]' out
check 'd["measured"]["devices"][1]["busy_seconds"] < d["measured"]["seconds"]' out

# the page: what train leaves, and what show makes of the trace
penstock plan -q job.yaml -o made.plan >/dev/null 2>said || die "plan: $(cat said)"
penstock show -q made.plan --trace run.trace.json -o shown.html >/dev/null 2>said || die "show: $(cat said)"
penstock show -q made.plan --trace run.trace.json -o shown.json >/dev/null 2>said || die "show: $(cat said)"
check 'd["run"]["measured"]["step_count"] == 11 and len(d["run"]["measured"]["steps"]) <= 12' shown.json
check 'd["run"]["with_measured_costs"]["step_seconds"] > 0' shown.json
check 'all(c["measured"] > 0 and c["planned"] >= 0 for c in d["run"]["costs"])' shown.json
browser=$(command -v chromium || true)
for page in run shown; do
    [ "$(grep -o '<script' <"$page.html" | wc -l)" -eq 2 ] || die "$page.html: a name became a script"
    [ -n "$browser" ] || continue
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 \
        --enable-logging=stderr --user-data-dir="$work/browser" --dump-dom "file://$work/$page.html" >dom 2>browser.err ||
        die "$page.html: the browser fails: $(tail -n 3 browser.err)"
    if grep -q ':CONSOLE' browser.err; then die "$page.html: $(grep ':CONSOLE' browser.err)"; fi
    for text in 'data-tab="run"' '&lt;b&gt;first&lt;/b&gt;' 'Devices, predicted and measured' \
        'with the measured costs' '(typical)' 'What the tasks of each stage take'; do
        grep -qF -- "$text" dom || die "$page.html: '$text' is missing"
    done
    if grep -qF '<b>first</b>' dom; then die "$page.html: a name became an element"; fi
done

# over processes: each is one in the trace, and tensors are arrows
sed 's/threads: 1}/threads: 1, host: localhost}/' job.yaml >processes.yaml
penstock train processes.yaml --steps 6 --trace moved.json --report moved.html >out 2>said ||
    die "train over processes: $(cat said)"
/usr/bin/python3 "$top/tests/end_to_end/check_trace.py" moved.json '
len(processes) == 3 and len(arrows) > 6 * 4
and sum(s["cat"] == "send" for s in spans) >= len(arrows)
and all(s["args"]["bytes"] > 0 and s["args"]["value"] for s in spans if s["cat"] in ("send", "receive"))
and {s["args"]["step"] for s in spans if s["cat"] == "compute"} == {1, 2, 3, 4, 5, 6}' || die "the trace of processes is wrong"
grep -qE "^process, at its peak +127\.0\.0\.1:[0-9]+ " said || die "no processes in: $(cat said)"
[ "$(grep -c '127\.0\.0\.1:' said)" -ge 3 ] || die "not three processes in: $(cat said)"

# what is wrong
sed 's/name: third/name: fourth/' job.yaml >other.yaml
penstock plan -q other.yaml -o other.plan >/dev/null 2>said || die "plan: $(cat said)"
fails 3 "device 2 is 'third' in the trace, and 'fourth' in the plan" \
    "$PENSTOCK" show other.plan --trace run.trace.json -o picture.html
printf '{"traceEvents": []}' >none.json
fails 3 "none.json: no trace of penstock's" "$PENSTOCK" show made.plan --trace none.json -o picture.html
fails 2 '--trace is for pages and JSON' "$PENSTOCK" show made.plan --trace run.trace.json -o picture.svg
fails 2 "--report: found 'run.txt', expected a file that ends with .html" \
    "$PENSTOCK" train job.yaml --report run.txt
fails 2 'no/such' "$PENSTOCK" train job.yaml --trace no/such/trace.json

# one device has no plan: its page has the model and the curves; what it cannot have is told before anything is made
sed '/second/d; /third/d' job.yaml >single.yaml
printf 'checkpoint: {dir: new_kept}\noutputs: {dir: new_out}\n' >>single.yaml
fails 2 '--trace: a training on one device records none' "$PENSTOCK" train single.yaml --trace t.json
if [ -e new_kept ] || [ -e new_out ]; then die "made all the same: $(ls)"; fi
penstock train single.yaml --steps 5 --report single.html 2>said || die "train: $(cat said)"
/usr/bin/python3 - <<'PY' || die 'the page of one device is wrong'
import json, re
with open("single.html", encoding="utf-8") as file:
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', file.read(), re.S)[1])
assert [point[0] for point in data["losses"]["series"][0]["points"]] == [1, 2, 3, 4, 5], data["losses"]
assert data["rate"]["points"] and "run" not in data and "plan" not in data, list(data)
PY
