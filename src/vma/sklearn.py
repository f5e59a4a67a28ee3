"""A scikit-learn classifier that remembers its training images, for comparisons with other methods."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vma.data.picture import FolderOptions
from vma.errors import InputError, missing_extra
from vma.fewshot import TrainedModel, load
from vma.fewshot.images import Ink, ink_for, options_for
from vma.fewshot.recognition import DEFAULT as RULE
from vma.model import VMA
from vma.pretrained import DEFAULT

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise missing_extra(error) or error from None


class MemoryClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """p(c|x) by a trained model whose memory is the training set: `fit` only remembers, nothing is trained.

    Images are arrays [images, height, width], or rows of pixels as is usual in scikit-learn. The smallest and the
    largest number of the training set are paper and ink, or the other way round.

    >>> from sklearn.datasets import load_digits
    >>> from vma.sklearn import MemoryClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> classifier = MemoryClassifier(by="address").fit(X[:50], y[:50])
    >>> bool(classifier.score(X[50:100], y[50:100]) > 0.6)
    True

    Args:
        model: Folder of a run, file of a model, name of one in the box, or a `TrainedModel`.
        shape: Height and width of images that are given as rows; −1 for one of them means whatever is left. None
            for square images.
        by: The rule of recognition, as for `ImageMemory.recognise`.
        samples: Draws of z for each item whose likelihood is asked for.
        seed: Seed of the draws: the same images get the same answers.
        invert: Whether small numbers are ink: `yes`, `no`, or `auto` to decide by the border of each image.
    """

    def __init__(
        self,
        model: Any = DEFAULT,
        *,
        shape: Any = None,  # scikit-learn's convention: nothing is checked before `fit`
        by: Any = RULE,
        samples: Any = 8,
        seed: Any = 0,
        invert: Any = "auto",
    ) -> None:
        self.model = model
        self.shape = shape
        self.by = by
        self.samples = samples
        self.seed = seed
        self.invert = invert

    def fit(self, X: Any, y: Any) -> "MemoryClassifier":
        """Remember the images `X` with their classes `y`."""
        X, y = validate_data(self, X, y, allow_nd=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.levels_ = float(X.min()), float(X.max())
        trained = self.model if isinstance(self.model, TrainedModel) else load(self.model)
        self.options_ = replace(options_for(trained.config), invert=self.invert)
        self.memory_ = trained.remember(self.ink(trained.model, X), codes, options=self.options_)
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "images classes"]:
        """p(c|x) of every image and class, the classes in the order of `classes_`."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, allow_nd=True)
        found = self.memory_.recognise(
            self.ink(self.memory_.model, X),
            by=self.by,
            samples=self.samples,
            seed=self.seed,
            top=1,
            novelty=False,
        )
        names = [str(code) for code in range(len(self.classes_))]
        return np.array([[each.probabilities[name] for name in names] for each in found])

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every image."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def ink(self, model: VMA, X: np.ndarray) -> Ink:
        """Images as `model` sees them; one without ink is no error here, but an empty image."""
        ink = torch.cat([ink_or_nothing(model, image, self.options_) for image in self.images(X)])
        names = tuple(f"image {i + 1} of {len(ink)}" for i in range(len(ink)))
        return Ink(ink, names, (None,) * len(ink))

    def images(self, X: np.ndarray) -> list[Float[np.ndarray, "height width"]]:
        """Images with values from 0 to 1."""
        low, high = self.levels_
        shares = (np.asarray(X, dtype=np.float64) - low) / max(high - low, np.finfo(float).tiny)
        return [*np.clip(shares.reshape(len(X), *self.sides(X)), 0, 1)]

    def sides(self, X: np.ndarray) -> tuple[int, ...]:
        """Height and width of each image."""
        if X.ndim > 2:
            return X.shape[1:]
        side = round(X.shape[1] ** 0.5)
        if self.shape is None and side * side != X.shape[1]:
            raise InputError(f"Rows of {X.shape[1]} pixels are no squares: give shape=(height, width).")
        return self.shape or (side, side)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know: three-dimensional arrays are accepted too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def ink_or_nothing(
    model: VMA, image: Float[np.ndarray, "height width"], options: FolderOptions
) -> Float[Tensor, "1 *image"]:
    """One image as `model` sees it, or an empty one where there is no ink."""
    try:
        return ink_for(model, image, options).images
    except InputError:
        return torch.zeros(1, *model.image_shape)
