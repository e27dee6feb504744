"""The bill of materials: every crate that is in the binary, as CycloneDX 1.5.

Its crates are those that cargo links into the program for a target; tests and build scripts are not among them.
"""

import json
import re
import subprocess
import time
import tomllib
import uuid
from pathlib import Path

from .settings import ROOT, fail


def build(settings, platform):
    """The name and the bytes of the document."""
    linked = linked_crates(settings, platform)
    checksums = checksums_of_lock()
    known = metadata(platform)
    packages = {(package["name"], package["version"]): package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    crates = [packages[key] for key in sorted(linked)]
    components = [component(crate, checksums) for crate in crates if crate["name"] != settings["crate"]]
    components += bundled(crates)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial(settings, platform, components)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(settings.time)),
            "component": {
                "type": "application",
                "bom-ref": settings["program"],
                "name": settings["program"],
                "version": settings.version,
                "licenses": [{"expression": settings["license"]}],
            },
            "properties": [{"name": "contexture:target", "value": platform.target}],
        },
        "components": components,
        "dependencies": dependencies(settings, crates, nodes),
    }
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    return f"{settings['program']}-{settings.version}-{platform.name}.cdx.json", text.encode()


def cargo(*arguments):
    done = subprocess.run(["cargo", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"`cargo {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout


def metadata(platform):
    return json.loads(cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", platform.target))


def linked_crates(settings, platform):
    """Names and versions of what is linked into the program."""
    listed = cargo(
        "tree", "--locked", "-p", settings["crate"], "-e", "normal,no-proc-macro", "--target", platform.target,
        "--prefix", "none", "--format", "{p}",
    )
    found = (re.match(r"(\S+) v(\S+)", line) for line in listed.splitlines())
    return {(match[1], match[2]) for match in found if match}


def checksums_of_lock():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def reference(crate):
    # Versions may hold a `+`, which package URLs write as %2B.
    return f"pkg:cargo/{crate['name']}@{crate['version'].replace('+', '%2B')}"


def component(crate, checksums):
    made = {
        "type": "library",
        "bom-ref": reference(crate),
        "name": crate["name"],
        "version": crate["version"],
        "purl": reference(crate),
    }
    if crate.get("license"):
        # Old crates separate alternatives by a slash, which is no expression.
        made["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", crate["license"])}]
    checksum = checksums.get((crate["name"], crate["version"]))
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return made


def bundled(crates):
    """Libraries in C whose sources a crate brings along: SQLite."""
    for crate in crates:
        header = Path(crate["manifest_path"]).parent / "sqlite3/sqlite3.h"
        if crate["name"] == "libsqlite3-sys" and header.exists():
            version = re.search(r'#define SQLITE_VERSION\s+"([\d.]+)"', header.read_text())[1]
            purl = f"pkg:generic/sqlite@{version}"
            yield {"type": "library", "bom-ref": purl, "name": "sqlite", "version": version, "purl": purl}


def dependencies(settings, crates, nodes):
    """Who uses whom, among what is linked."""
    linked = {crate["id"]: settings["program"] if crate["name"] == settings["crate"] else reference(crate) for crate in crates}

    def used(crate):
        for dependency in nodes[crate["id"]]["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] in linked:
                yield linked[dependency["pkg"]]

    return [{"ref": linked[crate["id"]], "dependsOn": sorted(set(used(crate)))} for crate in crates]


def serial(settings, platform, components):
    content = json.dumps(components, sort_keys=True)
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{settings['program']} {settings.version} {platform.target} {content}")
