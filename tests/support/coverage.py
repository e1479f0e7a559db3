# SPDX-License-Identifier: Apache-2.0
"""What gcov counted in a build, by folder of runtime/, as lines `folder files lines run branches taken`; and, in a second file, what
did not run.   python3 coverage.py BUILD MISSED"""

import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile

build, missed = os.path.abspath(sys.argv[1]), sys.argv[2]
root = os.getcwd()
lines = collections.defaultdict(lambda: collections.defaultdict(int))  # of a file: line -> count
branches = collections.defaultdict(dict)  # of a file: (line, number) -> count
notes = sorted(os.path.join(folder, name) for folder, _, names in os.walk(build + "/CMakeFiles/quern-core.dir/runtime")
               for name in names if name.endswith(".gcno"))
with tempfile.TemporaryDirectory() as work:
    for note in notes:  # also those of which nothing ran
        subprocess.run(["gcov", "-b", "-j", note], cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in os.listdir(work):
            report = json.load(gzip.open(os.path.join(work, name)))
            os.remove(os.path.join(work, name))
            for file in report["files"]:
                path = os.path.relpath(os.path.join(report["current_working_directory"], file["file"]), root)
                if not path.startswith("runtime/"):
                    continue
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[path][number] += line["count"]
                    for k, branch in enumerate(line["branches"]):
                        key = (number, k)
                        branches[path][key] = branches[path].get(key, 0) + branch["count"]

folders = collections.defaultdict(lambda: [0] * 5)
for path in lines:
    parts = os.path.dirname(path).split("/")
    for depth in range(1, len(parts) + 1):
        row = folders["/".join(parts[:depth])]
        for k, figure in enumerate((1, len(lines[path]), sum(n > 0 for n in lines[path].values()), len(branches[path]),
                                    sum(n > 0 for n in branches[path].values()))):
            row[k] += figure
for folder in sorted(folders):
    print(folder, *folders[folder])
with open(missed, "w") as out:
    for path in sorted(lines, key=lambda path: -sum(n == 0 for n in branches[path].values())):
        not_run = [number for number, n in sorted(lines[path].items()) if n == 0]
        not_taken = sorted({number for (number, _), n in branches[path].items() if n == 0})
        print("{}: {} of {} lines, {} of {} branches; lines {}; branches of lines {}".format(
            path, len(not_run), len(lines[path]), sum(n == 0 for n in branches[path].values()), len(branches[path]), not_run, not_taken), file=out)
