# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of a Markdown page as its reader would, in order, in one empty folder, and prints TAP lines.

    run_blocks.py PAGE FIRST_TEST_NUMBER

A block with a first line that is a comment with a file's name is that file. `sh` blocks are run by sh, `python` blocks in one
process. A `text` block is what the block before it prints; `...` in it stands for anything. `<!-- not run: REASON -->` before a block;
`<!-- needs: MODULE -->` on a page whose blocks are run where Python has that module; of `cuda`, where there is a device,
or QUERN_CUDA_PATH names a driver."""

import fnmatch
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

_FILE = re.compile(r"(?:--|#|/\*|//)\s*([\w./-]+\.\w+)\s*(?:\*/)?\s*$")
_BLOCK = re.compile(r"(?P<skip><!-- not run: (?P<reason>.*?) -->\s*\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.S | re.M)


def blocks(text):
    """[(language, text, reason not to run it or None, line)]"""
    return [(m["language"], m["text"], m["reason"], text.count("\n", 0, m.start("language")) + 1) for m in _BLOCK.finditer(text)]


# Runs the blocks that it is given, a line of JSON each, in one namespace. Behind what a block prints stands a line of how it went.
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
            done = subprocess.run(["sh", "-euc", text], cwd=self.folder, capture_output=True, text=True)
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


def has(name):
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
        for language, block, reason, line in blocks(text):
            if needed:
                reason = needed[0] + " is not there"
            if reason:
                print(f"ok {number} - {name}:{line} {language} # SKIP {reason}")
            else:
                is_right, why = page.run(language, block)
                print(("" if is_right else "not ") + f"ok {number} - {name}:{line} {language}")
                if not is_right:
                    print("".join("# " + part + "\n" for part in why.split("\n")), end="")
            number += 1
        page.close()


if __name__ == "__main__":
    main()
