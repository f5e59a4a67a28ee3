"""Figures, drawn from results: arrays, small dataclasses and saved answers in, PNG or matplotlib figures out.

Nothing here knows a model, a dataset or a run, and nothing else in the package imports matplotlib. Its import
takes a second, so callers import these modules only where they draw.
"""
