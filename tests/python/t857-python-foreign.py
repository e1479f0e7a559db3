# SPDX-License-Identifier: Apache-2.0
"""Operands that are no tensors by themselves: lists and numbers alone, pandas', xarray's and pyarrow's objects: what comes back
is of their kind, with their labels; what cannot be taken says what to write."""

import array
import math

import quern
from tap import diag, done_testing, is_, ok, raises, skip, skip_all

if not hasattr(quern, "sum"):
    skip_all("this build has some ops only")
x = quern.asarray([1.0, 2.0, 3.0])
ints = quern.asarray([1, 2, 3])
bytes_ = array.array("B", [1, 2, 3])

# ---- Lists and numbers ----

is_(quern.add([1, 2], [3, 4]), [4, 6], "lists give a list")
is_(quern.add([1, 2.5], 1), [2.0, 3.5], "beside a number")
is_(quern.exp([0.0, 1.0]), [1.0, math.e], "floats are computed as Python's: f64")
is_((quern.add(1, 2), type(quern.add(1, 2))), (3, int), "numbers give a number")
is_((quern.exp(1.0), quern.less(1, 2), quern.divide(1, 3)), (math.e, True, 1 / 3), "  a float, a bool")
is_(quern.add([[1, 2], [3, 4]], [10, 20]), [[11, 22], [13, 24]], "nested")
is_(quern.sum([[1, 2], [3, 4]], axis=0), [4, 6], "reduced")
is_((quern.sum([[1, 2], [3, 4]]), quern.sum((1, 2)), quern.sum(range(4))), (10, 3, 6), "  to a number; a tuple, a range")
is_(quern.where([True, False], [1, 2], 0), [1, 0], "bools are conditions")
is_(quern.frexp(8.0), (0.5, 4), "two results")
is_(quern.add([], 1), [], "nothing")
is_(quern.compile("y = p * q + 1")(2, 3), 7, "an expression of numbers")
is_(quern.add(x, [1, 2, 3]).tolist(), [2.0, 4.0, 6.0], "beside a tensor, as the tensor")
is_(str(quern.add(x, [0.1, 0.2, 0.3]).dtype), "float32", "  of its dtype: lists are weak, as numbers are")
is_((str(quern.add(bytes_, [1, 2, 3]).dtype), str(quern.add(ints, [0.5] * 3).dtype)), ("uint8", "float64"),
    "  fractions beside integers make floats")
ok(quern.add([1, 2, 3], x, out=x) is x and x.tolist() == [2.0, 4.0, 6.0], "out")
is_(quern.add([1, 2], [3, 4], dtype="f32"), [4.0, 6.0], "dtype")
is_(quern.add.explain([1, 2], 3).operands[0].dtype, "i64", "explain")
raises(OverflowError, lambda: quern.add(bytes_, [300, 1, 1]), "a number that does not fit", "add: input 2 (y)")
raises(ValueError, lambda: quern.add([[1, 2], [3]], 1), "sequences of different lengths", "add: input 1 (x)")
raises(TypeError, lambda: quern.add(["a"], 1), "no numbers", "add: input 1 (x)")
endless = []
endless.append(endless)
raises(ValueError, lambda: quern.add(endless, 1), "a list within itself", "nested more than 32 deep")
raises(TypeError, lambda: quern.exp([x, x]), "a list of arrays", "numpy.stack(x)")
raises(TypeError, lambda: quern.add([1], [2], out=[0]), "a list as out", "list cannot be written into")
raises(TypeError, lambda: quern.exp({1, 2}), "a set", "give list(x)")
raises(AttributeError, lambda: quern.asarray({1, 2}), "  as an Array", "give list(x)")
raises(TypeError, lambda: quern.asarray([x, x]), "a list of arrays as one", "numpy.stack(x)")
is_(quern.asarray(range(3)).tolist(), [0, 1, 2], "a range as an Array")
raises(TypeError, lambda: quern.exp({"a": 1}), "a dict", "its values")
raises(TypeError, lambda: quern.exp("1"), "a text", "exp: input 1 (x)")

try:
    import numpy as np
except ImportError:
    np = None

# ---- NumPy's arrays of dtypes that Quern has not ----

if np is None:
    skip(23, "there is no NumPy here")
