"""Ray's trainer on a cluster of five nodes in this machine: equal to the same job by hand, also when a process, a node
or the driver is killed; nothing is left behind. Run by `make check-ray`, with a Python that has Ray, its Ray Data, and
NumPy."""
import argparse
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import engine_checks as checks
import numpy
import ray
import ray.data
from ray.cluster_utils import Cluster

EPOCHS = 60 # of a training that somebody is killed in
NODES = 4 # of one CPU, besides that of the driver, which has none: one more than there are workers
MEMORY = 80 << 20


def connect(address):
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False


def dataset(seconds=0.0, marks=None):
    """Pictures, computed where the blocks are; slowly, if asked for, with a mark for each."""
    def rows(batch):
        numbers = [int(number) for number in batch["id"]]
        time.sleep(seconds * len(numbers))
        if marks:
            for number in numbers:
                open(f"{marks}/{number}", "w").close()
        images, labels = zip(*map(checks.picture, numbers))
        return {"number": numpy.array(numbers), "pixels": numpy.stack(images), "label": numpy.array(labels)}
    return ray.data.range(checks.COUNT, override_num_blocks=checks.PARTS).map_batches(rows, batch_size=None)


def trainer(arguments, folder, epochs=2, **options):
    from penstock.ray import PenstockTrainer
    return PenstockTrainer(checks.job(epochs), inputs={"picture": "pixels"}, label="label", folder=folder,
                           workers=checks.WORKERS, command=arguments.penstock, **options)


def check_equal(arguments, work):
    folder = f"{work}/equal"
    data = dataset()
    model = trainer(arguments, folder, epochs=10).fit(data)
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "not the numbers of the job by hand"
    checks.check_files(folder)
    rows = model.predict(data, workers=2).take_all()
    right = sum(int(row["prediction"].argmax()) == row["label"] for row in rows)
    assert len(rows) == checks.COUNT and right > 80, f"{right} of {len(rows)} right"
    assert trainer(arguments, folder, epochs=10).fit(data).parameters_hash == model.parameters_hash
    checks.check_overhead(arguments.penstock, f"{work}/timed", lambda timed: trainer(arguments, timed, 10).fit(data))
    checks.say(f"fit and predict: the numbers of one device, {right} of {len(rows)} right; fit again: the same")
    return model


def check_refused(arguments, work):
    """Data that come again otherwise, and what is not there."""
    def refused(data, words, folder=f"{work}/equal", epochs=2, **options):
        try:
            trainer(arguments, folder, epochs, **options).fit(data)
        except Exception as error:
            assert words in str(error), error
            return
        raise AssertionError(f"taken, expected: {words}")
    data = dataset()
    refused(data.map_batches(lambda batch: {**batch, "pixels": batch["pixels"] + 1}), "came again with other rows")
    refused(data.filter(lambda row: row["number"] < 0), "have no rows", f"{work}/empty")
    refused(data.drop_columns(["label"]), "has no column 'label', found number, pixels", f"{work}/refused")
    refused(data, "exit code 3", f"{work}/refused", epochs=-1)
    refused(data, "had no room for 3 times", f"{work}/room", threads=2, wait=2)
    checks.say("other rows, no rows, no column, a bad job, no room: refused")


def check_models(arguments, work):
    """Models of others are trained as TensorFlow and PyTorch do it."""
    from penstock.ray import PenstockTrainer
    from penstock.training import predict
    for name, describe in checks.MODELS.items():
        file, given, inputs, labels, train, check = describe()
        folder, job = f"{work}/{name}", checks.model_job(file, train)
        data = ray.data.from_items([{"x": x, "y": int(y)} for x, y in zip(inputs, labels)], override_num_blocks=3)
        model = PenstockTrainer(job, inputs={given: "x"}, label="y", folder=folder, workers=checks.WORKERS,
                                command=arguments.penstock).fit(data)
        check(folder)
        assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), name
        found = numpy.stack([row["prediction"] for row in model.predict(data).take_all()])
        wanted = predict({**job, "data": {"eval": {"inputs": {given: inputs}}}}, {given: inputs},
                         parameters=f"{folder}/parameters.safetensors")
        checks.near(found, wanted, f"predictions of {name}")
        checks.say(f"{name}: trained as what made it trains it, with the numbers of one device; predicted by actors")


