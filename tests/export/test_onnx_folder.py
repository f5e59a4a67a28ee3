"""Models as ONNX graphs: each part is what torch computes, and put together they are the model."""

import hashlib
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.exported import Exported
from tests.helpers.oracles import small_convolutional, small_mlp
from tests.helpers.trained_models import trained
from vma import InputError, Memory, ModelConfig
from vma.cli import run
from vma.errors import missing_extra
from vma.export import graphs, onnx_folder, write_onnx
from vma.export.parts import INK, examples, parts_of
from vma.fewshot import TrainedModel, load
from vma.pretrained import pretrained_names
from vma.reads import Reads

OWN: dict[str, ModelConfig] = {
    "paper": small_convolutional(),  # ReLU, two networks for keys and queries, a learned prior
    "levels": small_mlp(likelihood="categorical", levels=4, prior="flat", similarity="cosine"),
}
MODELS = [*pretrained_names(), *OWN]


@pytest.fixture(autouse=True)
def as_a_user_has_it() -> None:
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[TrainedModel, Path]]:
    """A model and where its graphs are, written once."""

    @cache
    def made(name: str) -> tuple[TrainedModel, Path]:
        place = tmp_path_factory.mktemp("onnx")
        model = trained(place / "run", OWN[name]) if name in OWN else load(name)
        write_onnx(model, place / "graphs")
        return model, place / "graphs"

    return made


@pytest.fixture(params=MODELS)
def both(request: pytest.FixtureRequest, folder_of: Callable) -> tuple[TrainedModel, Exported]:
    model, folder = folder_of(request.param)
    return model, Exported(folder)


def ink(model: TrainedModel, count: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(count, *model.config.image_shape, generator=generator) < INK).float()


@pytest.mark.parametrize("count", [1, 5])
def test_each_part_is_what_torch_computes(both: tuple[TrainedModel, Exported], count: int) -> None:
    model, exported = both
    tensors = examples(model.model, count, seed=7)
    for part in parts_of(model.model):
        found = exported.run(part.name, **{name: tensors[name].numpy() for name in part.inputs})
        for name, wanted in zip(part.outputs, part.of(model.model, tensors), strict=True):
            scale = max(1.0, float(wanted.abs().max()))
            assert found[name].shape == wanted.shape
            np.testing.assert_allclose(found[name], wanted, rtol=0, atol=scale * graphs.TOLERANCE)


def test_put_together_they_give_the_bound(both: tuple[TrainedModel, Exported]) -> None:
    model, exported = both
    x, items = ink(model, 4, 1), ink(model, 3, 2)
    a, noise = torch.tensor([0, 2, 1, 2]), torch.randn(4, 1, model.model.latent)
    keyed = model.model.keyed(Memory(items))
    p_a, q_a = model.model.prior(keyed), model.model.posterior(x, keyed)
    with torch.no_grad():
        reads = Reads(a[:, None], q_a.log_prob(a[:, None]))
        wanted = model.model.terms_at(x, keyed.memory, p_a, q_a, reads, noise).log_w
    found = exported.log_w(x.numpy(), items.numpy(), a.numpy(), noise[:, 0].numpy())
    np.testing.assert_allclose(found, wanted[:, 0], atol=1e-3, rtol=0)
    np.testing.assert_allclose(exported.log_p_a(items.numpy()), p_a.log_probs.detach(), atol=1e-4, rtol=0)


def test_put_together_they_draw_the_same_images(both: tuple[TrainedModel, Exported]) -> None:
    model, exported = both
    items, a = ink(model, 3, 2), torch.tensor([0, 2, 1, 2])
    noise, uniforms = torch.randn(4, model.model.latent), torch.rand(4, *model.config.image_shape)
    wanted = model.model.draw(Memory(items), a, noise, uniforms, 0.9)
    features = exported.features(items[a].numpy(), noise.numpy())
    found = exported.run("draw", features=features, uniforms=uniforms.numpy(), temperature=np.array(0.9))
    np.testing.assert_array_equal(found["images"], wanted.images)
    np.testing.assert_allclose(found["means"], wanted.means, atol=1e-4, rtol=0)
    assert 0 < found["images"].mean() < 1


def test_the_manifest(folder_of: Callable) -> None:
    model, folder = folder_of("paper")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["fingerprint"] == model.fingerprint
    assert manifest["config"]["maps"] == model.config.maps
    assert manifest["opset"] == 18
    assert len(manifest["prior_query"]) == model.config.matching
    assert manifest["graphs"]["encoder"]["inputs"] == {"x": ["n", 17, 22], "m": ["n", 17, 22]}
    assert manifest["graphs"]["queries"]["outputs"] == {"queries": ["n", 6]}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["manifest.json", *(graph["file"] for graph in manifest["graphs"].values())]
    )
    for graph in manifest["graphs"].values():
        content = (folder / graph["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == graph["sha256"]
        assert 0 <= graph["largest_error"] <= manifest["tolerance"]
        assert b"/vma/" not in content  # nothing of the machine that it was written on


def test_a_graph_that_differs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, right = trained(tmp_path / "run", small_mlp()), onnx_folder.plain

    def wrong(whole: torch.nn.Module) -> torch.nn.Module:
        copy = right(whole)  # type: ignore[arg-type]
        with torch.no_grad():
            copy.addressing.key[1][0].weight[0, 0] += 0.01  # type: ignore[index, union-attr]
        return copy

    monkeypatch.setattr(onnx_folder, "plain", wrong)
    with pytest.raises(
        InputError, match=r"part 'keys' of this model differs in onnxruntime by .*nothing was"
    ):
        write_onnx(model, tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()


def test_what_cannot_be_written(folder_of: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, folder = folder_of("paper")
    with pytest.raises(InputError, match="graphs holds an export already: choose another folder"):
        write_onnx(model, folder)
    monkeypatch.setattr(model.model.addressing, "similarity", object())
    with pytest.raises(InputError, match="similarity 'normalized-key' is not an inner product"):
        write_onnx(model, tmp_path / "graphs")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(tmp_path / "run", small_mlp())
    run(["export", str(tmp_path / "run"), str(tmp_path / "graphs"), "--onnx"])
    shown = capsys.readouterr().out
    assert "log p(x|m,z)" in shown
    assert "opset 18, within 0.0001 of torch" in shown
    assert (tmp_path / "graphs/draw.onnx").is_file()
    with pytest.raises(InputError, match="--onnx goes with neither --hub nor --half"):
        run(["export", str(tmp_path / "run"), str(tmp_path / "other"), "--onnx", "--hub"])


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_without_the_extra_it_is_a_sentence(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for name in [each for each in sys.modules if each.startswith("vma.export")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError) as caught:
        run(["export", "omniglot", "nowhere", "--onnx"])
    said = str(missing_extra(caught.value))
    assert said == f"This needs {package}, which is not installed: pip install 'variational-memory[onnx]'."
