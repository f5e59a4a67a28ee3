"""`vma bench`: what an update, an evaluation, attention, addressing and data cost, beside their alternatives."""
