"""Maximisers of the energy under a fixed marginal, with certificates."""

from .ascend import ascend as ascend
from .bounds import Bound as Bound
from .bounds import upper_bound as upper_bound
from .curvature import largest_curvature as largest_curvature
from .engine import Stopping as Stopping
from .engine import climb as climb
from .landscape import bind as bind
from .maximiser import Maximiser as Maximiser
from .measures import LabelMeasures as LabelMeasures
from .measures import ascend_measures as ascend_measures
from .methods import LBFGS as LBFGS
from .methods import AbstractAscent as AbstractAscent
from .methods import GradientAscent as GradientAscent
from .methods import Newton as Newton
from .methods import PowerStep as PowerStep
