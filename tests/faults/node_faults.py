"""Nodes that are slow or stand still, and disks that are full, read-only or gone.

  node_faults.py [PATTERN]       cases whose name matches

What the machine does not allow (control groups, mounts) is skipped, counted, and says why.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from cases import Cases, Skip
from training import Scene

LEASE = 1.5
RECOVERY = f"on_loss: wait, grace: 30 s, lease: {LEASE} s, progress: 20 s, attempts: 20"
GROUPS = "/sys/fs/cgroup/cpu"


def losses_of_workers(training):
    return len(training.said("coordinator", "lost worker"))


# ---- nodes

def slow_by_quota(scene):
    group = f"{GROUPS}/penstock-faults-{os.getpid()}"
    try:
        os.mkdir(group)
        for name, number in (("cfs_period_us", "10000"), ("cfs_quota_us", "2000")):
            with open(f"{group}/cpu.{name}", "w", encoding="ascii") as out:
                out.write(number)
    except OSError as error:
        raise Skip(f"no control group for the processor: {error}") from None
    try:
        training = scene.begin()
        training.start_workers()
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as out:
            out.write(str(training.keeper.now("worker2").pid))
        training.start_coordinator()
        result = training.finish(120)
        with open(f"{group}/cpu.stat", encoding="ascii") as stat:
            throttled = dict(line.split() for line in stat)["nr_throttled"]
    finally:
        for _ in range(100):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.02)
    if losses_of_workers(training):
        result.wrong.append("a slow worker was taken for a lost one")
    if int(throttled) == 0:
        result.wrong.append("the worker was never held back")
    return result.wrong, f"{result.seconds:.1f} s, held back {throttled} times"


def slow_by_turns(scene):
    """Runs a fifth of the time."""
    training = scene.begin()
    training.start()
    worker = training.keeper.now("worker2")
    training.until(lambda: training.step() >= 5, 30)
    stops = 0
    while not training.is_over() and stops < 600:
        worker.signal(signal.SIGSTOP)
        time.sleep(0.04)
        worker.signal(signal.SIGCONT)
        stops += 1
        until = time.monotonic() + 0.01
        training.until(lambda: time.monotonic() > until, 5)
    result = training.finish(60)
    if losses_of_workers(training):
        result.wrong.append("a slow worker was taken for a lost one")
    return result.wrong, f"{result.seconds:.1f} s, stopped {stops} times"


def frozen(scene, names, seconds, is_loss):
    training = scene.begin()
    training.start()
    training.until(lambda: training.step() >= 40, 30)
    lives = [training.keeper.now(name) for name in names]
    for life in lives:
        life.signal(signal.SIGSTOP)
    training.kills.append(time.monotonic())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        training.turn()
    for life in lives:
        life.signal(signal.SIGCONT)
    result = training.finish(90)
    lost = losses_of_workers(training)
    if is_loss and not training.said("coordinator", "lost worker 2 .*which runs stage"):
        result.wrong.append("the lost worker was not named: " + training.last_words("coordinator"))
    if not is_loss and lost:
        result.wrong.append("a worker was lost: " + training.last_words("coordinator"))
    after = result.to_next_loss
    return result.wrong, f"next loss after {'-' if after is None else f'{after:.2f} s'}"


# ---- disks

def small_disk(scene):
    """A disk that has room for two checkpoints and not for a third, and for more later."""
    training = scene.begin()
    os.makedirs(training.kept)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1400k", "none", training.kept],
                             stderr=subprocess.PIPE, check=False)
    if mounted.returncode != 0:
        raise Skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        training.start()
        training.until(lambda: training.step() >= 200, 60)
        subprocess.run(["mount", "-o", "remount,size=8m", training.kept], check=True)
        result = training.finish(90)
        warned = training.said("coordinator", "warning: .*[Nn]o space left")
    finally:
        subprocess.run(["umount", "-l", training.kept], check=False)
    if not warned:
        result.wrong.append("no warning of the full disk: " + training.last_words("coordinator"))
    if len(training.keeper.lives["coordinator"]) > 1 or losses_of_workers(training):
        result.wrong.append("a full disk disturbed the training: " + training.last_words("coordinator"))
    return result.wrong, f"{len(warned)} warnings"


def read_only(scene):
    training = scene.begin()
    os.makedirs(training.kept)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", training.kept], stderr=subprocess.PIPE, check=False)
    if mounted.returncode != 0:
        raise Skip(f"cannot mount a disk: {mounted.stderr.decode().strip()}")
    try:
        training.start()
        training.until(lambda: training.step() >= 60, 30)
        subprocess.run(["mount", "-o", "remount,ro", training.kept], check=True)
        until = training.step() + 60
        training.until(lambda: training.step() >= until, 30)
        subprocess.run(["mount", "-o", "remount,rw", training.kept], check=True)
        result = training.finish(90)
        warned = training.said("coordinator", "warning: .*(Read-only|read-only)")
    finally:
        subprocess.run(["umount", "-l", training.kept], check=False)
    if not warned:
        result.wrong.append("no warning of the read-only disk: " + training.last_words("coordinator"))
    if len(training.keeper.lives["coordinator"]) > 1 or losses_of_workers(training):
        result.wrong.append("a read-only disk disturbed the training: " + training.last_words("coordinator"))
    return result.wrong, f"{len(warned)} warnings"


def removed(scene):
    """The folder is removed while the training runs: it is warned of, and at the end, when nothing can
    be saved for `retry`, code 9 says so. A coordinator that is started again makes the folder."""
    training = scene.begin()
    training.start()
    training.until(lambda: training.step() >= 60, 30)
    shutil.rmtree(training.kept, ignore_errors=True)
    training.allowed_codes["coordinator"] = {9}
    result = training.finish(90)
    warned = training.said("coordinator", "warning: ")
    if not warned and not os.path.isdir(training.kept):
        result.wrong.append("the folder is gone, and nothing was said")
    if losses_of_workers(training):
        result.wrong.append("a folder that went disturbed the training: " + training.last_words("coordinator"))
    return result.wrong, f"{len(warned)} warnings"


def own_disks(scene, loses):
    """No folder that all see; one worker dies and is back, with an empty disk when `loses`."""
    if subprocess.run(["unshare", "-m" if os.geteuid() == 0 else "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"],
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("this machine allows no mounts of one's own")
    training = scene.begin(again=0.3)
    training.own_disks()
    training.start()
    training.until(lambda: training.step() >= 90, 30)
    training.keeper.now("worker2").kill()
    while loses and training.keeper.now("worker2").code is None:
        training.turn()
    if loses:
        shutil.rmtree(training.disk_of("worker2"))
        os.makedirs(training.disk_of("worker2"))
    result = training.finish(90)
    after = result.to_next_loss
    if min([step for when, step, _ in training.losses() if when > training.kills[0] + 0.05], default=0) < 60:
        result.wrong.append("it began again from far before the checkpoint")
    return result.wrong, f"next loss after {'-' if after is None else f'{after:.2f} s'}"


def main():
    cases = Cases(sys.argv[1] if len(sys.argv) > 1 else "")
    scene = Scene(cases.at("nodes"), "mlp", steps=150, recovery=RECOVERY)
    long_scene = Scene(cases.at("long"), "mlp", steps=1000, every="20 steps", recovery=RECOVERY)
    long_scene.kind = "disks"
    scene.expected()
    cases.run("slow worker: 20 % of a core", slow_by_quota, scene)
    cases.run("slow worker: stopped four fifths of the time", slow_by_turns, scene)
    cases.run("frozen worker, within the lease", frozen, scene, ["worker2"], LEASE / 3, False)
    cases.run("frozen workers, all, within the lease", frozen, scene, ["worker1", "worker2", "worker3"], LEASE / 3, False)
    cases.run("frozen coordinator, within the lease", frozen, scene, ["coordinator"], LEASE / 3, False)
    cases.run("frozen worker, beyond the lease", frozen, scene, ["worker2"], 3 * LEASE, True)
    cases.run("full disk under the checkpoints", small_disk, long_scene)
    cases.run("read-only disk under the checkpoints", read_only, long_scene)
    hasty = Scene(cases.at("hasty"), "mlp", steps=1000, every="20 steps", recovery=RECOVERY, checkpoint=", retry: 5 s")
    hasty.kind = "disks"
    cases.run("folder of checkpoints removed", removed, hasty)
    local = Scene(cases.at("local"), "mlp", steps=400, every="20 steps", recovery=RECOVERY, checkpoint=", shared: false")
    local.kind = "disks"
    cases.run("disks of their own: a worker dies", own_disks, local, False)
    cases.run("disks of their own: a worker dies with its disk", own_disks, local, True)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
