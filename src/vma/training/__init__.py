"""Training: presets for every experiment, runs that survive anything."""
