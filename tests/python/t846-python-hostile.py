# SPDX-License-Identifier: Apache-2.0
# tags: memory threads-full
"""Calls under bad conditions: producers that raise, call back, or change what others have handed over; many types; threads; and
nothing left behind on any path, by count of references and of bytes."""

import array
import gc
import os
import pickle
import sys
import threading
import tracemalloc

import quern
from tap import done_testing, is_, ok, raises, skip

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None

x = quern.from_dlpack(array.array("f", range(8)))
y = quern.from_dlpack(array.array("f", [1] * 8))
wanted = [float(k + 1) for k in range(8)]


class Producer:
    """Hands a quern.Array on, after doing something else."""

    def __init__(self, action=lambda: None, tensor=x):
        self.action, self.tensor = action, tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **wishes):
        self.action()
        return self.tensor.__dlpack__(**wishes)


def throw(error):
    raise error


# ---- Producers ----

is_(quern.add(Producer(), y).tolist(), wanted, "a producer in Python")
ok(isinstance(quern.add(Producer(), y), quern.Array), "without a namespace: a quern.Array")
out = Producer(tensor=quern.add(x, 0))
ok(quern.add(x, y, out=out) is out and out.tensor.tolist() == wanted, "as out")
for error in (ValueError("mine"), KeyboardInterrupt(), MemoryError(), SystemExit(3)):
    got = raises(type(error), lambda: quern.add(x, Producer(lambda: throw(error))), "raises " + type(error).__name__)
    ok(got is error, "the very exception")


class Copier(Producer):
    def __dlpack__(self, **wishes):
        return self.tensor.__dlpack__(**{**wishes, "copy": True})


raises(BufferError, lambda: quern.add(x, y, out=Copier()), "out from a producer that copies", "a copy")
is_(quern.add(Copier(), y).tolist(), wanted, "an input from it")


class Named(Producer):
    """With an array API namespace."""
    made = None

    def __array_namespace__(self, api_version=None):
        return Named

    @staticmethod
    def from_dlpack(tensor):
        if Named.made:
            raise Named.made("mine")
        return ("from_dlpack", tensor)


name, tensor = quern.add(Named(), y)
is_((name, tensor.tolist()), ("from_dlpack", wanted), "a result through its namespace")
Named.made = ZeroDivisionError
raises(ZeroDivisionError, lambda: quern.add(Named(), y), "which raises", "mine")


class Interrupted(Producer):
    """Is interrupted where it is asked for an attribute, or in the function that it has."""

    def __init__(self, name, error):
        super().__init__()
        self.name, self.error = name, error

    def __getattribute__(self, name):
        if name == object.__getattribute__(self, "name"):
            throw(object.__getattribute__(self, "error"))
        return super().__getattribute__(name)


class Unnamed(Producer):
    error = None

    def __array_namespace__(self, api_version=None):
        throw(Unnamed.error)


class Empty(Producer):
    def __array_namespace__(self, api_version=None):
        return object()


for error in (KeyboardInterrupt, MemoryError, ZeroDivisionError):
    Unnamed.error = error
    raises(error, lambda: quern.add(Unnamed(), y), "a namespace that raises " + error.__name__)
    raises(error, lambda: quern.add(Interrupted("__array_namespace__", error), y), "the look-up of one")
    raises(error, lambda: quern.add(Interrupted("__dlpack__", error), y), "and of __dlpack__")
ok(isinstance(quern.add(Empty(), y), quern.Array), "a namespace without from_dlpack")

inner = []
is_(quern.add(Producer(lambda: inner.append(quern.add(x, y).tolist())), y).tolist(), wanted, "a producer that calls the same op")
is_(inner, [wanted], "which computed, too")
depth = [0]


def nest():
    depth[0] += 1
    if depth[0] < 50:
        quern.add(Producer(nest), y)


is_(quern.add(Producer(nest), y).tolist() and depth[0], 50, "50 deep")


