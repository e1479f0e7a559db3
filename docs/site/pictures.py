# SPDX-License-Identifier: Apache-2.0
"""Writes the pictures of README that are made of the library's own runs: the photograph before and after the demo, and the measured
error of an op. (The chart of speeds is written by bench/run.py --all.)

    PYTHONPATH=BUILD/python python3 docs/site/pictures.py BUILD/demo/raccoon.ppm"""

import json
import os
import subprocess
import sys

from PIL import Image

import plots
from documents import ROOT

FOLDER = os.path.join(ROOT, "docs", "pictures")
OP = "log"


def photograph(after):
    """The demo's picture: the left half as it was, the right half developed; the middle rows."""
    before, after = (Image.open(path).convert("RGB") for path in (os.path.join(ROOT, "examples/data/raccoon.ppm"), after))
    width, height = before.size
    both = before.copy()
    both.paste(after.crop((width // 2, 0, width, height)), (width // 2, 0))
    both.paste((255, 255, 255), (width // 2 - 2, 0, width // 2 + 2, height))
    both = both.crop((0, height // 5, width, height * 4 // 5))
    both.resize((720, 720 * both.height // width), Image.LANCZOS).save(os.path.join(FOLDER, "photograph.jpg"), quality=82, optimize=True)


def error_picture():
    facts = json.loads(subprocess.run(["lua5.4", "docs/site/facts.lua"], cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    op = next(op for op in facts["ops"] if op["name"] == OP)
    picture, points, largest = plots.error(op)
    at = picture.index(">", picture.index("<svg")) + 1
    picture = picture[:at] + '<rect width="100%" height="100%" fill="#fff"/>' + picture[at:]
    with open(os.path.join(FOLDER, "error.svg"), "w") as file:
        file.write(picture.replace("currentColor", "#1a202c"))
    print(OP, points, largest)


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    photograph(sys.argv[1])
    error_picture()
