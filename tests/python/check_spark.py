"""Spark's estimator on a standalone cluster of three executors: equal to the same job by hand, also when an executor or
the driver is killed; nothing is left behind. Run by `make check-spark`, with a Python that has PySpark and NumPy."""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import engine_checks as checks
import numpy
import pyspark
from pyspark.ml import Pipeline
from pyspark.ml.evaluation import MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import StringIndexer
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

EPOCHS = 60 # of a training that somebody is killed in


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Cluster:
    """A standalone master, and a worker of one core for each executor."""

    def __init__(self, folder):
        home = os.path.dirname(pyspark.__file__)
        self.port = free_port()
        self.environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1",
                            "SPARK_DAEMON_MEMORY": "256m"}
        self.processes = []
        master = "org.apache.spark.deploy.master.Master"
        self.start(home, folder, "master", [master, "--host", "127.0.0.1", "--port", self.port, "--webui-port", 0])
        for number in range(checks.WORKERS):
            worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", 1, "--memory", "1g",
                      "--webui-port", 0, "--work-dir", f"{folder}/work{number}", f"spark://127.0.0.1:{self.port}"]
            self.start(home, folder, f"worker{number}", worker)

    def start(self, home, folder, name, arguments):
        with open(f"{folder}/{name}.txt", "w") as log:
            self.processes.append(subprocess.Popen([f"{home}/bin/spark-class", *map(str, arguments)],
                                                   env=self.environment, stdout=log, stderr=log))

    def executors(self):
        return [pid for process in self.processes for pid, args in checks.beneath(process.pid)
                if "CoarseGrainedExecutorBackend" in args and "java" in args.split()[0]]

    def of_applications(self):
        """What runs in the cluster besides the cluster. What has ended is Spark's to take note of."""
        own = {process.pid for process in self.processes}
        return [(pid, args) for process in self.processes for pid, args in checks.beneath(process.pid)
                if pid not in own and "org.apache.spark.deploy." not in args and "<defunct>" not in args]

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(30)


def session(port):
    spark = (SparkSession.builder.master(f"spark://127.0.0.1:{port}").appName("check")
             .config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m")
             .config("spark.ui.enabled", "false").config("spark.task.maxFailures", 2)
             .config("spark.ui.showConsoleProgress", "false")
             .config("spark.network.timeout", "600s") # a machine may stand still for a while
             .config("spark.python.authenticate.socketTimeout", "600s")
             .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
             .config("spark.executorEnv.PENSTOCK_LIBRARY", os.environ["PENSTOCK_LIBRARY"]).getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def frame(spark, seconds=0.0, marks=None):
    """Pictures. Rows are a range's, computed where the partitions are; slowly, if asked for, with a mark for each."""
    def row(number):
        time.sleep(seconds)
        if marks:
            open(f"{marks}/{number}", "w").close()
        image, label = checks.picture(number)
        return number, bytearray(image.tobytes()), label
    rows = spark.sparkContext.range(checks.COUNT, numSlices=checks.PARTS).map(row)
    return spark.createDataFrame(rows, "number long, pixels binary, label int")


def estimator(arguments, folder, epochs=2, **options):
    from penstock.spark import PenstockEstimator
    return PenstockEstimator(checks.job(epochs), inputs={"picture": "pixels"}, label="label", folder=folder,
                             workers=checks.WORKERS, shapes={"picture": [checks.SIDE, checks.SIDE]},
                             command=arguments.penstock, **options)


def check_equal(arguments, spark, work):
    folder = f"{work}/equal"
    data = frame(spark)
    model = Pipeline(stages=[estimator(arguments, folder, epochs=10, kind="class")]).fit(data)
    fitted = model.stages[0]
    assert fitted.parameters_hash == checks.by_hand(arguments.penstock, folder), "not the numbers of the job by hand"
    checks.check_files(folder)
    scored = model.transform(data)
    right = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored)
    assert right > 0.9 and scored.count() == checks.COUNT, f"accuracy {right}"
    again = estimator(arguments, folder, epochs=10).fit(data)
    assert again.parameters_hash == fitted.parameters_hash, "other numbers of the same folder"
    checks.check_overhead(arguments.penstock, f"{work}/timed", lambda timed: estimator(arguments, timed, 10).fit(data))
    checks.say(f"fit and transform: the numbers of one device, accuracy {right}; fit again: the same")
    return again


