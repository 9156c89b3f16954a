# Certificates that the command makes: what they are, what is refused, that a training over them has
# the losses of threads; and what is said of workers that do not come, once, while they are waited for.
. tests/end_to_end/common.sh

# ---- what is made
penstock certs certs --hosts 127.0.0.2,127.0.0.3,there.example,localhost,fd00::1 >made
for name in ca coordinator 127.0.0.2 127.0.0.3 there.example localhost fd00--1; do
    [ "$(stat -c %a "certs/$name.key")" = 600 ] || die "certs/$name.key: mode $(stat -c %a "certs/$name.key")"
    openssl verify -x509_strict -CAfile certs/ca.pem "certs/$name.pem" >verified 2>&1 || die "$name: $(cat verified)"
    cmp <(openssl x509 -in "certs/$name.pem" -noout -pubkey) <(openssl pkey -in "certs/$name.key" -pubout)
done
[ "$(find certs -type f | wc -l)" = 14 ] || die "other files: $(ls certs)"
for purpose in sslclient sslserver; do
    openssl verify -purpose $purpose -CAfile certs/ca.pem certs/coordinator.pem >/dev/null || die "$purpose"
done
openssl verify -verify_ip fd00::1 -CAfile certs/ca.pem certs/fd00--1.pem >/dev/null || die "fd00::1"
openssl verify -verify_ip 127.0.0.1 -CAfile certs/ca.pem certs/localhost.pem >/dev/null || die "localhost"
openssl verify -verify_hostname there.example -CAfile certs/ca.pem certs/there.example.pem >/dev/null || die "there.example"
openssl verify -verify_hostname other.example -CAfile certs/ca.pem certs/there.example.pem >/dev/null 2>&1 && die "other.example"
openssl x509 -in certs/there.example.pem -noout -checkend $((364 * 86400)) >/dev/null || die "it ends too early"
openssl x509 -in certs/there.example.pem -noout -checkend $((366 * 86400)) >/dev/null && die "it ends too late"
grep -q '^  tls: {ca: certs/ca.pem, cert: certs/coordinator.pem, key: certs/coordinator.key}$' made || die "$(cat made)"
grep -q '^  penstock worker --listen 0.0.0.0:7070 --tls ca.pem,127.0.0.2.pem,127.0.0.2.key$' made || die "$(cat made)"

