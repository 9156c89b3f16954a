"""Checks manifests: check_kubernetes.py FOLDER PENSTOCK"""
import copy
import subprocess
import sys

import kubernetes_validate
import yaml

folder, penstock = sys.argv[1:]
VERSION = kubernetes_validate.latest_version()


def read(name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return yaml.safe_load(file)


def is_refused(manifest):
    try:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return str(error.message)
    return None


def check(manifest, name):
    why = is_refused(manifest)
    assert why is None, f"{name}: {why}"
    wrong = copy.deepcopy(manifest)  # the check itself can fail
    wrong["spec"]["completionModes"] = "Indexed"
    assert is_refused(wrong), f"{name}: a wrong key is taken"
    spec = manifest["spec"]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"], name
    task = spec["template"]["spec"]["containers"][0]
    size = [one["value"] for one in task["env"] if one["name"] == "PENSTOCK_SIZE"]
    assert size == [str(spec["completions"])], f"{name}: PENSTOCK_SIZE {size}"
    verb, *options = task["args"]
    text = subprocess.run([penstock, verb, "--help"], check=True, capture_output=True, text=True).stdout
    for option in options:
        assert not option.startswith("--") or f" {option} " in text, f"{name}: {verb} has no {option}"
    print(f"kubernetes: {name} ok (API {VERSION})")


check(read("job.yaml"), "job.yaml")
jobset = read("jobset.yaml")
assert jobset["apiVersion"] == "jobset.x-k8s.io/v1alpha2" and jobset["kind"] == "JobSet"
assert set(jobset["spec"]) <= {"failurePolicy", "replicatedJobs"}
for job in jobset["spec"]["replicatedJobs"]:
    assert set(job) == {"name", "replicas", "template"}
    check({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, **job["template"]}, "jobset.yaml")