def check_refused(arguments, spark, work):
    """Data that come again otherwise, and a job that has a mistake."""
    def refused(data, words, folder=f"{work}/equal", **options):
        try:
            estimator(arguments, folder, **options).fit(data)
        except Exception as error:
            assert words in str(error), error
            return
        raise AssertionError(f"taken, expected: {words}")
    data = frame(spark)
    turned = data.selectExpr("label", "concat(substring(pixels, 2), substring(pixels, 1, 1)) pixels")
    refused(turned, "came again with other rows")
    refused(data.where("number < 18").coalesce(1), "came again in other parts")
    refused(data, "exit code 3", f"{work}/refused", epochs=-1)
    checks.say("other rows, other parts, a bad job: refused")


def check_models(arguments, spark, work):
    """Models of others are trained as TensorFlow and PyTorch do it."""
    from penstock.spark import PenstockEstimator
    from penstock.training import predict
    for name, describe in checks.MODELS.items():
        file, given, inputs, labels, train, check = describe()
        folder, job = f"{work}/{name}", checks.model_job(file, train)
        rows = [(x.reshape(-1).tolist(), int(y)) for x, y in zip(inputs, labels)]
        data = spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), "x array<float>, label int")
        model = PenstockEstimator(job, inputs={given: "x"}, label="label", folder=folder, workers=checks.WORKERS,
                                  shapes={given: list(inputs.shape[1:])}, command=arguments.penstock).fit(data)
        check(folder)
        assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), name
        found = [row.prediction for row in model.transform(data).collect()]
        wanted = predict({**job, "data": {"eval": {"inputs": {given: inputs}}}}, {given: inputs},
                         parameters=f"{folder}/parameters.safetensors")
        checks.near(numpy.array(found), wanted.reshape(8, -1), f"predictions of {name}")
        checks.say(f"{name}: trained as what made it trains it, with the numbers of one device; predicted on executors")


def check_regression(arguments, spark, work):
    from penstock.spark import PenstockEstimator

    def row(number):
        x, y = checks.facts(number)
        return Vectors.dense(x), float(y[0]), Vectors.dense(y)
    data = spark.createDataFrame(spark.sparkContext.range(checks.COUNT, numSlices=3).map(row), ["x", "one", "two"])
    for kind, label in (("number", "one"), ("vector", "two")):
        model = PenstockEstimator(checks.regression(kind), inputs={"x": "x"}, label=label, folder=f"{work}/{kind}",
                                  kind=kind, workers=2, command=arguments.penstock).fit(data)
        scored = model.transform(data)
        if kind == "number":
            error = RegressionEvaluator(labelCol="one", metricName="rmse").evaluate(scored)
        else:
            error = max(row.prediction.squared_distance(row.two) for row in scored.collect()) ** 0.5
        assert error < 0.05, f"{kind}: error {error}"
    checks.say("numbers and vectors: learned, and predicted as Spark's evaluators take them")


def check_weights(arguments, spark, work):
    from penstock.spark import PenstockEstimator

    def row(number):
        x, y, w = checks.weighed(number)
        return Vectors.dense(x), y, w
    data = spark.createDataFrame(spark.sparkContext.range(checks.COUNT, numSlices=3).map(row), ["x", "y", "trust"])
    folder = f"{work}/weights"
    model = PenstockEstimator(checks.weighed_job(), inputs={"x": "x"}, label="y", weight="trust", folder=folder,
                              workers=2, command=arguments.penstock).fit(data)
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "not the numbers of the job by hand"
    checks.check_weighed(folder)
    checks.say("weights of rows: the numbers of one device, and of NumPy")


