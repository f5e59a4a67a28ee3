"""Numbers in the documents are those of the JSON behind them."""

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

import vma
from benchmarks.campaign import PLAN
from benchmarks.likelihood_study import table as likelihood_table
from benchmarks.memory_study import table as memory_table
from benchmarks.own_pictures import table as pictures_table
from benchmarks.recipes import RECIPES, table
from benchmarks.sleep_study import table as sleep_table
from tests.helpers.documents import DOCUMENTS, ROOT
from tests.test_house import FLOORS, room
from vma.commands.training import parse_start
from vma.quickstart.command import LEAST_UPDATES
from vma.reproduce.page import contents, render
from vma.reproduce.sharp_addresses import TRAINED_ITEMS, TRAINED_PAIRS, TRAINED_READS, trained_pairs
from vma.reproduce.verdicts import read_verdicts
from vma.runs.presets import PRESETS

NOTES = sorted((ROOT / "docs/lab-notes").glob("[a-z]*.md"))  # all but the index, README.md


def lab_notes() -> str:
    """All files of docs/lab-notes but the index, one after the other."""
    return "\n".join(path.read_text() for path in NOTES)


def shown(value: float) -> str:
    return "0" if value < 1e-12 else f"{value:.2f}"


def test_the_table_of_estimators_is_the_measured_one() -> None:
    text = (ROOT / "docs/estimators.md").read_text()
    rows = json.loads((ROOT / "results/estimator-bias.json").read_text())["rows"]
    assert rows
    for row in rows:
        values = [shown(row[key]) for key in ("bias_q", "bias_model", "spread_q", "spread_model")]
        assert f"| `{row['estimator']}` | {row['samples']} | {' | '.join(values)} |" in text


def test_the_page_of_numbers_states_what_the_quickstart_measured() -> None:
    text = (ROOT / "docs/numbers.md").read_text()
    found = json.loads((ROOT / "results/quickstart.json").read_text())
    for name in ("nll_vma", "nll_vae", "gain"):
        mean = found[name]
        assert f"{mean['value']:.1f} ± {mean['error']:.1f}" in text
    assert f"{100 * found['accuracy']['value']:.1f} %" in text


def test_the_lab_notes_state_what_the_quickstart_does_on_a_busy_machine() -> None:
    text = (ROOT / "docs/lab-notes/quickstart-on-a-busy-machine.md").read_text().replace("\n", " ")
    found = json.loads((ROOT / "results/quickstart-busy.json").read_text())
    assert f"a load of {found['training']['load']:.1f} on two cores" in text
    assert (
        f"after {found['wall_seconds'] // 60:.0f} minutes and {found['wall_seconds'] % 60:.0f} seconds"
        in text
    )
    assert f"{found['processor_seconds']} seconds of the processor" in text
    assert found["training"]["updates"] == found["training"]["vae_updates"] == LEAST_UPDATES == 400
    for name in ("nll_vma", "nll_vae"):
        assert plus_minus(found[name]) in text
    accuracy = found["accuracy"]
    assert f"{100 * accuracy['value']:.1f} % of 5-way 1-shot questions right" in text
    assert f"({100 * accuracy['low']:.1f} to {100 * accuracy['high']:.1f})" in text
    assert f"KL_a {plus_minus(found['kl_a'], 2)}" in text


def test_the_page_of_numbers_states_what_three_models_gave_alike() -> None:
    rows = json.loads((ROOT / "results/fig5a-classes.json").read_text())["rows"]
    found = {row["what"].split(",")[0]: row for row in rows if row["paper"][:4] in ("68.8", "73.4", "90.8")}
    assert len(found) == 3
    text = (ROOT / "docs/numbers.md").read_text().replace("\n", " ")
    for row in found.values():
        assert f"{row['value']:.1f} ± {row['error']:.1f}" in text
        assert (row["maps"], row["samples"], row["targets"]) == (32, 1000, 144)
        assert row["updates"] in (10_000, 10_001)


def row_of(experiment: str, what: str) -> dict:
    (row,) = (row for row in answer(experiment)["rows"] if row["what"] == what)
    return row


