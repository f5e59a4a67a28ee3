"""`python -m benchmarks.speed`: what an update, a bound, attention, addressing, drawing and data cost."""
