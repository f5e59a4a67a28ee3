"""The report: every number and every link of every row, nothing from a tiny run, nothing by hand."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from tests.helpers.small_experiments import GOLDEN, NAMES, collection, typed
from vma.commands.reproduce import report_command
from vma.errors import InputError
from vma.evaluation.answers import Answer
from vma.evaluation.resumable import TargetResults
from vma.evaluation.statistics import Mean
from vma.reproduce.findings import Finding, finding, numbers, shown, training
from vma.reproduce.pipeline import read_answer, read_collection
from vma.reproduce.registry import EXPERIMENTS


class Links(HTMLParser):
    """Links and pictures of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a":
            self.links.append(found["href"] or "")
        if tag == "img":
            self.pictures.append(found["src"] or "")

    def handle_data(self, data: str) -> None:
        self.words += data


def results(root: Path, names: list[str]) -> Path:
    for name in names:
        path = collection(root / "results", name)
        Image.new("L", (4, 4)).save(path.with_suffix(".png"))
    return root / "results"


def test_the_pages_state_every_row_and_link_its_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path, NAMES)
    html, markdown = tmp_path / "report.html", tmp_path / "docs" / "results.md"
    note = tmp_path / "docs" / "lab-notes" / "mistakes.md"  # which the page links, beside it
    note.parent.mkdir(parents=True)
    note.touch()
    report_command(folder, html, markdown)
    assert str(markdown) in capsys.readouterr().out
    page, text = Links(html.read_text()), markdown.read_text()
    assert len(page.pictures) == len(NAMES)
    assert all(picture.startswith("data:image/png;base64,") for picture in page.pictures)
    assert "Not run yet" not in text
    links = re.findall(r"\]\(([^)]+)\)", text)
    for name in NAMES:
        record = read_collection(folder / f"{name}.json")
        assert f"results/{name}.json" in page.links
        assert f"../results/{name}.json" in links
        for each in record.rows:
            said = shown(each).removesuffix(" nats") if each.line else shown(each)
            assert said in page.words
            assert f"[{said.replace('|', chr(92) + '|')}](../results/{each.answer})" in text
            assert f"results/{each.answer}" in page.links
            assert each.updates == 0 or "4 updates" in text
    relative = [link for link in page.links if not link.startswith("#")]
    assert all((html.parent / link).exists() for link in relative)
    assert all((markdown.parent / link).exists() for link in links)


def test_markdown_tables_have_as_many_cells_in_every_line(tmp_path: Path) -> None:
    folder = results(tmp_path, ["fig2a-recall", "table1-gmn"])
    report_command(folder, tmp_path / "report.html", tmp_path / "results.md")
    tables = re.findall(r"(?:^\|.*\n)+", (tmp_path / "results.md").read_text(), re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


def test_what_was_not_run_is_named(tmp_path: Path) -> None:
    folder = results(tmp_path, ["fig5a-classes"])
    report_command(folder, tmp_path / "report.html", tmp_path / "results.md")
    text = (tmp_path / "results.md").read_text()
    assert "Not run yet: `fig2a-recall`" in text
    assert "`fig5a-classes`," not in text.split("\n\n")[2]


def write_verdicts(folder: Path, **changes: str) -> None:
    verdict = {
        "claim": "it recalls digits", "experiment": "fig2a-recall", "row": "KL_z at the end of training",
        "verdict": "partly", "because": "the run | was short", **changes,
    }  # fmt: skip
    (folder / "verdicts.json").write_text(json.dumps([verdict]))


def test_verdicts_open_the_page_with_the_numbers_of_their_rows(tmp_path: Path) -> None:
    folder = results(tmp_path, ["fig2a-recall"])
    write_verdicts(folder)
    report_command(folder, tmp_path / "report.html", tmp_path / "results.md")
    rows = read_collection(folder / "fig2a-recall.json").rows
    decides = next(each for each in rows if each.what == "KL_z at the end of training")
    text = (tmp_path / "results.md").read_text()
    assert "Of 1, 0 are exceeded" in text.split("|")[0]
    line = next(line for line in text.splitlines() if line.startswith("| it recalls digits"))
    ours = f"[{shown(decides)}](results/{decides.answer})"
    assert line.startswith(
        f"| it recalls digits | **partly** | {ours} | {decides.paper} | the run \\| was short | "
    )
    assert line.endswith("| `vma reproduce fig2a-recall` |")
    page = Links((tmp_path / "report.html").read_text())
    assert "the run | was short" in page.words
    assert page.words.index("it recalls digits") < page.words.index("The paper:")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"row": "KL_y"}, "KL_z at the end of training"),
        ({"verdict": "proven"}, r"verdicts\.json cannot be read"),
    ],
)
def test_verdicts_on_what_was_not_measured_are_refused(
    changes: dict[str, str], said: str, tmp_path: Path
) -> None:
    folder = results(tmp_path, ["fig2a-recall"])
    write_verdicts(folder, **changes)
    with pytest.raises(InputError, match=said):
        report_command(folder, tmp_path / "report.html", tmp_path / "results.md")


