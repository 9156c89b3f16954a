# A model that no device holds, served by four processes that each hold a quarter: the bits of `predict` on one device
# that has all of it. A worker that is lost: the server is not ready meanwhile, whether or not somebody asks, and no
# request fails.
. tests/end_to_end/serve.sh
case $PENSTOCK in *address* | *thread*) echo 'memory is not that of the program' && exit 77 ;; esac
python3 "$top/tests/end_to_end/make_training_models.py" . wide:2048 # 128 MiB of weights
wide() { # NAME DEVICES
    cat >"$1.yaml" <<END
version: 1
model: {file: wide.onnx}
data:
  train: {format: npy, inputs: {x: wide_x.npy}, labels: wide_y.npy}
  eval: {format: npy, inputs: {x: wide_x.npy}, labels: wide_y.npy}
train: {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.001}}, batch: 16, steps: 6, seed: 3}
placement: {time_limit: 2s}
serve: {name: net, max_batch: 16, max_bytes: 1MiB}
devices: [$2]
END
}
wide whole '{name: a, threads: 1}'
wide one '{name: a, threads: 1, memory: 40MiB}'
wide quarters "$(for name in a b c d; do printf '{name: %s, threads: 1, memory: 40MiB, host: localhost}, ' "$name"; done)"
penstock predict -q whole.yaml -o outputs.npy --batch 16
fails 5 'does not fit' "$PENSTOCK" serve one.yaml --http 127.0.0.1:0

serve quarters
workers() { pgrep -P "$server" -f ' worker '; }
[ "$(workers | wc -l)" -eq 4 ] || die "$(workers | wc -l) workers: $(cat quarters.log)"
client check "$http" "$grpc" net wide_x.npy outputs.npy 0:16 || die "four quarters: $(cat quarters.log)"

# lose WORKER: one is killed, and comes back; sets `codes` to what the readiness was
lose() {
    client ready "$http" 8 >codes &
    local watcher=$!
    sleep 1
    kill -9 "$(workers | sed -n "$1p")"
    wait "$watcher" || die "readiness: $(cat quarters.log)"
    codes=$(cat codes)
}

# ---- lost while requests come: all are answered, with the same bits
client rows "$http" net wide_x.npy outputs.npy 8 16 >sent &
sender=$!
lose 2
wait "$sender" || die "a worker was lost: $(cat quarters.log)"
[ "$(cat sent)" -gt 5 ] || die "only $(cat sent) requests: $(cat quarters.log)"
[ "$codes" = '200 503 200' ] || die "readiness was $codes: $(cat quarters.log)"

# ---- lost while nobody asks: it is noticed all the same
lose 3
[ "$codes" = '200 503 200' ] || die "while nobody asked, readiness was $codes: $(cat quarters.log)"
[ "$(grep -c 'started again' quarters.log)" -eq 2 ] || die "not two were lost: $(cat quarters.log)"
client rows "$http" net wide_x.npy outputs.npy 1 16 >sent || die "after that: $(cat quarters.log)"
[ "$(workers | wc -l)" -eq 4 ] || die "$(workers | wc -l) workers in the end: $(cat quarters.log)"
finish quarters
