"""Figures, drawn from results: arrays, small dataclasses and saved answers in, PNG or matplotlib figures out.

Nothing here knows a model, a dataset or a run, and nothing else in the library imports matplotlib. It takes a
second to import, so callers import these modules where they draw.
"""
