"""Ways to choose a direction of ascent."""

from .gradient import GradientAscent as GradientAscent
from .lbfgs import LBFGS as LBFGS
from .method import AbstractAscent as AbstractAscent
from .method import Point as Point
from .method import Trial as Trial
from .newton import Newton as Newton
from .power import PowerStep as PowerStep
