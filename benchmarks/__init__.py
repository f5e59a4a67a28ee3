"""Measurements of the project: each writes the JSON behind a table in the documentation."""
