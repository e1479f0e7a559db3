# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of a Markdown page as its reader would, in order, in one empty folder, and prints TAP lines.

    run_blocks.py PAGE FIRST_TEST_NUMBER

A block with a first line that is a comment with a file's name is that file. `sh` blocks are run by sh, `python` blocks in one
process. A `text` block is what the block before it prints; `...` in it matches anything. Before a block:
`<!-- not run: REASON -->`; `<!-- run where: NAME -->`, a program, or a module of Python, for `cuda` a device; `NAME as OTHER`: where there is no
device the word NAME in quotes is replaced; `<!-- compiled where: nvcc; DECLARATIONS -->`: C statements, of a function behind these.
`<!-- needs: MODULE -->` on a page: its blocks are run where Python has that module; of `cuda`, where there is a device,
or QUERN_CUDA_PATH names a driver."""

import fnmatch
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

_FILE = re.compile(r"(?:--|#|/\*|//)\s*([\w./-]+\.\w+)\s*(?:\*/)?\s*$")
_BLOCK = re.compile(r"(?:<!-- (?P<how>not run|run where|compiled where): (?P<what>(?:(?!-->).)*) -->\s*\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.S | re.M)


def blocks(text):
    """[(language, text, how it is run or None, the rest of that comment, line)]"""
    return [(m["language"], m["text"], m["how"], m["what"], text.count("\n", 0, m.start("language")) + 1) for m in _BLOCK.finditer(text)]


def conditions(what):
    """Of "torch, cuda as cpu": a reason not to run it or None, [(word, its replacement)]"""
    reason, changed = None, []
    for part in what.split(", "):
        name, _, other = part.partition(" as ")
        if other and not os.path.exists("/dev/nvidiactl"):
            changed.append((name, other))
        elif not other and not has(name):
            reason = name + " is not there"
    return reason, changed


def compile_c(text, declarations, folder):
    """Whether C statements compile, and what the compiler says."""
    includes, _, rest = declarations.rpartition("#")
    include, _, rest = rest.partition("\n")
    code = f"{includes}#{include}\nvoid page({rest.strip()});\nvoid page({rest.strip()}) {{\n{text}}}\n"
    path = os.path.join(folder, "statements.c")
    with open(path, "w") as file:
        file.write(code)
    flags = subprocess.run(["pkg-config", "--cflags", "quern"], capture_output=True, text=True).stdout.split()
    toolkit = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(program("nvcc")))), "include")
    done = subprocess.run(["cc", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-but-set-variable", "-isystem", toolkit, *flags, path],
                          capture_output=True, text=True)
    return done.returncode == 0, done.stderr


# Runs the blocks that it is given, a line of JSON each, in one namespace. A line of how it went follows what a block prints.
_RIGHT, _WRONG = "a block of the page ends here\n", "a block of the page ends here, with an error\n"
_PYTHON = f"""
import json, sys, traceback
names = {{"__name__": "__main__"}}
for line in sys.stdin:
    try:
        exec(compile(json.loads(line), "<block>", "exec"), names)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        print({_WRONG!r}, end="", flush=True)
    else:
        print({_RIGHT!r}, end="", flush=True)
"""


class Page:
    def __init__(self, folder):
        self.folder, self.python, self.said = folder, None, ""

    def close(self):
        if self.python:
            self.python.stdin.close()
            self.python.stdout.close()
            self.python.wait()
            self.python = None

    def run(self, language, text):
        """Runs a block: (whether it went well, what went wrong). What it prints is kept for a `text` block."""
        first = text.split("\n", 1)[0]
        named = _FILE.match(first)
        if language == "text":
            wanted, got = text.rstrip("\n"), self.said.rstrip("\n")
            pattern = re.sub(r"([\[*?])", "[\\1]", wanted).replace("...", "*")
            return fnmatch.fnmatchcase(got, pattern), "wanted:\n" + wanted + "\ngot:\n" + got
        if named:
            path = os.path.join(self.folder, named[1])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
            return True, ""
        if language == "python":
            return self.run_python(text)
        if language == "sh":
            path = os.environ["PATH"] + ":/usr/local/cuda/bin"
            done = subprocess.run(["sh", "-euc", text], cwd=self.folder, capture_output=True, text=True, env=dict(os.environ, PATH=path))
            self.said = done.stdout
        else:
            return True, ""
        return done.returncode == 0, done.stdout + done.stderr

    def run_python(self, text):
        """Gives a block to the page's Python, which is started for the first."""
        if not self.python:
            self.python = subprocess.Popen([sys.executable, "-c", _PYTHON], cwd=self.folder, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.python.stdin.write(json.dumps(text) + "\n")
        self.python.stdin.flush()
        said = []
        for line in self.python.stdout:
            if line in (_RIGHT, _WRONG):
                break
            said.append(line)
        else:
            line = "the process ended"
            self.close()
        self.said = "".join(said)
        return line == _RIGHT, self.said


def program(name):
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def has(name):
    if name == "nvcc":
        return program(name) is not None
    if name == "cuda":
        return "QUERN_CUDA_PATH" in os.environ or os.path.exists("/dev/nvidiactl")
    return importlib.util.find_spec(name) is not None


def main():
    path, number = sys.argv[1], int(sys.argv[2])
    with open(path) as file:
        text = file.read()
    name = os.path.basename(path)
    needed = [name for name in re.findall(r"<!-- needs: (\w+) -->", text) if not has(name)]
    with tempfile.TemporaryDirectory() as folder:
        page = Page(folder)
        for language, block, how, what, line in blocks(text):
            reason = what if how == "not run" else None
            if how == "run where":
                reason, changed = conditions(what)
                for word, other in changed:
                    block = block.replace(f'"{word}"', f'"{other}"')
            if how == "compiled where":
                where, _, declarations = what.partition(";")
                reason = None if has(where) else where + " is not there"
            if needed:
                reason = needed[0] + " is not there"
            if reason:
                print(f"ok {number} - {name}:{line} {language} # SKIP {reason}")
            else:
                is_right, why = compile_c(block, declarations.strip(), folder) if how == "compiled where" else page.run(language, block)
                print(("" if is_right else "not ") + f"ok {number} - {name}:{line} {language}")
                if not is_right:
                    print("".join("# " + part + "\n" for part in why.split("\n")), end="")
            number += 1
        page.close()


if __name__ == "__main__":
    main()
