"""Closed forms of theory.md: what a correct computation must reproduce."""

from .harmonic import funk_hecke as funk_hecke
from .harmonic import growth_rates as growth_rates
from .harmonic import initial_modes as initial_modes
from .harmonic import label_growth_rates as label_growth_rates
from .harmonic import noise_threshold as noise_threshold
from .harmonic import tricritical_beta as tricritical_beta
from .orbits import align as align
from .orbits import realize_gauge as realize_gauge
from .orbits import rope_orbit as rope_orbit
from .propagation import attention_only_tail as attention_only_tail
from .propagation import attention_step_weights as attention_step_weights
from .propagation import continuum_profile as continuum_profile
from .propagation import diagonal_product as diagonal_product
from .propagation import lag_distribution as lag_distribution
from .propagation import recency_boundary as recency_boundary
from .propagation import uniform_causal_exact as uniform_causal_exact
from .propagation import uniform_causal_moments as uniform_causal_moments
from .propagation import window_reach_depth as window_reach_depth
