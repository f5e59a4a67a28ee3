"""Whether each claim of the paper was reproduced: a judgement made by hand, beside a number that was measured.

`verdicts.json` lies beside the collections and names, for each claim, an experiment and one of its findings. The
page takes the paper's number, ours, and the length of training from that finding, so they always agree with what
was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from vma.errors import InputError, unknown_name
from vma.reproduce.findings import Finding

FILE = "verdicts.json"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and whether we found it too.

    Attributes:
        claim: What the paper says, in a few words.
        experiment: The experiment that tests it.
        row: The deciding finding of that experiment, by what was measured.
        verdict: `reproduced`, `exceeded` (we do better), `partly`, or `not`.
        because: Why, in a sentence.
    """

    claim: str
    experiment: str
    row: str
    verdict: Literal["reproduced", "exceeded", "partly", "not"]
    because: str


def read_verdicts(results: Path) -> list[Verdict]:
    """The judgements in the folder `results`; none if it has no such file."""
    path = results / FILE
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Verdict])
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None


def deciding_finding(verdict: Verdict, findings: Sequence[Finding]) -> Finding:
    """The finding of its experiment that a verdict is about."""
    found = {each.what: each for each in findings}
    if verdict.row not in found:
        raise unknown_name(f"row of {verdict.experiment} in {FILE}", verdict.row, found)
    return found[verdict.row]
