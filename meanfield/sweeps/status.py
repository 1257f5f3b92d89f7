"""What a point may be: computed, failed, or not there yet. Failed points keep their status, t and steps and lose the rest."""

from collections.abc import Mapping

import numpy as np

from ..trajectory import FlowStatus

NON_FINITE, MISSING, REFUSED = -1, -2, -3
FLAGS = {
    NON_FINITE: "non_finite_output",  # fn called the point good, an output is not a number
    MISSING: "not_computed",
    REFUSED: "reported_by_fn",  # ok False, with no status of fn's own
}
KEPT = ("ok", "status", "t", "steps", "accepted", "rejected")  # what a failed point keeps


def stored_dtype(name: str, dtype: np.dtype) -> np.dtype:
    """Integers and booleans become float64, so that a failed point can be NaN; those that it keeps stay what they are."""
    if name == "ok":
        return np.dtype(bool)
    if name == "status":
        return np.dtype(np.int32)
    return np.dtype(np.float64) if dtype.kind in "biu" and name not in KEPT else dtype


def fill_value(name: str, dtype: np.dtype):
    """What a point that has not been computed reads as."""
    if name == "status":
        return MISSING
    return {"b": False, "i": -1, "u": 0}.get(dtype.kind, np.nan)


def variables(outputs: Mapping) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Shapes and dtypes of the variables of a sweep, from those of fn's outputs; ok and status are always among them."""
    for name in ("ok", "status"):
        if name in outputs and (outputs[name].shape != () or outputs[name].dtype.kind not in "biu"):
            spec = outputs[name]
            raise ValueError(
                f"output {name!r} of fn is {spec.dtype}{list(spec.shape)}: it is one flag or code for the point"
            )
    found = {name: (tuple(s.shape), stored_dtype(name, np.dtype(s.dtype))) for name, s in outputs.items()}
    return found | {"ok": ((), np.dtype(bool)), "status": ((), np.dtype(np.int32))}


def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of k points, each (k, …), as variables: ok and status settled, failed points NaN.

    A point is good if fn's `ok` (or, without one, a `status` that a flow would call good) says so and every output is finite.
    """
    count = len(next(iter(outputs.values())))
    code = outputs["status"].astype(np.int32) if "status" in outputs else np.zeros(count, np.int32)
    said = outputs["ok"].astype(bool) if "ok" in outputs else code <= FlowStatus.STOPPED
    finite = np.ones(count, bool)
    for value in outputs.values():
        if value.dtype.kind not in "biu":
            finite &= np.isfinite(value.reshape(count, -1)).all(axis=1)
    code = np.where(said & ~finite, NON_FINITE, np.where(~said & (code <= FlowStatus.STOPPED), REFUSED, code)).astype(
        np.int32
    )
    ok = said & finite
    result = {"ok": ok, "status": code}
    for name, value in outputs.items():
        if name not in result:
            value = value.astype(stored_dtype(name, value.dtype))
            result[name] = value if name in KEPT else _blank(value, ~ok)
    return result


def _blank(value: np.ndarray, failed: np.ndarray) -> np.ndarray:
    value = np.array(value)
    value[failed] = np.nan
    return value
