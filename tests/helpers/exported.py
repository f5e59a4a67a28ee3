"""A folder of ONNX graphs, put together with numpy alone, as someone without torch would."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from vma.export.graphs import session


class Exported:
    """The graphs of a folder by name, with the recipes of its manifest."""

    def __init__(self, folder: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        graphs = self.manifest["graphs"]
        self.sessions = {
            name: session((folder / graph["file"]).read_bytes()) for name, graph in graphs.items()
        }

    def run(self, name: str, **tensors: np.ndarray) -> dict[str, np.ndarray]:
        graph = self.manifest["graphs"][name]
        asked = {each: np.asarray(tensors[each], np.float32) for each in graph["inputs"]}
        if name == "likelihood":
            asked = {each: tensors[each] for each in graph["inputs"]}  # levels are whole numbers
        return dict(
            zip(graph["outputs"], self.sessions[name].run(list(graph["outputs"]), asked), strict=True)
        )

    def log_p_a(self, items: np.ndarray) -> np.ndarray:
        query = self.manifest["prior_query"]
        keys = self.run("keys", m=items)["keys"]
        return log_softmax(np.zeros(len(items)) if query is None else keys @ np.array(query))

    def log_q_a(self, x: np.ndarray, items: np.ndarray) -> np.ndarray:
        return log_softmax(self.run("queries", x=x)["queries"] @ self.run("keys", m=items)["keys"].T)

    def features(self, m: np.ndarray, noise: np.ndarray, temperature: float = 1.0) -> np.ndarray:
        found = self.run("items", m=m)
        z = found["mean"] + temperature * found["deviation"] * noise
        return self.run("decoder", z=z, **found)["features"]

    def log_w(self, x: np.ndarray, items: np.ndarray, a: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """log p(a) p(z|m) p(x|m,z) / (q(a|x) q(z|m,x)), for one read of every target."""
        m, rows = items[a], np.arange(len(x))
        q, item = self.run("encoder", x=x, m=m), self.run("items", m=m)
        z = q["mean"] + q["deviation"] * noise
        features = self.run("decoder", z=z, **item)["features"]
        log_p_x = self.run("likelihood", features=features, **self.run("targets", x=x))["log_p"]
        log_a = self.log_p_a(items)[a] - self.log_q_a(x, items)[rows, a]
        return log_a + log_normal(z, item) - log_normal(z, q) + log_p_x


def log_softmax(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def log_normal(z: np.ndarray, gaussian: dict[str, np.ndarray]) -> np.ndarray:
    mean, deviation = gaussian["mean"], gaussian["deviation"]
    return -(0.5 * ((z - mean) / deviation) ** 2 + np.log(deviation) + 0.5 * np.log(2 * np.pi)).sum(-1)
