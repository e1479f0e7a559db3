# SPDX-License-Identifier: Apache-2.0
"""What quern.Array's operators call (array/operators.c)."""

from . import _quern
from ._arrays import views
from ._arrays.items import get_items, set_items
from ._arrays.views import matrix_transpose

_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12")


def namespace(version):
    from . import array_api
    if version not in _VERSIONS:
        raise ValueError("quern.Array: no version {!r} of the array API is known here, {} is the last".format(version, _VERSIONS[-1]))
    return array_api


def reshape(x, shape, copy):
    return views.reshape(x, shape, copy=copy)


def iterate(x):
    return iter(_quern._unstack(x))


def _is_operand(x):
    if isinstance(x, (_quern.Array, int, float)):
        return True
    if isinstance(x, (str, bytes, bytearray, complex, list, tuple)):
        return False
    if hasattr(type(x), "__dlpack__"):
        return True
    from ._foreign import knows
    return bool(knows(x))


def _binary(name):
    op = getattr(_quern, name, None)

    def operate(a, b):
        if op is None or not (_is_operand(a) and _is_operand(b)):
            return NotImplemented
        return op(a, b)

    def in_place(a, b):
        if op is None or not _is_operand(b):
            return NotImplemented
        return op(a, b, out=a)
    return operate, in_place


_functions = {}
for _name in ("add subtract multiply divide floor_divide remainder pow bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
              "bitwise_right_shift divmod less less_equal equal not_equal greater greater_equal").split():
    _functions[_name], _functions["inplace_" + _name] = _binary(_name)
for _name in "negative positive abs bitwise_invert".split():
    _functions[_name] = getattr(_quern, _name, None)
del _name


def __getattr__(name):
    """The functions that are made of ops."""
    if _functions.get(name) is None:
        raise AttributeError("this build of quern has no op {}".format(name))
    return _functions[name]


def matmul(a, b):
    from . import array_api
    return array_api.matmul(a, b) if all(hasattr(type(x), "__dlpack__") for x in (a, b)) else NotImplemented


def inplace_matmul(a, b):
    product = matmul(a, b)
    return product if product is NotImplemented else set_items(a, ..., product)
