# Training over workers that show each other certificates: threads and processes of this machine and
# a worker, in any order; and what is said when certificates do not fit.
. tests/end_to_end/common.sh
sh "$top/tests/support/make_certificates.sh" tls || die "certificates: $(cat tls/make_certificates.log)"

start_worker() { # NAME [OPTION...]: sets `started` and `port`
    local name=$1
    shift
    mkfifo "$name.pipe"
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 "$@" 9>"$name.pipe" 2>"$name.log" &
    started=$!
    read -r port <"$name.pipe"
}

# job NAME DEVICES CERTIFICATES: three devices
job() {
    cat >"$1.yaml" <<EOF
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, epochs: 2}
devices: [$2]
placement: {strategy: round_robin}
pipeline: {rendezvous_timeout: 5s}
$3
EOF
}

mine='tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/key.pem}'
start_worker first --tls tls/ca.pem,tls/cert.pem,tls/key.pem
first=$started first_port=$port
there=", memory: 1GiB, host: \"127.0.0.1:$port\""
job threads '{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}' ''
job mixed "{name: a, threads: 1}, {name: b, threads: 1, host: localhost}, {name: c, threads: 1$there}" "$mine"
job turned "{name: a, threads: 1$there}, {name: b, threads: 1, host: localhost}, {name: c, threads: 1}" "$mine"
job none "{name: a, threads: 1$there}, {name: b, threads: 1}, {name: c, threads: 1$there}" ''
job strange "{name: a, threads: 1$there}, {name: b, threads: 1$there}, {name: c, threads: 1$there}" \
    'tls: {ca: tls/other_ca.pem, cert: tls/other_cert.pem, key: tls/other_key.pem}'
expected=$(train_losses threads.yaml)
for name in mixed turned; do
    found=$(timeout 60 "$PENSTOCK" train --json "$name.yaml" 2>messages |
        json '" ".join(repr(s["loss"]) for s in d["steps"])') || die "$name: $(cat messages)"
    [ "$found" = "$expected" ] || die "$name: other losses than those of threads"
done

job unread "{name: a, threads: 1$there}, {name: b, threads: 1}" 'tls: {ca: tls/none.pem, cert: tls/cert.pem, key: tls/key.pem}'
fails 3 "unread.yaml:8:11: error: cannot open '.*tls/none.pem'" "$PENSTOCK" train -q unread.yaml
echo '-----BEGIN CERTIFICATE-----' >tls/broken.pem
job broken "{name: a, threads: 1}, {name: b, threads: 1, host: localhost}" 'tls: {ca: tls/ca.pem, cert: tls/broken.pem, key: tls/key.pem}'
fails 3 "^broken.yaml:8:.*tls/broken.pem: tls: cert: the file holds no certificate in PEM form" "$PENSTOCK" train -q broken.yaml
[ "$(grep -c error: fails.err)" = 1 ] || die "broken.pem: $(cat fails.err)"
fails 3 "^error: tls/broken.pem: tls: cert: the file holds no certificate" "$PENSTOCK" worker --listen 127.0.0.1:0 --tls tls/ca.pem,tls/broken.pem,tls/key.pem
job unlike "{name: a, threads: 1}, {name: b, threads: 1$there}" 'tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/other_key.pem}'
fails 3 "unlike.yaml:8:.*tls/other_key.pem: tls: key: it is not the key of the certificate" "$PENSTOCK" train -q unlike.yaml
# what this machine's own authority refuses is said at once, also by doctor, and not waited for
job over "{name: a, threads: 1}, {name: b, threads: 1$there}" 'tls: {ca: tls/ca.pem, cert: tls/expired.pem, key: tls/key.pem}'
fails 3 "^over.yaml:8:.*tls: the certificate '.*tls/expired.pem' has expired, on Feb  1 00:00:00 2020 GMT$" "$PENSTOCK" train -q over.yaml
job foreign "{name: a, threads: 1}, {name: b, threads: 1$there}" 'tls: {ca: tls/ca.pem, cert: tls/other_cert.pem, key: tls/other_key.pem}'
fails 3 "^foreign.yaml:8:.*tls: the certificate '.*tls/other_cert.pem' is not signed by '.*tls/ca.pem'$" "$PENSTOCK" train -q foreign.yaml
for name in over foreign; do
    doctor_code=0
    penstock doctor "$name.yaml" >doctor.txt 2>doctor.err || doctor_code=$?
    [ $doctor_code = 3 ] && grep -qE "^certificates +tls: the certificate .*(has expired|is not signed)" doctor.txt ||
        die "doctor $name.yaml: $doctor_code, $(cat doctor.txt doctor.err)"
