"""The phases of a run: awake, everything learns from the bound; asleep, q(a|x) learns from dreams."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.build import build_vma
from vma.dreams import DreamRecognition, Dreams, dream, recognise_dreams
from vma.estimators import Estimate
from vma.generative_model import AnyMemory, GenerativeModel
from vma.model import VMA, addressed
from vma.runs.processes import Processes
from vma.runs.settings import OptimiserSettings, TrainSettings
from vma.training.episodes import RunEpisodes, for_model, generator
from vma.training.metrics import AWAKE, DREAMS, Window, dream_means, episode_means
from vma.training.optimiser import Average, build_optimisers, rate_factor, set_rates
from vma.training.standing import standing_memory
from vma.warps import Look, look

SLEEP_SEED = 1  # added to the seed, for the first weights of matching networks that are started anew
MATCHING = ("addressing.key.", "addressing.query.")
Means = Callable[[], dict[str, float]]  # names of a loss's parts and their means


class NotFinite(Exception):
    """A loss or a gradient is not finite; the message gives the means of the loss's parts."""


class Phase(ABC):
    """Updates of one kind: gradient, rates, step, moving average, metrics."""

    def __init__(
        self,
        model: GenerativeModel,
        trained: nn.Module,
        optimiser: OptimiserSettings,
        names: Sequence[str],
        settings: TrainSettings,
        episodes: RunEpisodes,
        here: Processes,
    ) -> None:
        self.model, self.trained, self.optimiser = model, trained, optimiser
        self.settings, self.episodes, self.here = settings, episodes, here
        self.optimisers = build_optimisers(trained, optimiser)
        self.average = Average(model, optimiser.average)
        self.window = Window((*names, "gradient_norm"))
        self.means: Means = dict  # of the last loss; only an error asks for them

    @abstractmethod
    def backward(self, update: int, done: float) -> Float[Tensor, "metrics"]:
        """Add the gradients of one update; return the values for the metrics."""

    @abstractmethod
    def share(self) -> None:
        """Average gradients over processes from now on; called after a checkpoint has been loaded."""

    def models(self) -> dict[str, nn.Module]:
        """What a checkpoint holds: the model, and its average if there is one."""
        averaged = {"average": self.average.model} if self.average.decay else {}
        return {"model": self.model, **averaged}

    def step(self, update: int, number: int, done: float) -> float:
        """One update; returns the factor that the rates were multiplied by.

        Args:
            update: Number of the update in the run, which decides everything random.
            number: Number of the update in this phase.
            done: Share of the phase that is done.
        """
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        figures = self.backward(update, done)
        norm = nn.utils.clip_grad_norm_(self.trained.parameters(), self.optimiser.clip or float("inf"))
        check_finite(norm, self.means)
        factor = rate_factor(self.optimiser, number, done)
        set_rates(self.optimisers, factor)
        for optimiser in self.optimisers:
            optimiser.step()
        self.average.update(self.model, number + 1)
        self.window.add(torch.cat([figures, norm.double().cpu().reshape(1)]))
        return factor


class Awake(Phase):
    """All parameters ascend the bound; with `sleep.beside`, q(a|x) also learns from dreams."""

    def __init__(
        self, model: GenerativeModel, settings: TrainSettings, episodes: RunEpisodes, here: Processes
    ) -> None:
        names = AWAKE + (DREAMS if settings.sleep.beside else ())
        super().__init__(model, model, settings.optimiser, names, settings, episodes, here)
        self.objective: nn.Module = Objective(model, settings)
        items = episodes.standing
        self.standing = None if items is None else standing_memory(settings, items, here.device)

    def models(self) -> dict[str, nn.Module]:
        """The same, and the keys of a memory that is searched."""
        kept = {} if self.standing is None else {"standing": self.standing}
        return {**super().models(), **kept}

    def share(self) -> None:
        """Gradients of the whole model."""
        self.objective = self.here.share(self.objective)

    def backward(self, update: int, done: float) -> Float[Tensor, "metrics"]:
        """The mean gradient of an update's episodes, one by one, so that activations are freed in between."""
        if self.standing is not None:
            self.standing.refreshed(update, addressed(self.model, "search").addressing)
        figures = torch.stack([self.episode(number, done) for number in self.numbers(update)]).mean(0)
        if update < self.settings.address_after:
            hold_addresses(self.model)
        return figures

    def numbers(self, update: int) -> range:
        """The numbers of an update's episodes."""
        count = self.settings.episode.episodes
        return range(update * count, (update + 1) * count)

    def look_at(self, number: int) -> tuple[Tensor, AnyMemory]:
        """The targets of an episode, and its memory or the one of the run."""
        x, memory = for_model(self.episodes.train.episode(number), self.here.device, self.settings.length)
        if self.standing is None:
            return x, memory
        return x, self.standing.now(addressed(self.model, "search").addressing)

    def episode(self, number: int, done: float) -> Float[Tensor, "metrics"]:
        """Add one episode's share to the gradients."""
        settings, here = self.settings, self.here
        x, memory = self.look_at(number)
        source = generator(settings.seed, number, here.rank, here.device)
        dreams = settings.sleep.beside > 0 and done >= settings.sleep.begin
        mixed = settings.precision == "bfloat16"
        with torch.autocast(here.device.type, dtype=torch.bfloat16, enabled=mixed):
            estimate, recognised = self.objective(x, memory, source, dreams, settings.blind.share(done))
        self.means = partial(means_of_terms, estimate)
        loss = max(1, settings.length) * estimate.loss  # of a sequence, the sum over its images
        if recognised is not None:
            loss = loss + settings.sleep.beside * recognised.loss
        check_finite(loss, self.means)
        (loss / settings.episode.episodes).backward()
        beside = [dream_means(recognised)] if settings.sleep.beside else []
        return torch.cat([episode_means(estimate), *beside])


