"""The report: its numbers against other computations, its words against the numbers, its page against a parser."""

import base64
import io
import math
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import vma
from vma.addressing import AddressDistribution, class_mass
from vma.baselines import VAE
from vma.bounds import BoundTerms
from vma.data.dataset import Dataset
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError
from vma.evaluation.statistics import mean, wilson
from vma.memory import Memory
from vma.report import (
    Findings,
    Mean,
    Pictures,
    Share,
    Training,
    draw_pictures,
    learning_curves,
    measure,
    one_shot_samples,
    recognition,
    summary,
    write_report,
)
from vma.report.page import (
    bars,
    compare_accuracy,
    compare_likelihood,
    explain_address,
    explain_variation,
    minutes,
    nats,
)
from vma.report.pictures import choose_drawings, lookups, percent, running_mean

SIDE, CLASS_COUNT, EACH = 6, 12, 9
CONFIG = vma.paper_mlp(height=SIDE, width=SIDE, hidden=(8,), latent=3, matching=4)
TRAINING = Training(updates=300, vae_updates=300, seconds=125.0, classes=500)
FINDINGS = Findings(
    nll_vma=Mean(80.0, 1.0), nll_vae=Mean(90.0, 1.2), gain=Mean(10.0, 0.5),
    kl_a=Mean(2.1, 0.05), kl_z=Mean(9.0, 0.2),
    reconstruction=Mean(-70.0, 1.0), log_memory=math.log(32), log_classes=math.log(8),
    accuracy=Share(0.9, 0.88, 0.92, 1000), ways=5, samples=64, episodes=12, targets=384, memory=32, classes=8,
    unseen_classes=100, pixels=676, weights_vma=1234, weights_vae=123, seed=0, dataset="glyphs (test)",
    provenance="Invented", training=TRAINING,
)  # fmt: skip


def dataset(seed: int = 0) -> Dataset:
    """Random binary images whose first row says their class in binary."""
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(CLASS_COUNT), EACH)
    images = draw.integers(0, 2, (len(labels), SIDE, SIDE), dtype=np.uint8) * np.uint8(255)
    images[:, 0] = ((labels[:, None] >> np.arange(SIDE)) & 1) * 255
    return Dataset("made", "test", images, labels, tuple(f"c{c}" for c in range(CLASS_COUNT)), "made up")


def class_code(images: Tensor) -> Tensor:
    return images[:, 0].round() @ (2.0 ** torch.arange(SIDE, dtype=images.dtype))


