"""How pip makes a wheel of this folder. It needs nothing but Python: no other package is downloaded for it.

The version is that of the source tree's Makefile, and stands as a number in what is installed.
"""
import base64
import hashlib
import os
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE / "penstock"
DATE = (1980, 1, 1, 0, 0, 0) # the same files give the same wheel
WHEEL = "Wheel-Version: 1.0\nGenerator: penstock\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"


def version() -> str:
    text = (HERE.parent / "Makefile").read_text(encoding="utf-8")
    return re.search(r"^VERSION := (\S+)$", text, re.MULTILINE).group(1)


def metadata() -> str:
    return "\n".join([
        "Metadata-Version: 2.1", "Name: penstock", f"Version: {version()}",
        "Summary: Trains neural networks as a pipeline over devices and machines", "Requires-Python: >=3.9",
        "License: Apache-2.0", "Description-Content-Type: text/markdown", "",
        (HERE / "README.md").read_text(encoding="utf-8")])


def write_wheel(folder: str, files: dict, tag: str = "py3-none-any", programs: tuple = ()) -> str:
    """A wheel of these files, with what says of it what it is, and the list of all with their hashes. `programs` can be
    run once they are installed; with another tag, the wheel is for one kind of machine."""
    info = f"penstock-{version()}.dist-info"
    about = WHEEL.format(pure=str(tag.endswith("-any")).lower(), tag=tag)
    files = {**files, f"{info}/METADATA": metadata().encode(), f"{info}/WHEEL": about.encode()}
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    files[f"{info}/RECORD"] = ("".join(lines) + f"{info}/RECORD,,\n").encode()
    name = f"penstock-{version()}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, DATE)
            entry.external_attr = (0o100755 if path in programs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    return name


def module_files() -> dict:
    files = {f"penstock/{path.name}": path.read_bytes() for path in sorted(PACKAGE.iterdir())
             if path.suffix in (".py", ".typed")}
    files["penstock/_version.py"] = f'__version__ = "{version()}"\n'.encode()
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, module_files())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"penstock.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("pip install ./python takes the source tree, which has the version")
