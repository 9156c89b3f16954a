# Trainings whose matrix products go to cuBLAS, a fake one, on an emulated GPU: losses are those of PyTorch, bits are
# the same in two runs, with late commands, with CUDA graphs and without, and in two processes. What is there, what is
# planned of it and what goes wrong is told. Another class is one with the library, and one without.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/precision_jobs.sh"

build=${PENSTOCK%/penstock}/tests/cuda
own=$build with=$build/libraries:$build
export LD_LIBRARY_PATH=$with FAKE_CUDA=gpus=2

# train NAME [OPTION...]: to NAME.json, what the fakes count to `messages`
train() {
    local name=$1
    shift
    penstock train "$@" --json >"$name.json" 2>messages || die "$name: $(cat messages)"
}
# counted: products that were asked for, and that ran
counted() {
    sed -n 's/^fake cuBLAS: \([0-9]*\) products asked for, \([0-9]*\) run$/\1 \2/p' messages
}

# ---- what is there is told
penstock doctor >doctor
grep -q '^cuBLAS  *12.4.5, begins, for matrix products of GPUs$' doctor || die "doctor does not find it: $(cat doctor)"
penstock doctor --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["cublas"].startswith("12.4.5")'
# whether it begins is tried, on each GPU
FAKE_CUDA='gpus=2 blas_begins=3 begins_gpu=1' penstock doctor >doctor
grep -q "^cuBLAS  *0: 12.4.5, begins, for matrix products of GPUs; 1: 12.4.5, does not begin, own kernels make matrix products of GPUs: .*cuBLAS of GPU 1 says CUBLAS_STATUS_ALLOC_FAILED" doctor ||
    die "doctor does not say that it does not begin: $(cat doctor)"
grep -q '^cuDNN  *9.5.1, begins, for convolutions of GPUs$' doctor || die "cuDNN is not tried beside it: $(cat doctor)"
# lacks PATH WHY: why it is not used there; products are by own kernels
precision_job mlp float32
lacks() {
    LD_LIBRARY_PATH=$1 penstock doctor | grep -q "^cuBLAS  *none, own kernels make .*: .*$2" ||
        die "doctor does not say why: $(LD_LIBRARY_PATH=$1 penstock doctor | grep cuBLAS)"
    LD_LIBRARY_PATH=$1 train lacks mlp.yaml --set train.steps=1
    check '"cuBLAS" not in d["arithmetic"]' lacks.json
}
lacks "$own" "libcublas.so.12 or .11, is of a version without 'cublasSetWorkspace_v2'"
mkdir newer broken
cp "$build/libraries/libcublas.so.12" newer/libcublas.so.13 # for which this driver is too old
lacks "$PWD/newer:$own" 'libcublas.so.12 or .11, is of a version without'
FAKE_CUDA=driver=13000 LD_LIBRARY_PATH=$PWD/newer:$own penstock doctor | grep -q '^cuBLAS  *13.4.5' ||
    die "a driver of CUDA 13 does not take libcublas.so.13"
# a GPU below 7.5, for which version 13 has no kernels: the one before it is taken, or own kernels
old='driver=13000 capability=70' why='libcublas.so.13 has no kernels for this GPU, whose compute capability 7.0 is below 7.5'
FAKE_CUDA=$old LD_LIBRARY_PATH=$PWD/newer:$with penstock doctor | grep -q "^cuBLAS  *12.4.5, begins, for matrix products of GPUs; $why$" ||
    die "a GPU of 7.0 does not take libcublas.so.12, or doctor does not say why"
FAKE_CUDA=$old LD_LIBRARY_PATH=$PWD/newer:$with train old mlp.yaml --set train.steps=1
check '", cuBLAS 12.4.5" in d["arithmetic"] and "capability 7.0" in d["arithmetic"]' old.json
! grep -q 'own kernels make' messages || die "$(cat messages)"
FAKE_CUDA=$old lacks "$PWD/newer:$own" "libcublas.so.12 or .11, is of a version without .*; $why"
FAKE_CUDA='driver=13000 capability=75' LD_LIBRARY_PATH=$PWD/newer:$with penstock doctor | grep -q '^cuBLAS  *13.4.5, begins, for matrix products of GPUs$' ||
    die "a GPU of 7.5 does not take libcublas.so.13"
echo none >broken/libcublas.so.12
lacks "$PWD/broken:$own" 'broken/libcublas.so.12: '
precision_job mlp float32
penstock plan mlp.yaml >plan
grep -q '^libraries    auto: cuBLAS makes matrix products, and cuDNN convolutions, where a machine has them; 32 MiB of' plan ||
    die "the plan does not say it: $(cat plan)"
