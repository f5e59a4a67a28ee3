"""What makes convolutions fast on a CPU: the layout of feature maps, compiled loops, Winograd's tiles."""
