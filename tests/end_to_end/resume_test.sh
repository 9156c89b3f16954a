# Checkpoints: a training that stops and goes on has the numbers of one that does not.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 40

# job NAME TRAIN [MODEL [MORE]]
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/${3:-lenet}/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, $2}
${4:-}
END
}
hash_of() {
    json 'd["parameters_hash"]' <losses.json
}

# resumed STEPS TRAIN [MODEL]: STEPS steps and a resume are the whole training, bit for bit
resumed() {
    local whole hash first second
    job one "$2" "${3:-mlp}"
    whole=$(train_losses one.yaml)
    hash=$(hash_of)
    rm -rf kept
    first=$(train_losses one.yaml --steps "$1" --checkpoint kept)
    second=$(train_losses one.yaml --resume kept)
    [ "$first $second" = "$whole" ] || die "$2: $1 steps and a resume have $first $second, not $whole"
    [ "$(hash_of)" = "$hash" ] || die "$2: other parameters after $1 steps and a resume"
    check "d['steps'][0]['step'] == $1 + 1" losses.json
    ls kept >files
    printf '%s\n' commit shards | diff - files || die "files of a checkpoint"
    [ -f "kept/shards/g1-s$1-w0.safetensors" ] || die "shards: $(ls kept/shards)"
}
sgd='optimizer: {sgd: {lr: 0.1, momentum: 0.9}}'
adamw='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1'
# epochs of 4 steps, the last of 4 examples: within an epoch, before and after its short batch
for steps in 1 3 4 5; do
    resumed $steps "$sgd, batch: 12, microbatches: 3, steps: 10"
done
resumed 5 "$adamw, batch: 12, microbatches: 4, steps: 10, learning_rate: {cosine: {final: 0.001}}"
resumed 5 "$adamw, batch: 12, steps: 10, warmup: 7 steps, shuffle: false"
resumed 4 'optimizer: {rmsprop: {lr: 0.01, momentum: 0.9, centered: true}}, batch: 12, microbatches: 2, steps: 10'
resumed 4 'optimizer: {nadam: {lr: 0.01}}, clip_value: 0.01, batch: 12, microbatches: 2, steps: 10'
resumed 7 'optimizer: {radam: {lr: 0.01}}, batch: 12, steps: 10' # whose sixth step is the first that divides
resumed 3 'optimizer: adafactor, batch: 12, microbatches: 2, steps: 6'
penstock checkpoint export kept -o whole.safetensors || die 'export'
grep -q row_variance whole.safetensors && die 'export: states of the optimizer'
penstock checkpoint export --all kept -o whole.safetensors || die 'export --all'
grep -q row_variance whole.safetensors || die 'export --all: no states of the optimizer'
resumed 3 'optimizer: {lamb: {lr: 0.01}}, batch: 12, steps: 6'
groups='groups: [{match: "^layers.0", freeze: true}, {match: "bias$", weight_decay: 0, lr_scale: 3}]'
chain='learning_rate: {chained: [{schedule: one_cycle, length: 4 steps}, {schedule: polynomial}]}'
resumed 3 "$adamw, batch: 12, microbatches: 2, steps: 8, $groups, $chain"
resumed 2 "$sgd, batch: 16, microbatches: 2, epochs: 2, drop_last: true, freeze: layers.2.bias"
resumed 3 "$sgd, batch: 20, microbatches: 2, epochs: 2" lenet

# steps on some devices go on on others, under another placement and schedule
python3 "$top/tests/end_to_end/make_training_models.py" . branching
# spread FILE SCHEDULE DEVICE...
spread() {
    local file=$1 schedule=$2 device
    shift 2
    {
        cat <<END
version: 1
model: {file: branching.onnx}
data: {train: {format: npy, inputs: {x: branching_x.npy}, labels: branching_y.npy}}
train: {loss: softmax_cross_entropy, seed: 1, $adamw, batch: 16, microbatches: 4, steps: 9}
placement: {strategy: greedy}
pipeline: {schedule: $schedule}
devices:
END
        for device; do echo "  - {name: $device, threads: 1}"; done
    } >"$file"
}
spread one.yaml auto a
spread three.yaml 1f1b a b c
spread two.yaml zero_bubble a b
whole=$(train_losses one.yaml)
hash=$(hash_of)
for pair in 'one three' 'three one' 'three two' 'two three'; do
    read -r before after <<<"$pair"
    rm -rf kept
    first=$(train_losses "$before.yaml" --steps 5 --checkpoint kept)
    second=$(train_losses "$after.yaml" --resume kept)
    [ "$first $second" = "$whole" ] || die "$pair: $first $second, not $whole"
    [ "$(hash_of)" = "$hash" ] || die "$pair: other parameters"
done

