"""What the checks of Spark and Ray share: processes, a job over pictures, the same by hand, and models of PyTorch and
TensorFlow with the numbers that these give. Needs NumPy."""
import contextlib
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REFERENCE = os.path.join(TOP, "tests", "reference")
SIDE = 8
CLASSES = 3
COUNT = 90
PARTS = 5
WORKERS = 3
OVERHEAD_SECONDS = 15
BEGIN = time.monotonic()


def say(text):
    print(f"{time.monotonic() - BEGIN:4.0f} s  {text}", flush=True)


@contextlib.contextmanager
def work_folder(check, prefix):
    """A folder that goes with the check. After a failure it stays: there is what the processes said."""
    folder = tempfile.mkdtemp(prefix=prefix)
    os.environ["TMPDIR"] = folder # what is killed leaves files there
    try:
        yield folder
    except BaseException:
        print(f"{check}: failed; what its processes wrote stays in {folder}", file=sys.stderr, flush=True)
        raise
    shutil.rmtree(folder)


# ---- processes

def listed():
    """Processes: pid, its parent, command. Without what has ended and waits for process 1 to notice that."""
    lines = subprocess.run(["ps", "-eo", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    split = [line.split(None, 3) for line in lines.splitlines()]
    return [(int(words[0]), int(words[1]), words[3]) for words in split
            if len(words) == 4 and not (words[1] == "1" and words[2].startswith("Z"))]


def beneath(root):
    found, known = [], {root}
    for pid, parent, args in sorted(listed()):
        if parent in known:
            known.add(pid)
            found.append((pid, args))
    return found


def still(pids):
    """Those of them that are there."""
    return [(pid, args) for pid, _, args in listed() if pid in pids]


def above(pid):
    """Its parent, and so on."""
    parents = {pid: parent for pid, parent, _ in listed()}
    found = []
    while pid in parents:
        pid = parents[pid]
        found.append(pid)
    return found


@contextlib.contextmanager
def started(command, log):
    """A process that is there for the block, at most."""
    with open(log, "w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def training_processes(penstock, folder):
    """Those of trainings in that folder, or beneath it."""
    return [(pid, args) for pid, _, args in listed() if args.startswith(f"{penstock} train {folder}/")]


def none_left(find, what, seconds=120):
    """Nothing that `find` lists is there soon. The processes take a moment."""
    end = time.monotonic() + seconds
    while left := find():
        assert time.monotonic() < end, f"{what}: left after {seconds} s: {left}"
        time.sleep(0.1)


def wait_for_event(folder, event, seconds=600):
    """Until the training's log has it."""
    end = time.monotonic() + seconds
    while not (os.path.exists(f"{folder}/log.jsonl") and event in events_of(folder)):
        assert time.monotonic() < end, f"no {event} after {seconds} s"
        time.sleep(0.02)


def events_of(folder):
    with open(f"{folder}/log.jsonl") as file:
        return [json.loads(line)["event"] for line in file if line.endswith("}\n")]


# ---- pictures

def picture(number):
    """Bars: the place says the class. The bytes of a picture, and its label."""
    random = numpy.random.default_rng(number)
    label = number % CLASSES
    image = random.normal(60, 30, (SIDE, SIDE))
    image[2 * label + 1] += 120
    return image.clip(0, 255).astype(numpy.uint8), label


LAYERS = {"seed": 1, "inputs": {"picture": {"shape": [SIDE, SIDE]}},
          "layers": ["flatten", {"dense": {"units": 16, "activation": "relu"}}, {"dense": CLASSES}]}


def job(epochs=2):
    return {"model": LAYERS, "data": {"normalize": {"mean": 0, "std": 255}},
            "train": {"loss": "softmax_cross_entropy", "optimizer": {"sgd": {"lr": 0.05, "momentum": 0.9}}, "batch": 10,
                      "microbatches": 5, "epochs": epochs, "seed": 1},
            "checkpoint": {"every": "10 steps"}, "recovery": {"grace": "0.5 s"},
            "placement": {"strategy": "round_robin"}}


def two_outputs():
    """A job whose model has outputs `classes`, whose loss is taken, and `features`."""
    layers = ["flatten", {"dense": {"units": 16, "activation": "relu", "name": "features"}},
              {"dense": {"units": CLASSES, "name": "classes"}}]
    described = job(10)
    return {**described, "model": {**LAYERS, "layers": layers, "outputs": ["classes", "features"]},
            "train": {**described["train"], "loss_output": "classes"}}


def regression(kind):
    """A number, or two, from four."""
    outputs = {"number": 1, "vector": 2}[kind]
    return {"model": {"seed": 1, "inputs": {"x": {"shape": [4]}}, "layers": [{"dense": outputs}]},
            "train": {"loss": "mean_squared_error", "optimizer": {"sgd": {"lr": 0.1}}, "batch": 10, "epochs": 20,
                      "seed": 1}}


def facts(number):
    """Four numbers, and two that they give."""
    x = numpy.random.default_rng(number).normal(size=4).astype(numpy.float32)
    return x, numpy.array([x @ [1, 2, 3, 4], 1 - x[0]], numpy.float32)


# ---- weights

WEIGHTS = (0.0, 0.5, 2.0)


def weighed_job():
    described = regression("number")
    return {**described, "train": {**described["train"], "batch": COUNT, "epochs": 30}}


def weighed(number):
    """Four numbers, a label, and how much it counts. A third of the labels are far off, and count nothing."""
    x, y = facts(number)
    return x, float(y[0]) + (100 if number % 3 == 0 else number % 3), WEIGHTS[number % 3]


def check_weighed(folder):
    """All rows are in each step, so NumPy goes the same way: down the slope of (w * square).sum() / w.sum()."""
    from penstock.training import Training
    x, y, w = map(numpy.array, zip(*map(weighed, range(COUNT))))
    job = {**weighed_job(), "data": {"eval": {"inputs": {"x": x[:1]}}}}
    with Training(job, inference=True) as fresh:
        first = sorted(fresh.parameters().items(), reverse=True) # the kernel, then the bias
        slope, level = (value.astype(float).reshape(-1) for _, value in first)
    for _ in range(30):
        off = 2 * w * (x @ slope + level - y) / w.sum()
        slope, level = slope - 0.1 * (off @ x), level - 0.1 * off.sum()
    found = parameters_of(f"{folder}/parameters.safetensors")
    for (name, value), wanted in zip(sorted(found.items(), reverse=True), (slope, level)):
        near(value.reshape(-1), wanted, name)


# ---- by hand

def by_hand(penstock, folder):
    """The hash of the same job with the command, on one device."""
    shutil.rmtree(f"{folder}/hand", ignore_errors=True)
    ran = subprocess.run([penstock, "train", "-q", "--json", f"{folder}/job.yaml", "--checkpoint", f"{folder}/hand",
                          "--set", "devices=[{name: one, threads: 1}]"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)["parameters_hash"]


def seconds_by_hand(penstock, folder):
    """How long as many tasks take that a shell would start over the same files."""
    begin = time.monotonic()
    command = [penstock, "train", "-q", f"{folder}/job.yaml", "--launched", "--checkpoint", f"{folder}/hand-tasks"]
    tasks = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env={
        **os.environ, "PENSTOCK_RANK": str(rank), "PENSTOCK_SIZE": str(WORKERS), "PENSTOCK_START": "hand"})
        for rank in range(WORKERS)]
    codes = [task.wait() for task in tasks]
    assert codes == [0] * WORKERS, codes
    return time.monotonic() - begin


def check_overhead(penstock, folder, fit):
    """What an engine takes that has run something before. It is judged where the machine has little else to do."""
    is_busy = os.getloadavg()[0] > 2 * os.cpu_count()
    begin = time.monotonic()
    fit(folder)
    seconds = time.monotonic() - begin
    alone = seconds_by_hand(penstock, folder)
    say(f"fit: {seconds:.1f} s; the same tasks by hand: {alone:.1f} s; overhead {seconds - alone:.1f} s")
    assert is_busy or seconds - alone < OVERHEAD_SECONDS, f"overhead of {seconds - alone:.1f} s"


def check_files(folder):
    files = sorted(glob.glob(f"{folder}/data/input-picture-*.npy"))
    arrays = [numpy.load(file) for file in files]
    assert len(files) == PARTS and sum(map(len, arrays)) == COUNT, files
    assert (numpy.concatenate(arrays) == [picture(number)[0] for number in range(COUNT)]).all(), "not in order"


def check_devices(folder, memory):
    """Keys of a device came into the job."""
    with open(f"{folder}/job.yaml") as file:
        assert f"memory: {memory}" in file.read()


def predicted(job, parameters, number, output):
    """An output of the model for a picture, in this process."""
    from penstock.training import predict
    pictures = {"picture": picture(number)[0][None]}
    job = {"model": job["model"], "train": job["train"],
           "data": {"normalize": job["data"]["normalize"], "eval": {"inputs": pictures}}}
    return predict(job, pictures, output, parameters=parameters).reshape(-1)


# ---- models of others

def parameters_of(path):
    """What a safetensors file has: float32 only."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: numpy.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in head.items() if name != "__metadata__" and entry["dtype"] == "F32"}


def near(found, wanted, what, limit=1e-4):
    error = numpy.linalg.norm(found - wanted) / numpy.linalg.norm(wanted)
    assert error < limit, f"{what}: {found} is not {wanted}, error {error}"


def saved_model():
    """TensorFlow's: the parameters after a step."""
    name = f"{REFERENCE}/tensorflow/classifier"

    def check(folder):
        found = parameters_of(f"{folder}/parameters.safetensors")
        steps = glob.glob(f"{glob.escape(name)}.step_*.npy")
        assert steps
        for path in steps:
            parameter = os.path.basename(path)[len("classifier.step_"):-len(".npy")].replace("+", "/")
            near(found[parameter], numpy.load(path), parameter)
    train = {"optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}
    return name, "image", numpy.load(f"{name}.input_0.npy"), numpy.load(f"{name}.labels.npy"), train, check


def pt2():
    """PyTorch's: the losses of three steps."""
    name = f"{REFERENCE}/pytorch/pictures"
    known = numpy.load(f"{name}.npz")

    def check(folder):
        with open(f"{folder}/log.jsonl") as file:
            lines = [json.loads(line) for line in file]
        near(numpy.array([line["loss"] for line in lines if line["event"] == "step"]), known["losses"], "losses")
    train = {"optimizer": {"sgd": {"lr": 0.1, "momentum": 0.9}}, "epochs": 3, "loss_output": "logits"}
    return f"{name}.pt2", "x", known["x"], known["y"], train, check


def onnx():
    """An ONNX file that PyTorch wrote: the parameters after a step."""
    name = f"{REFERENCE}/lenet"

    def check(folder):
        found = parameters_of(f"{folder}/parameters.safetensors")
        flat = numpy.load(f"{name}/sgd/parameters_1.npy")
        with open(f"{name}/index.txt") as file:
            rows = [line.split() for line in file]
        for parameter, _, offset, *shape in rows:
            shape = [int(extent) for extent in shape]
            wanted = flat[int(offset):int(offset) + numpy.prod(shape)].reshape(shape)
            near(found[parameter], wanted, parameter)
    train = {"optimizer": {"sgd": {"lr": 0.05, "momentum": 0.9}}, "epochs": 1}
    return (f"{name}/model.onnx", "input", numpy.load(f"{name}/inputs.npy")[:8], numpy.load(f"{name}/labels.npy")[:8],
            train, check)


MODELS = {"SavedModel": saved_model, "pt2": pt2, "ONNX": onnx}


def model_job(file, train):
    return {"model": {"file": file}, "train": {"loss": "softmax_cross_entropy", "batch": 8, "seed": 1, **train}}
