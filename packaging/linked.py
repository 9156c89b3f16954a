"""What a program of Penstock is linked to on this system, or loads: files, and the packages that they are of."""
import functools
import pathlib
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[1]


def needed(path: str) -> dict[str, str]:
    """All libraries that the loader opens for a file, by name: the path of each."""
    said = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^\s*(lib\S+) => (/\S+)", said, re.MULTILINE))


def direct(path: str) -> list[str]:
    """Names that the file itself asks for."""
    said = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(lib[^\]]*)\]", said)


def loaded() -> list[str]:
    """Paths of the libraries that are opened when a file asks for them, and of OpenBLAS."""
    said = subprocess.run([TOP / "packaging/loaded_packages.sh", "--files"], capture_output=True, text=True, check=True)
    blas = re.search(r'"(/usr/lib/x86_64[^"]*/libopenblas\.so\.0)"', (TOP / "device/cpu/blas.c").read_text()).group(1)
    return sorted(said.stdout.split()) + [blas]


@functools.lru_cache(maxsize=None)
def package_of(path: str) -> dict[str, str]:
    """The Debian package of a file: name, version, architecture, and the file with its copyright."""
    real = str(pathlib.Path(path).resolve())
    for name in (path, real, real.removeprefix("/usr"), "/usr" + path):
        said = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if said.returncode == 0:
            package = said.stdout.split(": ")[0].split(",")[0]
            break
    else:
        raise SystemExit(f"no package has {path}")
    fields = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}", package],
                            capture_output=True, text=True, check=True).stdout.split("\t")
    return {"name": fields[0], "version": fields[1], "architecture": fields[2],
            "copyright": f"/usr/share/doc/{fields[0]}/copyright"}


def licences() -> dict[str, str]:
    """Licences by the names that docs/licences.md gives libraries in backquotes, as SPDX writes them."""
    found = {}
    for line in (TOP / "docs/licences.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4:
            found.update({name: cells[3] for name in re.findall(r"`(lib\w+)`", cells[0])})
    return found


def licence_of(name: str) -> str | None:
    """That of a library, whose name may have a version: libpng16.so.16."""
    return licences().get(re.split(r"[-.]", name)[0])
