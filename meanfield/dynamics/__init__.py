"""How a kernel moves tokens: one file per vector field."""

from .base import AbstractDynamics as AbstractDynamics
from .base import AbstractField as AbstractField
from .sa import SA as SA
from .usa import USA as USA
from .velocity import velocity as velocity
