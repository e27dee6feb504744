"""The wheel: the binary itself is the script `contexture`, so no Python starts before it; beside it is the module.

With the library that is built of bindings/python/native, the module also folds in process and remembers, and the wheel
is for CPython 3.10 and newer. Without it, the module has the gateway only.

Beside the wheels there is a source package that holds no sources. An installer takes it where no wheel fits, and its
build says what to do instead.
"""

import base64
import hashlib
import io
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

from . import elf
from .files import File, gzipped, tar
from .settings import ROOT, SOURCES, fail


def metadata(settings):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {settings['python']['name']}",
        f"Version: {settings.version}",
        f"Summary: {settings['summary']}",
        f"License-Expression: {settings['license']}",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        "Requires-Python: >=3.10",
        "Classifier: Environment :: Console",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Topic :: Software Development",
        "Description-Content-Type: text/markdown",
    ]
    if settings["homepage"]:
        lines.append(f"Project-URL: Homepage, {settings['homepage']}")
    return ("\n".join(lines) + "\n\n" + (SOURCES / "description.md").read_text()).encode()


def file_name(settings):
    """The name of the package in the names of files."""
    return settings["python"]["name"].replace("-", "_")


def tag(platform, *binaries):
    """The oldest systems that all binaries run on. A static one runs with every C library."""
    asked = [binary.glibc for binary in binaries if binary.glibc is not None]
    if not asked:
        return f"manylinux_2_17_{platform.machine}.musllinux_1_1_{platform.machine}"
    # Rust promises nothing for an older one.
    major, minor = max(*asked, (2, 17))
    alias = f".manylinux2014_{platform.machine}" if (major, minor) == (2, 17) else ""
    return f"manylinux_{major}_{minor}_{platform.machine}{alias}"


def module(library):
    """The files of the Python module, as bindings/python/stage lays them out."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([ROOT / "bindings/python/stage", place, *([library] if library else [])], check=True)
        paths = sorted(path for path in Path(place).rglob("*") if path.is_file())
        mode = lambda path: 0o755 if path.suffix == ".so" else 0o644
        return [File(str(path.relative_to(place)), path.read_bytes(), mode(path)) for path in paths]


def build(settings, platform, binary, program, library=None):
    """The name and the bytes of a wheel. `library` is the path of what was built of bindings/python/native."""
    name, version = file_name(settings), settings.version
    binaries, python = [binary], "py3-none"
    if library is not None:
        native = elf.read(Path(library))
        if native is None or native.machine != platform.machine:
            fail(f"`{library}` is no library for {platform.machine}", "name its target with --target")
        binaries, python = [binary, native], "cp310-abi3"
    info, platforms = f"{name}-{version}.dist-info", tag(platform, *binaries)
    tags = "".join(f"Tag: {python}-{one}\n" for one in platforms.split("."))
    wheel = f"Wheel-Version: 1.0\nGenerator: scripts/package\nRoot-Is-Purelib: false\n{tags}"
    files = [
        *module(library),
        File(f"{name}-{version}.data/scripts/{settings['program']}", program, 0o755),
        File(f"{info}/licenses/LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes()),
        File(f"{info}/licenses/LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes()),
        File(f"{info}/METADATA", metadata(settings)),
        File(f"{info}/WHEEL", wheel.encode()),
    ]
    rows = [f"{file.path},sha256={digest(file.data)},{len(file.data)}\n" for file in files]
    files.append(File(f"{info}/RECORD", ("".join(rows) + f"{info}/RECORD,,\n").encode()))
    return f"{name}-{version}-{python}-{platforms}.whl", zipped(files, settings)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def zipped(files, settings):
    out = io.BytesIO()
    # The format knows no time before 1980.
    stamp = max(time.gmtime(settings.time)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=settings.effort) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, stamp)
            entry.external_attr, entry.compress_type = (0o100000 | file.mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.data)
    return out.getvalue()


def source(settings):
    """The name and the bytes of the source package that only says what to do."""
    name, version = settings["python"]["name"], settings.version
    start = f"{file_name(settings)}-{version}"
    project = f'[project]\nname = "{name}"\nversion = "{version}"\n\n[build-system]\nrequires = []\nbuild-backend = "no_package"\nbackend-path = ["."]\n'
    backend = (SOURCES / "python/no_package.py").read_text()
    known = ", ".join(platform.name for platform in settings.platforms)
    backend = backend.replace("@PLATFORMS@", known).replace("@PROGRAM@", settings["program"])
    files = [
        File(f"{start}/PKG-INFO", metadata(settings)),
        File(f"{start}/LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes()),
        File(f"{start}/LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes()),
        File(f"{start}/pyproject.toml", project.encode()),
        File(f"{start}/no_package.py", backend.encode()),
    ]
    return f"{start}.tar.gz", gzipped(tar(files, settings.time))
