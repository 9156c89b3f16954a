# Products of a lower precision (numerics.precision) on an emulated GPU: losses are those that PyTorch has when it
# rounds the same operands, the bits are the same in every order of threads, in two processes and after a pause, and
# whoever cannot or will not compute so is told by name.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/precision_jobs.sh"

# ---- mistakes, and devices that cannot: known without a driver
precision_job mlp bfloat16
fails 2 'numerics.precision: found "bfloat61", expected one of float32, tf32, bfloat16' \
    "$PENSTOCK" plan mlp.yaml --set numerics.precision=bfloat61
fails 2 'numerics: unknown key "precison".*precision' "$PENSTOCK" plan mlp.yaml --set numerics.precison=tf32
for kind in cpu reference; do
    for verb in plan verify train; do
        fails 3 "mlp.yaml:6:23: error: .*bfloat16, but device 'a' is of kind $kind, which computes in float32 only" \
            "$PENSTOCK" $verb mlp.yaml --set "devices=[{$g}, {name: a, kind: $kind}]"
    done
done

. "$top/tests/end_to_end/emulated_gpu.sh"
export FAKE_CUDA=gpus=2

# ---- losses
for model in mlp lenet gpt lstm; do
    for precision in tf32 bfloat16; do
        precision_job $model $precision
        penstock train $model.yaml --json >$model.$precision.json 2>messages || die "$model: $(cat messages)"
        ! grep -E "run on the host.*(gemm|matmul|conv|attention|lstm)" messages || die "$model: products on the host"
    done
    for settings in order=1 'order=2 late=50'; do
        FAKE_CUDA=$settings penstock train $model.yaml --json --set train.steps=2 >again.json 2>messages
        python3 -c 'import json, sys
a, b = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[1:])
assert len(a) == 2 and a == b[:2], (a, b)' again.json $model.bfloat16.json || die "$model: other losses with $settings"
    done
done
for model in mlp lenet gpt lstm; do
    for precision in tf32 bfloat16; do
        check 'len(d["steps"]) == 20' $model.$precision.json
        compare_losses 2e-6 $model.$precision
    done
done

# ---- two GPUs in two processes have the bits of one process
precision_job lenet bfloat16
two=(lenet.yaml --json --set train.steps=6 --set train.microbatches=2 --set placement.strategy=round_robin)
penstock train "${two[@]}" --set "devices=[{$g}, {$h}]" >two.json 2>messages || die "$(cat messages)"
penstock train "${two[@]}" --set "devices=[{$g}, {$h, host: localhost}]" >apart.json 2>messages || die "$(cat messages)"
[ "$(hash apart.json)" = "$(hash two.json)" ] || die "other bits in two processes"
penstock train "${two[@]}" --set "devices=[{$g}, {$h}]" --set numerics=null >wide.json 2>messages
[ "$(hash wide.json)" != "$(hash two.json)" ] || die "bfloat16 has the bits of float32"

# ---- a plan has the precision it was made for
penstock plan lenet.yaml --set "devices=[{$g}, {$h}]" -o made.plan.yaml >out 2>messages || die "plan: $(cat messages)"
grep -q '^products of  bfloat16, summed in float32$' out || die "the plan does not say it: $(cat out)"
grep -qE '^numerics: \{.*precision: bfloat16\}$' made.plan.yaml || die "no precision in the plan"
penstock plan lenet.yaml --json >plan.json 2>messages
check 'd["precision"] == "bfloat16"' plan.json
sed -i 's/precision: bfloat16/precision: tf32/' made.plan.yaml
fails 4 'the plan was made for products of tf32, but the job has numerics.precision bfloat16; plan again' \
    "$PENSTOCK" train made.plan.yaml

# ---- so has a checkpoint
penstock train lenet.yaml --json --set train.steps=20 >whole.json 2>messages
penstock train lenet.yaml -q --steps 7 --checkpoint kept >out 2>messages || die "checkpoint: $(cat messages)"
fails 2 "precision=tf32: error: the checkpoint is of a training with precision 'bfloat16', the job has 'tf32'; \`numerics: {precision: bfloat16}\` goes on" \
    "$PENSTOCK" train lenet.yaml --set numerics.precision=tf32 --checkpoint kept --continue
penstock checkpoint ls --json kept >list.json 2>messages
check 'all(c["precision"] == "bfloat16" for c in d["checkpoints"])' list.json
penstock train lenet.yaml --json --checkpoint kept --continue >rest.json 2>messages || die "$(cat messages)"
[ "$(hash rest.json)" = "$(hash whole.json)" ] || die "other bits when it is continued"
