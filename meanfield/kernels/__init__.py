"""Kernels h for one pair of tokens: zonal parts, gauges, position factors, sums and products."""

from .algebra import AbstractKernel as AbstractKernel
from .algebra import Product as Product
from .algebra import Scaled as Scaled
from .algebra import Sum as Sum
from .algebra import require_kernel as require_kernel
from .gauge import AbstractGauge as AbstractGauge
from .gauge import Gauge as Gauge
from .gauge import RoPE as RoPE
from .gauge import orthogonality_defect as orthogonality_defect
from .pair import Pair as Pair
from .position import Cosine as Cosine
from .position import ExponentialDecay as ExponentialDecay
from .position import Gaussian as Gaussian
from .position import PositionFactor as PositionFactor
from .position import Toeplitz as Toeplitz
from .position import log_profile as log_profile
from .structure import Frames as Frames
from .structure import Term as Term
from .structure import terms as terms
from .zonal import AbstractZonal as AbstractZonal
from .zonal import Dot as Dot
from .zonal import ExpDot as ExpDot
from .zonal import Zonal as Zonal
from .zonal import log_slope as log_slope
from .zonal import slope as slope
