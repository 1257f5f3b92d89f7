"""Ways to choose a direction of ascent."""

from .gradient import GradientAscent as GradientAscent
from .lbfgs import LBFGS as LBFGS
from .method import AbstractAscent as AbstractAscent
from .method import Point as Point
from .newton import Newton as Newton
from .power import PowerStep as PowerStep
