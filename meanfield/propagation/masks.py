"""Attention masks: which keys j a query i may see. Each is an object; write your own by subclassing `AbstractMask`."""

import abc

import equinox as eqx
from jaxtyping import Bool, Int

from .._types import AnyArray

Index = Int[AnyArray, "..."] | int


class AbstractMask(eqx.Module):
    """mask(i, j) is True where token i may look at token j (0-based positions, broadcast against each other).

    Examples:
        >>> i, j = jnp.indices((3, 3))
        >>> mf.propagation.Causal()(i, j).sum(axis=1).tolist()  # how many tokens each sees
        [1, 2, 3]
    """

    @abc.abstractmethod
    def __call__(self, i: Index, j: Index) -> Bool[AnyArray, "..."] | bool:
        """Whether query i sees key j."""


class Causal(AbstractMask):
    """j ≤ i.

    Examples:
        >>> bool(mf.propagation.Causal()(1, 2))
        False
    """

    def __call__(self, i: Index, j: Index) -> Bool[AnyArray, "..."] | bool:
        """j ≤ i."""
        return j <= i


class Full(AbstractMask):
    """Every token sees every token.

    Examples:
        >>> bool(mf.propagation.Full()(jnp.asarray(1), jnp.asarray(2)))
        True
    """

    def __call__(self, i: Index, j: Index) -> Bool[AnyArray, "..."] | bool:
        """True."""
        return (i == i) & (j == j)


class Window(AbstractMask):
    """i − width < j ≤ i: a token sees itself and the width − 1 tokens before it.

    Examples:
        >>> i, j = jnp.indices((4, 4))
        >>> mf.propagation.Window(2)(i, j).sum(axis=1).tolist()
        [1, 2, 2, 2]
    """

    width: int = eqx.field(static=True)

    def __check_init__(self):
        if isinstance(self.width, bool) or not isinstance(self.width, int) or self.width < 1:
            raise ValueError(f"window = {self.width!r} must be an integer ≥ 1: a token and the window − 1 before it")

    def __call__(self, i: Index, j: Index) -> Bool[AnyArray, "..."] | bool:
        """i − width < j ≤ i."""
        return (j <= i) & (j > i - self.width)


class PrefixLM(AbstractMask):
    """j ≤ i, and the first `prefix` tokens all see each other.

    Examples:
        >>> i, j = jnp.indices((4, 4))
        >>> mf.propagation.PrefixLM(3)(i, j).sum(axis=1).tolist()
        [3, 3, 3, 4]
    """

    prefix: int = eqx.field(static=True)

    def __check_init__(self):
        if isinstance(self.prefix, bool) or not isinstance(self.prefix, int) or self.prefix < 0:
            raise ValueError(f"prefix = {self.prefix!r} must be an integer ≥ 0: how many first tokens see each other")

    def __call__(self, i: Index, j: Index) -> Bool[AnyArray, "..."] | bool:
        """j ≤ i, or both below prefix."""
        return (j <= i) | ((i < self.prefix) & (j < self.prefix))


def as_mask(mask: "str | AbstractMask", window: int | None, prefix: int) -> AbstractMask:
    """The mask object meant by `Architecture`'s arguments mask, window and prefix."""
    if isinstance(mask, AbstractMask):
        if window is not None or prefix != 0:
            raise ValueError(f"window = {window}, prefix = {prefix} do not go with a mask object: set them on the mask")
        return mask
    if mask not in ("causal", "full", "window", "prefix"):
        raise ValueError(f"mask = {mask!r} is unknown: use 'causal', 'full', 'window', 'prefix' or an AbstractMask")
    if window is not None and mask != "window":
        raise ValueError(f"window = {window} has no meaning with mask = {mask!r}: use mask='window'")
    if prefix != 0 and mask != "prefix":
        raise ValueError(f"prefix = {prefix} has no meaning with mask = {mask!r}: use mask='prefix'")
    if mask == "window":
        if window is None:
            raise ValueError(
                "window = None with mask='window': give the number of tokens seen, the token itself included"
            )
        return Window(window)
    if mask == "prefix":
        return PrefixLM(prefix)
    return Causal() if mask == "causal" else Full()
