# SPDX-License-Identifier: Apache-2.0
"""The words of a test in Python: TAP 13 on standard output. The mirror of tap.h and tap.lua. Must not know Quern. A test that
raises is reported as a failure by its missing plan.

    from tap import done_testing, is_, ok, raises
    ok(condition, "name"); is_(got, wanted, "name"); raises(ValueError, function, "name", "part of the sentence")
    done_testing()"""

import sys

_n_run = _n_bad = 0
_planned = None
_started = False


def _put(text):
    global _started
    if not _started:
        _started = True
        print("TAP version 13")
    print(text, flush=True)


def diag(text):
    """`# ` lines."""
    for line in str(text).split("\n"):
        _put("# " + line)


def _where():
    frame = sys._getframe()
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return "{}:{}".format(frame.f_code.co_filename, frame.f_lineno)


def ok(condition, name):
    """One test. What was tested is returned."""
    global _n_run, _n_bad
    _n_run += 1
    name = str(name).replace("#", "*").replace("\n", " ")
    _put("{} {} - {}".format("ok" if condition else "not ok", _n_run, name.encode("ascii", "backslashreplace").decode()))
    if not condition:
        _n_bad += 1
        diag("failed at " + _where())
    return condition


def is_(got, wanted, name):
    """got == wanted."""
    if not ok(got == wanted, name):
        diag("   got: {!r}\nwanted: {!r}".format(got, wanted))


def raises(error, function, name, part=""):
    """function() raises the exception, or one of a tuple of these, with `part` in its text. The exception is returned."""
    try:
        result = function()
    except BaseException as raised:
        if not ok(isinstance(raised, error) and part in str(raised), name):
            diag("   got: {!r}\nwanted: {!r} with {!r}".format(raised, error, part))
        return raised
    ok(False, name)
    diag("   got: {!r}, and no exception\nwanted: {!r}".format(result, error))
    return None


def skip(n_tests, reason):
    """Counts as so many passed tests that did not run."""
    global _n_run
    for _ in range(n_tests):
        _n_run += 1
        _put("ok {} # SKIP {}".format(_n_run, reason))


def skip_all(reason):
    """Ends the program: no test can run."""
    _put("1..0 # SKIP " + reason)
    sys.exit(0)


def plan(n_tests):
    """How many tests follow. Not needed: done_testing counts."""
    global _planned
    _planned = n_tests
    _put("1..{}".format(n_tests))


def done_testing():
    """Ends the program with the status that the tests deserve."""
    if _planned is None:
        plan(_n_run)
    bad = _n_bad + (_n_run == 0 or _planned != _n_run)
    if bad:
        diag("{} of {} failed".format(bad, _n_run))
    sys.exit(1 if bad else 0)
