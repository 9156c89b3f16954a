"""Training within Spark: an estimator whose data never pass through the driver, and its model.

Rows become files where the partitions are computed, in a folder that all executors see. A barrier stage then starts a
task of a training in each of its tasks. When an executor is lost, Spark runs the stage again, and the training goes on
from its last checkpoint, to the same numbers.
"""
from __future__ import annotations

import itertools
import uuid
from typing import Any, Iterable, Iterator, Mapping, Sequence

import numpy
from pyspark import BarrierTaskContext, TaskContext
from pyspark.ml import Estimator, Model
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql.types import ArrayType, DoubleType, FloatType, StructField, StructType

from . import _errors, _rows, _tasks
from ._predictor import Predictor


def _blocks(rows: Iterable[Any], names: list[str]) -> Iterator[tuple[list[Any], dict[str, list[Any]]]]:
    """Some rows at a time, and their values by column."""
    rows = iter(rows)
    while block := list(itertools.islice(rows, _rows.BLOCK_ROWS)):
        yield block, {name: [row[name] for row in block] for name in names}


def _train(training: _tasks.Training, start: str) -> Iterator[int]:
    """A task of the barrier stage. Each time that Spark runs the stage is a start of its own."""
    context = BarrierTaskContext.get()
    rank = context.partitionId()
    address = context.getTaskInfos()[rank].address.rsplit(":", 1)[0]
    first = context.allGather(str(context.taskAttemptId()))[0]
    training.run(rank, f"{start}-{first}", lambda: address)
    yield rank


class PenstockEstimator(Estimator):
    """Trains the model of a job on the rows of a DataFrame.

    job            a dict as of penstock.train, without devices, and without files in data.train; paths in it are
                   absolute, and seen by all executors
    inputs         for each input of the model, by its name, the column that it is read from: numbers, arrays, bytes, or
                   vectors
    label          the column of labels; a dict of them, by their names, where a model has several losses
    weight         the column that says how much each row counts in the loss, a number of at least 0
    folder         a folder for this training that all executors see. One that was begun is gone on with
    workers        processes that train: tasks of a barrier stage, so as many slots must be free at once
    threads        of each
    device         more keys of each device of the job, such as {"memory": "4GiB"}
    shapes         by input, the shape of an example, where the column has its numbers in one row
    prediction, kind, output   of the model: see there
    command        the command `penstock` on the executors
    insecure       let processes talk over the network without TLS
    """

    def __init__(self, job: Mapping[str, Any], *, inputs: Mapping[str, str], label: str | Mapping[str, str],
                 folder: str, workers: int, threads: int = 1, device: Mapping[str, Any] | None = None,
                 shapes: Mapping[str, Sequence[int]] | None = None, prediction: str = "prediction", kind: str = "array",
                 output: str | None = None, command: str = "penstock", insecure: bool = False,
                 weight: str | None = None) -> None:
        super().__init__()
        _check_kind(kind)
        self.columns = _rows.columns_of(inputs, label, shapes, weight)
        self.training = _tasks.Training(job, self.columns, folder, workers, threads, dict(device or {}), command,
                                        insecure)
        self.predicting = {"prediction": prediction, "kind": kind, "output": output}

    def _fit(self, dataset: Any) -> "PenstockModel":
        spark = dataset.sparkSession.sparkContext
        training, columns, folder = self.training, self.columns, self.training.path("data")
        names = columns.names()

        def write(index: int, rows: Iterable[Any]) -> Iterator[tuple[int, int, str]]:
            yield _rows.write_part(folder, index, (values for _, values in _blocks(rows, names)), columns)
        parts = dataset.select(*names).rdd.mapPartitionsWithIndex(write).collect()
        spark.parallelize([0], 1).foreach(lambda _: training.prepare(parts))
        start = uuid.uuid4().hex
        # Spark runs a barrier stage again only where a shuffle follows it
        spark.parallelize(range(training.workers), training.workers).barrier().mapPartitions(
            lambda _: _train(training, start)).keyBy(lambda _: 0).groupByKey(1).count()
        weights, parameters_hash = spark.parallelize([0], 1).map(lambda _: training.result()).collect()[0]
        return PenstockModel(training.job, weights, inputs=columns.inputs, shapes=columns.shapes,
                             parameters_hash=parameters_hash, **self.predicting)


def _only(values: numpy.ndarray) -> float:
    if values.size != 1:
        raise _errors.InvalidInputError(f"kind: found \"number\" and {values.size} outputs of an example, expected one")
    return float(values.item())


# How the outputs of an example become a value of a column: its type, and what is made of them.
_KINDS = {
    "array": (ArrayType(FloatType()), lambda values: values.reshape(-1).tolist()),
    "vector": (VectorUDT(), lambda values: Vectors.dense(values.reshape(-1).astype(float))),
    "number": (DoubleType(), _only),
    "class": (DoubleType(), lambda values: float(values.reshape(-1).argmax())),
}


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise _errors.InvalidInputError(f"kind: found {kind!r}, expected one of {', '.join(_KINDS)}")


class PenstockModel(Model):
    """What was trained. `transform` adds the model's output to each row, computed where the rows are.

    weights          the parameters, as the bytes of a safetensors file
    parameters_hash  of the parameters: equal trainings have equal ones
    prediction       the column that is added
    kind             what it holds: "array", "vector" of Spark ML, "number" where the model has one, or "class", the
                     index of the greatest. The last two are doubles, as Spark's evaluators take them
    output           the name of the model's output; None: the first
    """

    def __init__(self, job: Mapping[str, Any], weights: bytes, *, inputs: Mapping[str, str],
                 shapes: Mapping[str, Sequence[int]] | None = None, prediction: str = "prediction", kind: str = "array",
                 output: str | None = None, parameters_hash: str | None = None) -> None:
        super().__init__()
        _check_kind(kind)
        self.job, self.weights, self.columns = dict(job), weights, _rows.columns_of(inputs, {}, shapes)
        self.prediction, self.kind, self.output = prediction, kind, output
        self.parameters_hash = parameters_hash

    def _transform(self, dataset: Any) -> Any:
        session = dataset.sparkSession
        weights = session.sparkContext.broadcast(self.weights)
        job, columns, kind, output = self.job, self.columns, self.kind, self.output

        def predict(rows: Iterable[Any]) -> Iterator[tuple]:
            predictor = Predictor(job, weights.value, columns, threads=TaskContext.get().cpus(), output=output)
            try:
                for block, values in _blocks(rows, columns.names()):
                    for row, value in zip(block, predictor.predict(values)):
                        yield (*row, _KINDS[kind][1](value))
            finally:
                predictor.close()
        schema = StructType([*dataset.schema.fields, StructField(self.prediction, _KINDS[kind][0], False)])
        return session.createDataFrame(dataset.rdd.mapPartitions(predict), schema)

    def save(self, path: str) -> None:
        """Writes the parameters as a safetensors file, which penstock.predict and `penstock export` take."""
        with open(path, "wb") as file:
            file.write(self.weights)
