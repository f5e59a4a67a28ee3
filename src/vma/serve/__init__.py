"""`vma serve`: a local page to draw, remember, imagine and recognise."""

from vma.serve.app import create_app
from vma.serve.guard import Access
from vma.serve.store import Store

__all__ = ["Access", "Store", "create_app"]
