# A trained model behind the Open Inference Protocol: the bits of `predict` over HTTP and gRPC, from one device and
# from four that each hold a part; what is wrong is refused by the right code; new parameters come without a restart;
# a lost worker is not noticed; too many requests are shed.
. tests/end_to_end/serve.sh

own=', host: localhost, kind: reference'
kind=', kind: reference'
any=0:1,3:7,8:40 whole=0:16,16:32 # any rows, where each is computed by itself; else batches as predictions have them
job one "{name: a, threads: 1$kind}"
penstock train -q one.yaml
penstock predict -q one.yaml -o outputs.npy --batch 16

# ---- the protocol, over one device and over four
serve one
client check "$http" "$grpc" net inputs.npy outputs.npy $any || die "one device: $(cat one.log)"
finish one

# ---- the kernels of `cpu`, which may take rows in other places otherwise
job cpu '{name: a, threads: 2}'
penstock predict -q cpu.yaml -o cpu.npy --batch 16
serve cpu
client check "$http" "$grpc" net inputs.npy cpu.npy $whole || die "cpu: $(cat cpu.log)"
finish cpu

job four "{name: a, threads: 1$kind}, {name: b, threads: 1$own}, {name: c, threads: 1$own}, {name: d, threads: 1$own}"
serve four
client check "$http" "$grpc" net inputs.npy outputs.npy $any || die "four devices: $(cat four.log)"

# ---- a worker that is lost: requests wait, and have the same bits
client rows "$http" net inputs.npy outputs.npy 6 >sent &
sender=$!
sleep 1
kill -9 "$(pgrep -P "$server" -f ' worker ' | head -n 1)"
wait "$sender" || die "a worker was lost: $(cat four.log)"
[ "$(cat sent)" -gt 5 ] || die "only $(cat sent) requests: $(cat four.log)"
grep -q 'started again' four.log || die "nobody was lost: $(cat four.log)"

# ---- new parameters, without a restart; a file that is wrong changes nothing
cp run/parameters.safetensors first.safetensors
penstock train -q --overwrite --steps 9 four.yaml
penstock predict -q one.yaml -o again.npy --batch 16
! cmp -s outputs.npy again.npy || die 'the second training changed nothing'
kill -HUP "$server"
for ((i = 0; i < 100; i++)); do
    ! grep -q 'serves the parameters' four.log || break
    sleep 0.1
done
client check "$http" "$grpc" net inputs.npy again.npy $any || die "new parameters: $(cat four.log)"
echo nothing >run/parameters.safetensors
kill -HUP "$server"
for ((i = 0; i < 100; i++)); do
    ! grep -q 'the parameters stay' four.log || break
    sleep 0.1
done
client check "$http" "$grpc" net inputs.npy again.npy $any || die "wrong parameters: $(cat four.log)"
finish four
cp first.safetensors run/parameters.safetensors

# ---- batches of two sizes: few rows do not take as long as many, and have the bits of a prediction of their size
job small "{name: a, threads: 1$kind}, {name: b, threads: 1$own}" 'serve: {name: net, max_batch: 16, small_batch: 3, max_bytes: 1MiB}'
serve small
client check "$http" "$grpc" net inputs.npy outputs.npy $any || die "two sizes: $(cat small.log)"
finish small
job small '{name: a, threads: 1}' 'serve: {name: net, max_batch: 16, small_batch: 3, max_bytes: 1MiB}'
penstock predict -q small.yaml -o three.npy --batch 3
serve small
client check "$http" "$grpc" net inputs.npy three.npy 0:3,3:3 || die "small batches: $(cat small.log)"
client check "$http" "$grpc" net inputs.npy cpu.npy $whole || die "whole batches: $(cat small.log)"
finish small
job small '{name: a, threads: 1}' 'serve: {max_batch: 16, small_batch: 16}'
fails 3 'serve.small_batch: found 16, expected less than the 16 rows of a whole batch' \
    "$PENSTOCK" serve small.yaml --grpc 127.0.0.1:0

