"""Pretrained language models: load a checkpoint, measure mixing, attention and influence, and predict influence."""

from .compare import architecture as architecture
from .compare import compare as compare
from .compare import format_table as format_table
from .load import load as load
from .measure import measure as measure
from .measurement import Measurement as Measurement
from .memory import memory_estimate as memory_estimate
from .model import Model as Model
from .model import initialise as initialise
from .spec import Alibi as Alibi
from .spec import Rotary as Rotary
from .spec import Spec as Spec
from .text import windows as windows
from .transitions import TRANSITIONS as TRANSITIONS