class Endless(Producer):
    def __dlpack__(self, **wishes):
        return quern.add(self, y).__dlpack__(**wishes)


class EndlessBuffer:
    def __buffer__(self, flags):
        return memoryview(quern.add(self, y))


class EndlessResult(Producer):
    def __array_namespace__(self, api_version=None):
        return EndlessResult

    @staticmethod
    def from_dlpack(tensor):
        return quern.add(EndlessResult(), y)


many = quern.compile("y = " + " + ".join("abcdefgh"))
raises(RecursionError, lambda: quern.add(Endless(), y), "a producer that calls itself by an op")
raises(RecursionError, lambda: many(*[y] * 7, Endless()), "likewise, of many operands")
raises(RecursionError, lambda: quern.add(EndlessResult(), y), "a namespace that does")
if sys.version_info >= (3, 12):
    raises(RecursionError, lambda: quern.add(EndlessBuffer(), y), "a buffer that does")
else:
    skip(1, "__buffer__ is of Python 3.12")


class Strange(type):
    def __getattribute__(cls, name):
        if name.startswith("__dlpack"):
            raise RuntimeError("no attribute for you")
        return super().__getattribute__(name)


class Odd(metaclass=Strange):
    pass


raises(Exception, lambda: quern.add(x, Odd()), "a type with attributes that raise")


class Interrupting(type):
    def __getattribute__(cls, name):
        if name.startswith("__dlpack"):
            raise KeyboardInterrupt
        return super().__getattribute__(name)


class Halt(metaclass=Interrupting):
    pass


raises(KeyboardInterrupt, lambda: quern.add(x, Halt()), "a type with attributes that are interrupted")
raises(KeyboardInterrupt, lambda: quern.from_dlpack(Halt()), "by from_dlpack")
raises(TypeError, lambda: quern.add(x, Producer), "a class, not an object of it")
raises(TypeError, lambda: quern.add(x, object()), "an object that is nothing", "add: input 2 (y)")
late = type("Late", (), {})
raises(TypeError, lambda: quern.add(x, late()), "a class that is nothing yet")
late.__dlpack__ = lambda self, **wishes: x.__dlpack__(**wishes)
late.__dlpack_device__ = lambda self: (1, 0)
is_(quern.add(late(), y).tolist(), wanted, "and becomes something")
for k in range(300):
    kind = type("Kind", (Producer,), {})
    if quern.add(kind(), y).tolist() != wanted:
        ok(False, "300 types")
ok(True, "300 types")

if np:
    a = np.arange(8, dtype="f4")
    is_(quern.add(a, Producer(lambda: setattr(a, "shape", (8, 1)))).shape, (8, 8), "a shape that another operand changes")
    a = np.arange(8, dtype="f4")
    b = np.zeros(4096, "f4")
    raises(ValueError, lambda: quern.add(b, Producer(lambda: b.resize(3, refcheck=False))), "memory that another operand frees")
else:
    skip(2, "there is no NumPy here")
if torch:
    t = torch.zeros(4096)
    raises(ValueError, lambda: quern.add(t, Producer(lambda: t.resize_(3).set_(torch.zeros(3)))), "PyTorch's memory, likewise")
    t = torch.arange(8.0)
    is_(quern.add(t, Producer(lambda: t.set_(torch.ones(8)))).tolist(), wanted, "what is read is what is there then")
else:
    skip(2, "there is no PyTorch here")

# ---- Nothing is left behind ----


is_sanitised = "san" in os.environ.get("LD_PRELOAD", "")


