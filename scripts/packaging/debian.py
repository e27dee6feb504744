"""The Debian package, with manual pages, completions and units of systemd.

A package is an `ar` archive of three members (deb(5)): the format's version, control files and content.
"""

import email.utils
import hashlib
import lzma
import time

from .files import File, gzipped, tar
from .settings import ROOT, SOURCES

COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/{}",
    "zsh": "usr/share/zsh/vendor-completions/_{}",
    "fish": "usr/share/fish/vendor_completions.d/{}.fish",
}

# The package is not in Debian's archive, so there is no report that asks for it.
OVERRIDES = "{}: initial-upload-closes-no-bugs\n"

# The packages in which Debian has shared libraries that a binary may ask for.
LIBRARIES = {"libgcc_s.so.1": "libgcc-s1"}


def build(settings, platform, binary, program, pages, completions):
    """The name and the bytes of a package."""
    name, version = settings["debian"]["name"], f"{settings.version}-{settings['debian']['revision']}"
    files = content(settings, program, pages, completions)
    sums = "".join(f"{hashlib.md5(file.data).hexdigest()}  {file.path}\n" for file in files)
    control = [
        File("./control", control_file(settings, platform, binary, version, files).encode()),
        File("./md5sums", sums.encode()),
        File("./conffiles", b"/etc/default/contexture-gateway\n"),
    ]
    below = [File("./" + file.path, file.data, file.mode) for file in files]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.xz", lzma.compress(tar(control, settings.time, True), preset=min(settings.effort, 6))),
        ("data.tar.xz", lzma.compress(tar(below, settings.time, True), preset=min(settings.effort, 6))),
    ]
    return f"{name}_{version}_{platform.debian}.deb", ar(members, settings.time)


def content(settings, program, pages, completions):
    name, binary_name = settings["debian"]["name"], settings["program"]
    text = lambda path: (SOURCES / path).read_bytes()
    files = [
        File(f"usr/bin/{binary_name}", program, 0o755),
        File("lib/systemd/system/contexture-gateway.service", text("systemd/contexture-gateway.service")),
        File("usr/lib/systemd/user/contexture-gateway.service", text("systemd/user/contexture-gateway.service")),
        File("etc/default/contexture-gateway", text("systemd/contexture-gateway.default")),
        File(f"usr/share/lintian/overrides/{name}", OVERRIDES.format(name).encode()),
        File(f"usr/share/doc/{name}/copyright", copyright_file(settings).encode()),
        File(f"usr/share/doc/{name}/changelog.Debian.gz", gzipped(changelog(settings).encode())),
        File(f"usr/share/doc/{name}/changelog.gz", gzipped((ROOT / "CHANGELOG.md").read_bytes())),
    ]
    files += [File(f"usr/share/man/man1/{page}.gz", gzipped(text)) for page, text in pages.items()]
    files += [File(COMPLETIONS[shell].format(binary_name), script) for shell, script in completions.items()]
    return files


def control_file(settings, platform, binary, version, files):
    # Connections to providers are checked with the system's certificates, and the gateway does not start without any.
    depends = ["ca-certificates"]
    if binary.glibc is not None:
        depends.append("libc6 (>= {}.{})".format(*binary.glibc))
    depends += sorted({LIBRARIES[library] for library in binary.libraries if library in LIBRARIES})
    size = sum((len(file.data) + 1023) // 1024 for file in files)
    fields = {
        "Package": settings["debian"]["name"],
        "Version": version,
        "Architecture": platform.debian,
        "Maintainer": settings["maintainer"],
        "Installed-Size": str(size),
        "Depends": ", ".join(depends),
        "Section": "utils",
        "Priority": "optional",
        "Homepage": settings["homepage"],
    }
    lines = [f"{field}: {value}\n" for field, value in fields.items() if value]
    return "".join(lines) + f"Description: {synopsis(settings)}\n{long_description()}"


def synopsis(settings):
    text = settings["summary"]
    # Debian's begin with a small letter and without the program's name.
    return text[0].lower() + text[1:]


def long_description():
    return (
        " contexture runs a coding agent through a gateway on the same machine. The\n"
        " gateway replaces old parts of the conversation by what the agent still needs\n"
        " of them, and prints a receipt when the agent ends.\n"
        " .\n"
        " It can also run as a service for a team, with its store in PostgreSQL.\n"
    )


def copyright_file(settings):
    licence = (ROOT / "LICENSE-MIT").read_text()
    owner = next(line for line in licence.splitlines() if line.startswith("Copyright")).split(") ")[-1]
    year = time.gmtime(settings.time).tm_year
    body = licence[licence.index("Permission") :].strip()
    lines = "\n".join(" " + (line or ".") for line in body.splitlines())
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        f"Upstream-Name: {settings['program']}\n\n"
        f"Files: *\nCopyright: {year} {owner}\nLicense: MIT or Apache-2.0\n\n"
        f"License: MIT\n{lines}\n\n"
        "License: Apache-2.0\n On Debian systems, the full text of the Apache License 2.0 is in\n"
        " /usr/share/common-licenses/Apache-2.0.\n"
    )


def changelog(settings):
    name, revision = settings["debian"]["name"], settings["debian"]["revision"]
    date = email.utils.formatdate(settings.time)
    return (
        f"{name} ({settings.version}-{revision}) unstable; urgency=medium\n\n"
        f"  * Version {settings.version}; changelog.gz says what is new.\n\n"
        f" -- {settings['maintainer']}  {date.replace('-0000', '+0000')}\n"
    )


def ar(members, seconds):
    out = b"!<arch>\n"
    for name, data in members:
        out += f"{name:<16}{seconds:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data
        out += b"\n" * (len(data) % 2)
    return out