# ---- another host, later; nothing is replaced
sha256sum certs/* >before
penstock certs certs --hosts late.example --days 30 --json >late.json
check '[c["name"] for c in d["certificates"]] == ["late.example"] and not d["is_authority_new"]' late.json
openssl verify -CAfile certs/ca.pem certs/late.example.pem >/dev/null
openssl x509 -in certs/late.example.pem -noout -checkend $((31 * 86400)) >/dev/null && die "late.example ends too late"
fails 2 '^error: found certs/127.0.0.3.pem, which is there already' "$PENSTOCK" certs certs --hosts new.example,127.0.0.3
[ ! -e certs/new.example.pem ] || die "it made one of two"
sha256sum --quiet -c before || die "a file was changed"
penstock certs -q short --hosts a.example --days 5000
fails 2 'found 36500 days, but the authority short/ca.pem ends on .*, expected at most (4999|5000)' \
    "$PENSTOCK" certs short --hosts b.example --days 36500

# ---- ranges, as jobs have them
penstock certs -q ranges --hosts "n[09-11].example,other"
[ "$(cd ranges && echo n*.pem other.pem)" = "n09.example.pem n10.example.pem n11.example.pem other.pem" ] || die "$(ls ranges)"
openssl verify -verify_hostname n10.example -CAfile ranges/ca.pem ranges/n10.example.pem >/dev/null || die "n10.example"
fails 2 'found the host "n2" twice' "$PENSTOCK" certs none --hosts "n2,n[1-3]"
fails 2 'found 4097 hosts, expected at most 4096' "$PENSTOCK" certs none --hosts "a,n[1-4096]"
fails 2 'n\[3-1\]' "$PENSTOCK" certs none --hosts "n[3-1]"

# ---- mistakes
fails 2 'found the host "127.0.0.1:7070", expected a name or an address without a port' "$PENSTOCK" certs none --hosts 127.0.0.1:7070
fails 2 'found the host "a b", expected a name or an address' "$PENSTOCK" certs none --hosts "a b"
fails 2 'found the host "x,DNS:y"|found the host "DNS:y"' "$PENSTOCK" certs none --hosts x,DNS:y
fails 2 'found the host "../x", expected a name' "$PENSTOCK" certs none --hosts ../x
fails 2 'found the host "a" twice' "$PENSTOCK" certs none --hosts a,b,a
fails 2 'found the host "ca", whose files are the authority.s' "$PENSTOCK" certs none --hosts ca
fails 2 'found the host "coordinator", whose files are those of this machine' "$PENSTOCK" certs none --hosts coordinator
fails 2 '--hosts: expected names, with a comma between two' "$PENSTOCK" certs none --hosts a,,b
fails 2 'hosts' "$PENSTOCK" certs none
fails 2 'days' "$PENSTOCK" certs none --hosts a --days 0
[ ! -e none ] || die "a folder is left"
cp -r certs half
rm half/ca.key
fails 2 "cannot open 'half/ca.key'.*" "$PENSTOCK" certs half --hosts x.example
cp short/ca.key half/ca.key
fails 2 'half/ca.key: .*it is not the key of the certificate' "$PENSTOCK" certs half --hosts x.example
cp certs/127.0.0.2.pem half/ca.pem
cp certs/127.0.0.2.key half/ca.key
fails 2 'half/ca.pem: found a certificate that may not sign others' "$PENSTOCK" certs half --hosts x.example
fails 2 "cannot create the folder 'made'" "$PENSTOCK" certs made --hosts x.example
[ -z "$(find half -name 'x.example*')" ] || die "files of what failed are left"

# ---- a training, on "hosts" of this machine
start_worker() { # NAME ADDRESS [OPTION...]: sets `port`, adds to `started`
    local name=$1 address=$2
    shift 2
    mkfifo "$name.pipe"
    "$PENSTOCK" worker --listen "$address:0" --announce 9 "$@" 9>"$name.pipe" 2>"$name.log" &
    started+=($!)
    read -r port <"$name.pipe"
}
started=()
trap 'kill -9 "${started[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
job() { # NAME DEVICES [LINE]
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, epochs: 1}
devices: [{name: here, threads: 1}, $2]
placement: {strategy: round_robin}
pipeline: {rendezvous_timeout: 7s}
${3:-}
END
}
at() { # NAME ADDRESS: a device
    printf '{name: %s, threads: 1, memory: 1GiB, host: "%s"}' "$1" "$2"
}
start_worker two 127.0.0.2 --tls certs/ca.pem,certs/127.0.0.2.pem,certs/127.0.0.2.key --allow-coordinator coordinator
two=127.0.0.2:$port
start_worker three 127.0.0.3 --tls certs/ca.pem,certs/127.0.0.3.pem,certs/127.0.0.3.key
three=127.0.0.3:$port
mine='tls: {ca: certs/ca.pem, cert: certs/coordinator.pem, key: certs/coordinator.key}'
job threads '{name: b, threads: 1}, {name: c, threads: 1}, {name: d, threads: 1}'
job hosts "{name: own, threads: 1, host: localhost}, $(at c "$two"), $(at d "$three")" "$mine"
[ "$(train_losses hosts.yaml)" = "$(train_losses threads.yaml)" ] || die "other losses than those of threads"

# the doctor says beforehand what is there
penstock doctor hosts.yaml >doctor.txt 2>&1 || die "doctor: $(cat doctor.txt)"
for line in "worker        .*/penstock .this program." "certificates  .*coordinator.pem, of .*ca.pem, fits its key .*coordinator.key" \
    "host          $two answers" "host          $three answers"; do
    grep -q "^$line$" doctor.txt || die "doctor lacks '$line': $(cat doctor.txt)"