def test_the_readme_states_the_numbers_of_its_verdicts() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    best, soft, vae = (
        plus_minus(row)
        for row in answer("fig5a-classes")["rows"]
        if row["paper"][:4] in ("68.8", "73.4", "90.8")
    )
    assert f"**{best} nats** on unseen Omniglot classes" in text
    assert f"[{best}; {soft}; {vae}]" in text
    shares = [
        f"{100 * row_of('text-classification', f'{ways}-way 1-shot, by q(a|x)')['value']:.1f} %"
        for ways in (5, 20)
    ]
    assert f"**{shares[0]}** of 5-way 1-shot tasks" in text
    assert f"[{', '.join(shares)}]" in text
    table = row_of("table1-gmn", "NLL, VMA, C = 1, disjoint, t = 1")
    assert f"[{plus_minus(table)}, after {table['updates']} updates]" in text
    assert f"[{plus_minus(answer('in-order-nll')['results']['nll'])}]" in text
    kinds = answer("own-pictures")["kinds"]
    fonts = [
        f"{100 * kinds[kind]['right']['omniglot-crisp'][0]['value']:.1f} %" for kind in ("clean", "photo")
    ]
    assert f"[{', '.join(fonts)}]" in text
    quick = answer("quickstart")
    assert f"[{plus_minus(quick['nll_vma'])}, {plus_minus(quick['nll_vae'])}]" in text
    assert f"[{answer('bench-step-64')['speedup_vs_textbook']:.1f} times less]" in text


def test_the_documents_state_what_omniglot_gave() -> None:
    found = json.loads((ROOT / "results/omniglot-fewshot-4-fast-test.json").read_text())["models"][0]
    assert found["updates"] == 6000
    notes = lab_notes()
    for row in found["rows"]:
        assert f"{row['nll']:.1f} ± {row['error']:.1f}" in notes.replace("\n", " ")


def test_the_documents_state_what_an_hour_and_a_half_gave() -> None:
    notes, text = lab_notes(), (ROOT / "docs/numbers.md").read_text()
    curve = json.loads((ROOT / "results/omniglot-long.json").read_text())["curve"]
    for row in curve:
        assert f"| {row['update']} | {row['nll']:.1f} | {row['kl_a']:.2f} | {row['kl_z']:.1f} |" in notes
    found = json.loads((ROOT / "results/omniglot-long-classes.json").read_text())
    assert (found["samples"], found["shots"], found["results"]["number_of_targets"]) == (1000, 4, 144)
    points = {point["classes"]: point for point in found["results"]["points"]}
    for classes, point in points.items():
        start = f"| {classes} | {point['memory']} | {plus_minus(point['nll'])} | {point['line']:.1f} |"
        assert f"{start} {plus_minus(point['rise'], 2)} |" in notes
    assert f"gave {plus_minus(points[8]['nll'])} nats on unseen Omniglot classes" in text
    assert f"and {plus_minus(points[144]['nll'])} with all 144 unseen classes" in text


def test_benchmarks_look_at_memory_as_a_trained_model_does() -> None:
    rows = json.loads((ROOT / "results/trained-addresses.json").read_text())["rows"]
    by_size = {row["memory"]: row for row in rows}
    for reads, pairs in zip(TRAINED_READS, TRAINED_PAIRS, strict=True):
        measured = [by_size[items][f"pairs_{reads}"] for items in TRAINED_ITEMS]
        assert measured == pytest.approx(pairs, abs=0.0051)
        for row in rows:
            assert trained_pairs(row["memory"], reads) == pytest.approx(row[f"pairs_{reads}"], rel=0.12)


def plus_minus(mean: dict[str, float], digits: int = 1) -> str:
    return f"{mean['value']:.{digits}f} ± {mean['error']:.{digits}f}".replace("-", "−")


