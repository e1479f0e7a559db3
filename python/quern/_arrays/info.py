# SPDX-License-Identifier: Apache-2.0
"""What the array API asks a namespace about itself."""

from .. import _quern
from .dtypes import isdtype

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
          "complex128")


class Info:
    """What there is: dtypes, devices, capabilities."""

    def capabilities(self):
        """What depends on the library: indexing by a mask, shapes that depend on data, the most dimensions."""
        return {"boolean indexing": "compress" in _quern.ops(), "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self):
        """The device of new arrays."""
        return _quern._empty((0,), _quern.bool, None).device

    def default_dtypes(self, *, device=None):
        """The dtypes of new arrays by kind."""
        return {"real floating": _quern.float32, "complex floating": _quern.complex64, "integral": _quern.int64, "indexing": _quern.int64}

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes that there are, by name: all, or of a kind or of any of a tuple of kinds."""
        dtypes = {name: getattr(_quern, name) for name in _NAMES}
        return {name: dtype for name, dtype in dtypes.items() if kind is None or isdtype(dtype, kind)}

    def devices(self):
        """The devices on which new arrays can be made without naming an id: the CPU."""
        return [self.default_device()]


def __array_namespace_info__():
    """Questions about the namespace."""
    return Info()
