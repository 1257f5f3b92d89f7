"""The mean-field limit itself, where it can be had: laws of infinitely many tokens on the circle."""

from .law import Law as Law
from .law import law as law
