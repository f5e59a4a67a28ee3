"""A user's mistake gets one clear sentence."""

import math
import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.helpers.oracles import bits, episode, small_convolutional, small_mlp
from vma import ESTIMATORS, VMA, InputError, Memory, ModelConfig, estimate
from vma.build import build_model, build_vma
from vma.checks import check_samples
from vma.config import config_from
from vma.evaluation import bounds
from vma.memory import choose_memory
from vma.parts import SIMILARITIES


def model_and_episode() -> tuple[VMA, torch.Tensor, Memory]:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 2, 3)
    assert memory is not None
    return model, x, memory


def with_value(value: float) -> torch.Tensor:
    images = bits(2, 4, 4)
    images[1, 2, 3] = value
    return images


MEMORIES: dict[str, tuple[Callable[[], object], str]] = {
    "empty": (lambda: Memory.of(torch.zeros(0, 4, 4)), "memory is empty"),
    "empty mask": (lambda: Memory.of(bits(2, 4, 4), mask=[False, False]), "mask leaves no memory item"),
    "flat items": (lambda: Memory.of(bits(2, 16)), r"\[number, height, width\], not \[2, 16\]"),
    "channel axis": (lambda: Memory.of(bits(2, 1, 4, 4)), "drop a channel axis"),
    "above one": (lambda: Memory.of(with_value(255.0)), r"\[0, 1\].*255"),
    "uint8": (lambda: Memory.of(np.full((2, 4, 4), 255, np.uint8)), "divide 8-bit images by 255"),
    "below zero": (lambda: Memory.of(with_value(-0.5)), r"\[0, 1\].*-0.5"),
    "nan": (lambda: Memory.of(with_value(float("nan"))), "NaN"),
    "infinite": (lambda: Memory.of(with_value(float("inf"))), "infinite"),
    "labels": (lambda: Memory.of(bits(2, 4, 4), labels=[1]), "2 items but 1 labels"),
    "label table": (lambda: Memory.of(bits(2, 4, 4), labels=[[1], [2]]), "one value per memory item"),
    "broken labels": (lambda: Memory.of(bits(2, 4, 4), labels=[0.5, 1]), "labels must be whole numbers"),
    "a mask of numbers": (lambda: Memory.of(bits(2, 4, 4), mask=[1, 7]), "mask must be true or false"),
    "complex": (lambda: Memory.of(bits(2, 4, 4) * 1j), "real numbers"),
    "text": (lambda: Memory.of("cats"), "must be an array or a tensor"),
    "ragged": (lambda: Memory.of([[[0.0]], [[0.0, 1.0]]]), "must be an array or a tensor"),
}


