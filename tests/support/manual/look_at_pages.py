# SPDX-License-Identifier: Apache-2.0
"""Looks at pages of a site in headless Chromium, wide and narrow, and prints what is wrong: a page is empty, or wider than the window.

    look_at_pages.py CHROMIUM FOLDER [EVERY]

EVERY: only each such page. Speaks the browser's protocol through a pipe, one process for all pages."""

import base64
import json
import os
import subprocess
import sys
import zlib

WIDTHS = (1300, 380)
# What a page says of itself. The contents of tables and code may be scrolled in boxes of their own.
LOOK = """JSON.stringify({words: document.querySelector('article')?.innerText.trim().length ?? document.body.innerText.trim().length,
  wide: document.documentElement.scrollWidth - window.innerWidth})"""


class Browser:
    def __init__(self, program):
        to, self.write = os.pipe()
        self.read, back = os.pipe()

        def pipes(): # 3: what the browser reads; 4: what it writes
            to_copy, back_copy = os.dup(to), os.dup(back)
            os.dup2(to_copy, 3), os.dup2(back_copy, 4)

        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        self.process = subprocess.Popen(words, preexec_fn=pipes, pass_fds=(3, 4, to, back), stderr=subprocess.DEVNULL)
        os.close(to), os.close(back)
        self.number, self.rest, self.session = 0, b"", None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.read, 1 << 16)
            if not part:
                raise EOFError("the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        words = {"id": self.number, "method": method, "params": params}
        if self.session:
            words["sessionId"] = self.session
        os.write(self.write, json.dumps(words).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, path):
        self.ask("Page.navigate", url="file://" + path)
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def close(self):
        self.process.terminate()
        self.process.wait()


def colours(png):
    """How many different rows of pixels a picture has, at most 50: an empty page has one or two."""
    data, at = b"", 8
    while at < len(png):
        size = int.from_bytes(png[at:at + 4], "big")
        if png[at + 4:at + 8] == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    width = int.from_bytes(png[16:20], "big")
    raw = zlib.decompress(data)
    line = 1 + width * {2: 3, 6: 4}[png[25]]
    return len({raw[k:k + line] for k in range(0, len(raw), line)})


def main():
    program, folder, every = sys.argv[1], os.path.abspath(sys.argv[2]), int((sys.argv + ["1"])[3])
    pages = sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names if name.endswith(".html"))[::every]
    browser, n_wrong = Browser(program), 0
    for path in pages:
        for width in WIDTHS:
            browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
            browser.open(path)
            look = json.loads(browser.ask("Runtime.evaluate", expression=LOOK)["result"]["value"])
            picture = base64.b64decode(browser.ask("Page.captureScreenshot", format="png")["data"])
            wrong = []
            if look["words"] < 20 and not path.endswith(("search.html", "genindex.html")) or colours(picture) < 10:
                wrong.append("empty")
            if look["wide"] > 0:
                wrong.append(f"{look['wide']} pixels wider than the window")
            for what in wrong:
                n_wrong += 1
                print(f"{os.path.relpath(path, folder)} at {width}: {what}")
    browser.close()
    print(f"{len(pages)} pages, wide and narrow")
    sys.exit(1 if n_wrong else 0)


if __name__ == "__main__":
    main()
