"""How soon the page in plain files gives its first answer, in Chromium with nothing in its cache.

python -m benchmarks.static_page    # the default model in the box; writes results/static-page.json
"""

import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import tyro
from playwright.sync_api import Browser, sync_playwright

from vma.fewshot import load
from vma.files import write_atomically
from vma.pretrained import DEFAULT
from vma.serve.static_page import write_static

RESULT = Path(__file__).parents[1] / "results/static-page.json"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]
# A memory of the examples, and then a drawing of a ring.
FIRST = """async () => {
  const api = await import("/page/api.js");
  await api.examples();
  const canvas = Object.assign(document.createElement("canvas"), { width: 208, height: 208 });
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, 208, 208);
  context.lineWidth = 16;
  context.arc(104, 104, 62, 0, 7);
  context.stroke();
  const image = canvas.toDataURL("image/png").split(",")[1], began = performance.now();
  await api.recognise(image);
  const first = performance.now();
  await api.recognise(image);
  return { first, answer: first - began, next: performance.now() - first };
}"""


@dataclass(frozen=True)
class Options:
    """What is measured.

    Attributes:
        model: A model in the box, or a file or folder of one.
        times: How often the page is opened.
    """

    model: str = DEFAULT
    times: int = 5


class Quiet(SimpleHTTPRequestHandler):
    """A web server that says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def opened(browser: Browser, address: str) -> dict[str, float]:
    """Milliseconds from opening the page to the first answer, and of the first and second question alone."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(300_000)
    page.goto(address, wait_until="commit")
    found: dict[str, float] = page.evaluate(FIRST)
    context.close()
    return found


def measure(options: Options) -> dict[str, object]:
    """All times, with the load of the machine before and after."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_static(load(options.model), Path(folder) / "page")
        megabytes = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=f"{folder}/page"))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        before = os.getloadavg()[0]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        runs = [opened(browser, address) for _ in range(options.times)]
        version = browser.version
        browser.close()
        server.shutdown()
    medians = {f"{name}_ms": statistics.median(run[name] for run in runs) for name in runs[0]}
    load_average = {"before": before, "after": os.getloadavg()[0]}
    return {
        "command": "python -m benchmarks.static_page", "options": asdict(options), "chromium": version,
        "cores": os.cpu_count(), "load_average": load_average, "megabytes": megabytes, "medians": medians,
        "runs": runs, "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def main(options: Options) -> None:
    """Measure, write, and print."""
    found = measure(options)
    write_atomically(RESULT, (json.dumps(found, indent=1) + "\n").encode())
    print(json.dumps({name: found[name] for name in ("medians", "load_average", "megabytes")}, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
