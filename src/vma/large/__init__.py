"""Memories on disk: items and keys in a folder, of which only what is read is ever in memory."""

from vma.large.searched import CANDIDATES, SearchedItems
from vma.large.snapshot import Snapshot, is_large, open_snapshot
from vma.large.writer import Writer, create

__all__ = ["CANDIDATES", "SearchedItems", "Snapshot", "Writer", "create", "is_large", "open_snapshot"]
