"""The compiled pass over the decoder's largest scale gives what the layers give, where it gains time."""

import pytest
import torch
from torch import Tensor

from tests.helpers.many_reads import rows_of_calls, terms_of_many_reads
from tests.helpers.oracles import episode, small_convolutional
from vma import ModelConfig
from vma.build import build_vma
from vma.kernels import compiled, one_pass
from vma.networks.convolutional import Decoder

pytestmark = pytest.mark.usefixtures("one_thread")
MANY = compiled.MANY
REPEATS = [5, 1, 13]  # reads of three items: neither all nor the last of them fill a batch


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of reads in each call of the compiled pass."""
    return rows_of_calls(monkeypatch, one_pass, "largest_scale", 2)


def decoder_of(config: ModelConfig) -> tuple[Decoder, Tensor, tuple[Tensor, ...]]:
    """A decoder, a z for each read, and the halves of three items."""
    networks = build_vma(config).networks
    with torch.no_grad():
        halves = networks.items(episode(config, 1, len(REPEATS))[1].items).decoder
    return networks.decoder, torch.randn(sum(REPEATS), config.latent), halves


def decoded(decoder: Decoder, z: Tensor, halves: tuple[Tensor, ...], reads: int) -> Tensor:
    """Logits, as of a call with so many reads."""
    with torch.no_grad(), compiled.for_reads(reads):
        return decoder(z, halves, REPEATS)


@pytest.mark.parametrize("size", [(16, 16), (16, 19), (25, 18), (28, 28), (33, 26)])
def test_the_pass_equals_the_layers(size: tuple[int, int], uses: list[int]) -> None:
    given = decoder_of(ModelConfig(height=size[0], width=size[1], maps=5))
    by_layers = decoded(*given, reads=1)
    assert not uses
    torch.testing.assert_close(decoded(*given, reads=MANY), by_layers, rtol=1e-11, atol=1e-12)
    assert uses == [sum(REPEATS)]
    assert by_layers.std() > 0.01


def test_the_pass_equals_the_layers_in_single_precision(uses: list[int]) -> None:
    decoder, z, halves = decoder_of(ModelConfig(maps=32))
    decoder, z, halves = decoder.float(), z.float(), tuple(half.float() for half in halves)
    by_layers, in_one = (decoded(decoder, z, halves, reads) for reads in (1, MANY))
    assert len(uses) == 1
    torch.testing.assert_close(in_one, by_layers, rtol=1e-5, atol=1e-5)


def test_a_bound_of_many_reads_has_the_terms_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, uses: list[int]
) -> None:
    fast, slow = terms_of_many_reads(small_convolutional(), monkeypatch)
    assert uses == [50, 50, 20]
    torch.testing.assert_close(fast.log_p_x, slow.log_p_x, rtol=1e-11, atol=1e-11)


def test_the_pass_is_left_where_it_gains_nothing(uses: list[int]) -> None:
    decoder, z, halves = given = decoder_of(small_convolutional())
    decoded(*given, reads=MANY - 1)
    decoded(*decoder_of(small_convolutional(style="modern")), reads=MANY)
    decoded(decoder.bfloat16(), z.bfloat16(), tuple(half.bfloat16() for half in halves), reads=MANY)
    decoder.double()
    of_reads = tuple(half.repeat_interleave(torch.tensor(REPEATS), 0) for half in halves)
    with torch.no_grad(), compiled.for_reads(MANY):
        decoder(z, of_reads)
    with compiled.for_reads(MANY):
        assert not compiled.applies(halves[-2])
    with compiled.by_layers():
        decoded(*given, reads=MANY)
    torch.set_num_threads(2)
    decoded(*given, reads=MANY)
    assert not uses
    torch.set_num_threads(1)
    decoded(*given, reads=MANY)
    assert len(uses) == 1


@pytest.mark.parametrize("error", [ImportError("no module"), OSError("no library")])
def test_the_pass_is_left_where_there_is_no_numba(
    error: Exception, monkeypatch: pytest.MonkeyPatch, uses: list[int]
) -> None:
    def broken(name: str) -> None:
        raise error

    monkeypatch.setattr(compiled, "import_module", broken)
    monkeypatch.setattr(compiled, "installed", compiled.installed.__wrapped__)
    decoded(*decoder_of(small_convolutional()), reads=MANY)
    assert not uses


def test_no_reads_give_no_logits(uses: list[int]) -> None:
    config = small_convolutional()
    decoder, z, halves = decoder_of(config)
    with torch.no_grad(), compiled.for_reads(MANY):
        logits = decoder(z[:0], tuple(half[:1] for half in halves), [0])
    assert logits.shape == (0, 1, config.height, config.width)
    assert uses == [0]


def test_what_is_not_a_number_is_not_hidden(uses: list[int]) -> None:
    decoder, z, halves = decoder_of(small_convolutional())
    z[3] = torch.nan
    logits = decoded(decoder, z, halves, reads=MANY)
    assert len(uses) == 1
    assert logits[3].isnan().all()
    assert logits[[*range(3), *range(4, len(z))]].isfinite().all()
    # By luck a compiler may do so even where it is told that there are no such numbers.
    assert (
        compiled.compiled(one_pass.add_pixels).targetoptions["fastmath"].isdisjoint({"fast", "nnan", "ninf"})
    )


def test_products_meet_as_in_a_transposed_convolution() -> None:
    """`sources` names the products that torch's fold adds up in each pixel."""
    table = one_pass.sources(3, 2, 6, 3)
    products = torch.rand(1, 3 * 2 * 9)
    cells = products.view(3, 2, 3, 3).permute(2, 3, 0, 1).reshape(1, 9, 6)
    whole = torch.nn.functional.fold(cells, (7, 5), 3, stride=2)[0, 0, 1:7, 1:4]
    padded = torch.cat([torch.zeros(1), products.flatten()])
    torch.testing.assert_close(padded[torch.as_tensor(table)].sum(-1), whole)
