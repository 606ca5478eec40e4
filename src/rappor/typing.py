"""Type aliases that several packages share.

numpy is imported for type checkers only: the base install does without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

# `mechanism.kinds` tells each
Kind = Literal["string", "category", "boolean", "ordinal", "bits", "tuple"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray: TypeAlias = NDArray[np.bool_]
    ByteArray: TypeAlias = NDArray[np.uint8]
    FloatArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int64]
else:
    BoolArray = ByteArray = FloatArray = IntArray = Any