def test_the_lab_notes_state_what_the_baselines_gave() -> None:
    notes = lab_notes()
    for file, updates in (("baseline-check", 1200), ("baseline-check-3000", 3000)):
        models = json.loads((ROOT / f"results/{file}.json").read_text())["models"]
        for model in models:
            assert model["updates"] == updates
            assert " | ".join(plus_minus(point["nll"]) for point in model["points"]) in notes
        soft, ours = (next(m for m in models if m["model"] == kind) for kind in ("soft-attention", "vma"))
        assert plus_minus(soft["above_first"]["1"]) in notes
        assert plus_minus(ours["points"][-1]["rise"], 2) in notes


def test_baselines_are_ranked_as_the_paper_says() -> None:
    models = json.loads((ROOT / "results/baseline-check.json").read_text())["models"]
    soft, ours = (next(m for m in models if m["model"] == kind) for kind in ("soft-attention", "vma"))
    few, many = soft["above_first"]["1"], soft["above_first"]["32"]
    assert models[0]["model"] == "vae"
    assert few["value"] + 2 * few["error"] < 0 < many["value"] - 2 * many["error"]
    for point in ours["points"]:
        excess = point["nll"]["value"] - point["line"]
        assert excess < 2 * point["rise"]["error"] + 0.5


def test_the_lab_notes_state_what_the_adaptive_bound_gains() -> None:
    notes = lab_notes()
    for row in json.loads((ROOT / "results/tighter-bound.json").read_text())["rows"]:
        assert f"| {row['samples']} |" in notes
        assert plus_minus(row["gain"], 2) in notes


@pytest.mark.parametrize(
    ("file", "runs"),
    [
        ("recipes", 39),
        ("recipes-32", 39),
        ("recipes-32-240s", 6),
        ("recipes-32-1800s", 6),
        ("recipes-32-180s", 6),
    ],
)
def test_the_lab_notes_state_how_fast_each_recipe_learns(file: str, runs: int) -> None:
    notes = lab_notes()
    rows = json.loads((ROOT / f"results/{file}.json").read_text())["rows"]
    assert len(rows) == runs
    for line in table(rows):
        assert line in notes


def test_the_fast_presets_are_the_recipe_that_learned_most_in_half_an_hour() -> None:
    found = json.loads((ROOT / "results/recipes-32-1800s.json").read_text())["summary"]
    best = RECIPES[min(found, key=lambda each: each["valid_nll"])["recipe"]]
    fast = PRESETS["omniglot-fewshot-4-fast"]
    assert (fast.model.style, fast.optimiser.name) == (best.model.style, best.optimiser.name)
    assert (fast.latent_gradient, fast.samples) == (best.latent_gradient, best.samples)
    assert fast.estimator == best.estimator


def test_the_page_of_numbers_states_the_measured_speed() -> None:
    text = (ROOT / "docs/numbers.md").read_text().replace("\n", " ")
    step, evaluate = (
        json.loads((ROOT / f"results/bench-{name}.json").read_text()) for name in ("step-64", "evaluate")
    )
    assert f"{step['speedup_vs_textbook']:.1f} times less time than the paper written down literally" in text
    assert (
        f"{step['speedup_vs_per_target_memory']:.1f} times less than with a memory for every target" in text
    )
    assert f"at {step['fraction_of_sgemm']:.2f} of the speed of a plain matrix product" in text
    small, large = evaluate["rows"]
    assert (small["memory"], large["memory"]) == (32, 2560)
    assert f"K = 1000 takes {small['speedup_vs_textbook']:.1f} times less (|M| = 32), " in text
    layers = f"{large['speedup_of_layers_vs_textbook']:.1f} times"
    assert f"{large['speedup_vs_textbook']:.1f} times with |M| = 2560 ({layers} without Numba)" in text
    queries = json.loads((ROOT / "results/bench-addressing.json").read_text())["rows"]
    (single,) = (row for row in queries if (row["memory"], row["targets"]) == (1_000_000, 1))
    assert "one query to a million cached keys takes hardly longer than to read them once" in text
    assert single["fraction_of_bandwidth"] > 0.8


