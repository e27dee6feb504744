"""Says what to do where there is no wheel: the program is a binary, and this package has no sources."""

import platform
import sys

PLATFORMS = "@PLATFORMS@"


def no_package(*_arguments, **_settings):
    here = f"{platform.system()} {platform.machine()}".lower()
    if sys.platform.startswith("linux"):
        here += " with " + ("glibc " + platform.libc_ver()[1] if platform.libc_ver()[0] == "glibc" else "another libc")
    sys.stderr.write(
        f"\nerror: @PROGRAM@ has no wheel for this platform ({here}); there are wheels for {PLATFORMS}\n"
        "hint: with Rust and a C compiler, `cargo install --locked --path crates/contexture-cli` in a clone of its\n"
        "      repository builds it; pip older than 19.3 does not know the wheels' tags, and a newer one finds them\n\n"
    )
    raise SystemExit(1)


build_wheel = build_sdist = build_editable = no_package
get_requires_for_build_wheel = get_requires_for_build_sdist = lambda *_: []
prepare_metadata_for_build_wheel = no_package
