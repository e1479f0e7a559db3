# SPDX-License-Identifier: Apache-2.0
"""pandas' and xarray's objects as operands: their arrays are computed with, their labels (index and columns, dims and coords)
must agree, and go to the results. Imports neither: who has their objects has."""

import sys


def _classes(module, *names):
    package = sys.modules.get(module)
    return tuple(found for found in (getattr(package, name, None) for name in names) if found is not None)


def _is_pandas(x):
    is_one = isinstance(x, _classes("pandas", "Series", "DataFrame", "Index"))
    return is_one and not isinstance(x, _classes("pandas", "MultiIndex"))


def _is_xarray(x):
    return isinstance(x, _classes("xarray", "DataArray"))


def owns(x):
    """Whether it is taken here."""
    return _is_xarray(x) or _is_pandas(x)


def is_writable(x):
    """Whether it may be out. (pandas shares memory between its objects behind the scenes.)"""
    return _is_xarray(x)


def advice(x):
    """What to write instead of other objects of theirs; None."""
    if isinstance(x, _classes("xarray", "Dataset")):
        return "give one of its variables, or x.map(op)"
    return None


# ---- Values ----


def _check_dtype(dtype, what, where):
    """Refuses what holds no numbers. Returns the NumPy dtype of one of pandas' own dtypes, None of NumPy's."""
    kind = getattr(dtype, "kind", "O")
    own = getattr(dtype, "numpy_dtype", None)
    if kind in "biufc" and (own is None or own.kind in "biufc"):
        return own
    wanted = "int64" if kind in "mM" else "float64"
    raise TypeError("{}: {} has dtype {}; cast it, x.astype({!r})".format(where, what, dtype, wanted))


def _refuse_missing(is_missing, where):
    if is_missing:
        raise ValueError("{}: it has missing values (NA), which tensors have not; give x.fillna(value)".format(where))


def _from_frame(x, where):
    names = [_check_dtype(dtype, "column {!r}".format(name), where) for name, dtype in x.dtypes.items()]
    if any(name is not None for name in names):
        _refuse_missing(x.isna().to_numpy().any(), where)
        x = x.astype({column: name for column, name in zip(x.columns, names) if name is not None})
    kinds = {dtype.kind for dtype in x.dtypes}
    if "b" in kinds and len(kinds) > 1:
        raise TypeError("{}: columns of bools beside columns of numbers; give x.astype('float64')".format(where))
    return x.to_numpy()


def _from_series(x, where):
    own = _check_dtype(x.dtype, "it", where)
    if own is None:
        return x.to_numpy()
    _refuse_missing(x.isna().any(), where)
    return x.to_numpy(dtype=own)


def take(x, where):
    """The object's array."""
    if _is_xarray(x):
        data = x.data
        if not hasattr(data, "__dlpack__") and not isinstance(data, _classes("numpy", "ndarray")):
            raise TypeError("{}: its data is a {}; give x.compute()".format(where, type(data).__name__))
        return data
    return _from_frame(x, where) if x.ndim == 2 else _from_series(x, where)


# ---- Frames: what the labels of a call are ----


def frame_of(op, inputs):
    """The labels of a call's inputs together."""
    if any(map(_is_xarray, inputs)):
        return _Dims(op, inputs)
    if any(map(_is_pandas, inputs)):
        return _Axes(op, inputs)
    return _Nothing()


def _shape(x):
    return tuple(getattr(x, "shape", ()))


def _broadcast_shape(taken):
    ndim = max((len(_shape(x)) for x in taken), default=0)
    shape = [1] * ndim
    for x in taken:
        for d, extent in enumerate(reversed(_shape(x))):
            if extent != 1:
                shape[-1 - d] = int(extent)
    return tuple(shape)


def _kept(shape, result, axes):
    """For each dimension of a result that of the broadcast shape that it is, or None; None as a whole: it cannot be told."""
    if tuple(result) == shape:
        return list(range(len(shape)))
    if axes is not None:
        reduced, keepdims = axes
        if keepdims:
            kept = [None if d in reduced else d for d in range(len(shape))]
        else:
            kept = [d for d in range(len(shape)) if d not in reduced]
        fits = len(kept) == len(result) and all(d is None or shape[d] == n for d, n in zip(kept, result))
        return kept if fits else None
    if len(result) == len(shape) and all(n in (1, extent) for n, extent in zip(result, shape)):
        return [d if n == extent else None for d, (n, extent) in enumerate(zip(result, shape))]
    candidates = [d for d in range(len(shape)) if shape[d] in result]
    return candidates if len(set(shape)) == len(shape) and [shape[d] for d in candidates] == list(result) else None


class _Nothing:
    """No operand has labels."""

    is_labelled = False

    def broadcast(self, taken):
        return taken

    def ndim(self, taken):
        return len(_broadcast_shape(taken))

    def out(self, out):
        return take(out, "out")


class _Frame(_Nothing):
    is_labelled = True

    def wrap(self, result, axes, taken):
        """The result with its labels; a NumPy scalar where it has no dimensions; the array itself where no label is left."""
        shape = _broadcast_shape(taken)
        kept = _kept(shape, _shape(result), axes)
        if kept is None or not isinstance(result, _classes("numpy", "ndarray")):
            return result
        return self.labelled(result, kept, shape)