def leaves_nothing(name, function, *objects, n=4000, bytes_each=24):
    """bytes_each: less than any object has. In sanitised builds, which are slow: references only, by fewer calls; the bytes are the
    same as in the plain build, where names stay at their addresses."""

    def run(n):
        for _ in range(n):
            try:
                function()
            except Exception:
                pass

    run(min(n, 1000))
    gc.collect()
    before = [sys.getrefcount(each) for each in objects]
    if is_sanitised:
        run(min(n, 300))
        gc.collect()
        after = [sys.getrefcount(each) for each in objects]
        change = [a - b for a, b in zip(after, before)]
        if objects:
            ok(not any(change), "{}: references {}".format(name, change))
        return
    tracemalloc.start()
    run(50)
    gc.collect()
    start = tracemalloc.get_traced_memory()[0]
    run(n)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    after = [sys.getrefcount(each) for each in objects]
    change = [a - b for a, b in zip(after, before)]
    ok(grown < n * bytes_each and not any(change), "{}: {} bytes, references {}".format(name, grown, change))


buffer = array.array("f", range(8))
read_only = memoryview(buffer).toreadonly()
producer = Producer()
bad = Producer(lambda: throw(ValueError("mine")))
add = quern.add
both = quern.compile("a = x + 1; b = x > y")
fused = quern.fuse(lambda x, y: x * y + 1)
leaves_nothing("results", lambda: add(x, y), x, y, add)
leaves_nothing("out", lambda: add(x, y, out=buffer), x, y, buffer, add)
leaves_nothing("buffers", lambda: add(buffer, buffer, out=buffer), buffer)
leaves_nothing("producers", lambda: add(producer, producer), producer)
leaves_nothing("numbers", lambda: add(x, 10**9), x)
leaves_nothing("several results", lambda: both(x, y), x, y, both)
leaves_nothing("some of them given", lambda: both(x, y, out=(buffer, None)), x, y, buffer)
leaves_nothing("names", lambda: quern.leaky_relu(x=x, slope=0.5, out=None, dtype="f64"), x)
leaves_nothing("a producer that raises, first", lambda: add(bad, y), bad, y)
leaves_nothing("a producer that raises, last", lambda: add(producer, buffer, out=bad), bad, producer, buffer)
leaves_nothing("shapes", lambda: add(producer, buffer, out=array.array("f", [1])), producer, buffer)
leaves_nothing("an output that is read-only", lambda: add(producer, buffer, out=read_only), producer, buffer, read_only)
leaves_nothing("an output that copies", lambda: add(x, y, out=Copier()), x, y)
leaves_nothing("a namespace that raises", lambda: add(Named(), y), y)
leaves_nothing("a dtype that cannot be", lambda: both(x, y, dtype="i32"), x, y)
leaves_nothing("no tensor", lambda: add(producer, {}), producer)
leaves_nothing("numbers alone", lambda: add(1, 2))
leaves_nothing("a number too large", lambda: add(producer, 10**400), producer)
leaves_nothing("names that are none", lambda: add(x, y, nonsense=1), x, y)
leaves_nothing("no op of the name", lambda: quern.call("nonsense", x), x)
leaves_nothing("syntax", lambda: quern.compile("y = ("), n=1000)
leaves_nothing("expressions", lambda: quern.compile("y = x + 3")(x), x, n=300)
leaves_nothing("contexts", lambda: quern.Context(jit="off", cache_dir="").call("add", x, y), x, y, n=300)
leaves_nothing("explain", lambda: add.explain(x, y), x, y, n=1000)
leaves_nothing("lists", lambda: add([1.0] * 8, x), x)
leaves_nothing("lists that are refused", lambda: add([1.0, "a"], x), x, n=1000)
leaves_nothing("evaluate", lambda: quern.evaluate("x + y", {"x": x, "y": y}, {}, buffer), x, y, buffer)
leaves_nothing("evaluate over the caller's", lambda: quern.evaluate("x + y"), x, y)
leaves_nothing("evaluate, a name that is none", lambda: quern.evaluate("x + nonsense"), x, n=1000)
leaves_nothing("a fused function", lambda: fused(x, y), x, y, fused)
leaves_nothing("a function that cannot be fused", lambda: quern.fuse(lambda x: x[0])(x), x, n=100)
leaves_nothing("repr of an expression", lambda: (both(x, y), repr(both), both._repr_html_()), both, n=1000)
leaves_nothing("pickles", lambda: pickle.loads(pickle.dumps(both)), both, n=1000)
leaves_nothing("attributes", lambda: (add.inputs, add.outputs, add.params, add.formula, repr(add), add.__signature__), n=1000)
leaves_nothing("types", lambda: add(type("Kind", (Producer,), {})(), y), y, n=1000, bytes_each=400)
if hasattr(quern, "sum"):
    total = quern.sum
    leaves_nothing("reductions", lambda: (total(x), total(x, axis=0, keepdims=True), total(buffer, axis=(-1,))), x, buffer, total)
    leaves_nothing("reductions in another dtype", lambda: (total(x, dtype="f64"), total(producer, dtype="f64")), x, producer)
    leaves_nothing("an axis that is none", lambda: total(producer, axis=(0, 1.5)), producer)
    leaves_nothing("an axis out of bounds", lambda: total(producer, axis=3), producer)
    leaves_nothing("a reduction refused behind its cast", lambda: total(producer, dtype="f64", out=buffer[:2]), producer, buffer)
