"""A claim: a measured number against a stated threshold."""

import operator
from dataclasses import dataclass

RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True)
class Claim:
    """`claim` holds when `value relation threshold`; NaN never holds."""

    claim: str
    value: float
    threshold: float
    relation: str = "<="

    @property
    def holds(self) -> bool:
        """Whether the measured value meets the threshold."""
        return bool(RELATIONS[self.relation](self.value, self.threshold))
