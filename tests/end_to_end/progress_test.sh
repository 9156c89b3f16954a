# What is written while training: plain lines elsewhere, one line that is rewritten on a terminal,
# nothing with --quiet or --json.
. tests/end_to_end/common.sh
cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}
  holdout: 0.25
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, epochs: 3}
END
line='epoch [0-9]+  step [0-9]+/12  loss [0-9]\.[0-9]{4}  accuracy [01]\.[0-9]{4}  [0-9]+ samples/s  ([0-9]+m)?[0-9]+s left'

penstock train job.yaml >out 2>plain
[ ! -s out ] || die "standard output: $(cat out)"
[ "$(grep -cxE "$line" plain)" -ge 3 ] || die "plain lines: $(cat plain)"
grep -q '^epoch 3  step 12/12  .* 0s left$' plain || die "the last line: $(cat plain)"
grep -qE '^model\.onnx: 26162 parameters to train in 6 tensors, 30 examples, 12 steps, ' plain ||
    die "the first line: $(cat plain)"
grep -qE '^evaluation: loss [0-9.]+  accuracy [0-9.]+ over 10 examples$' plain || die "$(cat plain)"
if LC_ALL=C grep -q "$(printf '[\r\033]')" plain; then die 'control characters in a file'; fi

export NO_COLOR=1 # help_test has the colours
script -qec "$PENSTOCK train job.yaml" /dev/null </dev/null | tr -d '\000' >terminal
tr '\r' '\n' <terminal | sed 's/\x1b\[K//g' >lines
[ "$(grep -cE "^$line" lines)" -ge 3 ] || die "on a terminal: $(cat lines)"
grep -q "$(printf '\r')epoch .*$(printf '\033')\[K" terminal || die "no line is rewritten: $(cat -v terminal)"
[ "$(grep -c 'epoch' terminal)" -le 4 ] || die "more than a line an epoch: $(cat -v terminal)"

# the loss has a colour where the terminal has them; an evaluation before the first line leaves no empty one
sed 's/^train:/evaluation: {every: 1 steps, metrics: [f1], patience: 1, min_delta: 9}\n&/' job.yaml >often.yaml
env -u NO_COLOR TERM=xterm script -qec "stty cols 40; $PENSTOCK train job.yaml" /dev/null </dev/null | tr -d '\000' >terminal
[ "$(grep -c "  "$'\033\\[1;36m'"loss [0-9]\.[0-9]*"$'\033\\[0m' terminal)" -eq 3 ] || die "no colour: $(cat -v terminal)"
tr '\r' '\n' <terminal | sed 's/\x1b\[[0-9;]*[Km]//g' | grep '^epoch' >lines
[ "$(awk '{ if (length($0) > most) most = length($0) } END { print most }' lines)" -eq 39 ] || die "not cut: $(cat lines)"
TERM=xterm script -qec "$PENSTOCK train often.yaml" /dev/null </dev/null | tr -d '\000\r' >terminal # NO_COLOR is set
grep -q 'step 2: 1 evaluation was no better than that after step 1' terminal || die "$(cat terminal)"
if grep -q "$(printf '\033')\[[0-9;]*m" terminal || grep -q '^$' terminal; then die "$(cat -v terminal)"; fi

# an error begins a line of its own
sed 's/lr: 0.05/lr: 1000000000/' job.yaml >wild.yaml
script -qec "$PENSTOCK train wild.yaml" /dev/null </dev/null | tr '\r' '\n' | sed 's/\x1b\[K//g' >lines || true
grep -q '^error: step 3, microbatch 0' lines || die "an error on a terminal: $(cat lines)"

penstock train --quiet job.yaml --save trained.safetensors >out 2>quiet
[ ! -s out ] && [ ! -s quiet ] || die "--quiet: $(cat out quiet)"
penstock train --json job.yaml --overwrite --save trained.safetensors >out 2>messages
check 'len(d["steps"]) == 12' out
[ ! -s messages ] || die "--json: $(cat messages)"