def check_regression(arguments, work):
    from penstock.ray import PenstockTrainer

    def rows(batch):
        x, y = map(numpy.stack, zip(*(checks.facts(int(number)) for number in batch["id"])))
        return {"x": x, "number": y[:, 0], "vector": y}
    data = ray.data.range(checks.COUNT, override_num_blocks=3).map_batches(rows)
    for kind in ("number", "vector"):
        model = PenstockTrainer(checks.regression(kind), inputs={"x": "x"}, label=kind, folder=f"{work}/{kind}",
                                workers=2, command=arguments.penstock).fit(data)
        error = max(abs(row["prediction"] - row[kind]).max() for row in model.predict(data).take_all())
        assert error < 0.05, f"{kind}: error {error}"
    checks.say("numbers and vectors: learned, and predicted")


def check_weights(arguments, work):
    from penstock.ray import PenstockTrainer

    def rows(batch):
        x, y, w = map(numpy.array, zip(*(checks.weighed(int(number)) for number in batch["id"])))
        return {"x": x, "y": y, "trust": w}
    data = ray.data.range(checks.COUNT, override_num_blocks=3).map_batches(rows)
    folder = f"{work}/weights"
    model = PenstockTrainer(checks.weighed_job(), inputs={"x": "x"}, label="y", weight="trust", folder=folder,
                            workers=2, command=arguments.penstock).fit(data)
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "not the numbers of the job by hand"
    checks.check_weighed(folder)
    checks.say("weights of rows: the numbers of one device, and of NumPy")


def check_options(arguments, work):
    """What a bundle has besides, one of two outputs, no TLS; and a model that is made again of what was saved."""
    from penstock.ray import PenstockModel, PenstockTrainer
    folder, job, inputs = f"{work}/options", checks.two_outputs(), {"picture": "pixels"}
    model = PenstockTrainer(job, inputs=inputs, label="label", folder=folder, workers=2, command=arguments.penstock,
                            resources={"memory": 4 << 20}, strategy="STRICT_SPREAD", device={"memory": "1GiB"},
                            insecure=True).fit(dataset())
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "not the numbers of the job by hand"
    checks.check_devices(folder, "1GiB")
    model.save(f"{folder}/kept.safetensors")
    with open(f"{folder}/kept.safetensors", "rb") as file:
        again = PenstockModel(job, file.read(), inputs=inputs, output="features")
    row = next(row for row in again.predict(dataset()).take_all() if row["number"] == 7)
    wanted = checks.predicted(job, f"{folder}/kept.safetensors", 7, "features")
    checks.near(row["prediction"], wanted, "an output that was asked for")
    checks.say("bundles with memory, an output by its name, a model made again: right")


def trained_while(arguments, folder, kill):
    """Fits, and kills after the first checkpoint; the hash must be that by hand."""
    killed = []

    def kill_in_time():
        checks.wait_for_event(folder, "checkpoint")
        kill()
        assert "end" not in checks.events_of(folder), "the training was over before"
        killed.append(True)
    killer = threading.Thread(target=kill_in_time)
    killer.start()
    model = trainer(arguments, folder, EPOCHS).fit(dataset())
    killer.join()
    assert killed, "nobody was killed"
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "other numbers"
    return checks.events_of(folder)


def check_killed(arguments, work, cluster):
    def last():
        return checks.training_processes(arguments.penstock, work)[-1][0]

    def process():
        os.kill(last(), signal.SIGKILL)

    def ray_worker():
        os.kill(checks.above(last())[0], signal.SIGKILL)

    def node():
        above = checks.above(last())
        found = next(node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid in above)
        cluster.remove_node(found, allow_graceful=False)
    for kill in (process, ray_worker, node):
        events = trained_while(arguments, f"{work}/killed-{kill.__name__}", kill)
        checks.none_left(lambda: checks.training_processes(arguments.penstock, work), kill.__name__)
        starts, recoveries = events.count("start"), events.count("recovery")
        assert starts > 1 or recoveries, events
        checks.say(f"{kill.__name__} killed in fit: the same numbers; {starts} starts, {recoveries} recoveries")


