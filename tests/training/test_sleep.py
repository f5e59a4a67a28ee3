"""Asleep, only q(a|x) learns; a run survives anything, and what was there stays until sleep is complete."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from tests.helpers.small_runs import attempt, child, ending, fit, losses, mortal_attempt, small, torchrun
from vma import VMA, InputError, Memory, load_model
from vma.build import build_vma
from vma.commands.training import Resume, resume, run_row, sleep_command
from vma.likelihoods import Drawing
from vma.runs.checkpoint import Progress, latest_progress, read_progress
from vma.runs.folder import Run
from vma.runs.presets import FAST_SLEEP
from vma.runs.processes import Processes
from vma.runs.settings import NEVER, SleepSettings, TrainSettings
from vma.training.api import with_sleep
from vma.training.episodes import for_model, open_episodes
from vma.training.loop import Trainer
from vma.training.phases import Asleep, sleeper
from vma.training.view import PlainView, SilentView
from vma.warps import strength

CPU = torch.device("cpu")
SLEEP = SleepSettings(share=0.4, dreams=16, matching="anew")


def sleepy(**changes: object) -> TrainSettings:
    """18 updates awake and 12 asleep."""
    return small(**{"sleep": SLEEP, "warps": strength(1.0), "checkpoint_every": 3, **changes})


@pytest.fixture(scope="module")
def slept(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fit(sleepy(), tmp_path_factory.mktemp("slept") / "run")


def assert_same(run: Run, other: Run) -> None:
    assert losses(run) == losses(other)
    for name in ("model_file", "checkpoint_file", "sleep_file"):
        one, two = (load_file(getattr(r, name)) for r in (run, other))
        assert one.keys() == two.keys()
        assert [key for key in one if not one[key].equal(two[key])] == []


def let_sleep(*arguments: str) -> None:
    """`vma sleep` in float32, as users have it."""
    before, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float32)
    try:
        sleep_command(arguments)
    finally:
        torch.set_default_dtype(before)
        torch.set_num_threads(threads)


def generative(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of p(a,z,x|M) and q(z|m,x)."""
    matching = ("addressing.key.", "addressing.query.")
    return {name: value for name, value in tensors.items() if not name.startswith(matching)}


def test_metrics_tell_awake_from_asleep(slept: Run) -> None:
    rows = slept.metrics()
    assert [row["update"] for row in rows] == [5, 10, 15, 20, 25, 30]
    assert [("nll" in row, "dream_log_q_a" in row) for row in rows] == [(True, False)] * 3 + [
        (False, True)
    ] * 3
    for row in rows[3:]:
        assert row["dream_log_q_a"] < 0 <= row["dream_found"] <= row["dream_class_found"] <= 1
        assert row["dream_kl_p_a"] >= 0
    assert "valid_class_found" in rows[1]
    assert "valid_class_found" in rows[5]


def test_the_rate_falls_awake_and_again_asleep(slept: Run) -> None:
    factors = [row["rate_factor"] for row in slept.metrics()]
    assert factors[0] > factors[1] > factors[2]
    assert factors[2] < factors[4] > factors[5]  # the third is within the warm-up of the sleep


def test_asleep_the_generative_weights_stay_bit_for_bit(slept: Run) -> None:
    """They are the averaged ones that the run had when it fell asleep."""
    awake, after = load_file(slept.checkpoint_file), load_file(slept.model_file)
    before = {name.removeprefix("average."): v for name, v in awake.items() if name.startswith("average.")}
    assert read_progress(slept.checkpoint_file).update == 18
    assert latest_progress(slept).asleep_since == 18
    kept = generative(after)
    assert "addressing.prior_query" in kept
    assert [name for name in kept if not kept[name].equal(before[name])] == []
    assert all(not after[name].equal(before[name]) for name in after if name not in kept)


def test_a_run_with_sleep_can_be_repeated(slept: Run, tmp_path: Path) -> None:
    assert_same(fit(sleepy(), tmp_path / "again"), slept)


@pytest.mark.parametrize("moment", ["fsync", "replace", "after replace"])
def test_killed_while_writing_a_file_it_ends_the_same(moment: str, slept: Run, tmp_path: Path) -> None:
    """Kills inside the writing of settings, metrics, checkpoints and models, awake and asleep."""
    folder = tmp_path / "run"
    for count in (5, 6, 4, 3):
        code = ending(child(mortal_attempt, folder, moment, count, sleepy()))
        assert code in (0, -9)
    assert ending(child(attempt, folder, sleepy())) == 0
    assert_same(Run(folder), slept)