# as the job says, every so often and at the end; the last one stays
job often "$sgd, batch: 20, epochs: 3" mlp 'checkpoint: {dir: often, every: 2 steps}'
train_losses often.yaml --steps 3 >/dev/null
ls often/shards >files
printf '%s\n' g1-s2-w0.safetensors g1-s3-w0.safetensors | diff - files
train_losses often.yaml --continue >/dev/null
check '[s["step"] for s in d["steps"]] == [4, 5, 6]' losses.json
[ -f often/shards/g2-s6-w0.safetensors ] || die 'no checkpoint at the end'
train_losses often.yaml --resume often >/dev/null
check 'd["steps"] == []' losses.json 'nothing is left to do'
fails 3 'often has the checkpoint of step 6: --continue goes on from it, --overwrite' "$PENSTOCK" train often.yaml
train_losses often.yaml --steps 1 --overwrite >/dev/null
check '[s["step"] for s in d["steps"]] == [1]' losses.json
train_losses often.yaml --continue >/dev/null
check '[s["step"] for s in d["steps"]] == [2, 3, 4, 5, 6]' losses.json
train_losses often.yaml --steps 2 --continue --checkpoint none >/dev/null || die '--continue begins where there is nothing'
train_losses often.yaml --steps 5 --checkpoint other --every 1 >/dev/null
[ -f other/shards/g1-s5-w0.safetensors ] || die '--checkpoint and --every'
train_losses often.yaml --steps 5 --checkpoint epochs --every '2 epochs' >/dev/null
ls epochs/shards >files
printf '%s\n' g1-s4-w0.safetensors g1-s5-w0.safetensors | diff - files || die "--every '2 epochs'"

# where it goes on, and with what, is said
says() {
    grep -qF "$1" messages || die "said '$(cat messages)', expected '$1'"
}
job said "$sgd, batch: 10, epochs: 1" mlp 'checkpoint: {dir: said}'
penstock train said.yaml 2>messages
grep -q 'goes on after' messages && die "begins, and says $(cat messages)"
penstock train said.yaml --continue 2>messages
says 'nothing is left to do: step 4 of 4 is done already; more train.epochs, or train.steps, go on from there'
sed -i 's/epochs: 1/epochs: 2/; s/lr: 0.1/lr: 0.025/' said.yaml
penstock train said.yaml --continue --steps 6 2>messages
says 'goes on after step 4 of 8, with the learning rate 0.025'
says 'it was to have 4 steps and has 8 now'
says 'the learning rate is another than before: step 4 had 0.1, and this job has 0.025 for it'
penstock train said.yaml --continue --steps 5 2>messages
says 'nothing is left to do: step 6 of 8 is done already'
penstock train said.yaml --continue 2>messages
says 'goes on after step 6 of 8, with the learning rate 0.025'
grep -qE 'it was to have|another than before' messages && die "nothing has changed, and it says $(cat messages)"
sed -i 's/epochs: 2/epochs: 3, learning_rate: cosine/' said.yaml # a schedule has another rate for what was done
penstock train said.yaml --continue 2>messages
says 'step 8 had 0.025, and this job has 0.00926' # 0.0125 (1 + cos(7 pi / 12))

# another optimizer has other states; its parameters may go on
sed -i 's/optimizer: {sgd: {[^}]*}}/optimizer: adam/; s/epochs: 3/epochs: 4/' said.yaml
grep -q 'optimizer: adam,' said.yaml || die "$(cat said.yaml)"
fails 4 'or begin with the parameters alone, by .penstock checkpoint export. and .penstock train --parameters.' \
    "$PENSTOCK" train said.yaml --continue
penstock checkpoint export -q said -o alone.safetensors
penstock train -q said.yaml --parameters alone.safetensors --checkpoint alone --steps 1

# what does not belong together is said
job other "$sgd, batch: 10, epochs: 3"
fails 3 'other.yaml:[0-9]+:[0-9]+: .*the checkpoint is of another model' "$PENSTOCK" train other.yaml --resume other
job other "$sgd, batch: 10, epochs: 3" mlp
fails 3 'other.yaml:5:.*with batch 20, the job has 10' "$PENSTOCK" train other.yaml --resume other
job other "$sgd, batch: 20, epochs: 3, shuffle: false" mlp
fails 3 'with shuffle 1, the job has 0' "$PENSTOCK" train other.yaml --resume other
job other "optimizer: {adam: {lr: 0.1}}, batch: 20, epochs: 3" mlp
fails 4 "lacks '.*first" "$PENSTOCK" train other.yaml --resume other
fails 4 'there is no checkpoint in nowhere: no such folder' "$PENSTOCK" train often.yaml --checkpoint fresh --resume nowhere
fails 2 'found --resume and --parameters' "$PENSTOCK" train often.yaml --resume other --parameters x
code=0 # as on a full disk: an error that names the file, and nothing half written is left
(ulimit -f 1 && "$PENSTOCK" train -q often.yaml --checkpoint limited --set checkpoint.retry=1s) 2>messages || code=$?
[ $code -eq 9 ] || die "exit code $code with a limit of file sizes: $(cat messages)"
grep -q "cannot write 'limited/shards/g1-s[0-9]*-w0.safetensors.partial': File too large" messages || die "$(cat messages)"
[ -z "$(ls limited/shards)" ] || die "left in the folder: $(ls limited/shards)"
fails 2 "cannot create the folder '/proc/none'" "$PENSTOCK" train often.yaml --checkpoint /proc/none
sed 's#dir: often#dir: /proc/none#' often.yaml >nowhere.yaml # before the training, not after it
fails 3 "nowhere.yaml:[0-9]+:[0-9]+: error: cannot create the folder '/proc/none'" "$PENSTOCK" train -q nowhere.yaml
fails 2 '--every: found "often"' "$PENSTOCK" train often.yaml --every often --checkpoint x
