"""The figures, drawn from saved answers and nothing else; laid out like the paper's."""