def test_interrupted_asleep_the_model_is_still_the_one_awake(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = sleepy(updates=30)
    awake = fit(replace(settings, sleep=replace(SLEEP, share=0.0), updates=18), tmp_path / "awake")
    code = 0
    for count in range(9, 14):  # the writing of a checkpoint asleep
        code = ending(child(mortal_attempt, folder, "after replace", count, settings))
        if Run(folder).sleep_file.exists():
            break
    assert code == -9
    assert read_progress(Run(folder).sleep_file).update < 30
    one, two = load_file(Run(folder).model_file), load_file(awake.model_file)
    # Rates fall to another end, so the weights differ from a run that is only awake; their kind does not.
    assert one.keys() == two.keys()
    assert one["addressing.key.1.0.weight"].equal(
        load_file(Run(folder).checkpoint_file)["average.addressing.key.1.0.weight"]
    )


def test_a_run_made_before_can_be_given_a_sleep(tmp_path: Path) -> None:
    run = fit(small(updates=12), tmp_path / "run")
    before, checkpoint = load_file(run.model_file), load_file(run.checkpoint_file)
    let_sleep(str(run.folder), "--updates", "9", "--sleep.dreams", "16", "--sleep.matching", "anew")
    after = load_file(run.model_file)
    assert all(value.equal(checkpoint[name]) for name, value in load_file(run.checkpoint_file).items())
    assert read_progress(run.checkpoint_file).update == 12
    kept = generative(after)
    assert [name for name in kept if not kept[name].equal(before[name])] == []
    assert not after["addressing.key.1.0.weight"].equal(before["addressing.key.1.0.weight"])
    assert latest_progress(run).update == 21
    assert run.settings().sleep.dreams == 16
    assert len(run.record()["history"]) == 1
    assert run_row(run)[0][1] == "21"


def test_a_second_sleep_starts_from_where_the_run_was_awake(tmp_path: Path) -> None:
    run = fit(small(updates=12), tmp_path / "run")
    models = []
    for _ in range(2):
        let_sleep(str(run.folder), "--updates", "6", "--sleep.dreams", "8")
        models.append(load_file(run.model_file))
    assert latest_progress(run).update == 18
    assert [name for name in models[0] if not models[0][name].equal(models[1][name])] == []
    assert [row["update"] for row in run.metrics()] == [5, 10, 15]


def test_one_network_for_keys_and_queries(tmp_path: Path) -> None:
    run = fit(sleepy(sleep=replace(SLEEP, matching="tied")), tmp_path / "run")
    model = load_model(run.model_file)
    assert isinstance(model, VMA)
    assert model.config.tied
    assert model.addressing.query is None
    assert_same(fit(sleepy(sleep=replace(SLEEP, matching="tied")), tmp_path / "run", resume=True), run)


def test_matching_networks_are_kept_or_started_anew() -> None:
    settings = sleepy()
    dreamer = build_vma(settings.model)
    kept = sleeper(dreamer, replace(settings, sleep=replace(SLEEP, matching="kept"))).state_dict()
    assert all(value.equal(kept[name]) for name, value in dreamer.state_dict().items())
    anew = sleeper(dreamer, settings).state_dict()
    changed = {name for name, value in dreamer.state_dict().items() if not value.equal(anew[name])}
    assert changed == {n for n in changed if n.startswith(("addressing.key.", "addressing.query."))}
    assert "addressing.key.1.0.weight" in changed


def test_asleep_q_learns_where_its_dreams_came_from() -> None:
    """Of a model that dreams its items as they are, q(a|x) finds nearly all dreams again.

    Its networks are wide enough that this does not hang on the seed: with 24 and 12 units every second one fails.
    """
    model = replace(small().model, hidden=(64, 32), matching=16)
    phase = asleep(0, 1, sleepy(model=model, warps=strength(0.0), sleep=replace(SLEEP, dreams=64)))
    phase.dreamer.draw = lambda memory, a, *_: Drawing(*[memory.read(a)] * 3)  # type: ignore[method-assign]
    first = phase.backward(0, 0.0)
    for update in range(150):
        phase.step(update, update, update / 150)
    last = phase.backward(150, 1.0)
    assert first[1] < 0.5  # of 8 items
    assert last[1] > 0.9
    assert last[0] > first[0] + 1.0


def test_memories_of_several_sizes_are_dreamt_from_in_turn() -> None:
    settings = sleepy(sleep=replace(SLEEP, classes=(2, 5), shots=3))
    streams = open_episodes(settings, None)
    sizes = [len(for_model(streams.dreams(update), CPU)[1] or ()) for update in range(4)]
    assert sizes == [6, 15, 6, 15]
    with pytest.raises(InputError, match="choose fewer classes"):
        open_episodes(sleepy(sleep=replace(SLEEP, classes=(10_000,))), None)


def test_sleep_beside_the_estimator(tmp_path: Path) -> None:
    """Its gradient reaches q(a|x) alone; its figures stand in the lines from when it begins."""
    beside = SleepSettings(beside=1.0, begin=0.5, dreams=16)
    run = fit(small(sleep=beside, updates=20), tmp_path / "run")
    rows = run.metrics()
    assert ["dream_found" in row for row in rows] == [False, False, True, True]
    assert all("nll" in row for row in rows)
    settings = small(sleep=replace(beside, begin=0.0))
    gradients = []
    for each in (settings, small()):
        torch.manual_seed(0)
        one = Trainer(
            each, Run(tmp_path / "unused"), open_episodes(each, None), Processes(0, 1, CPU), SilentView()
        )
        one.phase.backward(0, 0.0)
        gradients.append({name: p.grad for name, p in one.phase.model.named_parameters()})
    ours, alone = gradients
    for name, gradient in ours.items():
        assert gradient is not None
        assert gradient.equal(alone[name]) == (not name.startswith("addressing."))


def test_a_learned_memory_can_sleep(tmp_path: Path) -> None:
    model = replace(small().model, learned_items=5, item_size=6)
    episode = replace(small().episode, kind="batch", targets=8)
    run = fit(sleepy(model=model, episode=episode, warps=strength(0.0)), tmp_path / "run")
    assert run.metrics()[-1]["dream_log_q_a"] < 0
    items = "learned_memory.items"
    assert load_file(run.model_file)[items].equal(load_file(run.checkpoint_file)[f"average.{items}"])


def test_a_time_budget_is_shared_out() -> None:
    awake = Progress(1000, 600.0)
    settings = with_sleep(small(), awake, 3000, 5.0, FAST_SLEEP)
    assert (settings.updates, settings.minutes) == (NEVER, 15.0)
    assert settings.sleep.share == pytest.approx(1 / 3)
    one = Trainer(
        settings, Run(Path("unused")), open_episodes(settings, None), Processes(0, 1, CPU), SilentView()
    )
    one.update, one.seconds = awake.update, awake.seconds
    assert one.is_tired()
    one.seconds -= 1.0
    assert not one.is_tired()
    with pytest.raises(InputError, match="one or more updates"):
        with_sleep(small(), awake, 0, 5.0, FAST_SLEEP)


def test_a_run_whose_rate_has_fallen_is_not_made_longer(tmp_path: Path) -> None:
    run = fit(small(updates=6), tmp_path / "run")
    with pytest.raises(InputError, match="end of its falling rate"):
        resume(Resume(run.folder, updates=12))
    assert latest_progress(run).update == 6


def test_resuming_with_the_same_settings_leaves_no_trace_in_the_history(slept: Run, tmp_path: Path) -> None:
    assert "history" not in fit(sleepy(), slept.folder, resume=True).record()


def test_a_run_that_sleeps_is_not_trained_longer_awake(slept: Run) -> None:
    with pytest.raises(InputError, match="has fallen asleep"):
        resume(Resume(slept.folder, updates=100))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"share": 1.0}, "share"), ({"begin": -0.1}, "begin"), ({"dreams": 0}, "dreams"),
        ({"classes": (0,)}, "classes"), ({"shots": -1}, "shots"), ({"rate": 0.0}, "rate"),
    ],
)  # fmt: skip
def test_impossible_sleeps_are_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SleepSettings(**values)


