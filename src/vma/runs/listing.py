"""Presets as `vma presets` lists them: in groups, with the duration of each, and one recommended."""

import json
from dataclasses import dataclass
from pathlib import Path

from vma.runs.presets import PRESETS
from vma.runs.settings import TrainSettings

RECOMMENDED = "omniglot-fewshot-4-in-order"
GROUPS = {  # by their dataset
    "glyphs": "Invented characters: nothing to download, not in the paper",
    "omniglot": "Omniglot, classes that were never seen: the paper's main experiment",
    "omniglot-gmn": "Omniglot in the split of Generative Matching Networks (Table 1)",
    "omniglot28": "Omniglot 28×28, learned memory",
    "binarized-mnist": "MNIST",
}
MEASURED = Path(__file__).parent / "preset_times.json"


@dataclass(frozen=True)
class Listed:
    """A preset in the list.

    Attributes:
        name: What `vma train` calls it.
        seconds: About how long it takes on one thread, awake and asleep.
        what: What it is, or how it differs from the preset that it derives from.
    """

    name: str
    seconds: float
    what: str


def groups() -> dict[str, list[Listed]]:
    """The presets by dataset; each is followed by those that derive from it.

    >>> from vma.runs.listing import groups
    >>> [preset.name for preset in groups()["glyphs"]][:2]
    ['glyphs-fewshot', 'glyphs-fewshot-fast']
    """
    seconds = json.loads(MEASURED.read_text())["seconds"]
    found: dict[str, list[Listed]] = {dataset: [] for dataset in GROUPS}
    for name in in_order():
        settings = PRESETS[name]
        found[settings.data.name].append(Listed(name, duration(settings, seconds[name]), difference(name)))
    return found


def in_order() -> list[str]:
    """All names, each followed by those that derive from it."""
    names = list(PRESETS)
    return sorted(names, key=lambda name: (names.index(base_of(name) or name), names.index(name)))


def base_of(name: str) -> str | None:
    """The preset that this one derives from, as names and descriptions tell; None if there is none."""
    text = PRESETS[name].description
    bases = [
        other
        for other, settings in PRESETS.items()
        if name.startswith(f"{other}-") and text.startswith(f"{settings.description}; here")
    ]
    return min(bases, key=len, default=None)


def difference(name: str) -> str:
    """The description without that of the preset it derives from."""
    base, text = base_of(name), PRESETS[name].description
    return text if base is None else text.removeprefix(PRESETS[base].description).removeprefix("; here ")


def duration(settings: TrainSettings, seconds: dict[str, float]) -> float:
    """Seconds of a whole run, from the seconds of one update awake and asleep."""
    asleep = round(settings.sleep.share * settings.updates)
    return (settings.updates - asleep) * seconds["awake"] + asleep * seconds.get("asleep", 0.0)


def roughly(seconds: float) -> str:
    """A duration in words.

    >>> from vma.runs.listing import roughly
    >>> roughly(95.0), roughly(3000.0), roughly(20_000.0), roughly(1e6)
    ('2 min', '50 min', '6 h', '12 days')
    """
    for name, unit in (("day", 86_400.0), ("h", 3600.0)):
        if (count := round(seconds / unit)) > 1:
            return f"{count} {name}{'s' if name == 'day' else ''}"
    minutes = max(1, round(seconds / 60))
    return f"{minutes if minutes < 10 else 5 * round(minutes / 5)} min"
