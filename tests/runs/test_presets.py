"""Every preset builds, trains on glyphs by one override, and says what the paper does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from PIL import Image, ImageDraw

import vma.training.episodes as streams
from tests.helpers.small_runs import fit, small, tiny
from vma import InputError
from vma.build import build_model
from vma.cli import run as vma
from vma.commands.training import parse_start, run_row
from vma.data import FolderOptions
from vma.data.samplers import SequenceSampler
from vma.estimators import find_estimator
from vma.memory import PrecedingImages
from vma.runs.folder import Run, settings_from
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes
from vma.runs.settings import EpisodeSettings
from vma.training.episodes import for_model, generator, open_episodes
from vma.training.optimiser import rate_factor
from vma.training.phases import Awake

NAMED_IN_THE_PAPER = [
    "mnist-recall", *[f"mnist-recall-{m}" for m in (64, 512, 1024)],
    *[f"mnist-learned-{m}" for m in (64, 128, 256, 512, 1024)], "mnist-vae",
    "omniglot28-learned-256", "omniglot28-learned-2048", "omniglot28-vae",
    *[f"omniglot-fewshot-{s}" for s in (1, 4, 8, 16)], "omniglot-vae", "omniglot-soft",
    "gmn-vma", "gmn-gmn", "gmn-vae", "glyphs-fewshot", "glyphs-vae", "glyphs-soft",
]  # fmt: skip


def test_all_presets_are_there_and_speak_of_the_paper() -> None:
    assert set(NAMED_IN_THE_PAPER) <= set(PRESETS)
    for name, settings in PRESETS.items():
        assert settings.preset == name
        assert "paper" in settings.description
        assert settings_from(msgspec.to_builtins(settings)) == settings


def test_settings_are_built_once_from_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def find(name: str, real: Any = find_estimator) -> Any:
        built.append(name)  # each TrainSettings looks for its estimator once
        return real(name)

    monkeypatch.setattr("vma.runs.settings.find_estimator", find)
    assert settings_from({"updates": 7, "model": {"maps": 8}}).model.maps == 8
    assert len(built) == 1
    for name in ("omniglot-fewshot-1", "omniglot-fewshot-4", "omniglot-vae", "omniglot-soft", "gmn-vma"):
        assert f"{name}-fast" in PRESETS


def test_the_paper_settings() -> None:
    four = PRESETS["omniglot-fewshot-4"]
    assert (four.episode.classes, four.episode.targets, four.episode.shots, four.samples) == (8, 4, 4, 4)
    assert four.optimiser.name == "adam"
    assert four.optimiser.rate in (1e-4, 3e-4)
    assert PRESETS["omniglot28-learned-256"].optimiser.weight_decay == 3e-4
    assert PRESETS["omniglot28-learned-256"].model.maps == 32
    assert PRESETS["mnist-recall"].episode.shots == 256
    assert PRESETS["mnist-learned-64"].model.item_shape == (256,)
    soft = PRESETS["omniglot-soft"]
    assert soft.episode.classes * soft.episode.shots == 32
    assert soft.episode.episodes * soft.episode.classes * soft.episode.targets == 32


def test_gmn_is_trained_as_long_as_its_public_code_and_at_the_same_rates() -> None:
    gmn = PRESETS["gmn-gmn"]
    minibatches = 24_345 // 20 // 10  # of 20 sequences of 10 images, in an epoch
    assert (gmn.episode.shots, gmn.episode.targets, gmn.samples) == (20, 10, 1)
    assert gmn.updates == 3 * 250 * minibatches == 90_750
    for epoch, rate in ((0, 1e-3), (249, 1e-3), (250, 3e-4), (499, 3e-4), (500, 1e-4), (749, 1e-4)):
        for update in (epoch * minibatches, (epoch + 1) * minibatches - 1):
            factor = rate_factor(gmn.optimiser, update, update / gmn.updates)
            assert factor * gmn.optimiser.rate == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_trains_on_glyphs(name: str, tmp_path: Path) -> None:
    rows = fit(tiny(name), tmp_path / "run").metrics()
    assert [row["update"] for row in rows] == [1, 2]
    assert rows[-1]["valid_nll"] > 0


def test_test_classes_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = [], streams.load_dataset

    def recording(name: str, part: str, **options: object) -> object:
        asked.append(part)
        return real(name, part, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(streams, "load_dataset", recording)
    opened = streams.open_episodes(small(), None)
    assert asked == ["train"]
    kept, held_out = (set(s.dataset.classes) for s in (opened.train, opened.valid))
    assert not kept & held_out
    assert len(held_out) == 20


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_takes_glyphs_by_one_override(name: str) -> None:
    settings = parse_start([name, "--data.name", "glyphs"]).settings
    assert streams.open_episodes(settings, None).train.episode(0).targets.shape[1:] in ((26, 26), (28, 28))


def test_overrides_from_the_command_line() -> None:
    options = parse_start(
        ["glyphs-fewshot", "--model.maps", "24", "--optimiser.rate", "1e-3", "--minutes", "2"]
    )
    assert (options.settings.model.maps, options.settings.optimiser.rate) == (24, 1e-3)
    assert options.settings.minutes == 2.0
    assert options.settings.preset == "glyphs-fewshot"


def test_a_folder_of_images_is_read_with_its_options(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"class{number}").mkdir()
        for name in "abcd":
            image = Image.new("L", (40, 30), 255)
            ImageDraw.Draw(image).rectangle((10, 5, 12 + 2 * number, 20), fill=0)
            image.save(tmp_path / f"class{number}" / f"{name}.png")
    words = ["--data.name", "folder", "--data", str(tmp_path), "--data.held-out", "2", "--data.size", "20"]
    options = parse_start(
        ["omniglot-fewshot-4", *words, "--data.folder.no-thin", "--data.folder.held-out", "0.2"]
    )
    settings = replace(options.settings, episode=EpisodeSettings(classes=2, targets=2, shots=2))
    opened = streams.open_episodes(settings, options.data)
    plain = replace(settings, data=replace(settings.data, folder=FolderOptions(crop=False, thin=False)))
    shown = [s.train.episode(0).targets for s in (opened, streams.open_episodes(plain, options.data))]
    assert shown[0].shape == (4, 20, 20)
    assert shown[0].mean() > 1.5 * shown[1].mean()  # cropped to the ink


def test_a_mistyped_override_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_start(["glyphs-fewshot", "--model.mapps", "24"])
    assert "--model.maps" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse_start(["glyphs-fewshot", "--updates", "many"])
    assert "--updates" in capsys.readouterr().err


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'glyphs-fewshot'"):
        vma(["train", "glyph-fewshot"])


def test_presets_and_usage_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    vma(["presets"])
    assert "omniglot-fewshot-4" in capsys.readouterr().out
    vma(["train"])
    assert "vma train --resume FOLDER" in capsys.readouterr().out


def test_runs_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="There are no runs"):
        vma(["runs", "--root", str(tmp_path)])
    fit(small(updates=10), tmp_path / "first")
    vma(["runs", "--root", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "first" in printed
    assert "saved" in printed
    assert run_row(Run(tmp_path / "first"))[0][1] == "10"
    assert run_row(Run(tmp_path / "first"))[1] == []


def test_start_and_resume_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMA_RUNS", str(tmp_path))
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    common = ["--threads", "1", "--log-every", "2"]
    episode = ["--episode.shots", "8", "--episode.targets", "4"]
    vma(["train", "mnist-recall-64", "--data.name", "glyphs", "--updates", "4", *episode, *common])
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("mnist-recall-64-")
    assert {"curves.png", "samples.png", "metrics.jsonl", "model.safetensors"} <= {
        p.name for p in folder.iterdir()
    }
    assert list((folder / "tensorboard").glob("*tfevents*"))
    vma(["train", "--resume", str(folder), "--updates", "6"])
    assert Run(folder).settings().updates == 6  # a plain --resume goes on with that
    assert Run(folder).record()["history"][0]["settings"]["updates"] == 4
    printed = capsys.readouterr().out
    assert "Done: 4 updates" in printed
    assert "Done: 6 updates" in printed
    assert "left 0:00" in printed


def test_sequences_are_mixed_and_of_few_classes() -> None:
    dataset = streams.open_episodes(tiny("gmn-gmn"), None).train.dataset
    sampler = SequenceSampler(dataset, sequences=30, length=8, classes=2, seed=3)
    episode = sampler.episode(4)
    assert episode.target_indices.tolist() == sampler.episode(4).target_indices.tolist()
    assert (dataset.labels[episode.target_indices] == episode.target_labels).all()
    labels = episode.target_labels.reshape(30, 8)
    assert max(len(set(row)) for row in labels.tolist()) == 2
    changes = (labels[:, 1:] != labels[:, :-1]).sum(1)
    assert changes.max() > 1  # not one class after the other
    assert len({tuple((row == row[0]).tolist()) for row in labels}) > 15  # nor in one order for all
    with pytest.raises(InputError, match="ask for 1 or more"):
        SequenceSampler(dataset, sequences=0)


def test_only_gmn_is_trained_on_sequences() -> None:
    with pytest.raises(InputError, match="Only the model 'gmn'"):
        small(episode=EpisodeSettings("sequence"))


def test_gmn_is_trained_on_the_sum_over_a_sequence() -> None:
    """The gradient of an update is that of Σ_t L(x_t | x_1 … x_{t−1}), averaged over sequences."""
    settings = small(
        model=replace(small().model, model="gmn"),
        episode=EpisodeSettings("sequence", classes=2, targets=3, shots=2),
    )
    episodes = open_episodes(settings, None)
    phase = Awake(build_model(settings.model), settings, episodes, Processes(0, 1, torch.device("cpu")))
    phase.backward(0, 0.0)
    found = [parameter.grad.clone() for parameter in phase.model.parameters()]
    x, memory = for_model(episodes.train.episode(0), torch.device("cpu"), settings.length)
    assert memory == PrecedingImages(3)
    phase.model.zero_grad()
    source = generator(settings.seed, 0, 0, torch.device("cpu"))
    estimate = phase.model(x, memory, settings.samples, generator=source)
    assert estimate.bound.shape == (6,)
    (3 * estimate.loss).backward()
    for grad, parameter in zip(found, phase.model.parameters(), strict=True):
        torch.testing.assert_close(grad, parameter.grad)


def test_the_papers_presets_have_the_papers_likelihood_and_those_in_order_say_that_they_go_beyond() -> None:
    for name, settings in PRESETS.items():
        if name.endswith("-in-order"):
            fast = PRESETS[name.replace("-in-order", "-fast")]
            assert settings.model == replace(fast.model, likelihood="reading-order")
            assert settings.updates == fast.updates
            assert settings.blind.start == 1.0
            assert settings.blind.end == 0.0
            assert "beyond the paper" in settings.description
        else:
            assert settings.model.likelihood == "bernoulli"
            assert settings.blind.start == 0.0
