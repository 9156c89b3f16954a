"""Predicts rows of a table where they are: a part of the work of Spark's executors and Ray's actors."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Mapping

from . import _rows

_OF_TRAINING = ("devices", "cluster", "links", "placement", "checkpoint", "recovery", "pipeline", "outputs", "tls")
_DATA_OF_TRAINING = ("train", "eval", "holdout")


class Predictor:
    """A model on one device of this process, which is opened for the first rows: they say what examples are like."""

    def __init__(self, job: Mapping[str, Any], weights: bytes, columns: _rows.Columns, *, threads: int,
                 output: str | None) -> None:
        self.job, self.weights, self.columns = job, weights, columns
        self.threads, self.output = threads, output
        self._training: Any = None

    def predict(self, block: Mapping[str, Any]) -> Any:
        """The outputs for some rows, whose values `block` has by column."""
        arrays = self.columns.input_arrays(block)
        if self._training is not None:
            return self._training.predict(arrays, self.output)
        with tempfile.TemporaryDirectory() as folder: # the parameters are read by the first prediction
            path = os.path.join(folder, "parameters.safetensors")
            with open(path, "wb") as file:
                file.write(self.weights)
            self._training = self._open({name: array[:1] for name, array in arrays.items()}, path)
            return self._training.predict(arrays, self.output)

    def _open(self, first: Mapping[str, Any], parameters: str) -> Any:
        from .training import Training # needs the library, which is where rows are

        job = {key: value for key, value in self.job.items() if key not in _OF_TRAINING}
        data = {key: value for key, value in job.get("data", {}).items() if key not in _DATA_OF_TRAINING}
        job |= {"data": {**data, "eval": {"inputs": first}}, "devices": [{"name": "here", "threads": self.threads}]}
        return Training(job, parameters=parameters, inference=True)

    def close(self) -> None:
        if self._training is not None:
            self._training.close()
