"""Numbers that the energy of no configuration exceeds, in float64 on the host."""

from .delsarte import delsarte as delsarte
from .parseval import parseval as parseval
from .problem import Problem as Problem
from .problem import problems as problems
from .sdp import sdp_dual as sdp_dual
from .termwise import termwise as termwise
from .upper import EFFORTS as EFFORTS
from .upper import Bound as Bound
from .upper import upper_bound as upper_bound
