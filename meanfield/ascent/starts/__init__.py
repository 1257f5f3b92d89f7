"""Where restarts begin."""

from .mixture import start_mixture as start_mixture
from .scaled import cool as cool
from .spectral import label_matrix as label_matrix
from .spectral import spectral as spectral
from .structured import arcs as arcs
from .structured import collapsed as collapsed
from .structured import orbit as orbit
from .structured import quantiles as quantiles
from .structured import windings as windings
