# penstock show and simulate: pictures of models, plans and time lines, and the page in a browser if
# there is one.
. tests/end_to_end/common.sh
ln -s "$top/examples" examples
python3 "$top/tests/end_to_end/make_models.py" .

well_formed() {
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$1" || die "$1 is not XML"
}

# page FILE EXPRESSION: opens a page without network; the expression of its DOM, as text `d`, holds.
browser=$(command -v chromium || true)
page() {
    [ -n "$browser" ] || return 0
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 \
        --user-data-dir="$work/browser" --dump-dom "file://$work/$1" >dom 2>browser.err ||
        die "$1: the browser fails: $(tail -n 3 browser.err)"
    python3 -c 'import sys; d = sys.stdin.read(); sys.exit(not eval(sys.argv[1]))' "$2" <dom ||
        die "$1: $2 does not hold in: $(head -c 1500 dom)"
}

# models
for model in reference/*/model.onnx large.onnx hostile.onnx; do
    for form in dot svg html json; do
        penstock show "$model" -o "picture.$form" >said
        grep -qE "^picture\.$form: [0-9]+ boxes, [0-9]+ arrows$" said || die "$model: $(cat said)"
        [ "$model" = large.onnx ] || {
            cp "picture.$form" first
            penstock show "$model" -o "picture.$form" >said
            cmp first "picture.$form" || die "$model: two pictures differ"
        }
    done
    check 'd["schema"] == "penstock/picture/1"' picture.json "$model"
    check 'len(d["boxes"]) > 2 and all(a["from"] != a["to"] for a in d["arrows"])' picture.json "$model"
    well_formed picture.svg
    if [ "$model" != large.onnx ] && command -v dot >/dev/null; then
        dot -Tsvg picture.dot >drawn.svg || die "$model: dot refuses it"
    fi
    ! sed '/id="data"/,/<.script>/d' picture.html | grep -qE '(src|href)=|@import|url\(' || die "$model: the page loads something"
done

# the last one drawn has names that try to get out
check 'any("</script>" in b["name"] for b in d["boxes"])' picture.json
[ "$(grep -o '<script' <picture.html | wc -l)" -eq 2 ] || die "a name became a script"
page picture.html '"owned</title>" not in d and "<title>hostile.onnx</title>" in d'
page picture.html 'd.count("<script") == 2 and "<img" not in d and "data-boxes=\"9\"" in d'

# 10,000 nodes: one by one on the page, by the beginnings of their names in pictures
penstock show --json large.onnx -o large.html >large.json
check 'd["schema"] == "penstock/show/1" and d["boxes"] == 10002' large.json
penstock show --json large.onnx -o large.svg >large.json
check '1000 < d["boxes"] <= 1502' large.json
penstock show --json --boxes 10 large.onnx -o large.dot >large.json
check 'd["boxes"] <= 12' large.json
page 'large.html#/block.700/part.7' '"data-boxes=\"10002\"" in d and "/block.701/part.0</button>" in d'
page 'large.html' 'int(d.split("data-milliseconds=\"")[1].split("\"")[0]) < 1000'

# plans
cat >job.yaml <<'END'
version: 1
model: {file: examples/fashion-cnn/fashion_cnn.onnx}
data: {train: {format: npy, inputs: {image: x.npy}, labels: y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 32, microbatches: 4, epochs: 1, seed: 1}
devices:
  - {name: "<b>first</b>", memory: 1GiB, threads: 1, flops: 50G}
  - {name: second, memory: 1GiB, threads: 1, flops: 50G}
links:
  - {between: ["<b>first</b>", second], bandwidth: 80Gbit/s, latency: 5us}
placement: {strategy: greedy, objective: step_time}
END
penstock plan -q job.yaml -o made.plan >plan.text 2>plan.err || die "plan: $(cat plan.err)"
for form in dot svg html json; do
    penstock show -q made.plan -o "plan.$form" >said 2>plan.err || die "show: $(cat plan.err)"
done
check '[v["name"] for v in d["plan"]["devices"]] == ["<b>first</b>", "second"]' plan.json
check 'all("stage" in b and b["seconds"] >= 0 and b["reason"] != "" and b["source"] in ("measured", "stated", "assumed") for b in d["boxes"] if "flops" in b and "stage" in b)' plan.json
check 'sum("stage" in b for b in d["boxes"]) == sum(s["nodes"] for s in d["plan"]["stages"])' plan.json
grep -q 'subgraph cluster_' plan.dot || die "no clusters"
well_formed plan.svg
node=$(json '[b["name"] for b in d["boxes"] if "stage" in b][2]' <plan.json)
page "plan.html#$node" '"Memory at its peak" in d and ">reason</th>" in d and ">bytes added</th>" in d'
page plan.html '"<b>first</b>" not in d and "&lt;b&gt;first&lt;/b&gt;" in d and "bubble" in d'
penstock show -q job.yaml -o job.json >said 2>plan.err || die "show: $(cat plan.err)"
check 'len(d["plan"]["stages"]) > 0 and d["plan"]["strategy"] == "greedy"' job.json

# time lines
penstock simulate made.plan -o made.svg >made.text
grep -qE '^schedule [a-z0-9_]+: step .*, bubble ' made.text || die "simulate: $(cat made.text)"
well_formed made.svg
penstock simulate --json made.plan >made.json
predicted=$(json 'd["plan"]["step_seconds"]' <plan.json)
check "abs(d['step_seconds'] / $predicted - 1) < 1e-4" made.json
check 'max(t["end"] for t in d["tasks"]) == d["step_seconds"]' made.json
for schedule in 1f1b gpipe; do
    penstock simulate --json --schedule "$schedule" made.plan >made.json
    check 'sum(t["kind"] == "forward" for t in d["tasks"]) == 4 * len(d["stages"])' made.json "$schedule"
done
fails 2 "unknown schedule 'none', possible: 1f1b, gpipe" "$PENSTOCK" simulate --schedule none made.plan
fails 3 'none.plan' "$PENSTOCK" simulate none.plan

if [ -n "$browser" ]; then
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --virtual-time-budget=5000 \
        --user-data-dir="$work/browser" --window-size=1400,900 --screenshot=seen.png \
        "file://$work/plan.html" 2>browser.err || die "no screenshot: $(tail -n 3 browser.err)"
    [ "$(wc -c <seen.png)" -gt 30000 ] || die "the screenshot is empty"
fi

# the model with the places of its nodes, which readers that know none pass over
penstock show made.plan -o placed.onnx >said
grep -q 'penstock.device' placed.onnx && grep -q 'penstock.stage' placed.onnx || die "no places in placed.onnx"
penstock export made.plan -o exported.onnx
cmp placed.onnx exported.onnx || die "show and export write two models"
penstock inspect --json placed.onnx >inspected.json
check 'd["schema"] == "penstock/inspect/1"' inspected.json
fails 2 'is a model, expected a plan or job' "$PENSTOCK" show placed.onnx -o again.onnx

# what is wrong
model=$(ls reference/*/model.onnx | head -n 1)
fails 2 '-o is missing' "$PENSTOCK" show "$model"
fails 2 "found 'picture.png', expected a file that ends with .dot, .svg, .html, .json or .onnx" \
    "$PENSTOCK" show "$model" -o picture.png
fails 2 'no/such' "$PENSTOCK" show "$model" -o no/such/picture.svg
fails 4 'none.onnx' "$PENSTOCK" show none.onnx -o picture.svg
fails 3 'none.plan' "$PENSTOCK" show none.plan -o picture.svg
sed 's/stage: 0/stage: 77/' made.plan >edited.plan
fails 3 'stage 77 is not there' "$PENSTOCK" show edited.plan -o picture.svg