def hold_addresses(model: GenerativeModel) -> None:
    """∇ ← 0 for q(a|x) and p(a), so that nothing but weight decay moves them in this update."""
    for parameter in addressed(model, "hold them").addressing.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()


class Objective(nn.Module):
    """What an update awake differentiates, as a single module: processes that share gradients need one."""

    def __init__(self, model: GenerativeModel, settings: TrainSettings) -> None:
        super().__init__()
        self.model, self.settings = model, settings

    def forward(
        self, x: Tensor, memory: AnyMemory, source: torch.Generator, dreams: bool, blind: float
    ) -> tuple[Estimate, DreamRecognition | None]:
        """The bound at one episode and, if dreams are asked for, how well q(a|x) recognises them."""
        settings = self.settings
        seen = look(settings.warps, source) if settings.warp_awake else None
        estimate = self.model(
            x, memory, settings.samples, estimator=settings.estimator,
            latent_gradient=settings.latent_gradient, blind=blind, generator=source, seen=seen,
        )  # fmt: skip
        if not dreams:
            return estimate, None
        model = addressed(self.model, "dream")
        dreamt = dreams_as_set(model, memory, settings, source)
        return estimate, recognise_dreams(model, dreamt, look(settings.warps, source))


class Asleep(Phase):
    """q(a|x) alone learns, from dreams of the model as it was when it fell asleep."""

    def __init__(
        self, dreamer: GenerativeModel, settings: TrainSettings, episodes: RunEpisodes, here: Processes
    ) -> None:
        self.dreamer = copy.deepcopy(addressed(dreamer, "dream")).requires_grad_(False)
        model = sleeper(self.dreamer, settings)
        sleep = settings.sleep
        optimiser = replace(settings.optimiser, rate=sleep.rate, muon_rate=sleep.muon_rate)
        super().__init__(model, model.addressing, optimiser, DREAMS, settings, episodes, here)
        self.recogniser: nn.Module = DreamRecogniser(model)

    def models(self) -> dict[str, nn.Module]:
        """The same models, and the one that dreams."""
        return {**super().models(), "dreamer": self.dreamer}

    def share(self) -> None:
        """Gradients of the matching networks."""
        self.recogniser = self.here.share(self.recogniser)

    def backward(self, update: int, done: float) -> Float[Tensor, "metrics"]:
        """The gradient of −log q(a|x̃), averaged over the dreams of an update."""
        settings, here = self.settings, self.here
        _, memory = for_model(self.episodes.dreams(update), here.device)
        source = generator(settings.seed, update, here.rank, here.device)
        dreams = dreams_as_set(self.dreamer, memory, settings, source)
        recognised = self.recogniser(dreams, look(settings.warps, source))
        figures = dream_means(recognised)
        self.means = partial(means_of_dreams, figures)
        check_finite(recognised.loss, self.means)
        recognised.loss.backward()
        return figures


class DreamRecogniser(nn.Module):
    """`recognise_dreams` as a module, which processes that share gradients need."""

    def __init__(self, model: VMA) -> None:
        super().__init__()
        self.model = model

    def forward(self, dreams: Dreams, seen: Look | None) -> DreamRecognition:
        """How well q(a|x) recognises the dreams."""
        return recognise_dreams(self.model, dreams, seen)


def sleeper(dreamer: VMA, settings: TrainSettings) -> VMA:
    """The model whose matching networks learn asleep; the rest has the dreamer's weights and keeps them."""
    config = replace(dreamer.config, tied=dreamer.config.tied or settings.sleep.matching == "tied")
    torch.manual_seed(settings.seed + SLEEP_SEED)
    model = build_vma(config).to(next(dreamer.parameters())).requires_grad_(False)
    kept = dreamer.state_dict()
    if settings.sleep.matching != "kept":
        kept = {name: value for name, value in kept.items() if not name.startswith(MATCHING)}
    model.load_state_dict({**model.state_dict(), **kept})
    for network in (model.addressing.key, model.addressing.query):
        if network is not None:
            network.requires_grad_(True)
    return model


def means_of_terms(estimate: Estimate) -> dict[str, float]:
    """What an error says about a bound."""
    names = ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x")
    return {name: float(getattr(estimate.terms, name).detach().mean()) for name in names}


def dreams_as_set(model: VMA, memory: AnyMemory, settings: TrainSettings, source: torch.Generator) -> Dreams:
    """The dreams of one update, in the number and of the kind that the settings ask for."""
    return dream(model, memory, settings.sleep.dreams, binary=settings.sleep.binary, generator=source)


def means_of_dreams(figures: Float[Tensor, "metrics"]) -> dict[str, float]:
    """What an error says about dreams."""
    return dict(zip(DREAMS, figures.tolist(), strict=True))


def check_finite(value: Tensor, means: Means) -> None:
    """Stop at a loss or a gradient that is not finite, before it changes the weights."""
    if not bool(torch.isfinite(value)):
        raise NotFinite(", ".join(f"{name} {mean:.4g}" for name, mean in means().items()))
