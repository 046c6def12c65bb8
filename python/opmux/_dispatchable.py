from __future__ import annotations
from typing import Any
def dispatchable(x: Any = None) -> Any:
    raise NotImplementedError
