"""How a kernel moves tokens: one file per vector field."""

from .base import AbstractDriftField as AbstractDriftField
from .base import AbstractDynamics as AbstractDynamics
from .base import AbstractField as AbstractField
from .base import require_dynamics as require_dynamics
from .base import retract as retract
from .base import rows_to_sphere as rows_to_sphere
from .layers import attention as attention
from .layers import layers as layers
from .multihead import MultiHead as MultiHead
from .noise import Landing as Landing
from .noise import Noisy as Noisy
from .noise import NoisyField as NoisyField
from .noise import Splitting as Splitting
from .radial import PeriNorm as PeriNorm
from .radial import PreNorm as PreNorm
from .radial import RadialField as RadialField
from .refuse import refuse_values as refuse_values
from .sa import SA as SA
from .usa import USA as USA
from .velocity import velocity as velocity
