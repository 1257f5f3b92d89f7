"""Σ_j w_j ∇h over all pairs: dense, blocked, and what every method must provide."""

from .choose import choose as choose
from .choose import choose_mapped as choose_mapped
from .devices import Plan as Plan
from .devices import place as place
from .devices import plan as plan
from .devices import reverse_only as reverse_only
from .expansion import Expansion as Expansion
from .fold import Tiling as Tiling
from .fold import fold as fold
from .mapped import mapped_force as mapped_force
from .mapped import mapped_potential as mapped_potential
from .method import AbstractMethod as AbstractMethod
from .method import Average as Average
from .method import mean as mean
from .method import merge as merge
from .pairs import Causal as Causal
from .pairs import Sources as Sources
from .pairs import Targets as Targets
from .tiled import Tiled as Tiled
