"""The npm packages: one that people name, with a launcher and the module, and one with the binary for each platform.

npm installs the one whose `os`, `cpu` and `libc` fit. No script runs at installation.
"""

import json
from pathlib import Path

from . import elf
from .files import File, gzipped, tar
from .settings import ROOT, SOURCES, fail

# Where the module looks for it.
LIBRARY = "lib/contexture.node"


def common(settings, name, summary):
    package = {"name": name, "version": settings.version, "description": summary, "license": settings["license"]}
    if settings["homepage"]:
        package["homepage"] = settings["homepage"]
    return package


def platform_name(settings, platform):
    return settings["npm"]["platform_prefix"] + platform.name


def launcher(settings):
    """The files of the package that people name."""
    program = settings["program"]
    package = common(settings, settings["npm"]["name"], settings["summary"])
    package["bin"] = {program: f"bin/{program}.js"}
    module = ROOT / "bindings/typescript"
    described_module = json.loads((module / "package.json").read_text())
    for field in ("main", "types", "exports", "engines"):
        package[field] = described_module[field]
    package["optionalDependencies"] = {
        platform_name(settings, platform): settings.version for platform in settings.platforms
    }
    script = (SOURCES / "npm/launcher.js").read_text()
    table = {key(platform): platform_name(settings, platform) for platform in settings.platforms}
    script = script.replace('"@PACKAGES@"', json.dumps(table)).replace("@PROGRAM@", program)
    return [
        *described(package),
        File(f"bin/{program}.js", script.encode(), 0o755),
        *(File(path, (module / path).read_bytes()) for path in described_module["files"]),
    ]


def key(platform):
    return f"{platform.npm['os']}-{platform.npm['cpu']}"


def with_binary(settings, platform, binary, program, library=None):
    """The files of the package of a platform. `library` is the path of what was built of bindings/typescript/native."""
    summary = f"The binary of {settings['npm']['name']} for {platform.name}"
    package = common(settings, platform_name(settings, platform), summary)
    package["os"], package["cpu"] = [platform.npm["os"]], [platform.npm["cpu"]]
    if binary.glibc is not None:
        package["libc"] = [platform.npm["libc"]]
    package["preferUnplugged"] = True
    files = [*described(package), File(f"bin/{settings['program']}", program, 0o755)]
    if library is not None:
        native = elf.read(Path(library))
        if native is None or native.machine != platform.machine:
            fail(f"`{library}` is no library for {platform.machine}", "name its target with --target")
        files.append(File(LIBRARY, Path(library).read_bytes(), 0o755))
    return files


def described(package):
    return [
        File("package.json", (json.dumps(package, indent=2) + "\n").encode()),
        File("README.md", (SOURCES / "description.md").read_bytes()),
        File("LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes()),
        File("LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes()),
    ]


def file_name(settings, name):
    """What `npm pack` calls a package's file; a scope becomes part of it."""
    return f"{name.removeprefix('@').replace('/', '-')}-{settings.version}.tgz"


def packed(settings, files):
    """The name and the bytes of a package, as `npm pack` writes them."""
    package = json.loads(next(file.data for file in files if file.path == "package.json"))
    moved = [File(f"package/{file.path}", file.data, file.mode) for file in files]
    return file_name(settings, package["name"]), gzipped(tar(moved, settings.time), settings.effort)
