"""Training within Ray: a trainer whose data never pass through the driver, and its model.

The blocks of a dataset become files where they are computed, in a folder that all nodes see. Then a placement group
has a task of a training in each of its bundles. A task whose process or node is lost is started again by Ray, and takes
part again; the numbers stay the same.
"""
from __future__ import annotations

import uuid
from typing import Any, Iterable, Mapping, Sequence

import numpy
import ray
import ray.data
from ray.data.block import BlockAccessor
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from . import _errors, _rows, _tasks
from ._predictor import Predictor

_RETRIES = 10 # of a task whose process or node was lost
_END_SECONDS = 10 # for the other tasks, when one is done


class _Parts(ray.data.Datasink):
    """Writes what each task of Ray Data has as a part, and notes the parts."""

    def __init__(self, folder: str, columns: _rows.Columns) -> None:
        self.folder, self.columns = folder, columns
        self.parts: list[tuple[int, int, str]] = []

    def _values(self, blocks: Iterable[Any]) -> Iterable[dict[str, Any]]:
        names = self.columns.names()
        for block in map(BlockAccessor.for_block, blocks):
            if block.num_rows() > 0: # one without rows may have no columns, too
                _check_columns(names, block.column_names())
            for first in range(0, block.num_rows(), _rows.BLOCK_ROWS):
                last = min(first + _rows.BLOCK_ROWS, block.num_rows())
                yield BlockAccessor.for_block(block.slice(first, last)).to_numpy(names)

    def write(self, blocks: Iterable[Any], ctx: Any) -> tuple[int, int, str]:
        return _rows.write_part(self.folder, ctx.task_idx, self._values(blocks), self.columns)

    def on_write_complete(self, write_result: Any) -> None:
        self.parts = list(write_result.write_returns)


def _check_columns(names: list[str], found: list[str]) -> None:
    for name in names:
        if name not in found:
            raise _errors.InvalidInputError(f"the dataset has no column '{name}', found {', '.join(found)}")


class PenstockTrainer:
    """Trains the model of a job on the rows of a dataset of Ray Data.

    job        a dict as of penstock.train, without devices, and without files in data.train; paths in it are absolute,
               and seen by all nodes
    inputs     for each input of the model, by its name, the column that it is read from: numbers or arrays
    label      the column of labels; a dict of them, by their names, where a model has several losses
    weight     the column that says how much each row counts in the loss, a number of at least 0
    folder     a folder for this training that all nodes see. One that was begun is gone on with
    workers    processes that train: bundles of a placement group
    threads    of each, and CPUs of its bundle
    resources  what else is in each bundle, such as {"memory": 4 << 30}
    strategy   of the placement group: SPREAD, PACK, STRICT_SPREAD or STRICT_PACK
    wait       seconds until the placement group must be there
    device     more keys of each device of the job, such as {"memory": "4GiB"}
    shapes     by input, the shape of an example, where the column has its numbers in one row
    command    the command `penstock` on the nodes
    insecure   let processes talk over the network without TLS
    """

    def __init__(self, job: Mapping[str, Any], *, inputs: Mapping[str, str], label: str | Mapping[str, str],
                 folder: str, workers: int, threads: int = 1, resources: Mapping[str, float] | None = None,
                 strategy: str = "SPREAD", wait: float = 300, device: Mapping[str, Any] | None = None,
                 shapes: Mapping[str, Sequence[int]] | None = None, command: str = "penstock",
                 insecure: bool = False, weight: str | None = None) -> None:
        self.columns = _rows.columns_of(inputs, label, shapes, weight)
        self.training = _tasks.Training(job, self.columns, folder, workers, threads, dict(device or {}), command,
                                        insecure)
        self.bundle = {"CPU": threads, **(resources or {})}
        self.strategy, self.wait = strategy, wait

    def fit(self, dataset: ray.data.Dataset) -> "PenstockModel":
        def run_once(work: Any, *arguments: Any) -> Any:
            return ray.get(ray.remote(work).options(num_cpus=0).remote(self.training, *arguments))
        run_once(_tasks.Training.prepare, self._write(dataset))
        self._train()
        weights, parameters_hash = run_once(_tasks.Training.result)
        return PenstockModel(self.training.job, weights, inputs=self.columns.inputs, shapes=self.columns.shapes,
                             parameters_hash=parameters_hash)

    def _write(self, dataset: ray.data.Dataset) -> list[tuple[int, int, str]]:
        """Examples come in the dataset's order, which Ray Data keeps only when it is told to."""
        options = dataset.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            sink = _Parts(self.training.path("data"), self.columns)
            dataset.write_datasink(sink)
        finally:
            options.preserve_order = before
        return sink.parts

    def _train(self) -> None:
        workers = self.training.workers
        group = placement_group([self.bundle] * workers, strategy=self.strategy)
        try:
            if not group.wait(self.wait):
                raise _errors.UnavailableError(f"the cluster had no room for {workers} times {self.bundle} after "
                                               f"{self.wait:g} s, it has {ray.cluster_resources()}")
            task, start = ray.remote(_tasks.Training.run), uuid.uuid4().hex
            tasks = [task.options(name=f"penstock train {rank}", max_retries=_RETRIES, num_cpus=self.training.threads,
                                  scheduling_strategy=PlacementGroupSchedulingStrategy(group, rank)
                                  ).remote(self.training, rank, start, ray.util.get_node_ip_address)
                     for rank in range(workers)]
            done, others = ray.wait(tasks) # one ends when the training is over, or with an error
            ray.get(done)
            if others: # not those that wait for a node
                ray.wait(others, num_returns=len(others), timeout=_END_SECONDS)
        finally:
            remove_placement_group(group) # ends what is left of the tasks


