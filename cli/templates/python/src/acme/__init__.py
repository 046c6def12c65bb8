"""rms_norm/acme.numpy: an implementation of rms_norm for f32, with its verifier."""

import numpy as np
import opmux


def rms_norm(x, weight, eps, round_before_weight, *, out):
    """Gets the inputs in the order of the schema and writes the output to `out`."""
    rows, result = np.from_dlpack(x), np.from_dlpack(out)
    mean = np.mean(np.square(rows, dtype=np.float64), axis=-1, keepdims=True)
    scaled = rows / np.sqrt(mean + eps)
    result[...] = scaled if weight is None else scaled * np.from_dlpack(weight)


def verify(x, weight, eps, round_before_weight):
    """Returns True, or a sentence that says why not. Gets facts about the inputs, not data."""
    if round_before_weight:
        return "it rounds once, after the weight"
    return eps > 0 or "eps must be above 0, a row of zeros has no norm"


def register(runtime):
    """Registers the implementation; opmux calls it for each default runtime."""
    implementation = opmux.implementation(
        "rms_norm", "acme.numpy", vendor="acme", dtypes=["f32"], runtime=runtime
    )(rms_norm)
    implementation.verifier(verify)
