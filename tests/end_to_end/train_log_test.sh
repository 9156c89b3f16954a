# train --log: a JSON object a line, with the numbers of --json; what is lost and goes on; a reader
# that is gone and a full disk are no end of a training.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/followed_job.sh"

# lines FILE EXPRESSION: of the events of a log, `e`, whose lines are `all`; must be true
lines() {
    python3 -c 'import json, sys
all = [json.loads(line) for line in open(sys.argv[1])]
e = [line["event"] for line in all]
of = lambda name: [line for line in all if line["event"] == name]
assert all and {line["schema"] for line in all} == {"penstock/train-log/1"}
assert [line["time"] for line in all] == sorted(line["time"] for line in all)
held = eval(sys.argv[2])
print(held if held is True else (held, all))' "$1" "$2" >held
    [ "$(cat held)" = True ] || die "$1: $2 does not hold: $(cat held)"
}

penstock train -q --json --overwrite job.yaml --set train.seed=1 --log log.jsonl >run.json
lines log.jsonl 'e[:2] == ["start", "plan"] and e[-2:] == ["evaluation", "end"]'
lines log.jsonl 'of("start")[0]["set"] == ["train.seed=1"] and of("start")[0]["steps"] == 6'
lines log.jsonl '[l["epoch"] for l in of("epoch")] == [1, 2] and of("checkpoint")[-1]["step"] == 6'
lines log.jsonl 'all[-1]["outcome"] == "done" and all[-1]["exit_code"] == 0'
lines log.jsonl '(lambda d: d["parameters_hash"] == all[-1]["parameters_hash"]
    and [s["loss"] for s in d["steps"]] == [s["loss"] for s in of("step")]
    and abs(of("epoch")[0]["loss"] - sum(s["loss"] for s in d["steps"][:3]) / 3) < 1e-9
    and d["evaluation"]["loss"] == of("evaluation")[0]["loss"])(json.load(open("run.json")))'

# one that goes on adds to it; standard output is a file, too
penstock train -q --continue job.yaml --set train.epochs=3 --log log.jsonl
lines log.jsonl '[s["step"] for s in of("step")] == [1, 2, 3, 4, 5, 6, 7, 8, 9] and e.count("end") == 2'
penstock train -q --overwrite job.yaml --log - >output.jsonl
lines output.jsonl 'len(of("step")) == 6 and e[-1] == "end"'
code=0
penstock train --overwrite job.yaml --json --log - >both.json 2>messages || code=$?
[ $code -eq 2 ] || die "--json and --log -: exit code $code"
check '"found beside --json" in d["error"]' both.json
fails 2 'log' "$PENSTOCK" train --overwrite job.yaml --log nowhere/log.jsonl

# one that fails says so
code=0
penstock train -q --overwrite job.yaml --set train.optimizer.sgd.lr=1e30 --log bad.jsonl 2>messages || code=$?
[ $code -eq 8 ] || die "exit code $code: $(cat messages)"
lines bad.jsonl 'all[-1]["outcome"] == "failed" and all[-1]["exit_code"] == 8 and "finite" in all[-1]["error"]'

# a worker that is killed is told, and what it took along is done again
sed 's/^devices.*/devices: [{name: a, threads: 1}, {name: b, threads: 1, host: localhost}]/' job.yaml >two.yaml
penstock train -q --overwrite two.yaml --log whole.jsonl
"$PENSTOCK" train -q --overwrite two.yaml --set train.epochs=400 --log lost.jsonl 2>messages &
training=$!
for _ in $(seq 1200); do
    grep -qs '"event": "checkpoint"' lost.jsonl && break
    sleep 0.1
done
worker=$(pgrep -P $training | head -n 1)
[ -n "$worker" ] || die "no worker process is there: $(cat messages)"
kill -9 "$worker"
for _ in $(seq 1200); do
    grep -qs '"event": "recovery"' lost.jsonl && break
    sleep 0.1
done
kill -INT $training
wait $training || die "the training that was stopped: $(cat messages)"
lines lost.jsonl 'e.count("lost") >= 1 and e.count("recovery") >= 1 and all[-1]["outcome"] == "stopped"'
lines lost.jsonl '[s["step"] for s in of("step")] == list(range(1, 1 + len(of("step"))))'
lines lost.jsonl '[s["loss"] for s in of("step")][:6] == [l["loss"] for l in
    map(json.loads, open("whole.jsonl")) if l["event"] == "step"]'

# a reader that is gone, and a disk that is full: once a warning
{ penstock train -q --overwrite job.yaml --log - 2>messages && touch is_done; } | head -n 1 >first
[ -e is_done ] || die "a reader that left ended the training: $(cat messages)"
[ -e /dev/full ] || exit 0
penstock train -q --overwrite --json job.yaml --log /dev/full >full.json 2>messages
[ "$(grep -c 'No space left on device; the training goes on without' messages)" -eq 1 ] || die "$(cat messages)"
check 'len(d["steps"]) == 6' full.json
