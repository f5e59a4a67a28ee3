"""`python -m vma`, which torchrun needs."""

from vma.cli import main

main()
