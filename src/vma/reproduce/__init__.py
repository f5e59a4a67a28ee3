"""Every figure, table and statement of the paper again, each by one name."""
