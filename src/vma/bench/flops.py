"""Floating-point operations, counted where torch performs them."""

from collections.abc import Callable

from torch.utils.flop_counter import FlopCounterMode


def count_flops(run: Callable[[], object]) -> int:
    """Operations of the matrix products and convolutions in `run`, forwards and backwards; 2 for a multiply-add.

    A convolution counts all taps of its kernel, those on the zero border too. Left out is what is not a product of
    matrices: activations, sums, gathers, softmax, likelihood and optimiser.
    """
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())
