"""The commands of `vma`, one module for each room of the package; nothing else depends on them."""
