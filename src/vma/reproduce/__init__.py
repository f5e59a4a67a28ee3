"""Every figure, table and statement of the paper, made again by its name."""