done
# a worker without a port
job portless "{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: 127.0.0.1}" "$mine"
sed -i 's/host: 127.0.0.1}/host: 10.0.0.9}/' portless.yaml
fails 3 "^portless.yaml:5:[0-9]+: error: address '10.0.0.9': expected host:port.*" "$PENSTOCK" train -q portless.yaml
grep -q "for the worker of device 'b'" fails.err || die "portless: $(cat fails.err)"
doctor_code=0
penstock doctor portless.yaml >doctor.txt || doctor_code=$?
[ $doctor_code = 6 ] && grep -qE "^host +10.0.0.9 does not answer" doctor.txt && grep -qE "^ +expected HOST:PORT" doctor.txt ||
    die "doctor portless.yaml: $doctor_code, $(cat doctor.txt)"
# why a worker cannot listen
fails 2 "^error: cannot listen at 127.0.0.1:$first_port: the port is taken; stop what listens there, or choose another port" "$PENSTOCK" worker --listen "127.0.0.1:$first_port"
fails 2 "^error: cannot listen at 192.0.2.1:7070: the address is not this machine's" "$PENSTOCK" worker --listen 192.0.2.1:7070 --insecure
job unlisted "{name: a, threads: 1}, {name: b, threads: 1$there}" 'tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/key.pem, crl: none.pem}'
fails 3 "^unlisted.yaml:8:.*cannot open '.*none.pem'.*" "$PENSTOCK" train -q unlisted.yaml
grep -q "while reading the file 'tls: crl'" fails.err || die "unlisted: $(cat fails.err)"
job listless "{name: a, threads: 1}, {name: b, threads: 1$there}" 'tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/key.pem, crl: tls/cert.pem}'
fails 3 "^listless.yaml:8:.*tls/cert.pem: tls: crl: the file holds no list of revoked certificates" "$PENSTOCK" train -q listless.yaml
doctor_code=0
penstock doctor unlisted.yaml >doctor.txt || doctor_code=$?
[ $doctor_code = 3 ] && grep -q "^certificates .*cannot open '.*none.pem'" doctor.txt || die "doctor unlisted.yaml: $doctor_code, $(cat doctor.txt)"

# names: this machine's certificate is for coordinator.example, the workers' for localhost
start_worker second --tls tls/ca.pem,tls/cert.pem,tls/key.pem --allow-coordinator coordinator.example --allow-worker localhost
second=$started
there=", memory: 1GiB, host: \"127.0.0.1:$port\""
devices="{name: a, threads: 1}, {name: b, threads: 1, host: localhost}, {name: c, threads: 1$there}"
job named "$devices" 'tls: {ca: tls/ca.pem, cert: tls/coordinator.pem, key: tls/key.pem, coordinators: coordinator.example, workers: [there.example, localhost]}'
job unnamed "$devices" "$mine"
job elsewhere "$devices" 'tls: {ca: tls/ca.pem, cert: tls/coordinator.pem, key: tls/key.pem, workers: [there.example]}'
found=$(timeout 60 "$PENSTOCK" train --json named.yaml 2>messages |
    json '" ".join(repr(s["loss"]) for s in d["steps"])') || die "named: $(cat messages)"
[ "$found" = "$expected" ] || die "named: other losses than those of threads"
fails 6 'its certificate is for localhost, 127.0.0.1, which may not be a coordinator here' "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s unnamed.yaml
fails 6 'which may not be a worker here' "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s elsewhere.yaml
# each link, taken or refused, is a line of the worker's log: who, from where, with which certificate, for which job
grep -qE "^took a link from 127\.0\.0\.1:[0-9]+ \(coordinator, certificate for localhost 127\.0\.0\.1 coordinator\.example, job '[^']+', generation 1\)$" second.log ||
    die "the second worker names no link that it took: $(cat second.log)"
grep -qE "refused a link from 127\.0\.0\.1:[0-9]+ \(coordinator, certificate for localhost 127\.0\.0\.1, job '[^']+', generation 1\): its certificate is for" second.log ||
    die "the second worker does not name whom it refused: $(cat second.log)"
kill "$second"
wait "$second" || die "the second worker's exit code: $?"

# a key that everybody can read is warned of
cp tls/key.pem tls/read_by_all.pem
chmod 644 tls/read_by_all.pem
start_worker third --tls tls/ca.pem,tls/cert.pem,tls/read_by_all.pem
kill "$started"
wait "$started" || die "the third worker's exit code: $?"
grep -q "warning: tls: the key 'tls/read_by_all.pem' can be read by everybody on this machine (mode 0644)" third.log ||
    die "nothing is said of the key: $(cat third.log)"
! grep -q 'can be read' first.log second.log || die "of another key: $(cat first.log second.log)"

