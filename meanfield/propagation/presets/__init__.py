"""Published architectures: five ALiBi models, three corpora, two conventions, and the one measured influence (arXiv 2602.16837)."""

from .reference import measured_influence as measured_influence
from .table import NAMES as NAMES
from .table import preset as preset