class _Axes(_Frame):
    """pandas: an index for each dimension."""

    def __init__(self, op, inputs):
        self.op, self.inputs = op, inputs

    def labels(self, shape):
        """The index of each dimension, None where no operand has one."""
        found = [None] * len(shape)
        for k, x in enumerate(self.inputs):
            if not isinstance(x, _classes("pandas", "Series", "DataFrame")):
                continue
            axes = [x.index] if x.ndim == 1 else [x.index, x.columns]
            for d, index in zip(range(len(shape) - len(axes), len(shape)), axes):
                if len(index) != shape[d]:
                    continue
                if found[d] is None:
                    found[d] = index
                elif not found[d].equals(index):
                    raise ValueError("{}: input {} ({}): its {} differs from that of the others; align them first, x.align(y) or "
                                     "x.reindex(...), or give x.to_numpy()".format(
                                         self.op.__name__, k + 1, self.op.inputs[k],
                                         "columns" if x.ndim == 2 and d == len(shape) - 1 else "index"))
        return found

    def broadcast(self, taken):
        self.labels(_broadcast_shape(taken))
        return taken

    def labelled(self, result, kept, shape):
        import pandas
        known = self.labels(shape)
        labels = [None if d is None else known[d] for d in kept]
        like = next(x for x in self.inputs if _is_pandas(x))
        if result.ndim == 0:
            return result[()]
        if isinstance(like, _classes("pandas", "Index")) and not any(label is not None for label in labels):
            return pandas.Index(result, name=like.name) if result.ndim == 1 else result
        if result.ndim > 2 or not any(label is not None for label in labels):
            return result
        if result.ndim == 2:
            made = pandas.DataFrame(result, index=labels[0], columns=labels[1], copy=False)
        else:
            names = {getattr(x, "name", None) for x in self.inputs if isinstance(x, _classes("pandas", "Series"))}
            made = pandas.Series(result, index=labels[0], name=names.pop() if len(names) == 1 else None, copy=False)
        made.attrs = dict(getattr(like, "attrs", {}))
        return made


class _Dims(_Frame):
    """xarray: a name for each dimension. Operands are brought together by these names, in the order of their first appearance."""

    def __init__(self, op, inputs):
        self.op = op
        self.arrays = [(k, x) for k, x in enumerate(inputs) if _is_xarray(x)]
        self.dims = list(dict.fromkeys(dim for _, x in self.arrays for dim in x.dims))
        self.inputs = inputs
        self.check()

    def check(self):
        known, same = {}, all(list(x.dims) == self.dims for _, x in self.arrays)
        for k, x in self.arrays:
            where = "{}: input {} ({})".format(self.op.__name__, k + 1, self.op.inputs[k])
            for dim, extent in zip(x.dims, x.shape):
                first = known.setdefault(dim, (extent, x.indexes.get(dim)))
                index = x.indexes.get(dim)
                is_same = index is None or first[1] is None or index.equals(first[1])
                if extent != first[0] or not is_same:
                    raise ValueError("{}: its {!r} differs from that of the others; align them first, "
                                     "xarray.align(x, y, join='inner')".format(where, dim))
        for k, x in enumerate(self.inputs):
            if not _is_xarray(x) and _shape(x) and not same:
                raise ValueError("{}: input {} ({}): an array without names beside DataArrays of different dims; give it dims, "
                                 "xarray.DataArray(x, dims=...)".format(self.op.__name__, k + 1, self.op.inputs[k]))

    def broadcast(self, taken):
        taken = list(taken)
        for k, x in self.arrays:
            order = [x.dims.index(dim) for dim in self.dims if dim in x.dims]
            data = taken[k].transpose(order) if order != sorted(order) else taken[k]
            taken[k] = data[tuple(slice(None) if dim in x.dims else None for dim in self.dims)] if order else data
        return taken

    def out(self, out):
        is_turned = list(out.dims) != self.dims and set(out.dims) == set(self.dims)
        return out.data.transpose([out.dims.index(dim) for dim in self.dims]) if is_turned else out.data

    def coords(self, dims):
        found, conflicts = {}, set()
        for _, x in self.arrays:
            for name, coord in x.coords.items():
                if not set(coord.dims) <= set(dims):
                    continue
                if name in found and not found[name].variable.equals(coord.variable):
                    conflicts.add(name)
                found.setdefault(name, coord)
        return {name: coord for name, coord in found.items() if name not in conflicts}

    def labelled(self, result, kept, shape):
        import xarray
        if len(shape) != len(self.dims):
            return result
        dims = self.dims if len(kept) == len(shape) else [self.dims[d] for d in kept]
        whole = [dim for dim, d in zip(dims, kept) if d is not None]
        names = {x.name for _, x in self.arrays}
        attrs = dict(self.arrays[0][1].attrs)
        for _, x in self.arrays[1:]:
            attrs = {key: value for key, value in attrs.items() if key in x.attrs and _is_same(x.attrs[key], value)}
        name = names.pop() if len(names) == 1 else None
        return xarray.DataArray(result, dims=dims, coords=self.coords(whole), name=name, attrs=attrs)


def _is_same(a, b):
    try:
        return bool(a == b)
    except (TypeError, ValueError):  # arrays, ...
        return a is b
