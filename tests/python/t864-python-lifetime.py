# SPDX-License-Identifier: Apache-2.0
# tags: memory threads
"""Who keeps memory alive, and until when: producers that are gone, deleters on threads that Python does not know, an interpreter
that ends while arrays, capsules and tensors in C's hands live; and 10^6 exchanges that leave nothing behind."""

import array
import ctypes
import gc
import os
import subprocess
import sys
import sysconfig
import threading
from ctypes import c_void_p

import quern
from odd_producer import LEGACY_USED, VERSIONED_USED, OldProducer, Producer, alive, capsule_rename, managed_of
from tap import done_testing, is_, ok, skip

libc = ctypes.CDLL(None)
libc.pthread_create.argtypes = [c_void_p, c_void_p, c_void_p, c_void_p]
libc.pthread_join.argtypes = [ctypes.c_ulong, c_void_p]


def owned(x, versioned=True):
    """A managed tensor of x in the hands of C: whoever has it calls the deleter."""
    capsule = x.__dlpack__(max_version=(1, 3)) if versioned else x.__dlpack__()
    managed = managed_of(capsule, hold=False)
    capsule_rename(capsule, VERSIONED_USED if versioned else LEGACY_USED)
    return managed


def start(managed):
    """A thread of C's that calls the deleter, and nothing else."""
    thread = ctypes.c_ulong()
    function = ctypes.cast(managed.deleter, c_void_p).value
    if libc.pthread_create(ctypes.addressof(thread), None, function, ctypes.addressof(managed)):
        raise OSError("pthread_create")
    return thread


# ---- Producers that are gone ----

a = array.array("f", range(1000))
x = quern.from_dlpack(a)
del a
gc.collect()
is_(x.tolist(), list(range(1000)), "a buffer outlives its exporter's last name")
capsule = x.__dlpack__()
del x
gc.collect()
x = quern.from_dlpack(capsule)
is_(x.tolist()[999], 999, "in a capsule too")
rows = quern.array_api.unstack(quern.from_dlpack(memoryview(x).cast("B").cast("f", (10, 100))))
del x, capsule
gc.collect()
is_(rows[9].tolist()[0], 900.0, "and in views")
del rows

# ---- Threads that Python does not know ----

for versioned in (True, False):
    b = bytearray(64)
    managed = owned(quern.from_dlpack(b), versioned)
    thread = start(managed)
    is_(libc.pthread_join(thread, None), 0, "a deleter on a thread of C's")
    b.append(1)
    ok(True, "has released the buffer")
p = Producer([1.0])
thread = start(owned(quern.from_dlpack(p)))
libc.pthread_join(thread, None)
is_(p.deleted, 1, "and calls a producer's deleter there")

x = quern.from_dlpack(bytearray(64))
threads = [start(owned(x)) for _ in range(50)]
for thread in threads:
    libc.pthread_join(thread, None)
is_(x.tolist(), [0] * 64, "50 of them at once leave the array alone")

# ---- Threads that it knows ----

x = quern.from_dlpack(bytearray(range(64)))
errors = []


def work():
    for _ in range(2000):
        y = quern.from_dlpack(x.__dlpack__(max_version=(1, 3)))
        z = quern.from_dlpack(y, copy=True)
        if z.tolist()[63] != 63 or memoryview(y)[1] != 1:
            errors.append("wrong")


