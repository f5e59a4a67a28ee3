"""The long run on files, pictures, requests and labels: `python -m tests.fuzz.outside --inputs 800000`."""

from tests.fuzz.long_run import run
from tests.fuzz.outside_targets import TARGETS

if __name__ == "__main__":
    raise SystemExit(run("tests.fuzz.outside", TARGETS))
