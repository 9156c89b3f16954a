# train --tensorboard and --metrics: the files, decoded here, have the numbers of the log; one that
# goes on adds a file; a folder that is gone and a full disk are no end of a training.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/followed_job.sh"

cat >follow.py <<'END'
import json, os, re, struct

def crc32c(data):  # bit by bit, as the polynomial says
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

assert crc32c(b"123456789") == 0xE3069283

def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                assert kind == 2, kind
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        assert at <= len(data)
        yield key >> 3, value

# Of a file: events as (step, {tag: value}), with "version" and "start" among the tags.
def events(path):
    data, at, found = open(path, "rb").read(), 0, []
    while at < len(data):
        size, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at:at + 8]), (path, at)
        body = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body), (path, at)
        at += 16 + size
        step, values = 0, {}
        for number, value in fields(body):
            if number == 1:
                assert struct.unpack("<d", value)[0] > 1e9
            elif number == 2:
                step = value
            elif number == 3:
                values["version"] = value.decode()
            elif number == 7:
                values["start"] = dict(fields(value))[1]
            else:
                assert number == 5, number
                for _, scalar in fields(value):
                    scalar = dict(fields(scalar))
                    values[scalar[1].decode()] = struct.unpack("<f", scalar[2])[0]
        found.append((step, values))
    return found

def files(folder):
    return [events(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]

def single(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]

# Of a file for Prometheus: each name once, with a HELP and a TYPE before it.
def figures(path, training):
    found, lines = {}, open(path).read().split("\n")
    assert lines.pop() == "" and len(lines) % 3 == 0
    for help, kind, line in zip(lines[0::3], lines[1::3], lines[2::3]):
        name, label, value = re.fullmatch(r'penstock_train_(\w+)\{training="([^"]*)"\} (\S+)', line).groups()
        assert help.startswith("# HELP penstock_train_%s " % name), help
        type = "counter" if name.endswith("_total") else "gauge"
        assert kind == "# TYPE penstock_train_%s %s" % (name, type), kind
        assert label == training and name not in found
        found[name] = float(value)
    return found

def log(path, event):
    return [line for line in map(json.loads, open(path)) if line["event"] == event]
END

# holds EXPRESSION: must be true
holds() {
    python3 -c 'import sys; sys.path.insert(0, "."); from follow import *
assert eval("(" + sys.argv[1] + ")"), sys.argv[1]' "$1" || die "$1 does not hold"
}

penstock train -q --overwrite job.yaml --log log.jsonl --tensorboard board/run --metrics run.prom
holds 'files("board/run")[0][:2] == [(0, {"version": "brain.Event:2"}), (0, {"start": 1})]'
holds '[(s, v["loss"], v["accuracy"], v["learning_rate"]) for s, v in files("board/run")[0][2:-1]] ==
    [(l["step"], single(l["loss"]), single(l["accuracy"]), single(l["learning_rate"])) for l in log("log.jsonl", "step")]'
holds 'all(v["examples_per_second"] == single(l["examples"] / (l["seconds"] + l["wait_seconds"]))
    for (s, v), l in zip(files("board/run")[0][2:-1], log("log.jsonl", "step")))'
holds '[files("board/run")[0][-1]] == [(6, {"evaluation/loss": single(l["loss"]), "evaluation/accuracy":
    single(l["accuracy"])}) for l in log("log.jsonl", "evaluation")]'
holds '(lambda f, s, e: f["loss"] == s[-1]["loss"] and f["evaluation_loss"] == e["loss"]
    and f["examples_total"] == sum(l["examples"] for l in s) and f["evaluation_step"] == 6
    and abs(f["seconds_total"] - sum(l["seconds"] + l["wait_seconds"] for l in s)) < 1e-9
    and (f["step"], f["steps"], f["epoch"], f["checkpoint_step"], f["running"]) == (6, 6, 2, 6, 0)
    and f["recoveries_total"] == f["lost_total"] == 0 and f["accuracy"] == s[-1]["accuracy"])(
    figures("run.prom", "run"), log("log.jsonl", "step"), log("log.jsonl", "evaluation")[0])'
[ "$(find . -name 'run.prom*' | wc -l)" -eq 1 ] || die "files are left: $(ls)"

# one that goes on begins a file that is read after those that are there, from its first step on
penstock train -q --continue job.yaml --set train.epochs=3 --tensorboard board/run --metrics run.prom
holds 'len(files("board/run")) == 2 and files("board/run")[1][1] == (7, {"start": 1})'
holds '[s for s, v in files("board/run")[1] if "loss" in v] == [7, 8, 9]'
holds '(lambda f: (f["step"], f["examples_total"]) == (9, 24))(figures("run.prom", "run"))'

# what cannot be written from the start on is told then
fails 2 'not a folder' "$PENSTOCK" train --overwrite job.yaml --tensorboard job.yaml/board
fails 2 'nowhere' "$PENSTOCK" train --overwrite job.yaml --metrics nowhere/run.prom

# a disk that is full: whole events, once a warning, and the training is done
sed '/^checkpoint/d' job.yaml >free.yaml
(
    trap '' XFSZ
    ulimit -f 2
    exec "$PENSTOCK" train -q free.yaml --set train.epochs=40 --tensorboard full
) 2>messages || die "a full disk ended the training: $(cat messages)"
[ "$(grep -c -e '--tensorboard: cannot write .*the training goes on without' messages)" -eq 1 ] || die "$(cat messages)"
holds '2 < len(files("full")[0]) < 120'

# a folder that is removed while it runs: once a warning for each
mkdir gone
"$PENSTOCK" train -q --overwrite job.yaml --set train.epochs=100000 --log gone.jsonl --tensorboard gone/board \
    --metrics gone/run.prom 2>messages &
training=$!
for _ in $(seq 1200); do
    grep -qs '"event": "checkpoint"' gone.jsonl && break
    sleep 0.1
done
mv gone away
rm -r away
for _ in $(seq 1200); do
    grep -q -e --metrics messages && grep -q -e --tensorboard messages && break
    sleep 0.1
done
kill -INT $training
wait $training || die "removed folders ended the training: $(cat messages)"
for option in --tensorboard --metrics; do
    [ "$(grep -c -e "$option: cannot write 'gone/.*: No such file or directory; the training goes on without" messages)" -eq 1 ] ||
        die "$option: $(cat messages)"
done
