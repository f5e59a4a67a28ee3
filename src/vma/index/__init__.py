"""Indexes: what finds the keys of large inner product with a query, among very many."""

from vma.index.protocol import NO_LABEL, NOWHERE, Found, Index, Place

__all__ = ["NOWHERE", "NO_LABEL", "Found", "Index", "Place"]
