"""Ink in reading order drawn by an ONNX graph: a loop over the steps of a wavefront of pixels.

It computes what `vma.likelihoods.wavefront` computes. Cells, which are pixels with a margin, are the first axis of
all tensors, so that those of a step are gathered and scattered whole. All steps have as many pixels as the longest
one: surplus pixels write to an extra cell that nobody reads, and look at the first cell, which is an empty margin.
"""

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import torch
from jaxtyping import Int
from torch import Tensor

from vma.likelihoods.reading_order import COLDEST, ReadingOrder
from vma.likelihoods.wavefront import Wavefront

# [cells, reads, maps] is what a layer has seen so far, and [pixels, reads] the probabilities of ink.
GRAPH = """
<ir_version: 10, opset_import: ["": {opset}]>
draw (float["n", {maps}, {height}, {width}] features, float["n", {height}, {width}] uniforms, float temperature)
  => (float["n", {height}, {width}] images, float["n", {height}, {width}] means)
{{
  planes = Reshape (features, all_maps)
  h = Transpose <perm = [2, 0, 1]> (planes)
  numbers = Reshape (uniforms, all_pixels)
  u = Transpose <perm = [1, 0]> (numbers)
  n = Shape <start = 0, end = 1> (features)
  divisor = Max (temperature, coldest)
  {starts}
  empty_shape = Concat <axis = 0> (pixels_and_one, n)
  empty = ConstantOfShape (empty_shape)
  {ends}, found = Loop <body = step (int64 t, bool more, {states}, float[cells, n] p) => (
    bool again, {states_out}, float[cells, n] p_out) {{
    again = Identity (more)
    here = Gather (cells, t)
    place = Gather (places, t)
    read = Gather (reads, t)
    {context}
    h_here = Gather (h, read)
    first = Add (h_here, c)
    first_on = Sigmoid (first)
    y = Mul (first, first_on)
    mixed = MatMul (y, mix)
    second = Add (mixed, mix_bias)
    second_on = Sigmoid (second)
    s = Mul (second, second_on)
    last_of = MatMul (s, last)
    logit = Add (last_of, last_bias)
    cool = Div (logit, divisor)
    probability = Sigmoid (cool)
    flat = Squeeze (probability, two)
    p_out = ScatterND (p, place, flat)
    u_here = Gather (u, read)
    drawn = Less (u_here, flat)
    ink = Cast <to = 1> (drawn)
    ink_maps = Unsqueeze (ink, two)
    seen0_out = ScatterND (seen0, here, ink_maps)
  }}> (steps, true, {begins}, empty)
  inked = Gather (end0, all_cells)
  inked_pixels = Squeeze (inked, two)
  rows = Transpose <perm = [1, 0]> (inked_pixels)
  images = Reshape (rows, image_shape)
  found_pixels = Gather (found, every_pixel)
  found_rows = Transpose <perm = [1, 0]> (found_pixels)
  means = Reshape (found_rows, image_shape)
}}
"""
START = """
  shape{layer} = Concat <axis = 0> (cells_and_one, n, inputs{layer})
  begin{layer} = ConstantOfShape (shape{layer})"""
SEE = """
    on{layer} = Sigmoid (sum{before})
    active{layer} = Mul (sum{before}, on{layer})
    seen{layer}_out = ScatterND (seen{layer}, here, active{layer})"""
LAYER = """
    near{layer} = Gather (nears{layer}, t)
    rows{layer} = Gather (seen{layer}{now}, near{layer})
    turned{layer} = Transpose <perm = [0, 2, 1, 3]> (rows{layer})
    flat{layer} = Reshape (turned{layer}, neighbours{layer})
    product{layer} = MatMul (flat{layer}, weight{layer})
    new{layer} = Add (product{layer}, bias{layer})"""


