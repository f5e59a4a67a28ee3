"""What makes files of this repository out of what is installed."""