penstock plan mlp.yaml --set numerics.libraries=none >plan
! grep -q '^libraries' plan || die "the plan has what the job does not want: $(cat plan)"
fails 2 'numerics.libraries: found "cublas", expected one of none, auto, required' \
    "$PENSTOCK" plan mlp.yaml --set numerics.libraries=cublas

# ---- losses
for model in mlp gpt; do
    steps=20
    [ $model = mlp ] || steps=4 # an emulated one takes its time
    for precision in float32 tf32 bfloat16; do
        precision_job $model $precision
        FAKE_CUDA='gpus=2 count=1' train $model.$precision $model.yaml --set train.steps=$steps
        read -r asked run <<<"$(counted)"
        # from its second run on, a list is a graph: products run that the host does not ask for
        [ "$asked" -gt 0 ] && [ $((2 * run)) = $((steps * asked)) ] || die "$model: $asked products, $run run"
        check 'd["arithmetic"].endswith("products of '$precision', cuBLAS 12.4.5, cuDNN 9.5.1")' $model.$precision.json
    done
    train again $model.yaml --set train.steps=2
    for settings in late=50 graphless=1; do
        FAKE_CUDA="$settings count=1" train other $model.yaml --set train.steps=2
        [ "$(hash other.json)" = "$(hash again.json)" ] || die "$model: other bits with $settings"
        read -r found run <<<"$(counted)"
        [ $settings = late=50 ] || [ "$found" -gt "$asked" ] || die "$model: without graphs, $found products"
    done
    train own $model.yaml --set train.steps=2 --set numerics.libraries=none
    check '"cuBLAS" not in d["arithmetic"]' own.json
    [ $model = mlp ] || [ "$(hash own.json)" != "$(hash again.json)" ] || die "$model: own kernels have the library's bits"
done
# the library's sums are rounded at other places: the first loss may be off by twice as much as with own kernels
for model in mlp gpt; do
    compare_losses 4e-6 $model.float32 $model.tf32 $model.bfloat16
done

# ---- two GPUs, in one process and in two; a process that has no library is of another class
precision_job mlp float32
two=(mlp.yaml --set train.microbatches=2 --set placement.strategy=round_robin)
train two "${two[@]}" --set "devices=[{$g}, {$h}]"
train apart "${two[@]}" --set "devices=[{$g}, {$h, host: localhost}]"
[ "$(hash apart.json)" = "$(hash two.json)" ] || die "other bits in two processes"
check 'd["arithmetic"].endswith(", cuBLAS 12.4.5, cuDNN 9.5.1")' apart.json
LD_LIBRARY_PATH=$own "$PENSTOCK" worker --listen 127.0.0.1:0 2>worker.err &
worker=$!
for ((n = 0; n < 200; n++)); do
    port=$(sed -n 's/^worker takes links at port //p' worker.err)
    [ -z "$port" ] || break
    sleep 0.05
done
found=0
"$PENSTOCK" train "${two[@]}" --set "devices=[{$g}, {$h, host: '127.0.0.1:$port'}]" >out 2>messages || found=$?
[ $found -ne 0 ] && grep -q 'cuBLAS 12.4.5' messages && grep -q 'results would differ in their last bits' messages ||
    die "two classes are not refused: $found, $(cat messages)"
train both "${two[@]}" --set "devices=[{$g}, {$h, host: '127.0.0.1:$port'}]" --set numerics.libraries=none
check '"cuBLAS" not in d["arithmetic"]' both.json
kill $worker

# ---- what goes on with another class is told
train part mlp.yaml --checkpoint kept --set train.steps=10
train rest mlp.yaml --checkpoint kept --continue
[ "$(hash rest.json)" = "$(hash mlp.float32.json)" ] || die "other bits when it is continued"
train part mlp.yaml --checkpoint other --set train.steps=10
LD_LIBRARY_PATH=$own train rest mlp.yaml --checkpoint other --continue
grep -q "computed on 'cuda: .*, cuBLAS 12.4.5, cuDNN 9.5.1', and this goes on with 'cuda: .*products of float32': from here on" messages ||
    die "another class is not told: $(cat messages)"
check 'd["changed_step"] == 10' rest.json

# ---- what goes wrong
FAKE_CUDA=blas_fails=15 fails 1 "device 'g': while a product was enqueued: cuBLAS of GPU 0 says CUBLAS_STATUS_NOT_SUPPORTED; .numerics: {libraries: none}. goes without it" \
    "$PENSTOCK" train mlp.yaml
