# When a GPU computed, by its own clock: a kernel that is slow shows in the task that runs it, though nobody waits
# for that task, and in no other. The GPU is emulated.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

# softmax is of stage 0, which is enqueued only; the loss is of stage 1
stages_job 'optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, steps: 4, epochs: 9' \
    '{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}' >job.yaml

# trained KERNEL TASK STAGE: of tasks, these alone are slow when the kernel takes 60 ms more; and waits are none
# of a device that computes.
trained() {
    FAKE_CUDA="gpus=2 slow=$1 slow_us=60000" penstock train job.yaml --json --trace "$1.trace" >"$1.json" 2>messages
    python3 - "$@" <<'P' || die "$1: not the times of the GPU"
import json, sys
kernel, task, stage = sys.argv[1], sys.argv[2], int(sys.argv[3])
events = [e for e in json.load(open(kernel + ".trace"))["traceEvents"] if e["ph"] == "X" and "stage" in e["args"]]
tasks = [e for e in events if e["name"].split()[0] == e["args"].get("task") and e["args"]["round"] > 0]
slow = [e for e in tasks if e["args"]["task"] == task and e["args"]["stage"] == stage]
assert len(slow) == 12 and len(tasks) == 3 * (4 * 4 + 2), (len(slow), len(tasks))
assert min(e["dur"] for e in slow) >= 60e3, [e["dur"] for e in slow]
others = sorted(e["dur"] for e in tasks if e not in slow)
assert others[len(others) * 3 // 4] < 30e3 and others[-3] < 60e3, others # this machine may have other work
for device in 0, 1:
    own = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["args"]["device"] == device)
    assert all(a[1] <= b[0] + 0.1 for a, b in zip(own, own[1:])), own
busy = [d["busy_seconds"] for d in json.load(open(kernel + ".json"))["measured"]["devices"]]
assert busy[stage] >= 4 * 0.06 > busy[1 - stage] + 0.06, busy
P
}
trained softmax forward 0
trained softmax_backward backward 0
trained loss forward 1

# ---- steps of two rounds: the first is short and has no update, so the last of its tasks is not the last that the
# plan has. What both took is told, to the last task.
FAKE_CUDA="gpus=2 slow=softmax slow_us=60000" penstock train job.yaml --json --trace short.trace \
    --set train.batch=56 --set train.steps=6 >short.json 2>messages
python3 - <<'P' || die "short rounds: not all that was computed is told"
import json
trace, told = json.load(open("short.trace"))["traceEvents"], json.load(open("short.json"))["measured"]["devices"]
tasks = [e for e in trace if e["ph"] == "X" and e["name"].split()[0] == e["args"].get("task")]
rounds = {e["args"]["round"] for e in tasks}
assert rounds == set(range(12)), rounds # two of each step, of 2 microbatches and of 1 that is short
counted = [e for e in tasks if e["args"]["step"] > 1]
for device in 0, 1:
    own = [e for e in counted if e["args"]["device"] == device]
    assert len(own) == 5 * (3 * 2 + 1), len(own)
    seconds = sum(e["dur"] for e in own) * 1e-6 / 5
    assert abs(told[device]["busy_seconds"] - seconds) < 1e-4 * seconds, (device, told, seconds)
assert told[0]["busy_seconds"] >= 3 * 0.06, told
P

# ---- a GPU that waits for another says so: between its tasks there are waits, which name what it is for and whose.
# The host is told at once that it may go on, by way of the host's memory as between peers.
for peers in 0 1; do
    FAKE_CUDA="gpus=2 peers=$peers slow=softmax slow_us=60000" penstock train job.yaml --json --trace wait.trace \
        >wait.json 2>messages
    python3 - <<'P' || die "peers=$peers: a GPU that waits does not say for what"
import json
events = json.load(open("wait.trace"))["traceEvents"]
events = [e for e in events if e["ph"] == "X" and "stage" in e["args"]]
events = [e for e in events if e["args"]["device"] == 1 and e["args"]["round"] > 0]
tasks = [e for e in events if e["name"].split()[0] == e["args"].get("task")]
waits = [e for e in events if e not in tasks]
whole = max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)
busy, waited = (sum(e["dur"] for e in some) for some in (tasks, waits))
assert waited > 12 * 40e3 and busy + waited > 0.9 * whole, (busy, waited, whole)
assert all(e["name"] == "wait for " + e["args"]["value"] for e in waits if "value" in e["args"]), waits
# for what stage 0 makes in 60 ms, before each forward; besides, the labels may come late
for step in range(2, 5):
    for microbatch in range(4):
        of = {"step": step, "task": "forward", "microbatch": microbatch, "waits_for": "g"}
        own = [e for e in waits if of.items() <= e["args"].items()]
        assert 1 <= len(own) <= 2 and sum(e["dur"] for e in own) > 30e3, own
P
done