# ---- too many requests are shed, and the others answered
job slow "{name: a, threads: 1$kind}" 'serve: {name: net, max_batch: 16, max_wait: 200 ms, queue: 4, timeout: 5 s}'
serve slow
client idle "$http" 100 || die "idle connections: $(cat slow.log)" # more than calls may be open
client load "$http" net inputs.npy 300 2 >load || die "load: $(cat slow.log)"
check 'd["outcomes"].get("200", 0) >= 20 and d["outcomes"].get("429", 0) >= 20 and d["p99"] < 5' load
check 'set(d["outcomes"]) <= {"200", "429", "refused"}' load
finish slow
job late "{name: a, threads: 1$kind}" 'serve: {name: net, max_batch: 16, max_wait: 2 s, timeout: 300 ms}'
serve late
client load "$http" net inputs.npy 2 1 >load || die "late: $(cat late.log)"
check 'd["outcomes"] == {"504": 2}' load
finish late

# ---- the end: what was taken is answered
job ending "{name: a, threads: 1$kind}" 'serve: {name: net, max_batch: 16, max_wait: 20 s}'
serve ending
client load "$http" net inputs.npy 1 1 >load &
sender=$!
for ((i = 0; i < 100; i++)); do
    ! /usr/bin/python3 -c 'import sys, urllib.request as u
sys.exit(b"penstock_queued_requests 1\n" not in u.urlopen(sys.argv[1]).read())' "http://127.0.0.1:$http/metrics" || break
    sleep 0.05
done
finish ending
wait "$sender" || die "the last request: $(cat ending.log)"
check 'd["outcomes"] == {"200": 1}' load

# ---- who may ask
echo 'a-token-of-32-bytes-that-is-secret' >token
job closed "{name: a, threads: 1$kind}" 'serve: {name: net, max_batch: 16, max_bytes: 1MiB, token: token}'
serve closed
client check "$http" "$grpc" net inputs.npy outputs.npy $any "$(cat token)" || die "token: $(cat closed.log)"
for door in "http ${http##*:}" "grpc ${grpc##*:}"; do # a second one finds the port taken, before it reads a model
    fails 2 "cannot listen at 127.0.0.1:${door#* }: the port is taken; stop what listens there, or choose another port" \
        "$PENSTOCK" serve closed.yaml "--${door% *}" "127.0.0.1:${door#* }"
done
finish closed
fails 2 'can be reached from other machines: give the job serve: .token: FILE. or tls' "$PENSTOCK" serve one.yaml --grpc 0.0.0.0:0
fails 2 'expected --grpc HOST:PORT, --http HOST:PORT or --https HOST:PORT' "$PENSTOCK" serve one.yaml

# ---- all workers are gone for good: the server ends, and says so
job stopped "{name: a, threads: 1$own}, {name: b, threads: 1$own}" 'recovery: {on_loss: stop}'
serve stopped
kill -9 "$(pgrep -P "$server" -f ' worker ' | head -n 1)"
for ((i = 0; i < 100; i++)); do # nobody asks
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
finish stopped 6
grep -q 'error: lost worker [23] ' stopped.log || die "it does not say who: $(cat stopped.log)"

# ---- likewise where the job waits for a worker, and none comes within `grace`
mkfifo pipe
"$PENSTOCK" worker --listen 127.0.0.1:0 --store "$work/kept" --announce 9 9>pipe 2>worker.log &
worker=$!
read -r port <pipe
job waits "{name: a, threads: 1$kind}, {name: b, threads: 1$kind, host: \"127.0.0.1:$port\"}" 'recovery: {on_loss: wait, grace: 1 s}'
serve waits
kill -9 "$worker"
for ((i = 0; i < 150; i++)); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
finish waits 6
[ "$(wc -l <waits.log)" -lt 40 ] || die "too many words: $(head -n 40 waits.log)"