grep -q "while running gemm '" fails.err || die "the operator is not named: $(cat fails.err)"
# ---- one that does not begin: own kernels, which is told once, and the class says that it is not used
# told DEVICE WHY [WORKER]: how often it is told of a device, of a worker of that name
told() {
    grep -c "^warning: ${3:-}device '$1': while cuBLAS was opened: cuBLAS of GPU [01] says $2; if its memory is full, leave .reserve. for it; own kernels make matrix products$" messages
}
FAKE_CUDA='blas_begins=3 count=1' train begins gpt.yaml --set train.steps=2
[ "$(told g CUBLAS_STATUS_ALLOC_FAILED)" = 1 ] || die "it is not told once: $(cat messages)"
[ "$(counted)" = '0 0' ] || die "it is used all the same: $(counted)"
check 'd["arithmetic"].endswith("products of bfloat16, cuDNN 9.5.1")' begins.json
[ "$(hash begins.json)" = "$(hash own.json)" ] || die "without cuBLAS, it has not the bits of own kernels"
train part mlp.yaml --checkpoint lost --set train.steps=10
FAKE_CUDA=blas_begins=8 train rest mlp.yaml --checkpoint lost --continue
[ "$(told g CUBLAS_STATUS_ARCH_MISMATCH)" = 1 ] || die "it is not told once: $(cat messages)"
grep -q "computed on 'cuda: .*, cuBLAS 12.4.5, cuDNN 9.5.1', and this goes on with 'cuda: .*products of float32, cuDNN 9.5.1': from here on" messages ||
    die "another class is not told: $(cat messages)"
check 'd["changed_step"] == 10' rest.json
# on two GPUs it must be the same: of the process, and of two
for of in "$h" "$h, host: localhost"; do
    there=
    [ "$of" = "$h" ] || there='worker [0-9] ([0-9.:]*): '
    FAKE_CUDA='gpus=2 blas_begins=3' train begins "${two[@]}" --set "devices=[{$g}, {$of}]"
    [ "$(told g CUBLAS_STATUS_ALLOC_FAILED)" = 1 ] && [ "$(told h CUBLAS_STATUS_ALLOC_FAILED "$there")" = 1 ] ||
        die "it is not told once of each: $(cat messages)"
    [ "$(hash begins.json)" = "$(hash both.json)" ] || die "other bits where none begins"
    found=0
    FAKE_CUDA='gpus=2 blas_begins=3 begins_gpu=1' "$PENSTOCK" train "${two[@]}" --set "devices=[{$g}, {$of}]" \
        >out 2>messages || found=$?
    [ $found -ne 0 ] && grep -q 'differ in their last bits.*libraries: none' messages && grep -q "GPU 1 says CUBLAS_STATUS_ALLOC_FAILED.*own kernels make" messages ||
        die "two classes are not refused with why: $found, $(cat messages)"
done
# likewise where a worker measures on its second GPU, which says it to who asked
mkfifo pipe
FAKE_CUDA='gpus=2 blas_begins=3' "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>worker.log &
worker=$!
trap 'kill $worker 2>/dev/null || true; rm -rf "$work"' EXIT
read -r port <pipe
penstock profile --insecure mlp.yaml -o costs.yaml --operator-time 1ms \
    --set "devices=[{$g, gpu: 1, model: emulated GPU, host: '0.0.0.0:$port'}]" >out 2>messages || die "no profile: $(cat messages)"
[ "$(told g CUBLAS_STATUS_ALLOC_FAILED 'worker [0-9] ([0-9.:]*): ')" = 1 ] ||
    die "a measurement does not tell it once: $(cat messages)"
grep -q 'GPU 1 says CUBLAS_STATUS_ALLOC_FAILED' messages || die "another GPU is measured: $(cat messages)"
! grep 'own kernels make' worker.log || die "it is told where nobody looks"
kill $worker
FAKE_CUDA=blas_begins=3 fails 5 "while cuBLAS was opened: cuBLAS of GPU 0 says CUBLAS_STATUS_ALLOC_FAILED; .*auto}. goes on without cuBLAS" \
    "$PENSTOCK" train mlp.yaml --set numerics.libraries=required
LD_LIBRARY_PATH=$own fails 4 "libcublas.so.12 or .11, is of a version without .*auto}. goes on without cuBLAS" \
    "$PENSTOCK" train mlp.yaml --set numerics.libraries=required
train required mlp.yaml --set numerics.libraries=required
[ "$(hash required.json)" = "$(hash mlp.float32.json)" ] || die "other bits where libraries are required"
FAKE_CUDA=blas_fails=15 train fallen mlp.yaml --set numerics.libraries=none
