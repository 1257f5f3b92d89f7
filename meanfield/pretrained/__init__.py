"""Pretrained language models: load a checkpoint, measure mixing, attention and influence, and predict influence."""

from .load import load as load
from .model import Model as Model
from .model import initialise as initialise
from .spec import Alibi as Alibi
from .spec import Rotary as Rotary
from .spec import Spec as Spec
from .measure import measure as measure
from .measurement import Measurement as Measurement
from .transitions import TRANSITIONS as TRANSITIONS