def check_options(arguments, spark, work):
    """Labels that are doubles, one of two outputs, no TLS; and a model that is made again of what was saved."""
    from penstock.spark import PenstockEstimator, PenstockModel
    folder, job = f"{work}/options", checks.two_outputs()
    job["data"] = {**job["data"], "train": {"label_type": "index"}}
    inputs, shapes = {"picture": "pixels"}, {"picture": [checks.SIDE, checks.SIDE]}
    data = frame(spark).selectExpr("number", "pixels", "concat('class ', label) name")
    stages = [StringIndexer(inputCol="name", outputCol="label", stringOrderType="alphabetAsc"),
              PenstockEstimator(job, inputs=inputs, shapes=shapes, label="label", folder=folder, workers=2,
                                device={"memory": "1GiB"}, insecure=True, kind="class", command=arguments.penstock)]
    fitted = Pipeline(stages=stages).fit(data)
    scored = fitted.transform(data)
    right = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(scored)
    assert right > 0.9, f"accuracy {right}"
    model = fitted.stages[1]
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "not the numbers of the job by hand"
    checks.check_devices(folder, "1GiB")
    model.save(f"{folder}/kept.safetensors")
    with open(f"{folder}/kept.safetensors", "rb") as file:
        again = PenstockModel(job, file.read(), inputs=inputs, shapes=shapes, kind="vector", output="features")
    row = again.transform(data).where("number = 7").first()
    wanted = checks.predicted(job, f"{folder}/kept.safetensors", 7, "features")
    checks.near(row.prediction.toArray(), wanted, "an output that was asked for")
    checks.say(f"indexed labels, an output by its name, a model made again: accuracy {right}")


def check_executor_killed(arguments, spark, work, cluster):
    folder, killed = f"{work}/killed", []

    def kill():
        checks.wait_for_event(folder, "checkpoint")
        executor = cluster.executors()[-1]
        killed.append({pid for pid, _ in checks.beneath(executor)})
        assert "end" not in checks.events_of(folder), "the training was over before"
        os.kill(executor, signal.SIGKILL)
    killer = threading.Thread(target=kill)
    killer.start()
    model = estimator(arguments, folder, EPOCHS).fit(frame(spark))
    killer.join()
    assert killed, "nobody was killed"
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "other numbers: an executor was killed"
    events = checks.events_of(folder)
    assert events.count("start") > 1 or "recovery" in events, events
    checks.none_left(lambda: checks.still(killed[0]), "the executor that was killed")
    checks.say(f"an executor killed in fit: the same numbers; {events.count('start')} starts")


def check_killed_in_transform(spark, work, cluster, model):
    wanted = [row.prediction for row in model.transform(frame(spark)).orderBy("number").collect()]
    marks, killed = f"{work}/marks", []
    os.mkdir(marks)

    def kill():
        while len(os.listdir(marks)) < checks.COUNT // 2:
            time.sleep(0.02)
        executor = cluster.executors()[-1]
        assert len(os.listdir(marks)) < checks.COUNT, "it was over before"
        killed.append({pid for pid, _ in checks.beneath(executor)})
        os.kill(executor, signal.SIGKILL)
    killer = threading.Thread(target=kill)
    killer.start()
    slow = model.transform(frame(spark, 0.1, marks))
    found = [row.prediction for row in slow.orderBy("number").collect()]
    killer.join()
    assert killed, "nobody was killed"
    assert found == wanted, "other predictions after an executor was killed"
    checks.none_left(lambda: checks.still(killed[0]), "the executor that was killed")
    checks.say("an executor killed in transform: the same predictions")


