# SPDX-License-Identifier: Apache-2.0
"""Calls that fail, one or more for each status: what the reference shows of them is what this build says."""

import numpy

import quern

_CALLS = {
    "QUERN_E_ARGUMENT": ["quern.clip(numpy.ones(3), minimum=0)"],
    "QUERN_E_DTYPE": ["quern.bitwise_and(numpy.ones(3), numpy.ones(3))"],
    "QUERN_E_SHAPE": ["quern.add(numpy.ones(3), numpy.ones(4))", "quern.exp(numpy.ones((2, 3)), out=numpy.ones((3, 2)))"],
    "QUERN_E_OVERLAP": ["a = numpy.arange(8.0); quern.exp(a[:-1], out=a[1:])"],
    "QUERN_E_READONLY": ["a = numpy.ones(3); a.flags.writeable = False; quern.exp(a, out=a)"],
    "QUERN_E_SYNTAX": ["quern.compile('y = x +')", "quern.compile('y = x < a < b')"],
    "QUERN_E_NOTFOUND": ["quern.op('gelo')", "quern.compile('y = arcsin(x)')"],
    "QUERN_E_UNSUPPORTED": ["quern.compile('y = sum(x, axis=0) + sum(x, axis=1)')(numpy.ones((2, 2)))"],
    "QUERN_E_LIMIT": ["quern.compile('y = ' + '(' * 201 + 'x' + ')' * 201)"],
    "QUERN_E_IO": ["quern.load_spec('missing.lua')"],
}


def sentences():
    """{status: [(call, exception, sentence)]}"""
    out = {}
    for status, calls in _CALLS.items():
        for call in calls:
            try:
                exec(call, {"numpy": numpy, "quern": quern})
            except Exception as error: # what it is is the subject
                text = str(error) if not isinstance(error, SyntaxError) else "{}\n{}\n{}^".format(
                    error.msg, error.text, " " * ((error.offset or 1) - 1))
                out.setdefault(status, []).append((call.replace("; ", "\n"), type(error).__name__, text))
            else:
                raise AssertionError(f"{call}: no error")
    return out
