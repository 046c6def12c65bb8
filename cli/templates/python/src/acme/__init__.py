"""rms_norm/acme.numpy: an implementation of rms_norm for f32, and what it can do."""

import numpy as np
import opmux


def rms_norm(x, weight, eps, round_before_weight, *, out):
    """Inputs in the order of the schema, the output as `out`."""
    rows, result = np.from_dlpack(x), np.from_dlpack(out)
    mean = np.mean(np.square(rows, dtype=np.float64), axis=-1, keepdims=True)
    scaled = rows / np.sqrt(mean + eps)
    result[...] = scaled if weight is None else scaled * np.from_dlpack(weight)


def verify(x, weight, eps, round_before_weight):
    """What capabilities cannot say: True, or a sentence why not. Sees facts, never data."""
    if round_before_weight:
        return "it rounds once, after the weight"
    return eps > 0 or "eps must be above 0, a row of zeros has no norm"


def register(runtime):
    """Called by opmux for each default runtime: pyproject.toml names it."""
    implementation = opmux.implementation(
        "rms_norm", "acme.numpy", vendor="acme", dtypes=["f32"], runtime=runtime
    )(rms_norm)
    implementation.verifier(verify)
