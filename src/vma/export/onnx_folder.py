"""A model as a folder of ONNX graphs, with a manifest that says how to combine them."""

import hashlib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import onnx
import onnxruntime
import torch

from vma.errors import InputError
from vma.export.graphs import OPSET, TOLERANCE, graph_of, largest_error
from vma.export.parts import Examples, Part, examples, parts_of, plain
from vma.fewshot import TrainedModel
from vma.files import write_atomically
from vma.model import VMA
from vma.similarity import InnerProduct

MANIFEST, FORMAT, VERSION = "manifest.json", "vma-onnx", 1
TRACED, CHECKED = 2, 3  # rows of the examples: for tracing, and for the comparison
RECIPES = {
    "address": "log p(a) = log softmax(keys · prior_query) and log q(a|x) = log softmax(keys · queries), over a",
    "flat": "where prior_query is null, p(a) = 1/|M|",
    "score": "log p(x|M) >= log 1/K sum_k p(a_k) p(z_k|m) p(x|m,z_k) / (q(a_k|x) q(z_k|m,x)), with a_k ~ q(a|x), "
    "m = m_(a_k) and z_k = mean + deviation * normal noise, by encoder",
    "imagine": "a ~ p(a); z = mean + temperature * deviation * normal noise, by items; decoder; draw",
}


@dataclass(frozen=True)
class Written:
    """A graph, and what the manifest says about it."""

    content: bytes
    facts: dict[str, Any]


def write_onnx(model: TrainedModel, folder: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Write every part as a graph that has been compared with torch, then the manifest, which is returned.

    >>> manifest = vma.export.write_onnx(vma.load("omniglot"), Path("graphs"))
    >>> sorted(path.name for path in Path("graphs").glob("*.onnx"))
    [...'decoder.onnx'...]
    """
    if (folder / MANIFEST).exists() and not overwrite:
        raise InputError(f"{folder} holds an export already: choose another folder, or overwrite it.")
    graphs = graphs_of(model)
    manifest = manifest_of(model, graphs)
    for name, graph in graphs.items():
        write_atomically(folder / f"{name}.onnx", graph.content)
    write_atomically(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return manifest


def graphs_of(model: TrainedModel) -> dict[str, Written]:
    """Every part."""
    check_similarity(model)
    whole = deepcopy(model.model).float()
    simple, small, other = plain(whole), examples(whole, TRACED), examples(whole, CHECKED, seed=1)
    found = {}
    for part in parts_of(whole):
        content = graph_of(part, simple, small).SerializeToString()
        error = largest_error(part, content, whole, other)
        found[part.name] = Written(content, facts(part, content, error, whole, other))
    return found


def check_similarity(model: TrainedModel) -> None:
    """Refuse a similarity that is not an inner product of a function of m and a function of x."""
    if not isinstance(model.model.addressing.similarity, InnerProduct):
        raise InputError(
            f"The similarity {model.config.similarity!r} is not an inner product of keys and queries, which alone "
            "can be written as ONNX."
        )


def facts(part: Part, content: bytes, error: float, model: VMA, examples: Examples) -> dict[str, Any]:
    """What the manifest says of a graph; n is the number of rows."""
    outputs = dict(zip(part.outputs, part.of(model, examples), strict=True))
    return {
        "file": f"{part.name}.onnx",
        "computes": part.formula,
        "inputs": {name: shape(examples[name]) for name in part.inputs},
        "outputs": {name: shape(tensor) for name, tensor in outputs.items()},
        "largest_error": error,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def shape(tensor: torch.Tensor) -> list[str | int]:
    """The shape of an input or output."""
    return ["n", *tensor.shape[1:]] if tensor.ndim else []


def manifest_of(model: TrainedModel, graphs: dict[str, Written]) -> dict[str, Any]:
    """Everything that the graphs do not hold."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "fingerprint": model.fingerprint,
        "config": model.config,
        "likelihood": model.config.likelihood,
        "similarity": model.config.similarity,
        "prior_query": prior_query(model),
        "opset": OPSET,
        "tolerance": TOLERANCE,
        "made_with": {each.__name__: str(each.__version__) for each in (torch, onnx, onnxruntime)},
        "graphs": {name: graph.facts for name, graph in graphs.items()},
        "recipes": RECIPES,
    }


def prior_query(model: TrainedModel) -> list[float] | None:
    """e^p, ready for inner products with keys; None where p(a) is flat."""
    addressing = model.model.addressing
    if addressing.prior_query is None:
        return None
    return addressing.similarity.queries(addressing.prior_query).tolist()