def check_process_killed(arguments, spark, work):
    """One process of the training: the stage goes on."""
    folder, killed = f"{work}/process", []

    def kill():
        checks.wait_for_event(folder, "checkpoint")
        killed.append(checks.training_processes(arguments.penstock, work)[-1][0])
        os.kill(killed[0], signal.SIGKILL)
        assert "end" not in checks.events_of(folder), "the training was over before"
    killer = threading.Thread(target=kill)
    killer.start()
    model = estimator(arguments, folder, EPOCHS).fit(frame(spark))
    killer.join()
    assert killed, "nobody was killed"
    assert model.parameters_hash == checks.by_hand(arguments.penstock, folder), "other numbers: a process was killed"
    checks.say("a process killed: the same numbers")


def check_driver_killed(arguments, work, cluster):
    """Nothing is left of a driver that is killed, and its training is gone on with."""
    for victim in ("python", "java"):
        folder = f"{work}/driver-{victim}"
        command = [sys.executable, os.path.abspath(__file__), "--penstock", arguments.penstock]
        with checks.started([*command, "--fit", folder, "--port", str(cluster.port)], f"{folder}.txt") as driver:
            checks.wait_for_event(folder, "checkpoint")
            family = dict(checks.beneath(driver.pid))
            java = next(pid for pid, args in family.items() if "java" in args.split()[0])
            os.kill(driver.pid if victim == "python" else java, signal.SIGKILL)
            assert "end" not in checks.events_of(folder), "the training was over before"
            assert driver.wait(120) != 0
        checks.none_left(lambda: checks.training_processes(arguments.penstock, work), "trainings of a killed driver")
        checks.none_left(cluster.of_applications, "executors of a driver that was killed")
        checks.none_left(lambda: checks.still(family), "processes of a driver that was killed")
        subprocess.run([*command, "--fit", folder, "--port", str(cluster.port)], check=True, stderr=subprocess.DEVNULL)
        with open(f"{folder}/hash") as file:
            assert file.read() == checks.by_hand(arguments.penstock, folder), "other numbers: the driver was killed"
        checks.say(f"the driver's {victim} killed: nothing left; the next fit went on to the same numbers")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--fit", help="be a driver that fits into this folder")
    parser.add_argument("--port", type=int, help="of the master, for --fit")
    arguments = parser.parse_args()
    arguments.penstock = os.path.abspath(arguments.penstock)
    os.environ["PYSPARK_PYTHON"] = sys.executable # executors take what the driver has
    os.environ["PYTHONPATH"] = f"{checks.TOP}/python:{checks.TOP}/tests/python"
    os.environ["PENSTOCK_LIBRARY"] = os.path.join(os.path.dirname(arguments.penstock), "libpenstock.so")
    sys.path.insert(0, f"{checks.TOP}/python")
    if arguments.fit:
        spark = session(arguments.port)
        model = estimator(arguments, arguments.fit, EPOCHS).fit(frame(spark))
        with open(f"{arguments.fit}/hash", "w") as file:
            file.write(model.parameters_hash)
        return
    if not shutil.which("java"):
        sys.exit("check-spark: Spark needs Java 17: apt-get install --no-install-recommends openjdk-17-jre-headless")
    with checks.work_folder("check-spark", "spark") as work:
        run(arguments, work)
    checks.say("check-spark: all is well")


def run(arguments, work):
    os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={work}" # likewise
    cluster = Cluster(work)
    try:
        spark = session(cluster.port)
        model = check_equal(arguments, spark, work)
        check_refused(arguments, spark, work)
        check_models(arguments, spark, work)
        check_regression(arguments, spark, work)
        check_weights(arguments, spark, work)
        check_options(arguments, spark, work)
        check_process_killed(arguments, spark, work)
        check_executor_killed(arguments, spark, work, cluster)
        check_killed_in_transform(spark, work, cluster, model)
        spark.stop()
        check_driver_killed(arguments, work, cluster)
    finally:
        cluster.stop()
    checks.none_left(lambda: checks.training_processes(arguments.penstock, work), "trainings")


if __name__ == "__main__":
    main()
