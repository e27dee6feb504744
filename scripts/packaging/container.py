"""The container file and the compose file, with names and version filled in."""

from .settings import SOURCES


def build(settings):
    """Names and bytes of both."""
    values = {
        "BASE": settings["container"]["base"],
        "DATABASE": settings["container"]["database"],
        "NAME": settings["container"]["name"],
        "PROGRAM": settings["program"],
        "VERSION": settings.version,
    }
    for name in ("Containerfile", "compose.yaml"):
        text = (SOURCES / name).read_text()
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        yield name, text.encode()