def test_the_documents_state_the_speed_without_avx512() -> None:
    found = json.loads((ROOT / "results/bench-evaluate-avx2.json").read_text())
    assert found["machine"]["instructions"] == "AVX2"
    page, notes = (ROOT / "docs/performance.md").read_text(), lab_notes()
    assert f"gave {found['speedup_vs_textbook']:.2f} times." in page
    assert f"and {found['speedup_vs_textbook']:.2f} in five" in notes
    steps = [json.loads((ROOT / f"results/bench-step-{maps}-avx2.json").read_text()) for maps in (64, 32)]
    assert all(step["machine"]["instructions"] == "AVX2" for step in steps)
    shares = [f"{step['fraction_of_sgemm']:.2f}" for step in steps]
    assert f"64 maps reach {shares[0]} of it" in page
    assert f"32 maps {shares[1]} " in page
    assert " and ".join(f"{step['speedup_vs_textbook']:.2f}" for step in steps) in page
    (row,) = json.loads((ROOT / "results/bench-evaluate.json").read_text())["rows"][1:]
    assert (
        f"**Without Numba, which is optional, it is {row['speedup_of_layers_vs_textbook']:.2f} times**"
        in page
    )


def answer(name: str) -> dict:
    return json.loads((ROOT / f"results/{name}.json").read_text())


def shares(name: str) -> list[str]:
    return [f"{100 * task['by_address']['value']:.1f}" for task in answer(name)["results"]["tasks"]]


def test_the_documents_state_what_a_sleep_gave() -> None:
    notes, text = lab_notes(), (ROOT / "docs/numbers.md").read_text()
    for name in ("sleep-classify", "sleep-classify-awake"):
        assert " / ".join(shares(name)) in text
        assert (answer(name)["trials"], answer(name)["data"]["split"]) == (2000, "45-5/test")
    for name in ("sleep-classify-awake", "sleep-classify", "sleep-classify-alphabet", "sleep-background",
                 "sleep-background-alphabet"):  # fmt: skip
        assert f"| {' | '.join(shares(name))} | {name} |" in notes
    for point in answer("sleep-classes")["results"]["points"]:
        mass = plus_minus(point["own_class_mass"], 2)
        assert f"| {point['classes']} | {plus_minus(point['nll'])} |" in notes
        assert f"| {mass} | {point['own_class_first']['value']:.2f} |" in notes
    for name in ("sleep-nll", "sleep-nll-awake"):
        assert plus_minus(answer(name)["results"]["nll"], 2) in notes


@pytest.mark.parametrize("name", ["sleep-study", "sleep-study-long", "wake-study"])
def test_the_tables_of_the_sleep_study_are_the_measured_ones(name: str) -> None:
    assert sleep_table(answer(name)["runs"]) in lab_notes()


def test_the_documents_state_what_preparing_pictures_gave() -> None:
    found, page = answer("own-pictures"), (ROOT / "docs/pictures.md").read_text()
    assert pictures_table(found) in lab_notes()
    clean = found["kinds"]["clean"]["right"]
    for name in ("omniglot-crisp", "blurred nearest neighbour"):
        assert " / ".join(f"{100 * share['value']:.1f}" for share in clean[name]) in " ".join(page.split())
    for kind in ("clean", "photo"):
        before, now = (found["kinds"][kind]["right"][f"omniglot-crisp{when}"][0] for when in (", before", ""))
        said = f"from {100 * before['value']:.1f} to {100 * now['value']:.1f} %"
        assert said in " ".join(lab_notes().split())
    area = answer("own-pictures-novelty")["novelty"]["areas"]["joined"]
    assert f"an area of {area['value']:.3f} ± {area['error']:.3f}" in " ".join(lab_notes().split())


def test_the_documents_state_how_well_new_classes_are_told() -> None:
    found, text = answer("novelty")["results"], (ROOT / "docs/use.md").read_text()
    for name in ("joined", "angle", "odds", "surprise", "entropy", "nll"):
        assert f"| {found['areas'][name]['value']:.3f} ± {found['areas'][name]['error']:.3f} |" in text
    for name in ("false_alarms", "found"):
        assert f"{100 * found[name]['value']:.1f} ± {100 * found[name]['error']:.1f} %" in text


