"""A part of a model as an ONNX graph, compared with torch by running it in onnxruntime."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import onnx
import onnxruntime
import onnxscript  # noqa: F401  torch's exporter needs it, and says so less clearly
import torch
from torch.onnx.errors import OnnxExporterError

from vma.errors import InputError
from vma.export.drawing import drawing_graph
from vma.export.parts import Examples, Graph, Part
from vma.likelihoods import ReadingOrder
from vma.model import VMA

OPSET = 18
TOLERANCE = 1e-4  # as a share of an output's largest value, or of 1


def graph_of(part: Part, model: VMA, examples: Examples) -> onnx.ModelProto:
    """The graph of a part of a `plain` model, for any number of rows."""
    if part.name == "draw" and isinstance(model.likelihood, ReadingOrder):
        height, width = model.image_shape
        return drawing_graph(model.likelihood, (height, width), OPSET)
    rows = torch.export.Dim("n")
    try:
        with quiet():
            program = torch.onnx.export(
                Graph(model, part.function).eval(),
                tuple(examples[name] for name in part.inputs),
                input_names=part.inputs,
                output_names=part.outputs,
                dynamic_shapes=(tuple({0: rows} for _ in part.inputs),),
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except OnnxExporterError as error:
        raise InputError(
            f"The part {part.name!r} of this model cannot be written as ONNX: {str(error).splitlines()[0]}"
        ) from error
    assert program is not None
    return cleaned(program.model_proto)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the exporter's messages about itself: warnings of torch, and packages that it could use."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def cleaned(graph: onnx.ModelProto) -> onnx.ModelProto:
    """The graph without traces of its code, which would name files of this machine."""
    for each in (graph, graph.graph, *graph.graph.node, *graph.graph.input, *graph.graph.output,
                 *graph.graph.value_info, *graph.graph.initializer):  # fmt: skip
        each.doc_string = ""
        del each.metadata_props[:]
    return graph


def session(graph: bytes) -> onnxruntime.InferenceSession:
    """The graph, ready to run on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def largest_error(part: Part, graph: bytes, model: VMA, examples: Examples) -> float:
    """The error of onnxruntime against torch, as a share of an output's largest value or of 1; refused if large.

    The model is the trained one, with its own layers.
    """
    running, wanted = session(graph), part.of(model, examples)
    asked = {each.name: examples[each.name].numpy() for each in running.get_inputs()}
    found = running.run(list(part.outputs), asked)
    error = max(share(one, other.numpy()) for one, other in zip(found, wanted, strict=True))
    if not error <= TOLERANCE:
        raise InputError(
            f"The part {part.name!r} of this model differs in onnxruntime by {error:.1e}, more than {TOLERANCE:g}: "
            "nothing was written."
        )
    return error


def share(found: np.ndarray, wanted: np.ndarray) -> float:
    """|found − wanted|, over the largest of |wanted| and 1."""
    if found.shape != wanted.shape:
        return float("inf")
    return float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))
