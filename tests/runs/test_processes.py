"""Several processes: the same command, gradients of the joint batch, disjoint episodes."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.helpers.small_runs import child, ending, small, torchrun
from vma import InputError
from vma.build import build_model
from vma.runs.folder import Run
from vma.runs.processes import Processes, choose_device, processes
from vma.training.episodes import open_episodes
from vma.training.loop import Trainer
from vma.training.view import SilentView

CPU = torch.device("cpu")


def trainer(rank: int, world: int, minutes: float = 0.0) -> Trainer:
    settings = small(minutes=minutes)
    streams = open_episodes(settings, None, rank, world)
    torch.manual_seed(0)
    return Trainer(settings, Run(Path("unused")), streams, Processes(rank, world, CPU), SilentView())


def gradients(one: Trainer) -> dict[str, torch.Tensor]:
    one.phase.backward(0, 0.0)
    return {name: p.grad.clone() for name, p in one.phase.model.named_parameters() if p.grad is not None}


def gradient_of_rank(rank: int, meeting: Path, result: Path) -> None:
    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    one = trainer(rank, 2)
    one.phase.share()
    found = gradients(one)
    if rank == 0:
        torch.save(found, result)
    assert one.here.any(rank == 1)
    assert not one.here.any(False)
    dist.barrier()
    dist.destroy_process_group()


def test_two_processes_have_the_gradient_of_the_joint_batch(tmp_path: Path) -> None:
    """The mean over both processes' episodes, whose bounds stay those of single targets."""
    meeting, result = tmp_path / "meeting", tmp_path / "gradients"
    ranks = [child(gradient_of_rank, rank, meeting, result) for rank in range(2)]
    assert [ending(process) for process in ranks] == [0, 0]
    alone = []
    for rank in range(2):
        one = trainer(rank, 2)
        alone.append(gradients(one))
    found = torch.load(result, weights_only=True)
    assert found.keys() == alone[0].keys()
    for name, value in found.items():
        torch.testing.assert_close(value, (alone[0][name] + alone[1][name]) / 2, rtol=1e-9, atol=1e-12)


def weights_of_rank(rank: int, meeting: Path, results: Path) -> None:
    """A few updates against a time budget, by a clock that runs differently in each process."""
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    one = trainer(rank, 2, minutes=10.0)
    one.phase.share()
    for update in range(4):
        one.step()
        one.seconds = one.here.largest(60.0 * (1 + rank) * (update + 1))
    torch.save(one.phase.model.state_dict(), results / f"{rank}")
    dist.barrier()
    dist.destroy_process_group()


def test_processes_keep_the_same_weights_under_a_time_budget(tmp_path: Path) -> None:
    ranks = [child(weights_of_rank, rank, tmp_path / "meeting", tmp_path) for rank in range(2)]
    assert [ending(process) for process in ranks] == [0, 0]
    one, two = (torch.load(tmp_path / f"{rank}", weights_only=True) for rank in range(2))
    assert [name for name in one if not one[name].equal(two[name])] == []


def test_a_process_that_cannot_see_the_checkpoint_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    one = trainer(0, 1)
    monkeypatch.setattr(Processes, "largest", lambda self, value: value + 30.0)
    with pytest.raises(InputError, match="put the run on a folder that all machines share"):
        one.restore()


def test_processes_draw_disjoint_episodes() -> None:
    streams = [open_episodes(small(), None, rank, 2).train for rank in range(2)]
    alone = open_episodes(small(), None).train
    for step in range(5):
        drawn = [s.episode(step).target_indices.tolist() for s in streams]
        assert drawn == [alone.episode(2 * step + rank).target_indices.tolist() for rank in range(2)]
        assert drawn[0] != drawn[1]


def test_torchrun_trains_with_the_same_command(tmp_path: Path) -> None:
    data = ["--data.name", "glyphs", "--data.size", "16", "--episode.shots", "8", "--episode.targets", "4"]
    brief = [
        "--updates",
        "6",
        "--log-every",
        "3",
        "--picture-minutes",
        "0",
        "--folder",
        str(tmp_path / "run"),
    ]
    shown = torchrun(29543, "train", "mnist-recall-64", *data, *brief)
    assert [row["update"] for row in Run(tmp_path / "run").metrics()] == [3, 6]
    assert shown.count("Done: 6 updates") == 1


def test_one_process_alone() -> None:
    with processes("cpu") as here:
        assert (here.rank, here.world, here.is_first) == (0, 1, True)
        model = build_model(small().model)
        assert here.share(model) is model
        assert here.any(True)
    with pytest.raises(InputError, match="Unknown device"):
        choose_device("abacus")


@pytest.mark.parametrize(
    "name", ["mps", "meta", "xla", "cpu:1", "cuda:", "cuda:-1", "cuda:99999999999", "", "CPU"]
)
def test_a_device_that_nothing_runs_on_is_unknown(name: str) -> None:
    with pytest.raises(InputError, match=r"(Unknown|There is no) device .*: use auto"):
        choose_device(name)


@pytest.mark.parametrize("value", ["abc", "", "0", "-1", "1.5", "٣", "9" * 5000])
def test_an_environment_that_makes_no_sense_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", value)
    with (
        pytest.raises(InputError, match=r"WORLD_SIZE=.* must be a whole number of 1 or more: unset it"),
        processes("cpu"),
    ):
        pass


def test_several_processes_without_a_place_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with (
        pytest.raises(InputError, match="cannot be joined, so start all of them with torchrun"),
        processes("cpu"),
    ):
        pass
