"""Runs: their settings and presets, their folders and checkpoints, and the processes that write them."""
