# examples/demo.sh: its last line, and that it fails when the training fails, is not good enough, or
# has other losses than one device.
. tests/end_to_end/common.sh
cd "$top"

# steps FILE COUNT: what `train --json` writes of so many steps
steps() {
    local i
    printf '{"schema": "penstock/train/1", "steps": ['
    for ((i = 1; i <= $1; i++)); do
        [ "$i" = 1 ] || printf ', '
        printf '{"step": %d, "epoch": 1, "loss": 2.%016d, "examples": 64, "accuracy": 0.5}' "$i" "$i"
    done
    printf '], "parameters_hash": "0123"'
}
steps 2000 >"$work/workers.json"
{
    steps 40
    printf '}\n'
} >"$work/one.json"

# trains ACCURACY [EXIT_CODE [SED]]: stands in for the command; SED changes the losses on one device
trains() {
    cat >"$work/stand_in" <<END
#!/bin/sh
case \$2 in
*workers.yaml)
    cat "$work/workers.json"
    echo ', "evaluation": {"loss": 0.25, "examples": 10000$1}, "devices": ["a"]}'
    exit ${2:-0}
    ;;
*)
    grep -q 'devices: \[{name: one' "\$2" || exit 9
    sed '${3:-}' "$work/one.json"
    ;;
esac
END
    chmod +x "$work/stand_in"
}
demo() {
    code=0
    examples/demo.sh "$work/stand_in" "$work/page.html" >"$work/out" 2>&1 || code=$?
    last=$(tail -n 1 "$work/out")
}
trains ', "accuracy": 0.90000000000000002'
demo
[ "$code" = 0 ] || die "0.9000: exit code $code: $(cat "$work/out")"
[ "$last" = 'demo: test accuracy 0.9000 on 4 workers, same losses as one device: yes' ] || die "0.9000: $last"
trains ', "accuracy": 0.8999'
demo
[ "$code" = 1 ] || die "0.8999: exit code $code"
grep -qF 'below 0.90' "$work/out" || die "0.8999: $(cat "$work/out")"
trains ', "accuracy": 0.95' 0 's/2.0000000000000040/2.0000000000000041/'
demo
[ "$code" = 1 ] || die "another loss: exit code $code"
[ "$last" = 'demo: test accuracy 0.9500 on 4 workers, same losses as one device: no' ] || die "another loss: $last"
grep -qF '> 40 2.0000000000000041' "$work/out" || die "another loss: $(cat "$work/out")"
trains ', "accuracy": 0.95' 0 's/{"step": 40,.*"acc/{"acc/'
demo
[ "$code" = 1 ] || die "a loss too few: exit code $code"
trains ''
demo
[ "$code" = 1 ] || die "no evaluation: exit code $code"
trains ', "accuracy": 0.99' 8
demo
[ "$code" = 8 ] || die "a training that fails: exit code $code"

# the jobs of the examples are good ones, and their model learns from the first steps
cd "$work"
python3 "$top/tests/end_to_end/make_data.py" . 64
for job in job workers; do
    sed -e "s#fashion_cnn.onnx#$top/examples/fashion-cnn/fashion_cnn.onnx#" -e 's#images: .*#images: images.idx.gz#' \
        -e 's#labels: .*#labels: labels.idx.gz#' -e 's/epochs: 4/epochs: 12/' -e 's/batch: .*/batch: 16/' \
        "$top/examples/fashion-cnn/$job.yaml" >job.yaml
    penstock train --json job.yaml >train.json 2>messages || die "$job.yaml of the demo: $(cat messages)"
    check 'd["steps"][-1]["loss"] < 0.5 * d["steps"][0]["loss"]' train.json
done
