"""Installed packages as Python sees them: a module, and a `.dist-info` that names its entry points."""

from pathlib import Path


def install(folder: Path, package: str, code: str, entry_points: str) -> None:
    """Put a package of one module into a folder of `sys.path`; `entry_points` is an INI file."""
    (folder / f"{package}.py").write_text(code)
    info = folder / f"{package}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(entry_points)
