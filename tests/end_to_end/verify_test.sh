# verify: a job's devices beside one device, every tensor, as a table and as JSON; what differs has
# exit code 7.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_training_models.py" . branching tied

# job FILE MODEL DEVICE...
job() {
    local file=$1 model=$2 device
    shift 2
    {
        cat <<END
version: 1
model: {file: $model.onnx}
data: {train: {format: npy, inputs: {x: ${model}_x.npy}, labels: ${model}_y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 20, seed: 3}
placement: {strategy: greedy}
devices:
END
        for device; do echo "  - $device"; done
    } >"$file"
}
job three.yaml branching '{name: a, threads: 1}' '{name: b, threads: 1}' '{name: c, threads: 1}'
penstock verify three.yaml --steps 6 >table 2>messages || die "three devices: $(cat messages table)"
grep -qE '^[0-9]+ of [0-9]+ tensors equal, bit for bit, after 6 steps on 3 devices and on one$' table || die "$(cat table)"
grep -qE '^conv1.weight +216 +0 +0  equal$' table || die "$(cat table)"
[ "$(grep -c ' equal$' table)" -gt 30 ] || die "too few tensors: $(cat table)"
penstock verify three.yaml --json >found.json 2>messages || die "--json: $(cat messages)"
check 'd["schema"] == "penstock/verify/1" and d["equal"] and d["devices"] == 3' found.json
check 'd["steps"][0]["loss"] == d["steps"][0]["loss_on_one"]' found.json
check 'any(t["of"] == "optimizer" for t in d["tensors"]) and all(t["equal"] for t in d["tensors"])' found.json

job workers.yaml tied '{name: a, threads: 1, host: localhost}' '{name: b, threads: 1, host: localhost}'
penstock verify workers.yaml --steps 2 >table 2>messages || die "two workers: $(cat messages table)"

# devices of unequal threads have the same sums
job mixed.yaml branching '{name: a, threads: 1}' '{name: b, threads: 3}' '{name: c, threads: 2}'
penstock verify mixed.yaml --steps 3 >table 2>messages || die "unequal threads: $(cat messages table)"

# a library that is wrong once makes a difference, that a tolerance passes
cat >wrong.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <dnnl.h>
dnnl_status_t dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha, const float *a,
                         dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc) {
    static int calls;
    __typeof__(&dnnl_sgemm) right = (__typeof__(&dnnl_sgemm))dlsym(RTLD_NEXT, "dnnl_sgemm");
    const dnnl_status_t status = right(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) == 0) c[0] *= 1.0001f;
    return status;
}
END
cc -shared -fPIC -O1 wrong.c -o wrong.so -ldl
# verify_asan_link_order: a sanitizer wants to be loaded first
wrong() {
    LD_PRELOAD=$PWD/wrong.so ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 penstock "$@"
}
code=0
wrong verify mixed.yaml --steps 3 >table 2>messages || code=$?
[ "$code" = 7 ] || die "a wrong product: exit code $code: $(cat messages table)"
grep -q ' DIFFERS$' table || die "a wrong product: $(cat table)"
wrong verify mixed.yaml --steps 3 --tolerance 0.01 >table 2>messages || die "--tolerance: $(cat messages table)"
grep -q 'errors within the tolerance$' table || die "--tolerance: $(cat table)"

# what one device of the job holds is no limit to the one that is compared with
job small.yaml tied '{name: a, threads: 1, memory: 300KiB}' '{name: b, threads: 1, memory: 300KiB}'
penstock verify small.yaml >table 2>messages || die "small devices: $(cat messages table)"
[ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'penstock-verify-*' -newer three.yaml -user "$(id -un)" 2>/dev/null)" ] ||
    die 'a folder is left behind'