done
job away "$(at c "$two"), $(at d 127.0.0.3:1)" "$mine"
code=0
penstock doctor --json away.yaml >doctor.json || code=$?
[ "$code" = 6 ] || die "doctor: exit code $code"
check '[h["answers"] for h in d["job"]["hosts"]] == [True, False] and d["job"]["has_certificates"]' doctor.json
check '[h.get("trouble", "")[:19] for h in d["job"]["hosts"]] == ["", "connection refused:"]' doctor.json
job unlike "$(at c "$two")" 'tls: {ca: certs/ca.pem, cert: certs/coordinator.pem, key: certs/localhost.key}'
code=0
penstock doctor unlike.yaml >doctor.txt 2>&1 || code=$?
[ "$code" = 3 ] && grep -q '^certificates  .*it is not the key of the certificate' doctor.txt || die "doctor: $code, $(cat doctor.txt)"

# ---- who does not come, and why: each in its way, said once after 5 s, and at the end
sh "$top/tests/support/make_certificates.sh" tls || die "certificates: $(cat tls/make_certificates.log)"
start_worker expired 127.0.0.2 --tls tls/ca.pem,tls/expired.pem,tls/key.pem
expired=127.0.0.2:$port
start_worker elsewhere 127.0.0.3 --tls tls/ca.pem,tls/elsewhere.pem,tls/key.pem
elsewhere=127.0.0.3:$port
start_worker frozen 127.0.0.4 --tls tls/ca.pem,tls/cert.pem,tls/key.pem
frozen=127.0.0.4:$port
kill -STOP "${started[-1]}"
start_worker bare 127.0.0.5
bare=127.0.0.5:$port
job late "$(at b "$two"), $(at c "$expired"), $(at d "$elsewhere"), $(at e "$frozen"), $(at f "$bare"), $(at g 127.0.0.6:1)" \
    'tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/key.pem}'
# a mixture with a process that is started here waits as long, and says it once, too
job mixed "{name: own, threads: 1, host: localhost}, $(at c 127.0.0.6:1)" "$mine
recovery: {on_loss: stop}"
"$PENSTOCK" train -q --save mixed.safetensors mixed.yaml 2>mixed.err &
mixed=$!
fails 6 '^error: not there after [0-9]+ s: ' "$PENSTOCK" train -q --save late.safetensors late.yaml
other="TLS: the peer's certificate is not of the authority 'tls: ca', or has expired"
for line in 'warning: still waiting, for up to [0-9] s more, for ' 'error: not there after [0-9]* s: '; do
    [ "$(grep -c "^$line" fails.err)" = 1 ] || die "not once: '$line': $(cat fails.err)"
    grep "^$line" fails.err >line
    for reason in "$two): $other" "$expired): $other" "$elsewhere): TLS: the peer's certificate is for another host" \
        "$bare): TLS: the peer seems to speak without TLS" "127.0.0.6:1): connection refused"; do
        grep -qF "$reason" line || die "lacks '$reason': $(cat line)"
    done
    grep -qE "$frozen\): (no answer|TLS: the peer did not finish the handshake)" line || die "lacks the frozen one: $(cat line)"
done
grep -q "tls: the certificate 'tls/expired.pem' has expired" expired.log || die "expired: $(cat expired.log)"
kill -CONT "${started[4]}"
# how to start a worker is only told where none runs
grep '^error' fails.err | grep -qF '`penstock worker --listen HOST:PORT` starts one' || die "nothing of a start: $(cat fails.err)"
job stale "$(at c "$expired")" 'tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/key.pem}'
fails 6 '^error: not there after [0-9]+ s: ' "$PENSTOCK" train -q --save stale.safetensors stale.yaml
! grep -q 'starts one' fails.err || die "of one that answers: $(cat fails.err)"

code=0
wait "$mixed" || code=$?
[ "$code" = 6 ] && grep -qE '^error: not there after [0-9]+ s: ' mixed.err || die "mixed: exit code $code: $(cat mixed.err)"
[ "$(grep -c 'connection refused' mixed.err)" = 2 ] || die "mixed: not once: $(cat mixed.err)"
kill "${started[@]}"
wait "${started[@]}" || die "a worker's exit code: $?"