else:
    records = np.zeros(3, dtype=[("tag", "i1"), ("size", "f8")])
    for what, array, error, remedy in (
            ("objects", np.array([1, 2.5], dtype=object), TypeError, "give x.astype('float64')"),
            ("dates", np.array(["2020-01-01"], dtype="M8[D]"), TypeError, "give x.astype('int64')"),
            ("times", np.array([1], dtype="m8[s]"), TypeError, "give x.astype('int64')"),
            ("texts", np.array(["1"]), TypeError, "give x.astype('float64')"),
            ("records", records, TypeError, "give one of its fields, x['tag']"),
            ("a field that is not aligned", records["size"], BufferError, "give x.copy()"),
            ("the other byte order", np.ones(3, np.dtype("f8").newbyteorder()), BufferError, "newbyteorder('=')"),
            ("complex numbers", np.ones(3, "c8"), TypeError, "give the real and the imaginary parts")):
        raises(error, lambda: quern.add(array, 1), what, remedy)
        if what != "complex numbers":
            raises((BufferError, TypeError), lambda: quern.asarray(array), "  as an Array", remedy)
    for masked in np.ma.masked_array([1.0, 2.0], [0, 1]), np.ma.masked_array([1.0]):
        raises(TypeError, lambda: quern.add(masked, 1), "a masked array", "x.filled(value)")
        raises(TypeError, lambda: quern.asarray(masked), "  as an Array", "x.filled(value)")
    is_((type(quern.add([1, 2], np.ones(2))), type(quern.where([True, False], np.ones(2), 0))), (np.ndarray, np.ndarray),
        "a list first: the result is NumPy's")
    raises(TypeError, lambda: quern.add(np.ones(2), 1j), "a complex number", "numbers are real here")
    is_(quern.asarray([np.float32(1.5), np.float32(2)]).tolist(), [1.5, 2.0], "a list of NumPy's numbers as an Array")
    raises(TypeError, lambda: quern.sum(np.ones(2), casting="unsafe"), "casting", "dtype= is the dtype of results")

# ---- pandas ----

try:
    import pandas as pd
except ImportError:
    skip(35, "there is no pandas here")
else:
    diag("pandas " + pd.__version__)
    s = pd.Series([1.0, 4.0, 9.0], index=list("abc"), name="area")
    d = pd.DataFrame({"p": [1.0, 4.0], "q": [9.0, 16.0]}, index=[10, 20])

    def same(got, wanted, name):
        ok(type(got) is type(wanted) and got.equals(wanted), name)

    same(quern.sqrt(s), np.sqrt(s), "a Series gives a Series")
    is_(quern.sqrt(s).name, "area", "  of its name")
    same(quern.add(s, s.rename("other")), pd.Series(s.to_numpy() * 2, index=s.index), "two Series")
    is_(quern.add(s, s.rename("other")).name, None, "  of two names")
    same(quern.add(1, s), 1 + s, "a number first")
    same(quern.add(s.to_numpy(), s), s + s, "an array first")
    same(quern.less(s, 4), s < 4, "bools")
    same(quern.sqrt(d), np.sqrt(d), "a DataFrame")
    same(quern.sqrt(d.T), np.sqrt(d.T), "  in the other order")
    same(quern.add(d, pd.Series([1.0, 2.0], index=["p", "q"])), d + pd.Series([1.0, 2.0], index=["p", "q"]),
         "a Series along columns")
    same(quern.sum(d, axis=0), d.sum(axis=0), "a reduction along the index")
    same(quern.sum(d, axis=1), d.sum(axis=1), "  along the columns")
    is_((quern.sum(d), type(quern.sum(s))), (30.0, np.float64), "  of all")
    same(quern.softmax(d), pd.DataFrame(quern.softmax(d.to_numpy()), index=d.index, columns=d.columns), "along rows")
    same(quern.compile("y = u*v + w")(d, 2, d), d * 2 + d, "an expression")
    same(quern.evaluate("p + q*2", d, {}), pd.Series([19.0, 36.0], index=[10, 20]), "evaluate over the columns")
    same(quern.compile("a = x + 1; b = x > 4")(s)[1], s > 4, "several results")
    same(quern.fuse(lambda x, y: x * y + 1)(s, s), s * s + 1, "a fused function")
    same(quern.sqrt(pd.Series([1, 4], dtype="Int64")), pd.Series([1.0, 2.0]), "integers that may be missing")
    same(quern.add(pd.Index([1, 2]), 1), pd.Index([2, 3]), "an Index")
    is_(quern.sqrt(s.iloc[:0]).shape, (0,), "nothing")
    same(quern.sqrt(s[::2]), np.sqrt(s[::2]), "a view")
    is_((quern.asarray(s).tolist(), quern.diff(s).tolist()), ([1.0, 4.0, 9.0], [3.0, 5.0]), "asarray, and a function of views")
    named = s.copy()
    named.attrs["unit"] = "m2"
    is_(quern.sqrt(named).attrs, {"unit": "m2"}, "attrs")
    raises(ValueError, lambda: quern.add(s, s[::-1]), "another order of the index", "add: input 2 (y): its index differs")
    raises(ValueError, lambda: quern.add(d, d.rename(columns={"p": "r"})), "other columns", "its columns differs")
    raises(ValueError, lambda: quern.add(s, pd.Series([1.0, 2.0])), "another length", "does not broadcast")
    raises(ValueError, lambda: quern.sqrt(pd.Series([1, None], dtype="Int64")), "missing values", "x.fillna(value)")
    raises(TypeError, lambda: quern.sqrt(pd.Series(["a"])), "texts", "x.astype('float64')")
    raises(TypeError, lambda: quern.sqrt(pd.DataFrame({"a": [1], "t": ["x"]})), "a column of texts", "column 't'")
    raises(TypeError, lambda: quern.sqrt(pd.Series(pd.to_datetime(["2020-01-01"]))), "dates", "x.astype('int64')")
    raises(TypeError, lambda: quern.sqrt(pd.DataFrame({"a": [1], "t": [True]})), "bools beside numbers", "x.astype('float64')")
    raises(TypeError, lambda: quern.sqrt(s, out=s), "out", "Series cannot be written into")
    raises(TypeError, lambda: quern.sum(d.groupby("p")), "groups", "give x.agg(op)")
    out = np.zeros(3)
    ok(quern.sqrt(s, out=out) is out and out.tolist() == [1.0, 2.0, 3.0], "  out of NumPy's")