def check_killed_in_predict(work, model):
    def predicted(data, **options):
        rows = model.predict(data, **options).take_all()
        return [list(row["prediction"]) for row in sorted(rows, key=lambda row: row["number"])]
    wanted = predicted(dataset())
    marks, killed = f"{work}/marks", []
    os.mkdir(marks)

    def kill():
        while len(os.listdir(marks)) < checks.COUNT // 2:
            time.sleep(0.02)
        actors = [pid for pid, _, args in checks.listed() if "_Actor" in args or "MapWorker" in args]
        assert len(os.listdir(marks)) < checks.COUNT, "it was over before"
        os.kill(actors[-1], signal.SIGKILL)
        killed.append(actors[-1])
    killer = threading.Thread(target=kill)
    killer.start()
    found = predicted(dataset(0.1, marks), workers=2)
    killer.join()
    assert killed, "nobody was killed"
    assert found == wanted, "other predictions after an actor was killed"
    checks.say("an actor killed in predict: the same predictions")


def check_driver_killed(arguments, work, cluster):
    """Nothing is left of a driver that is killed, and its training is gone on with."""
    folder = f"{work}/driver"
    command = [sys.executable, os.path.abspath(__file__), "--penstock", arguments.penstock, "--fit", folder,
               "--address", cluster.address]
    with checks.started(command, f"{folder}.txt") as driver:
        checks.wait_for_event(folder, "checkpoint")
        assert len(checks.training_processes(arguments.penstock, work)) == checks.WORKERS
        driver.kill()
        assert "end" not in checks.events_of(folder), "the training was over before"
    checks.none_left(lambda: checks.training_processes(arguments.penstock, work), "trainings of a killed driver")
    checks.none_left(lambda: [args for _, _, args in checks.listed() if "ray::penstock" in args], "Ray's tasks")
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with open(f"{folder}/hash") as file:
        assert file.read() == checks.by_hand(arguments.penstock, folder), "other numbers after the driver was killed"
    checks.say("the driver killed: nothing left; the next fit went on to the same numbers")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--fit", help="be a driver that fits into this folder")
    parser.add_argument("--address", help="of the cluster, for --fit")
    arguments = parser.parse_args()
    arguments.penstock = os.path.abspath(arguments.penstock)
    os.environ["PYTHONPATH"] = f"{checks.TOP}/python:{checks.TOP}/tests/python"
    os.environ["PENSTOCK_LIBRARY"] = os.path.join(os.path.dirname(arguments.penstock), "libpenstock.so")
    os.environ["RAY_worker_niceness"] = "0" # or a busy machine lets them wait
    os.environ["RAY_AUTH_MODE"] = "disabled" # nothing of it is seen outside this machine
    sys.path.insert(0, f"{checks.TOP}/python")
    if arguments.fit:
        connect(arguments.address)
        model = trainer(arguments, arguments.fit, EPOCHS).fit(dataset())
        with open(f"{arguments.fit}/hash", "w") as file:
            file.write(model.parameters_hash)
        return
    with checks.work_folder("check-ray", "ray") as work:
        run(arguments, work)
    checks.say("check-ray: all is well")


def run(arguments, work):
    os.environ["RAY_TMPDIR"] = work # of the file with its address: /tmp/ray may have that of a cluster in use
    os.mkdir(f"{work}/ray")
    limits = {"object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **limits})
    try:
        for _ in range(NODES):
            cluster.add_node(num_cpus=1, **limits)
        connect(cluster.address)
        model = check_equal(arguments, work)
        check_refused(arguments, work)
        check_models(arguments, work)
        check_regression(arguments, work)
        check_weights(arguments, work)
        check_options(arguments, work)
        check_killed_in_predict(work, model)
        check_killed(arguments, work, cluster)
        ray.shutdown()
        check_driver_killed(arguments, work, cluster)
    finally:
        ray.shutdown()
        cluster.shutdown()
    checks.none_left(lambda: checks.training_processes(arguments.penstock, work), "trainings")
    checks.none_left(lambda: [args for _, _, args in checks.listed() if work in args], "processes")


if __name__ == "__main__":
    main()
