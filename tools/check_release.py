"""Would a release work for who installs it? Built, checked, and used from an empty environment: `make release`.

The sdist and the wheel are built and checked by twine, and must stay below 40 MB. The wheel is then installed
into a new environment, in a folder that knows nothing of the repository; there the model in the box recognises a
drawing, and the page answers.
"""

import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 40e6  # bytes
DRAW = """
from pathlib import Path
from PIL import Image, ImageDraw
for name, line in (("cross/1", "x"), ("cross/2", "x"), ("ring/1", "o"), ("ring/2", "o"), ("new", "o")):
    page = Image.new("L", (90, 90), 255)
    pen, wobble = ImageDraw.Draw(page), 3 * (name[-1] == "2")
    if line == "o":
        pen.ellipse((20 + wobble, 20, 70, 70 - wobble), outline=0, width=5)
    else:
        pen.line((20 + wobble, 20, 70, 70 - wobble), fill=0, width=5)
        pen.line((70, 20 + wobble, 20, 70), fill=0, width=5)
    path = Path("drawings") / f"{name}.png" if "/" in name else Path(f"{name}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    page.save(path)
"""


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """What a command prints; the check ends where it fails."""
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> Path:
    """The sdist and the wheel in `folder`, checked by twine; the path of the wheel."""
    run(sys.executable, "-m", "build", "--outdir", folder)
    made = sorted(folder.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *made)
    for path in made:
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e6:.1f} MB")
        if size > LARGEST:
            sys.exit(f"{path.name} is larger than {LARGEST / 1e6:.0f} MB.")
    return next(path for path in made if path.suffix == ".whl")


def install(wheel: Path, folder: Path) -> Path:
    """A new environment with the wheel and its page; the folder of its commands."""
    venv.create(folder, with_pip=True)
    commands = folder / "bin"
    wanted = f"{wheel}[serve]"
    run(
        commands / "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        wanted,
        folder=folder,
    )
    return commands


def use(commands: Path, folder: Path) -> None:
    """Recognise a drawing, and open the page."""
    print(run(commands / "vma", "--version", folder=folder).strip())
    run(commands / "python", "-c", DRAW, folder=folder)
    answer = run(commands / "vma", "recognise", "new.png", "--memory", "drawings", folder=folder)
    if "ring" not in answer:
        sys.exit(f"The model in the box did not recognise a ring:\n{answer}")
    print("recognise: ring")
    command = [commands / "vma", "serve", "--port", "0", "--no-browser", "--memory", "memory.safetensors"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            print(f"serve: {len(first_page(server))} bytes of page")
        finally:
            server.terminate()


def first_page(server: subprocess.Popen[str]) -> bytes:
    """What the server answers at the address that it prints."""
    assert server.stdout
    for line in server.stdout:
        if address := re.search(r"http://\S+", line):
            with urllib.request.urlopen(address.group(0), timeout=60) as answer:
                return answer.read()
    sys.exit("vma serve ended without an address.")


def main() -> None:
    """All of it, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        use(install(wheel, folder / "environment"), folder)
    print("The release works.")


if __name__ == "__main__":
    main()