def test_the_documents_state_what_recognition_gave() -> None:
    text = (ROOT / "docs/use.md").read_text()
    for task in answer("calibration")["results"]["tasks"]:
        rules = (task["rules"][name] for name in ("joined", "address", "proposals", "likelihood"))
        cells = [f"{100 * r['accuracy']['value']:.1f} %, {r['calibration_error']:.3f}" for r in rules]
        assert f"| {task['ways']}-way {task['shots']}-shot | {' | '.join(cells)} |" in text


def test_the_documents_state_what_ink_in_reading_order_gave() -> None:
    notes, text = lab_notes(), (ROOT / "docs/numbers.md").read_text()
    for name in ("trained", "study-6000", "study-1500"):
        found = json.loads((ROOT / f"results/likelihood-{name}.json").read_text())
        assert likelihood_table(found["runs"]) in notes
    for name in ("in-order-nll", "in-order-nll-soft", "in-order-nll-vae", "sleep-nll"):
        found = json.loads((ROOT / f"results/{name}.json").read_text())
        assert (found["samples"], found["results"]["number_of_targets"], found["classes"]) == (1000, 512, 8)
        assert f"| {plus_minus(found['results']['nll'], 2)} |" in notes
        assert plus_minus(found["results"]["nll"]) in " ".join(text.split())
    for point in json.loads((ROOT / "results/in-order-classes.json").read_text())["results"]["points"]:
        rise = plus_minus(point["rise"], 2)
        assert f"| {point['classes']} | {plus_minus(point['nll'])} | {rise} |" in notes
    tasks = json.loads((ROOT / "results/in-order-classify.json").read_text())["results"]["tasks"]
    shares = " / ".join(f"{100 * task['by_address']['value']:.1f}" for task in tasks)
    assert shares in " ".join(notes.split())
    assert shares in " ".join(text.split())


def test_ink_in_reading_order_costs_what_is_said() -> None:
    step = json.loads((ROOT / "results/bench-step-in-order.json").read_text())
    drawing = json.loads((ROOT / "results/bench-drawing.json").read_text())
    notes = " ".join(lab_notes().split())
    assert f"takes {step['reading_order_cost']:.2f} times one without" in notes
    assert f"{drawing['milliseconds']:.0f} ms for 16 images" in notes
    assert f"{drawing['speedup_vs_naive']:.0f} times faster than the whole network" in notes


def test_the_documents_state_what_large_memories_gave() -> None:
    found, notes = json.loads((ROOT / "results/large-memories.json").read_text()), lab_notes()
    for row in found["growth"]:
        own, first = plus_minus(row["own_class_mass"], 2), plus_minus(row["own_class_first"], 2)
        assert f"| {plus_minus(row['nll'])} | {own} | {first} | {row['entropy']['value']:.1f} |" in notes
    page = (ROOT / "docs/large-memories.md").read_text()
    for row in found["rows"]:
        lost = f"{plus_minus(row['plain_nats_lost'], 2)} | {plus_minus(row['sharp_nats_lost'], 2)}"
        assert f"| {row['sharpness']:.2f} | {lost} |" in page
        alone = f"| {row['searched_ms']:.2f} ms | {row['exact_ms']:.3g} ms | {row['faster']:.0f} |"
        together = (
            f" {row['searched_of_64_ms']:.2f} ms | {row['faster_of_64']:.1f} | {row['cold_ms']:.2f} ms |"
        )
        assert alone + together in page
        built = (
            f"{row['open_seconds']:.2f} s | {row['open_megabytes']:.0f} MB | {row['index_seconds']:.0f} s |"
        )
        assert built in page
    assert f"|M|^{found['growth_exponent_of_a_query']:.2f}" in page


def test_the_documents_state_what_bounds_of_large_memories_lose() -> None:
    page = (ROOT / "docs/large-memories.md").read_text()
    for size in json.loads((ROOT / "results/large-bounds.json").read_text()):
        for difference, value in size["minus"].items():
            exact, searched = difference.split(" - ")
            assert f"| {exact.split()[1]} | {' | '.join(searched.split())} | {plus_minus(value, 2)} |" in page


