"""`vma quickstart`: two minutes of training on invented characters, then a report on unseen ones."""

from vma.quickstart.command import quickstart

__all__ = ["quickstart"]
