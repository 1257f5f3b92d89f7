"""Kernel design by gradients: learnable gauges, profiles and marginals, losses on laws, and the fit."""

from .fit import fit as fit
from .record import Fit as Fit
