# Trainings whose convolutions go to cuDNN, a fake one, on an emulated GPU: losses are those of PyTorch, bits are the same
# in two runs, with late commands, and with CUDA graphs and without. What is there and what goes wrong is told.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/precision_jobs.sh"

build=${PENSTOCK%/penstock}/tests/cuda
mkdir thirteen
cp "$build/libraries/libcublas.so.12" thirteen/libcublas.so.13 # for drivers of CUDA 13, or the machine's would be found
export LD_LIBRARY_PATH=$build/libraries:$build:$PWD/thirteen

penstock doctor >doctor
grep -q '^cuDNN  *9.5.1, begins, for convolutions of GPUs$' doctor || die "doctor does not find it: $(cat doctor)"
penstock doctor --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["cudnn"].startswith("9.5.1")'
LD_LIBRARY_PATH=$build penstock doctor >doctor
grep -q '^cuDNN  *none, own kernels make convolutions of GPUs: libcudnn.so.9 or .8, is of a version without' doctor ||
    die "doctor does not say why: $(cat doctor)"

FAKE_CUDA=dnn_begins=1001 penstock doctor >doctor
grep -q '^cuDNN  *9.5.1, does not begin, own kernels make convolutions of GPUs: .*cuDNN of GPU 0 says CUDNN_STATUS_NOT_INITIALIZED' doctor ||
    die "doctor does not say that it does not begin: $(cat doctor)"
FAKE_CUDA=dnn_cuda=13000 penstock doctor >doctor
grep -q '^cuDNN  *none, own kernels make convolutions of GPUs: libcudnn is made for CUDA 13, the driver is of CUDA 12.4: ' doctor ||
    die "doctor takes a library for a newer CUDA: $(cat doctor)"
FAKE_CUDA='dnn_cuda=13000 driver=13000' penstock doctor | grep -q '^cuDNN  *9.5.1, ' || die "a driver of CUDA 13 does not take it"
# a GPU below 7.5, for which new ones have no kernels: version 8 is taken, or own kernels
old='driver=13000 capability=70' why='without kernels for this GPU, whose compute capability 7.0 is below 7.5: install cuDNN 9.10 for CUDA 12$'
mkdir eight
cp "$build/libraries/libcudnn.so.9" eight/libcudnn.so.8
for new in 'dnn_cuda=13000:9.5.1 for CUDA 13' 'dnn_minor=11:9.11.1 for CUDA 12'; do
    FAKE_CUDA="$old ${new%:*}" penstock doctor | grep -q "^cuDNN  *none, own kernels make convolutions of GPUs: libcudnn is ${new#*:}, $why" ||
        die "doctor does not say that ${new#*:} is not for a GPU of 7.0"
    FAKE_CUDA="$old ${new%:*}" LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$PWD/eight penstock doctor | grep -q '^cuDNN  *8[.].*, begins, for convolutions of GPUs$' ||
        die "version 8 is not taken where that is the one"
done
FAKE_CUDA="$old" penstock doctor | grep -q '^cuDNN  *9.5.1, begins, for convolutions of GPUs$' || die "9.5.1 is not taken"

# train NAME [OPTION...]: to NAME.json; sets `asked` and `run`, what the fake library counts
train() {
    local name=$1
    shift
    penstock train lenet.yaml --json "$@" >"$name.json" 2>messages || die "$name: $(cat messages)"
    read -r asked run <<<"$(sed -n 's/^fake cuDNN: \([0-9]*\) convolutions asked for, \([0-9]*\) run$/\1 \2/p' messages)"
}
export FAKE_CUDA=count=1
for precision in float32 tf32; do
    precision_job lenet $precision
    train lenet.$precision --set train.steps=4
    # from its second run on, a list is a graph: convolutions run that the host does not ask for
    [ "$asked" -gt 0 ] && [ "$run" = $((2 * asked)) ] || die "$precision: $asked convolutions, $run run"
    check 'd["arithmetic"].endswith(", cuDNN 9.5.1")' lenet.$precision.json
done
compare_losses 4e-6 lenet.float32 lenet.tf32
for settings in late=50 graphless=1; do
    FAKE_CUDA="$settings count=1" train again --set train.steps=4
    [ "$(hash again.json)" = "$(hash lenet.tf32.json)" ] || die "other bits with $settings"
    [ $settings = late=50 ] || [ "$asked" -ge "$run" ] || die "without graphs, $asked convolutions"
done

# ---- without it, and where it has nothing that gives the same bits, own kernels make them
train own --set numerics.libraries=none --set train.steps=2
[ "$run" = '' ] || [ "$run" = 0 ] || die "it ran $run convolutions without leave"
check '"cuDNN" not in d["arithmetic"]' own.json
FAKE_CUDA='dnn_none=1 count=1' train none --set train.steps=2
[ "$run" = 0 ] || die "it ran $run convolutions by an algorithm whose bits differ"
FAKE_CUDA='dnn_cuda=13000 count=1' train newer --set train.steps=2
check '"cuDNN" not in d["arithmetic"]' newer.json
mkdir other
cp "$build/libraries/libcublas.so.12" other
LD_LIBRARY_PATH=$PWD/other:$build train other --set train.steps=2
check 'd["arithmetic"].endswith(", cuBLAS 12.4.5")' other.json

# ---- what goes wrong
for where in 0 1 2 3; do # when it is launched, described, and its algorithms are asked for
    FAKE_CUDA="dnn_fails=5000 dnn_where=$where" fails 1 "device 'g': while a convolution was enqueued: cuDNN of GPU 0 says CUDNN_STATUS_EXECUTION_FAILED; .numerics: {libraries: none}. goes without it" \
        "$PENSTOCK" train lenet.yaml
done
grep -q "while running conv '" fails.err || die "the operator is not named: $(cat fails.err)"
