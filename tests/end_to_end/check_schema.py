"""Judges JSON Schemas by the jsonschema package. check_schema.py TOP JOB_SCHEMA CLUSTER_SCHEMA

Writes each wrong job as wrong_job.N.yaml, so that the command can be asked about the same."""
import copy
import glob
import json
import re
import sys

import jsonschema
import yaml



class Loader(yaml.SafeLoader):
    """As YAML 1.2 has it: `on` and `yes` are text, and 1e-4 is a number."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":float"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), list("-+.0123456789"))


def read(text):
    return yaml.load(text, Loader)


top, job_path, cluster_path = sys.argv[1:]
with open(job_path) as file:
    job_schema = json.load(file)
with open(cluster_path) as file:
    cluster_schema = json.load(file)
for schema in (job_schema, cluster_schema):
    jsonschema.Draft202012Validator.check_schema(schema)
job_validator = jsonschema.Draft202012Validator(job_schema)
cluster_validator = jsonschema.Draft202012Validator(cluster_schema)

PLAIN = {
    "version": 1,
    "model": {"file": "none.onnx"},
    "data": {"train": {"format": "npy", "inputs": {"x": "x.npy"}}},
    "train": {"loss": "output", "optimizer": {"sgd": {"lr": 1}}, "batch": 1},
}


def accept(validator, value, name):
    for error in validator.iter_errors(value):
        sys.exit(f"{name}: {'.'.join(map(str, error.path))}: {error.message}")


accepted = 0
for path in sorted(glob.glob(f"{top}/examples/clusters/*.yaml")):
    with open(path) as file:
        cluster = read(file)
    accept(cluster_validator, cluster, path)
    accept(job_validator, {**PLAIN, **cluster}, path)
    accept(job_validator, {**PLAIN, "cluster": cluster}, path)
    accept(job_validator, {**PLAIN, "cluster": path}, path)
    accepted += 1
for path in sorted(glob.glob(f"{top}/examples/*/*.yaml")):
    with open(path) as file:
        text = file.read()
    if "/clusters/" in path or re.search("^(apiVersion|base):", text, re.M):
        continue # manifests of Kubernetes and sweeps are no jobs
    accept(job_validator, read(text), path)
    accepted += 1
for path in ("docs/your-model.md", "docs/job.md", "docs/cluster.md"):
    with open(f"{top}/{path}") as file:
        blocks = re.findall(r"^```yaml\n(.*?)^```$", file.read(), re.M | re.S)
    for block in blocks:
        accept(job_validator, {**PLAIN, **read(block)}, f"{path}:\n{block}")
        accepted += 1

DEVICE = {"name": "a"}
WRONG = [
    ({"devices": [{}]}, "a device without a name"),
    ({"devices": []}, "no device"),
    ({"devices": [{**DEVICE, "memory": 2}]}, "memory without a unit"),
    ({"devices": [{**DEVICE, "reserve": "2 gigs"}]}, "a unit that is none"),
    ({"devices": [{**DEVICE, "threads": 0}]}, "no threads"),
    ({"devices": [{**DEVICE, "flops": "80"}]}, "a rate without a unit"),
    ({"devices": [{**DEVICE, "memory_bandwidth": "1Gbit"}]}, "a bandwidth a second of nothing"),
    ({"devices": [{**DEVICE, "kind": "gpu"}]}, "a kind that is none"),
    ({"devices": [{**DEVICE, "hots": "n1"}]}, "a key that is none"),
    ({"links": [{"between": ["a", "b"]}]}, "a link without bandwidth"),
    ({"links": [{"between": ["a"], "bandwidth": "1GB/s"}]}, "a link of one device"),
    ({"links": [{"between": ["a", "b"], "bandwidth": "1GB/s", "latency": 5}]}, "bare seconds"),
    ({"cluster": {"links": []}}, "a cluster without devices"),
    ({"placement": {"objective": "speed"}}, "an objective that is none"),
    ({"placement": {"time_limit": 5}}, "a time limit without a unit"),
    ({"placement": {"seed": -1}}, "a negative seed"),
    ({"placement": {"contiguous": "maybe"}}, "a flag that is none"),
    ({"placement": {"pin": [{"nodes": "^a"}]}}, "a pin to nowhere"),
    ({"placement": {"pin": {"nodes": "^a", "to": "b"}}}, "a pin that is no list"),
    ({"placement": {"colocate": [{"nodes": []}]}}, "nothing colocated"),
    ({"placement": {"no_split": [{"node": "x"}]}}, "a key that is none"),
    ({"placement": {"forbid": [{"nodes": "x"}]}}, "forbidden on nothing"),
    ({"placement": {"stages": {"minimum": 0}}}, "no stages"),
    ({"placement": {"stages": 3}}, "stages that are no mapping"),
    ({"pipeline": {"schedule": "pipedream"}}, "a schedule that is none"),
    ({"costs": {}}, "a path that is none"),
]
for number, (change, what) in enumerate(WRONG):
    job = copy.deepcopy({**PLAIN, **change})
    if job_validator.is_valid(job):
        sys.exit(f"accepted: {what}: {change}")
    with open(f"wrong_job.{number}.yaml", "w") as file:
        yaml.safe_dump(job, file)
    if "devices" in change and cluster_validator.is_valid(change):
        sys.exit(f"accepted as a cluster: {what}: {change}")

# a mistake is told where it is, and not as a list of forms of which none fits
MISTAKES = [
    ({"train": {**PLAIN["train"], "optimizer": {"sgd": {"lr": 1, "momentun": 1}}}}, "train.optimizer.sgd", "momentun"),
    ({"train": {**PLAIN["train"], "optimizer": "adagrat"}}, "train.optimizer", "adagrat"),
    ({"train": {**PLAIN["train"], "learning_rate": {"step": {"every": "x"}}}}, "train.learning_rate.step.every", "x"),
    ({"data": {"train": {"format": "npy", "inputs": {"x": 1}}}}, "data.train.inputs.x", "1"),
    ({"data": {"train": {"format": "cvs", "file": "x"}}}, "data.train.format", "cvs"),
    ({"data": {"train": {"format": "csv", "file": "x.csv", "labels_column": 1}}}, "data.train", "labels_column"),
    ({"cluster": {"devices": [{"nam": "a"}]}}, "cluster.devices.0", "nam"),
    ({"placement": {"pin": [{"nodes": "^a", "too": "b"}]}}, "placement.pin.0", "too"),
]
for change, where, found in MISTAKES:
    errors = list(job_validator.iter_errors({**PLAIN, **change}))
    told = [(".".join(map(str, error.path)), error.message) for error in errors]
    if any(error.context for error in errors) or not any(place.startswith(where) and found in text for place, text in told):
        sys.exit(f"{change}: told {told}, not {where}")
print(f"{accepted} accepted, {len(WRONG)} refused")
assert accepted >= 12
