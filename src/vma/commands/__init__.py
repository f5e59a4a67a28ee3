"""The commands of `vma`, one module for each room of the package; everything else can be used without them."""