# certificates that were taken back: lists and certificates are read again when they change, without a start, and each
# link is a line of the log that is kept
cp tls/none_crl.pem list.pem
cp tls/coordinator.pem mine.pem
start_worker fourth --tls tls/ca.pem,tls/cert.pem,tls/key.pem --crl list.pem --allow-coordinator coordinator.example --audit-log audit.log
fourth=$started
there=", memory: 1GiB, host: \"127.0.0.1:$port\""
devices="{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1$there}"
job taken "$devices" 'tls: {ca: tls/ca.pem, cert: mine.pem, key: tls/key.pem, crl: list.pem}'
cp tls/revoked.pem mine.pem
[ "$(train_losses taken.yaml)" = "$expected" ] || die "taken: other losses"
cp tls/ca_crl.pem list.pem
serial=$(openssl x509 -in tls/revoked.pem -noout -serial | sed 's/.*=//')
fails 6 "its certificate, serial $serial, is revoked \('tls: crl'\)" "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s taken.yaml
cp tls/coordinator.pem mine.pem # the new one
[ "$(train_losses taken.yaml)" = "$expected" ] || die "taken again: other losses"
# a worker whose certificate was taken back is refused by the coordinator
start_worker fifth --tls tls/ca.pem,tls/revoked.pem,tls/key.pem
job given "{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: \"127.0.0.1:$port\"}, {name: c, threads: 1}" \
    'tls: {ca: tls/ca.pem, cert: mine.pem, key: tls/key.pem, crl: list.pem}'
fails 6 "^error: not there after .*worker 2 [^:]+:$port\): its certificate, serial $serial, is revoked" "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s given.yaml
# doctor JOB CODE PATTERN: what it says of that beforehand
doctor() {
    local code=0
    penstock doctor "$1" >doctor.txt || code=$?
    [ "$code" = "$2" ] || die "doctor $1: exit code $code: $(cat doctor.txt)"
    grep -qE "$3" doctor.txt || die "doctor $1: $(cat doctor.txt)"
}
doctor given.yaml 6 "^ +127\.0\.0\.1:$port does not take links: its certificate, serial $serial, is revoked"
penstock doctor --json given.yaml >doctor.json || [ $? = 6 ] || die "doctor: $(cat doctor.json)"
check "d['job']['hosts'][0]['answers'] and 'is revoked' in d['job']['hosts'][0]['trouble']" doctor.json
cp tls/none_crl.pem list.pem
doctor given.yaml 0 "^certificates .* fits its key"
cp tls/old_crl.pem list.pem
doctor given.yaml 3 "^certificates .*list\.pem' \('tls: crl'\) has expired"
fails 6 "^error: not there after .*worker 2 [^:]+:$port\): the list of revoked certificates 'list\.pem' \('tls: crl'\) has expired" "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s given.yaml
cp tls/ca_crl.pem list.pem
cp tls/revoked.pem mine.pem
doctor given.yaml 3 "^certificates .*serial $serial, is revoked"
cp tls/coordinator.pem mine.pem
kill "$started" "$fourth"
wait "$started" "$fourth" || die "the fifth worker's exit code: $?"
python3 - "$serial" <<'END' || die "audit: $(cat audit.log)"
import json, sys
lines = [json.loads(line) for line in open("audit.log")]
assert all(line["schema"] == "penstock/link-audit/1" and line["time"].endswith("Z") for line in lines)
taken = [line for line in lines if line["result"] == "taken" and line["who"] == "coordinator"]
refused = [line for line in lines if line["result"] == "refused" and "revoked" in line["reason"]]
assert len(taken) == 2 and taken[0]["certificate"]["serial"] == sys.argv[1] != taken[1]["certificate"]["serial"]
assert taken[0]["certificate"]["names"] == "localhost 127.0.0.1 coordinator.example"
assert len(taken[0]["certificate"]["sha256"]) == 64 and taken[0]["job"] and taken[0]["generation"] == 1
assert taken[0]["address"].startswith("127.0.0.1:")
assert refused and all(line["certificate"]["serial"] == sys.argv[1] for line in refused)
END
fails 2 "none.pem" "$PENSTOCK" worker --listen 127.0.0.1:0 --tls tls/ca.pem,tls/cert.pem,tls/key.pem --crl none.pem

job open '{name: a, threads: 1}, {name: b, threads: 1, memory: 1GiB, host: "192.0.2.1:7070"}' ''
fails 3 "open.yaml:5:.*device 'b' is at '192.0.2.1:7070', .* no TLS" "$PENSTOCK" train -q open.yaml
fails 6 "127\.0\.0\.1:$first_port" "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s none.yaml
fails 6 "127\.0\.0\.1:$first_port" "$PENSTOCK" train -q --set pipeline.rendezvous_timeout=3s strange.yaml
grep -qi 'refused\|handshake\|certificate' first.log || die "the worker says nothing: $(cat first.log)"
found=$(timeout 60 "$PENSTOCK" train --json mixed.yaml 2>messages |
    json '" ".join(repr(s["loss"]) for s in d["steps"])') || die "afterwards: $(cat messages)"
[ "$found" = "$expected" ] || die "afterwards: other losses than those of threads"
kill "$first"
wait "$first" || die "the worker's exit code: $?"