workers = [threading.Thread(target=work) for _ in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
is_(errors, [], "8 threads share one array")

once = [Producer([float(i)]).capsule() for i in range(500)]
taken = []


def race():
    for capsule in once:
        try:
            taken.append(quern.from_dlpack(capsule))
        except ValueError:
            pass


workers = [threading.Thread(target=race) for _ in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
is_(sorted(x.item() for x in taken), [float(i) for i in range(500)], "4 threads after the same capsules: each is consumed once")
del once, taken, x
gc.collect()
is_(alive(), 0, "and deleted")

# ---- An interpreter that ends ----

HEAD = """
import ctypes, os, sys, threading
sys.path[:0] = {!r}
import quern
from odd_producer import *
class Noisy(bytearray):
    def __del__(self):
        os.write(1, b"gone ")
""".format([os.path.dirname(os.path.abspath(__file__))])

OWNED = """
x = quern.from_dlpack(Noisy(64))
capsule = x.__dlpack__(max_version=(1, 3))
managed = managed_of(capsule, hold=False)
capsule_rename(capsule, VERSIONED_USED)
"""

ENDS = {
    "arrays": "x = quern.from_dlpack(Noisy(8)); y = quern.from_dlpack(Producer([1.0])); sys.modules['keep'] = (x, y)",
    "arrays in a cycle": "x = [quern.from_dlpack(Noisy(8))]; x.append(x); quern.keep = x",
    "capsules": "x = quern.from_dlpack(Noisy(8)); keep = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]; quern.keep = keep",
    "views": "x = quern.from_dlpack(Noisy(8)); quern.keep = memoryview(x)",
    "a producer's capsules": "quern.keep = [Producer([1.0]).capsule(), quern.from_dlpack(Producer([1.0]).capsule())]",
    "dtypes and devices": "quern.keep = (quern.float32, quern.from_dlpack(b'').device, quern.Array)",
    "a tensor in C's hands": OWNED,
    "a tensor that C deletes after the end": OWNED + """
address = ctypes.addressof(managed)
# When there is no interpreter any more: an exit handler of C's.
libc = ctypes.CDLL(None)
libc.__cxa_atexit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
libc.__cxa_atexit(ctypes.cast(managed.deleter, ctypes.c_void_p), address, address)
""",
    "threads of C's that delete all the while": """
libc = ctypes.CDLL(None)
libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
def feed():
    while True:
        x = quern.from_dlpack(bytearray(64))
        capsule = x.__dlpack__(max_version=(1, 3))
        managed = managed_of(capsule, hold=False)
        capsule_rename(capsule, VERSIONED_USED)
        thread = ctypes.c_ulong()
        del x
        libc.pthread_create(ctypes.addressof(thread), None, ctypes.cast(managed.deleter, ctypes.c_void_p),
                            ctypes.addressof(managed))
        libc.pthread_detach(thread)
for _ in range(3):
    threading.Thread(target=feed, daemon=True).start()
import time
time.sleep(0.2)
""",
}
is_tsan = "libtsan" in os.environ.get("LD_PRELOAD", "")
for name, text in ENDS.items():
    if is_tsan and "threads" in name:
        skip(3, "ThreadSanitizer takes glibc's use of the memory of threads that have ended for a race")
        continue
    if sysconfig.get_config_var("Py_GIL_DISABLED") and "producer" in name:
        skip(3, "a free-threaded interpreter's last collection empties a destructor written in Python before it calls it")
        continue
    for kind in ("return", "exit", "exception"):
        last = {"return": "", "exit": "\nsys.exit(7)", "exception": "\nraise SystemExit(7)"}[kind]
        run = subprocess.run([sys.executable, "-c", HEAD + text + last + "\n"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             timeout=120)
        if not ok(run.returncode == (0 if kind == "return" else 7), "an end with {}: {}".format(name, kind)):
            print("# {} {!r}".format(run.returncode, run.stderr[-2000:]))

# ---- 10^6 exchanges ----


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


is_sanitized = is_tsan or "libasan" in os.environ.get("LD_PRELOAD", "")
rounds = int(os.environ.get("QUERN_TEST_EXCHANGES", 20000 if is_sanitized else 1000000)) // 10
source = quern.from_dlpack(bytearray(64))
wrong = Producer([1.0], lanes=2)


def exchange(times):
    for _ in range(times):
        x = quern.from_dlpack(source.__dlpack__())
        x = quern.from_dlpack(source.__dlpack__(max_version=(1, 3), copy=None, dl_device=(1, 0)))
        x = quern.from_dlpack(source.__dlpack__(copy=True))
        x = quern.from_dlpack(memoryview(x))
        x = quern.from_dlpack(x, device="cpu", copy=False)
        source.__dlpack__()
        source.__dlpack__(max_version=(1, 3))
        source.T.shape, source.strides, source.device, source.dtype
        try:
            source.__dlpack__(stream=1)
        except ValueError:
            pass
        try:
            quern.from_dlpack(x, device="cuda:7")
        except BufferError:
            pass


def count():
    return [sys.getrefcount(each) for each in (source, quern.Array, quern.Device, quern.uint8, bytearray, memoryview)]


exchange(rounds // 20)
gc.collect()
before, memory = count(), resident()
exchange(rounds)
gc.collect()
is_(count(), before, "{} exchanges: no references are left".format(10 * rounds))
grown = resident() - memory
ok(is_sanitized or grown < (4 << 20), "{} exchanges: no memory is left ({} KiB)".format(10 * rounds, grown >> 10))

for kind in (Producer, OldProducer):
    exchanged = kind([1.0])
    for _ in range(1000):
        quern.from_dlpack(exchanged)
    is_((exchanged.deleted, alive()), (1000, 0), "1000 of {}: deleted once each".format(kind.__name__))
for _ in range(1000):
    try:
        quern.from_dlpack(wrong)
    except BufferError:
        pass
is_((wrong.deleted, alive()), (1000, 0), "1000 that are refused: deleted once each")

done_testing()
