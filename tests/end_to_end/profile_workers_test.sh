#!/usr/bin/env bash
# profile asks the workers of other machines: two here, at addresses that are not known to be of
# this machine. Their costs are kept by their hosts, and plans use them. Workers that are not there,
# are busy, or are none, are named with the reason.
. tests/end_to_end/common.sh

declare -A workers ports
trap 'kill "${workers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
start_worker() { # NUMBER
    mkfifo "pipe$1"
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>"pipe$1" 2>"worker$1.log" &
    workers[$1]=$!
    read -r "ports[$1]" <"pipe$1"
}
start_worker 1
start_worker 2
one="0.0.0.0:${ports[1]}" two="[::ffff:127.0.0.1]:${ports[2]}"

job() { # FILE HOST HOST [KEYS]
    cat >"$1" <<END
version: 1
model: {file: reference/lenet/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, epochs: 1}
devices:
  - {name: a, threads: 1, memory: 1GiB, host: "$2"}
  - {name: b, threads: 1, memory: 1GiB, host: "$3"}
  - {name: c, threads: 1, memory: 1GiB, host: "$3"}
costs: costs.yaml
${4-}
END
}
job job.yaml "$one" "$two"
penstock profile --insecure --json --operator-time 1ms job.yaml >first.json 2>messages || die "$(cat messages)"
check '[e["host"] for e in d["devices"]] == ["0.0.0.0", "[::ffff:127.0.0.1]"]' first.json
check 'all(e["measured"] == len(e["operators"]) > 20 for e in d["devices"])' first.json
check 'all(e["failed"] == e["left"] == e["kept"] == 0 and e["flops"] > 1e6 for e in d["devices"])' first.json
check 'all(o["seconds"] > 0 for e in d["devices"] for o in e["operators"])' first.json
grep -q 'wrote .*costs.yaml: [0-9]* operators, 2 rates, 0 links' messages || die "$(cat messages)"
half=$(grep -c 'host: "0.0.0.0"}' costs.yaml)
[ "$half" -gt 21 ] || die "$(cat costs.yaml)"
[ "$(grep -c 'host: "\[::ffff:127.0.0.1\]"}' costs.yaml)" = "$half" ] || die "$(cat costs.yaml)"

# what is there is kept, byte for byte, and the same workers serve again
cp costs.yaml before.yaml
penstock profile --insecure --json job.yaml >second.json 2>messages || die "$(cat messages)"
check 'all(e["measured"] == 0 and e["kept"] > 20 for e in d["devices"])' second.json
cmp costs.yaml before.yaml

# a plan takes the figures as measured, each of its host
penstock plan --json job.yaml >plan.json 2>messages || die "$(cat messages)"
check 'd["costs"]["measured"] > 20 and d["costs"]["assumed"] == d["costs"]["stated"] == 0' plan.json
used=$(json '[v["name"] for v in d["devices"] if v["nodes"] > 0]' <plan.json)
case $used in "['a']") slow='0\.0\.0\.0' ;; *) slow='\[::ffff:127\.0\.0\.1\]' ;; esac
python3 - "$slow" <<'END'
import re, sys
text = open("costs.yaml").read()
slow = re.sub(r'seconds: ([0-9.]+)([a-z]+)(, workspace: [^,]*, runs: [0-9]+, host: "' + sys.argv[1] + '")',
              lambda m: f"seconds: {float(m[1]) * 50:g}{m[2]}{m[3]}", text)
assert slow != text
open("costs.yaml", "w").write(slow)
END
penstock plan --json job.yaml >plan.json 2>messages || die "$(cat messages)"
again=$(json '[v["name"] for v in d["devices"] if v["nodes"] > 0]' <plan.json)
[ "$again" != "$used" ] || die "the plan stays on $used, which is slow now"
cp before.yaml costs.yaml

# one device alone needs its own worker only
gone='[::ffff:127.0.0.1]:1'
job gone.yaml "$one" "$gone" 'pipeline: {rendezvous_timeout: 2 s}'
penstock profile --insecure --device a --json gone.yaml >alone.json 2>messages || die "$(cat messages)"

# errors name the worker and the reason
fails 6 'not there after 2 s: worker 2 \(\[::ffff:127.0.0.1\]:1\): .*[Rr]efused' \
    "$PENSTOCK" profile --insecure --repeat gone.yaml
fails 3 "device 'a' is at '0.0.0.0:.*', on another machine, and there is no TLS" "$PENSTOCK" profile job.yaml
python3 - >port <<'END' &
import socket, sys, time
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
print(server.getsockname()[1], flush=True)
while True:
    peer, _ = server.accept()
    peer.sendall(b"220 mail\r\n" * 100)
    time.sleep(0.1)
    peer.close()
END
workers[3]=$!
until [ -s port ]; do sleep 0.05; done
job mail.yaml "$one" "[::ffff:127.0.0.1]:$(cat port)" 'pipeline: {rendezvous_timeout: 2 s}'
fails 6 "not there after 2 s: worker 2 \(.*:$(cat port)\): " "$PENSTOCK" profile --insecure --repeat mail.yaml

# a worker of another build is refused
name=$(grep -aoE "$("$PENSTOCK" --version | cut -d' ' -f2)\\+[0-9a-f]{8}" "$PENSTOCK" | head -1)
[ -n "$name" ] || die 'the command does not say which build it is'
sed "s/$name/${name%+*}+00000000/" "$PENSTOCK" >another
chmod +x another
mine=$PENSTOCK
PENSTOCK=$work/another start_worker 4
PENSTOCK=$mine
job mixed.yaml "$one" "[::ffff:127.0.0.1]:${ports[4]}"
fails 6 "worker 2 runs build '${name%+*}\+00000000[^']*', the coordinator '${name%+*}\+" \
    "$PENSTOCK" profile --insecure --repeat mixed.yaml

# a worker that dies while it measures
penstock profile --insecure --repeat --operator-time 2s job.yaml >out 2>messages &
profile=$!
sleep 1
kill -9 "${workers[1]}"
code=0
wait "$profile" || code=$?
[ "$code" = 6 ] || die "exit code $code: $(cat messages)"
grep -q "worker 1 ($one)" messages || die "$(cat messages)"