class Recogniser:
    """q(a|x) ∝ exp(sharpness · [m_a is of the class of x]): 1000 is perfect, 0 is uniform, −1000 always wrong."""

    def __init__(self, sharpness: float) -> None:
        self.sharpness = sharpness

    def posterior(self, x: Tensor, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        same = class_code(x)[:, None] == class_code(memory.items)[None]
        return AddressDistribution.of_scores(self.sharpness * same.to(x.dtype))


class KnownTerms(nn.Module):
    """log w_k = −(k + 1) · ink of the target, with k = 0 … K − 1, all of it in log p(x|m,z)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def terms(
        self,
        x: Tensor,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        ink = x.double().sum((1, 2))
        log_p_x = -ink[:, None] * torch.arange(1, samples + 1)
        none = torch.zeros_like(log_p_x)
        return BoundTerms(
            none, none, none + 0.25, none + 0.25, log_p_x, none - math.log(samples), kl_z=none + 2.0
        )


class KnownModel(KnownTerms):
    def posterior(self, x: Tensor, memory: Memory | None = None) -> AddressDistribution:
        return Recogniser(1000.0).posterior(x, memory)


def without_weights(model: nn.Module, bias: float) -> None:
    """Make every weight 0 and every output logit `bias`, so that nothing depends on a or z."""
    for name, parameter in model.named_parameters():
        output = "decode" in name and parameter.shape == (SIDE * SIDE,)
        nn.init.constant_(parameter, bias if output else 0.0)


# Numbers


def test_nll_of_a_model_that_ignores_a_and_z_is_the_cross_entropy() -> None:
    model, vae, data, bias = vma.build_vma(CONFIG), VAE(CONFIG), dataset(), -1.3
    without_weights(model, bias)
    without_weights(vae, 0.0)
    found = measure(model, vae, data, TRAINING, episodes=3, samples=5, trials=10, seed=4)
    sampler = EpisodeSampler(data, seed=4)
    ink = np.array([sampler.episode(step).targets.sum((1, 2)).mean() / 255 for step in range(3)])
    expected = SIDE * SIDE * math.log1p(math.exp(bias)) - bias * ink
    assert found.nll_vma.value == pytest.approx(expected.mean(), rel=1e-12)
    assert found.nll_vma.error == pytest.approx(expected.std(ddof=1) / math.sqrt(3), rel=1e-9)
    assert found.nll_vae.value == pytest.approx(SIDE * SIDE * math.log(2), rel=1e-12)
    assert found.gain.value == pytest.approx(found.nll_vae.value - found.nll_vma.value, rel=1e-9)
    assert found.reconstruction.value == pytest.approx(-expected.mean(), rel=1e-12)
    assert found.kl_a.value == pytest.approx(0, abs=1e-12)
    assert found.kl_z.value == pytest.approx(0, abs=1e-12)


def test_nll_is_the_log_mean_of_the_weights_over_targets_and_then_episodes() -> None:
    data, samples = dataset(), 3
    found = measure(KnownModel(), KnownTerms(), data, TRAINING, episodes=2, samples=samples, trials=10)
    sampler = EpisodeSampler(data)
    ink = np.stack([sampler.episode(step).targets.sum((1, 2)) / 255 for step in range(2)])
    bound = np.log(np.mean([np.exp(-k * ink) for k in (1, 2, 3)], axis=0))
    per_episode = -bound.mean(1)
    assert found.nll_vma.value == pytest.approx(per_episode.mean(), rel=1e-10)
    assert found.nll_vma.error == pytest.approx(abs(per_episode[0] - per_episode[1]) / 2, rel=1e-8)
    assert found.reconstruction.value == pytest.approx(-2 * ink.mean(), rel=1e-10)
    assert found.kl_z == Mean(2.0, 0.0)
    assert found.gain == Mean(0.0, 0.0)
    assert (found.targets, found.memory, found.accuracy.value) == (64, 32, 1.0)


def test_findings_repeat_from_the_seed_and_survive_json() -> None:
    model, vae, data = vma.build_vma(CONFIG), VAE(CONFIG), dataset()
    first, second, other = (
        measure(model, vae, data, TRAINING, episodes=2, samples=2, trials=20, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(asdict(first))), Findings) == first
    assert first.log_memory == math.log(first.memory)


def test_one_episode_has_no_standard_error() -> None:
    with pytest.raises(InputError, match="at least 2 episodes"):
        measure(vma.build_vma(CONFIG), VAE(CONFIG), dataset(), TRAINING, episodes=1)


@pytest.mark.parametrize(("sharpness", "expected"), [(1000.0, 1.0), (0.0, 0.2), (-1000.0, 0.0)])
def test_accuracy_of_a_perfect_an_undecided_and_a_wrong_posterior(sharpness: float, expected: float) -> None:
    share = recognition(Recogniser(sharpness), dataset(), trials=100)
    assert share.value == pytest.approx(expected)
    assert share.low <= expected <= share.high
    assert share.trials == 100


def test_accuracy_sums_over_the_shots_of_a_class() -> None:
    q = torch.tensor([[0.4, 0.3, 0.3, 0.0]])
    assert class_mass(q, torch.tensor([0, 1, 1, 2]), 3).tolist() == [pytest.approx([0.4, 0.6, 0.0])]


def test_wilson_interval_against_published_values() -> None:
    share = wilson(8, 10)
    assert (share.low, share.high) == (pytest.approx(0.4901, abs=2e-4), pytest.approx(0.9433, abs=2e-4))
    assert wilson(0, 10).low == 0.0 < wilson(0, 10).high == pytest.approx(0.2775, abs=2e-4)
    assert wilson(10, 10).high == 1.0 > wilson(10, 10).low


def test_mean_has_the_standard_error_of_the_mean() -> None:
    found = mean(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert (found.value, found.error) == (3.0, pytest.approx(math.sqrt(14 / 3) / 2))


# Pictures


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    torch.manual_seed(0)
    history = [
        {"update": n, "nll": 100 / (n + 1), "kl_a": 1.0, "kl_z": 0.1 * n, "valid_nll": None if n % 9 else 5.0}
        for n in range(60)
    ]
    return draw_pictures(vma.build_vma(CONFIG), dataset(), history, history)


def test_pictures_are_small_pngs_that_show_something(pictures: Pictures) -> None:
    for content in (pictures.samples, pictures.addressing, pictures.curves):
        assert content is not None
        assert len(content) < 150_000
        picture = Image.open(io.BytesIO(content))
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert np.asarray(picture.convert("L")).std() > 5


def test_pictures_repeat_from_the_seed() -> None:
    torch.manual_seed(0)
    model = vma.build_vma(CONFIG)
    first, second, other = (one_shot_samples(model, dataset(), rows=2, samples=2, seed=s) for s in (3, 3, 4))
    assert first == second != other


def test_drawings_of_a_row_are_different_images_of_one_class() -> None:
    data = dataset()
    rows = choose_drawings(data, 8, 4, seed=0)
    assert data.labels is not None
    assert (data.labels[rows] == data.labels[rows[:, :1]]).all()
    assert len(np.unique(rows)) == rows.size
    assert len(np.unique(data.labels[rows[:, 0]])) == 8


def test_targets_to_look_up_are_chosen_by_entropy_and_the_last_misses_its_class() -> None:
    model, episode = vma.build_vma(CONFIG), EpisodeSampler(dataset()).episode(0).tensors()
    first, median, last, without = lookups(model, episode, samples=3, seed=0)
    entropies = [float(-(each.q * np.log(each.q)).sum()) for each in (first, median, last)]
    everything = model.posterior(episode.targets, Memory.of(episode.memory)).entropy().detach()
    assert entropies == pytest.approx(
        [float(everything.min()), float(everything.sort().values[16]), float(everything.max())]
    )
    assert np.array_equal(without.target, first.target)
    assert not without.kept[episode.memory_labels.numpy() == without.label].any()
    assert without.q.sum() == pytest.approx(1)
    assert without.q[~without.kept].sum() == 0


@pytest.mark.parametrize(
    "history",
    [
        [{"update": 1, "nll": 5.0}],
        [
            {"update": 1, "nll": math.nan, "kl_a": 1.0, "kl_z": math.inf},
            {"update": 2, "nll": 3.0, "kl_a": 0.5},
        ],
    ],
)
def test_curves_can_be_drawn_of_gaps_and_nonsense(history: list[dict[str, float | None]]) -> None:
    assert learning_curves(history).startswith(b"\x89PNG")


def test_small_shares_are_not_called_none() -> None:
    assert [percent(share) for share in (0.314, 0.004, 0.0001)] == ["31 %", "0.4 %", "<0.1 %"]


def test_running_mean_looks_back() -> None:
    assert running_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1.0, 2.0, 4.0, 6.0]


# Words


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Mean(10.0, 0.5), "memory helps: 10.0 ± 0.5 nats less"),
        (Mean(-10.0, 0.5), "does not help here: 10.0 ± 0.5 nats more"),
        (Mean(0.5, 0.5), "No clear difference"),
        (Mean(-0.5, 0.5), "No clear difference"),
        (Mean(math.nan, 0.5), "not a finite number"),
    ],
)
def test_words_on_the_likelihood_follow_the_sign(gain: Mean, words: str) -> None:
    assert words in compare_likelihood(gain, kl_a=2.0)


def test_a_gain_is_not_credited_to_a_memory_that_is_not_used() -> None:
    assert "not by searching the memory" in compare_likelihood(Mean(10.0, 0.5), kl_a=0.05)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (Share(0.9, 0.88, 0.92, 100), ", better than by chance"),
        (Share(0.2, 0.15, 0.25, 100), "no better than by chance"),
        (Share(0.1, 0.08, 0.12, 100), "worse than by chance"),
    ],
)
def test_words_on_the_accuracy_follow_the_interval(share: Share, words: str) -> None:
    assert words in compare_accuracy(replace(FINDINGS, accuracy=share))


@pytest.mark.parametrize(
    ("kl", "words"),
    [(0.01, "hardly changes"), (1.2, "narrows down"), (2.1, "one class of 8"), (3.3, "particular items"),
     (math.nan, "not a finite number")],
)  # fmt: skip
def test_words_on_the_address_follow_the_divergence(kl: float, words: str) -> None:
    assert words in explain_address(replace(FINDINGS, kl_a=Mean(kl, 0.1)))


def test_words_on_z_admit_when_it_is_not_used() -> None:
    assert "hardly used" in explain_variation(Mean(0.03, 0.01))
    assert "carries KL_z = 9.0 nats" in explain_variation(Mean(9.0, 0.1))


def test_summary_is_short_and_says_both_likelihoods() -> None:
    lines = summary(FINDINGS).splitlines()
    assert len(lines) < 10
    assert "80.0 ± 1.0" in lines[1]
    assert "90.0 ± 1.2" in lines[1]
    assert max(map(len, lines)) < 100
    assert "does not help" in summary(replace(FINDINGS, gain=Mean(-3.0, 0.1)))


def test_bars_stay_inside_their_frame() -> None:
    odd = replace(FINDINGS, nll_vma=Mean(-5.0, 1.0), nll_vae=Mean(math.nan, 1.0), kl_a=Mean(9.0, 1.0))
    assert all(0 <= length <= 100 for length in (*bars(odd).values(), *bars(FINDINGS).values()))


def test_negative_numbers_have_a_minus_sign() -> None:
    assert nats(Mean(-3.25, 0.5), 2) == "−3.25 ± 0.50"


def test_minutes_are_readable() -> None:
    assert [minutes(seconds) for seconds in (7.4, 59.9, 125.0)] == ["7 s", "1 min 0 s", "2 min 5 s"]


# The page


class Page(HTMLParser):
    """Collects tags that are not closed, what is referred to, and the text."""

    VOID = ("meta", "img", "br")

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.tags: set[str] = set()
        self.words = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture
def page_source(tmp_path: Path, pictures: Pictures) -> str:
    path = tmp_path / "new" / "report.html"
    write_report(path, FINDINGS, pictures, command="vma quickstart --seed 0")
    assert [each.name for each in path.parent.iterdir()] == ["report.html"]
    return path.read_text(encoding="utf-8")


def test_page_is_whole_and_needs_nothing_else(page_source: str) -> None:
    page = Page(page_source)
    assert page.open == []
    assert len(page.references) == 3
    assert all(reference.startswith("data:image/png;base64,") for reference in page.references)
    assert not page.tags & {"script", "link", "iframe", "object"}
    assert not re.search(r"https?://|url\(|@import", page_source)
    for reference in page.references:
        Image.open(io.BytesIO(base64.b64decode(reference.split(",")[1]))).load()


def test_page_says_the_numbers_and_where_they_come_from(page_source: str) -> None:
    words = " ".join(Page(page_source).words.split())
    for expected in ("80.0 ± 1.0 nats", "90.0 ± 1.2", "10.0 ± 0.5 nats less", "90 % right", "2.10 ± 0.05", "K = 64",
                     "300 updates each", "2 min 5 s", "384 targets in 12 episodes", "Seed 0", "100 kinds of image",
                     "No number here is a number of the paper", "vma quickstart --seed 0"):  # fmt: skip
        assert expected in words


def test_page_admits_that_the_vae_is_better_or_trained_otherwise(tmp_path: Path, pictures: Pictures) -> None:
    worse = replace(FINDINGS, gain=Mean(-9.0, 0.5), training=replace(TRAINING, vae_updates=700))
    write_report(tmp_path / "report.html", worse, replace(pictures, curves=None))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    words = " ".join(page.words.split())
    assert "does not help here: 9.0 ± 0.5 nats more" in words
    assert "300 updates with memory, 700 of the VAE" in words
    assert "How it learned" not in words
    assert len(page.references) == 2


def test_names_are_escaped(tmp_path: Path, pictures: Pictures) -> None:
    evil = '<script src="x">alert(1)</script>&"'
    write_report(
        tmp_path / "r.html", replace(FINDINGS, dataset=evil, provenance=evil), pictures, command=evil
    )
    source = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in source
    assert Page(source).words.count(evil) == 4