def test_a_verdict_waits_for_its_experiment(tmp_path: Path) -> None:
    folder = results(tmp_path, ["fig5a-classes"])
    write_verdicts(folder)
    report_command(folder, tmp_path / "report.html", tmp_path / "results.md")
    assert "it recalls digits" not in (tmp_path / "results.md").read_text()


def test_a_tiny_run_is_no_result(tmp_path: Path) -> None:
    collection(tmp_path, "fig5a-classes", tiny=True)
    with pytest.raises(InputError, match=r"fig5a-classes\.json was made with --tiny"):
        report_command(tmp_path, tmp_path / "report.html", tmp_path / "results.md")
    assert not (tmp_path / "report.html").exists()


def test_no_results_and_broken_results_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="vma reproduce NAME"):
        report_command(tmp_path, tmp_path / "report.html", tmp_path / "results.md")
    path = collection(tmp_path, "fig3-posterior", format="something else")
    with pytest.raises(InputError, match="is not a collection"):
        read_collection(path)
    path = collection(tmp_path, "fig3-posterior")
    next((tmp_path / "fig3-posterior").iterdir()).unlink()
    with pytest.raises(InputError, match="cannot be read"):
        read_collection(path)


@pytest.mark.parametrize(
    ("each", "said"),
    [
        (Finding("", "", 72.71, 2.64), "72.7 ± 2.6 nats"),
        (Finding("", "", 2.512, 0.034), "2.51 ± 0.03 nats"),
        (Finding("", "", -65.6), "−65.6 nats"),
        (Finding("", "", 0.913, low=0.88, high=0.938, unit="%"), "91.3 % (88.0 to 93.8)"),
        (Finding("", "", 0.871, 0.021, unit="%"), "87.1 ± 2.1 %"),
        (Finding("", "", 2.234, unit=""), "2.23"),
        (Finding("", "", text="not up to 512"), "not up to 512"),
        (Finding("", ""), "not a finite number"),
    ],
)
def test_a_number_as_text(each: Finding, said: str) -> None:
    assert shown(each) == said


def test_a_finding_knows_what_its_number_depends_on() -> None:
    about = {
        "model": {"updates": 6000, "hours": 1.03, "maps": 32}, "samples": 1000, "protocol": "disjoint",
        "data": {"name": "omniglot", "split": "45-5/test"},
    }  # fmt: skip
    answer = Answer("nll", about, TargetResults(number_of_targets=144), file="x/y.json")
    found = finding("NLL", "75.1", Mean(70.0, float("nan")), answer)
    assert (found.updates, found.hours, found.samples, found.targets) == (6000, 1.03, 1000, 144)
    assert (found.protocol, found.data, found.answer) == ("disjoint", "omniglot 45-5/test", "x/y.json")
    assert (found.value, found.error) == (70.0, None)
    assert training(found) == "6 000 updates, 32 maps, 1.03 h"
    assert training(Finding("", "", updates=1_234_567, hours=2.0)) == "1 234 567 updates, 2.00 h"
    asleep = {**about, "model": {**about["model"], "sleep_updates": 2000}}
    slept = finding("NLL", "", 70.0, replace(answer, about=asleep))
    assert training(slept) == "6 000 updates and 2 000 asleep, 32 maps, 1.03 h"
    assert training(Finding("", "")) == ""
    assert numbers(float("inf"))["value"] is None


def test_numbers_on_a_stand_in_are_said_not_to_be_comparable() -> None:
    answers = GOLDEN["text-omniglot28"]
    rows = EXPERIMENTS["text-omniglot28"].findings(typed(answers))
    assert "on glyphs" in rows[0].what
    assert rows[0].paper == "103.6 (K = 5000); on Burda's images, so not comparable"
    burda = {
        key: {**value, "data": {"name": "omniglot28", "split": "test"}} for key, value in answers.items()
    }
    assert EXPERIMENTS["text-omniglot28"].findings(typed(burda))[0].paper == "103.6 (K = 5000)"


def test_a_collection_is_valid_json(tmp_path: Path) -> None:
    for name in NAMES:
        json.loads(collection(tmp_path, name).read_text(), parse_constant=pytest.fail)


def test_a_damaged_answer_is_named(tmp_path: Path) -> None:
    for content in (b"", b"[]", b'{"evaluation": "nll", "results": 3}', b"\xff"):
        (tmp_path / "nll.json").write_bytes(content)
        with pytest.raises(InputError, match=r"nll\.json is no readable answer, so move it away"):
            read_answer(tmp_path, "nll.json")
    with pytest.raises(InputError, match=r"There is no answer .*gone\.json"):
        read_answer(tmp_path, "gone.json")
