"""Kernel design by gradients: learnable gauges, profiles and marginals, losses on laws, and the fit."""

from .fit import fit as fit
from .gauges import MLPGauge as MLPGauge
from .gauges import MultiRoPE as MultiRoPE
from .gauges import TableGauge as TableGauge
from .gauges import rotation as rotation
from .losses import adjoint_for as adjoint_for
from .losses import maximum_mean_discrepancy as maximum_mean_discrepancy
from .losses import order_margin as order_margin
from .losses import pair_margin as pair_margin
from .losses import sinkhorn as sinkhorn
from .losses import sliced as sliced
from .losses import soft_collapse_time as soft_collapse_time
from .marginals import FreeMarginal as FreeMarginal
from .profiles import FourierProfile as FourierProfile
from .profiles import MonotoneSpline as MonotoneSpline
from .record import Fit as Fit
