# examples/demo.sh: its last line, and that it fails when the training fails or is not good enough.
. tests/end_to_end/common.sh
cd "$top"

# trains ACCURACY [EXIT_CODE]: stands in for the command
trains() {
    printf '#!/bin/sh\necho "%s" >&2\nexit %d\n' "$1" "${2:-0}" >"$work/stand_in"
    chmod +x "$work/stand_in"
}
demo() {
    code=0
    examples/demo.sh "$work/stand_in" >"$work/out" 2>&1 || code=$?
    last=$(tail -n 1 "$work/out")
}
evaluation='evaluation: loss 0.2500  accuracy'
trains "$evaluation 0.9000 over 10000 examples"
demo
[ "$code" = 0 ] || die "0.9000: exit code $code"
grep -qxE 'demo: test accuracy 0\.9000 after 4 epochs in [0-9]+ s' <<<"$last" || die "0.9000: $last"
trains "$evaluation 0.8999 over 10000 examples"
demo
[ "$code" = 1 ] || die "0.8999: exit code $code"
grep -qF 'below 0.90' "$work/out" || die "0.8999: $(cat "$work/out")"
trains 'nothing'
demo
[ "$code" = 1 ] || die "no evaluation: exit code $code"
trains "$evaluation 0.9900 over 10000 examples" 8
demo
[ "$code" = 8 ] || die "a training that fails: exit code $code"

# the job of the demo is a good one, and its model learns from the first steps
cd "$work"
python3 "$top/tests/end_to_end/make_data.py" . 64
sed -e "s#fashion_cnn.onnx#$top/examples/fashion-cnn/fashion_cnn.onnx#" -e 's#images: .*#images: images.idx.gz#' \
    -e 's#labels: .*#labels: labels.idx.gz#' -e 's/epochs: 4/epochs: 12/' -e 's/batch: 64/batch: 16/' \
    "$top/examples/fashion-cnn/job.yaml" >job.yaml
penstock train --json job.yaml >train.json 2>messages || die "the demo's job: $(cat messages)"
check 'd["steps"][-1]["loss"] < 0.5 * d["steps"][0]["loss"]' train.json
