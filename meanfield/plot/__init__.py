"""Figures (matplotlib, no display needed); nothing else imports this package."""

from .animation import animate as animate
from .ascent import maximiser as maximiser
from .ascent import phase_diagram as phase_diagram
from .propagation import forces as forces
from .propagation import phases as phases
from .propagation import profiles as profiles
from .style import figure as figure
from .style import plain as plain
from .style import save as save
from .style import style as style
from .sweep import sweep as sweep
from .tokens import tokens as tokens
from .traces import traces as traces