def drawing_graph(likelihood: ReadingOrder, size: tuple[int, int], opset: int) -> onnx.ModelProto:
    """x_i = [u_i < σ(l_i / τ)], for features, uniform numbers and a temperature."""
    layers = range(len(likelihood.context.sizes))
    text = GRAPH.format(
        opset=opset, maps=likelihood.output.maps, height=size[0], width=size[1],
        starts="".join(START.format(layer=layer) for layer in layers),
        begins=", ".join(f"begin{layer}" for layer in layers),
        ends=", ".join(f"end{layer}" for layer in layers),
        states=", ".join(f"float[cells, n, maps] seen{layer}" for layer in layers),
        states_out=", ".join(f"float[cells, n, maps] seen{layer}_out" for layer in layers),
        context="".join(layer_text(layer) for layer in layers) + f"\n    c = Identity (sum{layers[-1]})",
    )  # fmt: skip
    graph = onnx.parser.parse_model(text)
    for name, values in {**constants(likelihood, size), **weights(likelihood)}.items():
        graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array(values, order="C"), name))
    onnx.checker.check_model(graph)
    return graph


def layer_text(layer: int) -> str:
    """A causal layer; those above the first also see the pixel's own value from the layer below, and add to it."""
    if layer == 0:
        return LAYER.format(layer=0, now="") + "\n    sum0 = Identity (new0)"
    see = SEE.format(layer=layer, before=layer - 1)
    return (
        see + LAYER.format(layer=layer, now="_out") + f"\n    sum{layer} = Add (sum{layer - 1}, new{layer})"
    )


def weights(likelihood: ReadingOrder) -> dict[str, np.ndarray]:
    """Matrices and biases."""
    found = {"mix": likelihood.mix.weight.T, "mix_bias": likelihood.mix.bias}
    found |= {"last": likelihood.last.weight.T, "last_bias": likelihood.last.bias}
    for number, layer in enumerate(likelihood.context.layers()):
        found[f"weight{number}"], found[f"bias{number}"] = layer.matrix()
    return {name: values.detach().numpy() for name, values in found.items()}


def constants(likelihood: ReadingOrder, size: tuple[int, int]) -> dict[str, np.ndarray]:
    """Tables of the steps, and shapes."""
    order = Wavefront.of(likelihood.context.sizes, *size)
    maps, all_pixels = likelihood.output.maps, size[0] * size[1]
    here = [pixels for pixels, _ in order.steps]
    places = order.order.split([len(pixels) for pixels in here])
    cells = padded(here, order.cells)
    found = {
        "cells": cells[..., None], "places": padded(places, all_pixels)[..., None], "reads": padded(places, 0),
        "all_cells": torch.cat(here)[order.order.argsort()].numpy(), "every_pixel": np.arange(all_pixels),
        "steps": np.array(len(here)), "two": np.array([2]), "image_shape": np.array([-1, *size]),
        "all_maps": np.array([0, maps, -1]), "all_pixels": np.array([0, all_pixels]),
        "cells_and_one": np.array([order.cells + 1]), "pixels_and_one": np.array([all_pixels + 1]),
    }  # fmt: skip
    for layer in range(len(likelihood.context.sizes)):
        near = [around[layer].view(len(pixels), -1) for pixels, around in order.steps]
        inputs, count = 1 if layer == 0 else maps, near[0].shape[1]
        found[f"nears{layer}"] = padded(near, 0)
        found[f"inputs{layer}"] = np.array([inputs])
        found[f"neighbours{layer}"] = np.array([0, 0, count * inputs])
    whole = {name: values.astype(np.int32 if "nears" in name else np.int64) for name, values in found.items()}
    return {**whole, "true": np.array(True), "coldest": np.array(COLDEST, np.float32)}


def padded(steps: list[Tensor] | tuple[Tensor, ...], value: int) -> Int[np.ndarray, "steps most *_"]:
    """All steps as one table, filled up with `value` where a step has fewer pixels than the longest one."""
    return torch.nn.utils.rnn.pad_sequence(list(steps), batch_first=True, padding_value=value).numpy()
