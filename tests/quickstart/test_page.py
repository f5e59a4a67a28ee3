"""The page of the report: its words against the numbers, its HTML against a parser."""

import base64
import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from tests.quickstart.made import FINDINGS, TRAINING
from vma.evaluation.statistics import Mean, Share
from vma.quickstart.page import (
    bars,
    compare_accuracy,
    compare_likelihood,
    explain_address,
    explain_variation,
    minutes,
    nats,
    summary,
    warn_of,
    write_report,
)
from vma.quickstart.pictures import Pictures

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


def test_a_training_that_was_too_short_is_warned_of_before_all_else() -> None:
    busy = replace(TRAINING, updates=999, threads=1, load=3.0, cores=2)
    assert warn_of(replace(busy, updates=1000)) == ""
    assert "999 updates" in warn_of(busy)
    assert "load of 3.0 on 2 cores" in warn_of(busy)
    assert "busy" not in warn_of(replace(busy, load=0.1))
    assert summary(replace(FINDINGS, training=busy)).lstrip().startswith("*** Trained too briefly")


def test_summary_is_short_and_says_both_likelihoods() -> None:
    lines = summary(replace(FINDINGS, training=replace(TRAINING, updates=2000))).splitlines()
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
                     "No number here is a number of the paper", "vma quickstart --seed 0",
                     "Trained too briefly: 300 updates",
                     "omniglot-crisp draws, the model in the box",
                     "vma serve omniglot-crisp opens a page"):  # fmt: skip
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