class _Actor:
    """Predicts batches; Ray Data has some of them."""

    def __init__(self, model: "PenstockModel", weights: list[ray.ObjectRef], threads: int) -> None:
        self.name = model.prediction
        self.predictor = Predictor(model.job, ray.get(weights[0]), model.columns, threads=threads, output=model.output)

    def __call__(self, batch: dict[str, numpy.ndarray]) -> dict[str, Any]:
        return {**batch, self.name: self.predictor.predict(batch)}


class PenstockModel:
    """What was trained. `predict` adds the model's output to each row, computed where the rows are.

    weights          the parameters, as the bytes of a safetensors file
    parameters_hash  of the parameters: equal trainings have equal ones
    prediction       the column that is added: an array of numbers for each row
    output           the name of the model's output; None: the first
    """

    def __init__(self, job: Mapping[str, Any], weights: bytes, *, inputs: Mapping[str, str],
                 shapes: Mapping[str, Sequence[int]] | None = None, prediction: str = "prediction",
                 output: str | None = None, parameters_hash: str | None = None) -> None:
        self.job, self.weights, self.columns = dict(job), weights, _rows.columns_of(inputs, {}, shapes)
        self.prediction, self.output, self.parameters_hash = prediction, output, parameters_hash

    def predict(self, dataset: ray.data.Dataset, *, workers: int = 1, threads: int = 1,
                batch: int = _rows.BLOCK_ROWS) -> ray.data.Dataset:
        """The dataset with predictions, computed by up to so many actors when it is read."""
        weights = ray.put(self.weights)
        model = PenstockModel(self.job, b"", inputs=self.columns.inputs, shapes=self.columns.shapes,
                              prediction=self.prediction, output=self.output)
        return dataset.map_batches(_Actor, fn_constructor_args=(model, [weights], threads), batch_size=batch,
                                   batch_format="numpy", num_cpus=threads,
                                   compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers))

    def save(self, path: str) -> None:
        """Writes the parameters as a safetensors file, which penstock.predict and `penstock export` take."""
        with open(path, "wb") as file:
            file.write(self.weights)