@pytest.mark.parametrize(("build", "message"), MEMORIES.values(), ids=MEMORIES.keys())
def test_bad_memories(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        build()
    assert str(caught.value).endswith(".")


def test_memories_that_do_not_fit_each_other() -> None:
    memory = Memory.of(bits(2, 4, 4))
    with pytest.raises(InputError, match="resize one"):
        memory.join(Memory.of(bits(2, 5, 5)))
    with pytest.raises(InputError, match="label both"):
        memory.join(Memory.of(bits(2, 4, 4), labels=[0, 1]))


def test_items_and_targets_of_another_shape() -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(
        InputError, match=r"memory items have the shape \[5, 5\], but the model works on \[4, 4\]"
    ):
        model(x, Memory.of(bits(2, 5, 5)))
    with pytest.raises(InputError, match=r"targets have the shape \[5, 5\]"):
        model(bits(2, 5, 5), memory)
    with pytest.raises(InputError, match="targets hold NaN"):
        model(with_value(float("nan")), memory)


def test_targets_and_memories_of_another_kind() -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(InputError, match="There are no targets"):
        model(x[:0], memory)
    with pytest.raises(InputError, match=r"must be a Memory, not a Tensor: use Memory.of"):
        choose_memory(memory.items, None, (4, 4), x)
    with pytest.raises(InputError, match="memory items hold NaN"):
        model(x, Memory(torch.full((2, 4, 4), torch.nan)))
    with pytest.raises(InputError, match=r"needs a whole number of samples K, not 4.0"):
        check_samples(4.0, 2, "This")
    with pytest.raises(InputError, match="whole numbers from 0 to 2"):
        model.sample(memory, addresses=[0.5])
    assert model.sample(memory, addresses=[0, 1]).addresses.tolist() == [0, 1]


def test_memory_given_where_it_should_not_be() -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(InputError, match="give it a memory"):
        model(x)
    with pytest.raises(InputError, match="learned memory of its own"):
        build_vma(small_mlp(learned_items=3))(x, memory)


@pytest.mark.parametrize("name", [n for n, e in ESTIMATORS.items() if e.least_samples > 1])
def test_one_sample_where_two_are_needed(name: str) -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(InputError, match=rf"{name}' needs K >= 2 samples, not 1"):
        model(x, memory, 1, estimator=name)
    with pytest.raises(InputError, match="needs K >= 2"):
        estimate(model.terms(x, memory, 1), name)


def test_samples_that_are_no_number() -> None:
    for wrong in (4.0, "4", True, None):
        with pytest.raises(InputError, match="A bound needs a whole number of samples K"):
            check_samples(wrong, 1, "A bound")
    check_samples(np.int64(4), 1, "A bound")


def test_arrays_of_numpy_are_as_good_as_others() -> None:
    model, x, memory = model_and_episode()
    source = torch.Generator().manual_seed(0)
    wanted = model.bound(x, memory, 4, generator=source)
    flipped, fixed = x.numpy()[:, ::-1, :].copy()[:, ::-1, :], memory.items.numpy().copy()
    fixed.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source.manual_seed(0)
        found = model.bound(flipped, Memory.of(fixed), 4, generator=source)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision(dtype: torch.dtype) -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(InputError, match=r"too coarse for a bound: call model.float\(\)"):
        model.to(dtype)(x, memory)


def test_a_network_of_one_map_works() -> None:
    model = build_vma(small_convolutional(maps=1))
    x, memory = episode(model.config, 2, 3)
    assert bool(model.bound(x, memory, 2).isfinite().all())


@pytest.mark.parametrize("kind", ["vma", "soft-attention", "gmn"])
def test_every_model_with_a_memory_checks_it(kind: str) -> None:
    model = build_model(small_convolutional(model=kind))
    x, memory = episode(model.config, 2, 3)
    assert memory is not None
    with pytest.raises(InputError, match="NaN"):
        model.bound(x, Memory(memory.items * math.nan))
    with pytest.raises(InputError, match="divide 8-bit images by 255"):
        model.bound(x, Memory(memory.items * 255))


def test_no_samples_at_all() -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(InputError, match="K >= 1"):
        model.terms(x, memory, 0)
    with pytest.raises(InputError, match="K >= 1"):
        bounds(model, x, memory, 0)
    with pytest.raises(InputError, match="K >= 1"):
        model.sample(memory, 0)
    with pytest.raises(InputError, match="numbers from 0 to 2"):
        model.sample(memory, addresses=torch.tensor([3]))


def test_more_distinct_addresses_than_items() -> None:
    model, x, memory = model_and_episode()
    with pytest.raises(InputError, match="4 distinct addresses cannot be drawn from 3 memory items"):
        model(x, memory, 4, estimator="without-replacement")
    with pytest.raises(InputError, match="K <= 10"):
        model(x, Memory.of(bits(20, 4, 4)), 11, estimator="without-replacement")
    with pytest.raises(InputError, match="drawn without replacement"):
        estimate(model.terms(x, memory, 2), "without-replacement")


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda m, x, memory: m(x, memory, estimator="vimoc"), ESTIMATORS),
        (lambda m, x, memory: m(x, memory, latent_gradient="path"), ["pathwise", "dreg"]),
        (lambda m, x, memory: m.terms(x, memory, sampling="some"), ["independent", "all"]),
        (lambda m, x, memory: ModelConfig(similarity="cosin"), SIMILARITIES),
        (lambda m, x, memory: ModelConfig(family="transformer"), ["convolutional", "mlp"]),
        (lambda m, x, memory: ModelConfig(prior="gaussian"), ["learned", "flat"]),
        (lambda m, x, memory: ModelConfig(style="baroque"), ["paper", "modern"]),
        (lambda m, x, memory: config_from({"mapps": 3}), ["maps", "latent"]),
    ],
)
def test_unknown_names_list_the_known_ones(call, names) -> None:
    with pytest.raises(InputError, match="Unknown") as caught:
        call(*model_and_episode())
    for name in names:
        assert re.search(rf"\b{re.escape(name)}\b", str(caught.value))


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(InputError, match="Did you mean 'maps'"):
        config_from({"mapps": 3})


CONFIGS = {
    "small": ({"height": 15}, "at least 16x16"),
    "two hidden": ({"hidden": (3, 4)}, "one hidden layer, not 2"),
    "no hidden": ({"hidden": ()}, "hidden must list"),
    "no maps": ({"maps": 0}, "maps must be a whole number from 1 to 4096, not 0"),
    "negative memory": ({"learned_items": -1}, "learned_items must be a whole number from 0"),
    "ink": ({"ink": 0.0}, "ink must be a number above 0.0 and below 1.0, not 0.0"),
    "groups": ({"style": "modern", "maps": 12}, "multiples of 8"),
    "tied vectors": ({"family": "mlp", "tied": True, "learned_items": 3}, "tied=False"),
    "type": ({"maps": "many"}, "wrong type.*maps"),
}


@pytest.mark.parametrize(("values", "message"), CONFIGS.values(), ids=CONFIGS.keys())
def test_bad_configurations(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_from(values)


def test_a_failed_call_leaves_the_model_as_it_was() -> None:
    config = small_convolutional()
    model = build_vma(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InputError):
        model(bits(2, 3, 3), Memory.of(bits(2, 17, 22)))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
