"""Archives with everything that a person unpacks, the install script, and the checksums of all files."""

from .files import File, gzipped, sha256, tar
from .settings import ROOT, SOURCES

SUMS = "SHA256SUMS"


def name(settings, platform):
    return f"{settings['program']}-{settings.version}-{platform.name}.tar.gz"


def build(settings, platform, program, pages, completions):
    """The name and the bytes of an archive."""
    start = name(settings, platform).removesuffix(".tar.gz")
    files = [
        File(f"{start}/bin/{settings['program']}", program, 0o755),
        File(f"{start}/README.md", (SOURCES / "description.md").read_bytes()),
        File(f"{start}/LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes()),
        File(f"{start}/LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes()),
    ]
    files += [File(f"{start}/share/man/man1/{page}", text) for page, text in pages.items()]
    files += [File(f"{start}/completions/{settings['program']}.{shell}", text) for shell, text in completions.items()]
    for path in ("contexture-gateway.service", "contexture-gateway.default", "user/contexture-gateway.service"):
        files.append(File(f"{start}/systemd/{path}", (SOURCES / "systemd" / path).read_bytes()))
    return name(settings, platform), gzipped(tar(files, settings.time), settings.effort)


def install_script(settings):
    """The install script, which knows its version and the platforms."""
    script = (SOURCES / "install.sh").read_text()
    known = " ".join(platform.name for platform in settings.platforms)
    values = {
        "PROGRAM": settings["program"],
        "VERSION": settings.version,
        "DOWNLOADS": settings.downloads(),
        "PLATFORMS": known,
    }
    for key, value in values.items():
        script = script.replace(f"@{key}@", value)
    return "install.sh", script.encode()


def write_sums(directory):
    """Writes the checksums of all files of a release."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != SUMS)
    lines = [f"{sha256(path.read_bytes())}  {path.name}\n" for path in files]
    (directory / SUMS).write_text("".join(lines))
