"""Wheels made on the spot, for pip to download without a network."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, contents: Mapping[str, bytes]) -> Path:
    """Write a wheel that pip accepts, with these files in it."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    dist_info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in contents.items():
            archive.writestr(path, content)
        archive.writestr(
            f"{dist_info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{dist_info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{dist_info}/RECORD", "")
    return wheel


def make_requirements(folder: Path, *wheels: Path, sha256: str | None = None) -> Path:
    """Write a hash-locked list of these wheels, which lie in one folder."""
    requirements = folder / "models.txt"
    lines = ["--no-index", f"--find-links {wheels[0].parent.as_uri()}"]
    for wheel in wheels:
        name, version = wheel.name.split("-")[:2]
        digest = sha256 or hashlib.sha256(wheel.read_bytes()).hexdigest()
        lines.append(f"{name}=={version} --hash=sha256:{digest}")
    requirements.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return requirements