# ---- xarray ----

try:
    import xarray as xr
except ImportError:
    skip(15, "there is no xarray here")
else:
    diag("xarray " + xr.__version__)
    t = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("time", "place"),
                     coords={"time": [1, 2], "place": list("abc"), "run": 7}, name="t",
                     attrs={"unit": "K"})
    k = xr.DataArray([1.0, 2.0, 3.0], dims="place", coords={"place": list("abc")})
    ok(quern.exp(t).identical(np.exp(t).assign_attrs(t.attrs)), "a DataArray: dims, coords, name, attrs")
    ok(quern.add(t, k).equals(t + k) and quern.add(k, t).equals(k + t), "dims are brought together by name")
    ok(quern.add(t.T, t).equals(t.T + t), "  in another order")
    ok(quern.add(t, xr.DataArray([1.0, 2.0], dims="level")).equals(t + xr.DataArray([1.0, 2.0], dims="level")), "  and added")
    ok(quern.sum(t, axis=0).equals(t.sum("time")), "a reduction loses its dim")
    is_(quern.sum(t, axis=1, keepdims=True).dims, ("time", "place"), "  or keeps it")
    ok(quern.sum(t).equals(t.sum()), "  or all")
    ok(quern.multiply(t, np.arange(3.0)).equals(t * np.arange(3.0)), "an array of NumPy's")
    ok(quern.compile("y = x*2 + z")(t, k).equals(t * 2 + k), "an expression")
    out = t.copy()
    ok(quern.exp(t, out=out) is out and out.equals(np.exp(t)), "out")
    raises(ValueError, lambda: quern.add(t, k.assign_coords(place=list("xyz"))), "other coordinates", "its 'place' differs")
    raises(ValueError, lambda: quern.add(t, k[:2]), "another length", "xarray.align")
    raises(ValueError, lambda: quern.fma(t, k, np.ones(3)), "an array without names", "dims")
    raises(TypeError, lambda: quern.exp(t.to_dataset()), "a Dataset", "x.map(op)")
    raises(BufferError, lambda: quern.exp(xr.DataArray(np.array(["2020-01-01"], "M8[ns]"))), "dates", "exp: input 1 (x)")

# ---- pyarrow ----

try:
    import pyarrow as pa
except ImportError:
    skip(18, "there is no pyarrow here")
else:
    diag("pyarrow " + pa.__version__)
    v = pa.array([1.0, 4.0, 9.0])
    r = quern.sqrt(v)
    is_((type(r), r.to_pylist(), r.type), (type(v), [1.0, 2.0, 3.0], pa.float64()), "an array gives an array")
    r.validate(full=True)
    is_(quern.sqrt(v[1:]).to_pylist(), [2.0, 3.0], "a slice")
    is_(quern.add(pa.array([1, 2], pa.int8()), 1).type, pa.int8(), "integers")
    is_(quern.less(v, 4).to_pylist(), [True, False, False], "bools out")
    is_(quern.logical_not(pa.array([True, False, True])[1:]).to_pylist(), [True, False], "  and in")
    is_(quern.sum(pa.array([1, 2])), pa.scalar(3), "no dimension: a scalar")
    is_(quern.add(v, pa.scalar(1.0)).to_pylist(), [2.0, 5.0, 10.0], "a scalar in")
    is_(quern.add(pa.scalar(1), 2), pa.scalar(3), "  alone")
    is_(quern.sqrt(pa.chunked_array([[1.0], [4.0]])), pa.chunked_array([[1.0, 2.0]]), "chunks")
    is_(quern.sqrt(pa.array([], pa.float32())).type, pa.float32(), "nothing")
    for dtype in (pa.float16(), pa.float32(), pa.uint64()):
        ones = [1, 2, 3] if dtype != pa.float16() else np.float16([1, 2, 3]) if np else []
        one = pa.array(ones, dtype)
        is_(quern.add(one, one).type, dtype, "dtype {}".format(dtype))
    raises(ValueError, lambda: quern.sqrt(pa.array([1.0, None])), "nulls", "x.fill_null(value)")
    raises(TypeError, lambda: quern.sqrt(pa.array(["a"])), "texts", "x.cast('float64')")
    raises(TypeError, lambda: quern.sqrt(pa.table({"a": [1.0]})), "a table", "give a column")
    raises(TypeError, lambda: quern.sqrt(v, out=v), "out", "cannot be written into")
    ok(type(quern.from_dlpack(v)) is type(quern.asarray(v)) is quern.Array, "from_dlpack and asarray give Arrays")
done_testing()