def test_a_model_without_addresses_cannot_sleep() -> None:
    with pytest.raises(InputError, match="no address to dream of"):
        small(model=replace(small().model, model="vae"), sleep=SLEEP)


def test_a_line_says_that_the_run_is_asleep(slept: Run, capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView(sleepy(), slept)
    view.show(slept.metrics()[-1])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("update 30  asleep  ")
    assert "log q(a|dream) -" in line
    assert "class found" in line


def gradient_asleep(rank: int, meeting: Path, result: Path) -> None:
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    phase = asleep(rank, 2)
    phase.share()
    phase.backward(0, 0.0)
    if rank == 0:
        torch.save({name: p.grad for name, p in phase.trained.named_parameters()}, result)
    dist.barrier()
    dist.destroy_process_group()


def asleep(rank: int, world: int, settings: TrainSettings | None = None) -> Asleep:
    settings, here = settings or sleepy(), Processes(rank, world, CPU)
    torch.manual_seed(0)
    return Asleep(build_vma(settings.model), settings, open_episodes(settings, None, rank, world), here)


def test_two_processes_have_the_gradient_of_all_their_dreams(tmp_path: Path) -> None:
    meeting, result = tmp_path / "meeting", tmp_path / "gradients"
    ranks = [child(gradient_asleep, rank, meeting, result) for rank in range(2)]
    assert [ending(process) for process in ranks] == [0, 0]
    found, alone = torch.load(result, weights_only=True), []
    for rank in range(2):
        phase = asleep(rank, 2)
        phase.backward(0, 0.0)
        alone.append({name: p.grad for name, p in phase.trained.named_parameters()})
    for name, value in found.items():
        expected = None if value is None else (alone[0][name] + alone[1][name]) / 2
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    assert found["prior_query"] is None


def test_torchrun_sleeps_with_the_same_command(tmp_path: Path) -> None:
    run = fit(small(updates=6), tmp_path / "run")
    shown = torchrun(29551, "sleep", str(run.folder), "--updates", "4", "--sleep.dreams", "8")
    assert shown.count("Done: 10 updates") == 1
    record = json.loads(run.settings_file.read_text())
    assert record["settings"]["sleep"]["dreams"] == 8
    x, memory = torch.rand(2, 16, 16), Memory.of(torch.rand(3, 16, 16))
    assert load_model(run.model_file).bound(x, memory, 2).shape == (2,)
