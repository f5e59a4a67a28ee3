"""The figures of experiments, drawn from saved answers alone, in the layout of the paper's."""