def test_the_page_of_results_is_that_of_the_collections() -> None:
    """`vma report` was run after the last `vma reproduce`, and every verdict has its row."""
    values = contents(ROOT / "results")
    judged = {each.experiment for each in read_verdicts(ROOT / "results")}
    shown_only = {"fig4a-oneshot", "supp-curves"}  # samples and curves, of which the paper claims no number
    assert judged | shown_only == {each.record.experiment for each in values["sections"]}
    assert render("template.md", ROOT / "docs", values) == (ROOT / "docs/results.md").read_text()


def test_the_lab_notes_state_what_recall_and_a_learned_memory_gave() -> None:
    notes = lab_notes()
    study = json.loads((ROOT / "results/memory-study.json").read_text())
    assert {row["seed"] for row in study["runs"]} == {0, 1, 2}
    assert memory_table(study["runs"]) in notes
    recall, learned = (
        {row["what"]: row for row in json.loads((ROOT / f"results/{name}.json").read_text())["rows"]}
        for name in ("fig2a-recall", "fig2b-learned-mnist")
    )
    said = [plus_minus(row, 2) for row in recall.values() if row["error"] is not None]
    assert len(said) >= 3
    assert all(number in notes for number in said)
    for size in (64, 128, 256, 512, 1024):
        kl_a, nll = learned[f"KL_a, test set, |M| = {size}"], learned[f"NLL, |M| = {size}"]
        assert (
            f"| {size} | {plus_minus(kl_a, 2)} | {learned[f'H(p(a)), |M| = {size}']['value']:.2f} |" in notes
        )
        assert f"| {plus_minus(nll)} |" in notes
    for what, digits in (("KL_a, test set, |M| = 256", 2), ("NLL, |M| = 256", 1), ("NLL, VAE", 1)):
        assert plus_minus(learned[f"{what}, mean over 3 seeds"], digits) in " ".join(notes.split())


def test_the_campaign_is_planned_as_it_is_queued() -> None:
    text = (ROOT / "docs/campaign.md").read_text()
    for each in PLAN:
        assert f"| {each.name} | `{each.arguments}` | {each.hours:.2f} | {each.purpose} |" in text
        assert parse_start(shlex.split(each.arguments)).settings.updates > 0


LINK = re.compile(r"!?\[[^\]]*\]\(([^)]*)\)|https?://\S+")
WIDTH = 100


def too_long(text: str) -> list[str]:
    """Lines that should have been wrapped: not of tables, headings, or of one link that is too long by itself."""
    found, fenced, indented, before = [], False, False, ""
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        indented = line.startswith("    ") and (indented or not before.strip() or before.startswith("#"))
        alone = any(len(link.group(0)) > WIDTH for link in LINK.finditer(line))
        excused = not (fenced or indented) and (line.startswith(("|", "#")) or alone)
        if len(line) > WIDTH and not excused:
            found.append(line)
        before = line
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_wrap_at_100_characters(path: Path) -> None:
    assert too_long(path.read_text()) == []


