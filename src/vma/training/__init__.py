"""Training: the loop and its phases, optimisers and metrics; runs that survive interruptions."""