else:
    skip(5, "this build has some ops only, and no sum")
if np:
    a = np.arange(8, dtype="f4")
    swapped = a.astype(">f4")
    leaves_nothing("NumPy", lambda: add(a, a), a)
    leaves_nothing("NumPy, out", lambda: add(a, a, out=a), a)
    leaves_nothing("NumPy, refused", lambda: add(a, swapped), a, swapped, a.dtype)
else:
    skip(3, "there is no NumPy here")
if torch:
    t, leaf = torch.arange(8.0), torch.ones(8, requires_grad=True)
    leaves_nothing("PyTorch", lambda: add(t, t), t)
    leaves_nothing("PyTorch, out", lambda: add(t, t, out=t), t)
    leaves_nothing("PyTorch, refused", lambda: add(t, leaf), t, leaf)
else:
    skip(3, "there is no PyTorch here")

# ---- Threads ----

problems = []


def compute(seed):
    """One op, many layouts; the results are looked at."""
    try:
        for k in range(400):
            n = ((seed + k // 7) % 5 + 1) * (1000 if k // 35 % 3 == 2 else 1)  # with and without the GIL
            memory = array.array("d", range(n))
            result = array.array("d", bytes(8 * n))
            shared(memory, seed, out=result)
            if list(result) != [v * 2 + seed for v in range(n)]:
                problems.append((seed, k, list(result)[:9]))
    except BaseException as error:
        problems.append(error)


def together(n, function):
    threads = [threading.Thread(target=function, args=(seed,)) for seed in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


interval = sys.getswitchinterval()
sys.setswitchinterval(1e-5)
shared = quern.Context(jit="off", cache_dir="").compile("y = x*2 + a")
together(6, compute)
is_(problems, [], "one expression from many threads")
doubled = quern.fma
shared = lambda memory, seed, out: doubled(memory, 2, seed, out=out)  # noqa: E731
together(6, compute)
is_(problems, [], "one op from many threads")
sys.setswitchinterval(interval)

# A thread that waits for the GIL gets it only where it is let go of.


def lets_go(name, function):
    sys.setswitchinterval(1000)
    ran = threading.Event()
    thread = threading.Thread(target=ran.set)
    thread.start()
    for _ in range(1000):
        if ran.is_set():
            break
        function()
    ok(ran.is_set(), "other threads run while " + name)
    sys.setswitchinterval(interval)
    thread.join()


large = quern.from_dlpack(array.array("f", bytes(4 << 20)))
none = quern.isnan(large)
count = quern.op("nonzero")
lets_go("kernels do", lambda: quern.gelu(large))
lets_go("results are measured", lambda: count(none))
lets_go("a call is explained", lambda: quern.gelu.explain(large))
done_testing()