def test_lines_that_are_too_long_are_found() -> None:
    long = 30 * "word "
    link = f"[{90 * 'x'}](results/file.json)"
    assert too_long(f"{long}\n\n- {long}\n") == [long, f"- {long}"]
    assert too_long(f"| {long} |\n# {long}\n{link}\n    short\n") == []
    assert too_long(f"text\n    {long}\n") == [f"    {long}"]
    code = f"```\n{100 * 'x'}\n{101 * 'x'}\n```\n\n    {96 * 'x'}\n    {97 * 'x'}\n"
    assert too_long(code) == [101 * "x", f"    {97 * 'x'}"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_link_what_there_is(path: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", path.read_text()) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_index_of_the_lab_notes_says_what_they_say() -> None:
    index = (ROOT / "docs/lab-notes/README.md").read_text()
    rows = re.findall(r"^\| (.*) \| (.*) \| \[[^\]]*\]\((.*)\) \|$", index, re.MULTILINE)
    assert sorted(name for *_, name in rows) == [path.name for path in NOTES]
    for question, conclusion, name in rows:
        text = (ROOT / "docs/lab-notes" / name).read_text()
        assert text.startswith(f"# {question}\n\n".replace("\\|", "|"))
        numbers = re.findall(r"\d+(?:\.\d+)?", conclusion)
        assert [number for number in numbers if not re.search(rf"(?<![\d.]){number}(?![\d])", text)] == []


GUIDES = [path for path in DOCUMENTS if path.name != "CHANGELOG.md" and path.parent.name != "lab-notes"]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?<![\w/.])(?:src/vma|tests|benchmarks)/[\w/.-]*[\w/]")
MODULE = re.compile(r"(?<![\w/.\"'-])(?:vma|benchmarks)(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(r"^from ((?:vma|benchmarks)[\w.]*) import (.+)$", re.MULTILINE)


def names_in(module: str) -> set[str] | None:
    """What a module of `vma` or `benchmarks` defines, imports or lists, by its source; None if there is none."""
    folder = ROOT / ("src" if module.split(".")[0] == "vma" else "") / module.replace(".", "/")
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    if not path.exists():
        return set() if folder.is_dir() else None
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
            case ast.Constant(value=str(name)):  # of `__all__`, or a group of entry points
                found.add(name)
    return found


def exists(name: str) -> bool:
    """Whether a dotted name is a module, a name of one, or a group of entry points."""
    parts = name.split(".")
    modules = [(count, names_in(".".join(parts[:count]))) for count in range(len(parts), 0, -1)]
    count, found = next((count, names) for count, names in modules if names is not None)
    groups = (names_in("vma.parts") or set()) | (names_in("vma.data.registry") or set())
    return count == len(parts) or parts[count] in found or name in groups


def mentioned(text: str) -> tuple[set[str], set[str]]:
    """Files, and dotted names of modules or of what is in them, in a document's inline code and Python."""
    code = [code for language, code in FENCED.findall(text) if language == "python"]
    inline = re.findall(r"`([^`]+)`", FENCED.sub("", text))
    files = {file for each in inline for file in FILE.findall(each)}
    names = {name for each in inline for name in MODULE.findall(each)}
    for each in code:
        names |= {
            f"{module}.{name}" for module, found in IMPORT.findall(each) for name in re.findall(r"\w+", found)
        }
    return files, names


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_name_what_there_is(path: Path) -> None:
    files, names = mentioned(path.read_text())
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []
    assert [name for name in sorted(names) if not exists(name)] == []


def test_names_that_are_not_there_are_found() -> None:
    text = (
        "`src/vma/model.py`, `vma.VMA(...)`\n```python\nfrom vma.data import Dataset\n```\n`vma.load(RUN).x`"
    )
    assert mentioned(text) == ({"src/vma/model.py"}, {"vma.VMA", "vma.data.Dataset", "vma.load"})
    assert all(
        map(exists, ("vma", "vma.runs", "vma.reads.SAMPLINGS", "vma.data.DATASETS", "vma.similarities"))
    )
    assert not any(
        map(exists, ("vma.use", "vma.reads.ADAPTIVE", "vma.data.Recollection", "benchmarks.nothing"))
    )


def test_the_architecture_names_files_of_the_package() -> None:
    inline = re.findall(r"`([\w/]+\.(?:py|js))`", (ROOT / "docs/architecture.md").read_text())
    assert [name for name in inline if not [*(ROOT / "src").rglob(name), *ROOT.glob(name)]] == []


def test_the_architecture_shows_every_room_on_its_floor() -> None:
    (tree,) = (code for language, code in FENCED.findall((ROOT / "docs/architecture.md").read_text()))
    shown, floor = {}, ""
    for number, name in re.findall(r"^ *(\d+|-)?  +(\w+)(?:\.py|/) ", tree, re.MULTILINE):
        floor = number or floor
        shown[name] = floor
    source = ROOT / "src/vma"
    there = {path.stem for path in source.glob("*.py")} | {path.parent.name for path in source.glob("*/*.py")}
    assert set(shown) == there
    floors = {name: str(number) for number, names in enumerate(FLOORS) for name in names}
    assert shown == {name: floors.get(room(f"vma.{name}"), "-") for name in shown}


def test_citation_and_changelog_are_of_this_version() -> None:
    assert f"\nversion: {vma.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest.group(1) == vma.__version__
