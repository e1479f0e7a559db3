#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t407-manual.sh: the manual: every code block of its pages, run as a reader would, on an installed library; every field of the spec
# language, every key of explain and every link of its pages is there; of the C API every function has parameters and an example, of the C++
# API every class a comment; every body has a formula; the spelling is right. The whole site, `bootstrap.sh docs`, where Sphinx is installed, and
# how its pages look in Chromium.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
if [ ! -e "$build/libquern.so" ]; then
  skip_all 'the library is not built here'
fi
skip_sanitised "$build/libquern.so"
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t407.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
python=${QUERN_TEST_PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# ---- What pages must have
cat >check.py <<'END'
import os, re, subprocess, sys
root, build = sys.argv[1:]
sys.path.insert(0, root + "/docs/site")
import c_api, calls, cpp_api, documents, formula, header, json

def say(is_right, name, why=""):
    print(("" if is_right else "not ") + "ok - " + name + (": " + why if why and not is_right else ""))

path = root + "/include/quern/quern.h"
text, unused = c_api.page(path, {"page": open(root + "/README.md").read() + "\n".join(c_api.read_sources(root, ["docs", "examples"]).values())})
known = {item["name"] for item in c_api.functions(header.read(path))}
exported = set(re.findall(r"\b(quern_\w+)\(", subprocess.run(["sed", "-n", "s/^QUERN_API.*/&/p", path], capture_output=True, text=True).stdout))
say(exported <= known and len(known) > 30, "the reference has every function of quern.h", str(exported - known))
say(not unused, "each of them is in an example", ", ".join(unused))
path = root + "/include/quern/quern.hpp"
names = cpp_api.class_names(path)
declared = set(re.findall(r"^(?:class|struct|inline quern_options) (\w+)(?! *;)\b", re.sub(r"namespace Detail \{.*?\n\} // namespace Detail", "", open(path).read(), flags=re.S), re.M))
say(set(names) >= declared - {"Plan"} and len(names) > 12, "the reference has every class of quern.hpp", str(declared - set(names)))
silent = [name for name, (_, comment, _) in zip(names, [item for _, items in cpp_api.read(path) for item in items]) if not comment]
say(not silent, "each has a comment", " ".join(silent))
path = root + "/include/quern/quern.h"
say(len(c_api.statuses(path)) == 20, "and every status")
facts = json.loads(subprocess.run(["lua5.4", "docs/site/facts.lua"], cwd=root, capture_output=True, text=True, check=True).stdout)
unread = set()
for op in facts["ops"]:
    for _, body, by in op["bodies"]:
        try:
            formula.mathml(body, "out")
        except formula.NotReadable:
            unread.add(op["name"])
say(len(unread) <= 2 and len(facts["ops"]) > 100, "bodies are read as formulas", " ".join(sorted(unread)))
by_name = {op["name"]: op for op in facts["ops"]}
rows = {op["name"]: dict(calls.rows(op)) for op in facts["ops"]}
for language, compiler, head, kind in (("C", "cc", "quern/ops.h", "DLTensor"), ("C++", "c++", "quern/ops.hpp", "quern::View &")):
    lines = ["void call_%d(%s) { %s }" % (k, ", ".join(kind + " " + operand["name"] for operand in op["inputs"] + op["outputs"]), rows[op["name"]][language])
             for k, op in enumerate(facts["ops"])]
    path = "calls.cc" if language == "C++" else "calls.c"
    open(path, "w").write("#include <cmath>\n" * (language == "C++") + "#include <" + head + ">\n" + "\n".join(lines) + "\n")
    done = subprocess.run([compiler, "-fsyntax-only", "-I" + root + "/include", "-I" + build + "/generated", path], capture_output=True, text=True)
    say(done.returncode == 0, "the calls of the gallery in " + language + " compile", done.stderr[:600])
sys.path.insert(0, build + "/python")
import quern
wrong = []
for name in rows:
    try:
        quern.compile(rows[name].get("expression", "x + 1"))
    except Exception as error:
        wrong.append(f"{name}: {error}")
say(not wrong, "those in expressions, too", " | ".join(wrong[:4]))
wrong = [name for name in rows if "axis" in quern.op(name).params and f"axis={quern.op(name).params['axis']}" not in rows[name]["Python"]]
say(not wrong, "and Python's say its default axis", " ".join(wrong))
derived = [op for op in facts["ops"] if any(by for _, _, by in op["bodies"])]
missing = [op["name"] for op in derived if not op["derived"]]
say(len(derived) > 30 and len(missing) <= 1, "derivatives that are not written down are derived as texts", " ".join(missing))
say(all(formula.mathml(text, name) for op in derived for name, text in op["derived"]), "and are read as formulas")
say(by_name["divide_backward"]["derived"][1] == ["grad_y", "(-(grad * ((x / y) / y)))"], "as the quotient's is")
say("<mfrac>" in formula.mathml("1 / (1 + exp(-x))", "y")[0], "a quotient is a fraction")
say("<msup>" in formula.mathml("x * x", "y")[0] and "·" in formula.mathml("grad * x", "y")[0] and "·" not in formula.mathml("a * x", "y")[0],
    "a square is a power, a name of several letters is no row of factors")
say("exp" in formula.mathml("T e = exp(x); return e + 1;", "y")[0], "a local called e is not taken for the number")

specs = open(root + "/docs/specs.md").read()
fields = set()
for name in ("front/declare_op", "kinds/reduction", "kinds/row", "kinds/scan", "kinds/adjoint"):
    table = re.search(r"SCHEMA = \{(.*?)\n?\}|M\.schema = \{(.*?)\}", open(f"{root}/gen/{name}.lua").read(), re.S | re.I)
    fields |= set(re.findall(r"(\w+) = \"", table[0]))
missing = [field for field in sorted(fields) if f"`{field}`" not in specs]
say(len(fields) > 20 and not missing, "the page of the spec language has every field", " ".join(missing))
explain = open(root + "/docs/explain.md").read()
keys = set()
for folder, _, names in os.walk(root + "/runtime"):
    for name in names:
        if name.endswith(".c") and name != "describe.c":
            code = open(os.path.join(folder, name)).read()
            for part in re.findall(r"qn_strbuf_add\((.*?)\);", code, re.S):
                for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', part):
                    keys |= set(re.findall(r"(?:^|\\n)([a-z_]+): ", literal))
missing = [key for key in sorted(keys - {"cc", "built", "jit", "cache", "clang", "cuda", "bug", "cuda_built", "turn", "rows", "slot"}) if f"`{key}`" not in explain]
say(len(keys) > 15 and not missing, "the page of explain has every key", " ".join(missing))

pages = documents.documents()
wrong = []
for path in pages:
    if path.endswith(".md"):
        body = re.sub(r"```.*?```|`[^`\n]*`", "", open(os.path.join(root, path)).read(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s#]+)", body):
            whole = os.path.normpath(os.path.join(os.path.dirname(path), target))
            made = whole.startswith("docs/reference/") or re.fullmatch(r"docs/ops/(index|" + "|".join(by_name) + r")\.md", whole)
            if "://" not in target and not made and not os.path.exists(os.path.join(root, whole)):
                wrong.append(path + ": " + target)
say(not wrong, "no link is broken", ", ".join(wrong))
shown = set(re.findall(r"^([\w/-]+)$", open(root + "/docs/index.md").read(), re.M))
lost = [page for page in pages.values() if page.endswith(".md") and page != "index.md" and page[:-3] not in shown]
say(not lost, "every page is in a table of contents", " ".join(lost))
END
"$python" check.py "$source" "$build" >lines 2>said || echo 'not ok - the checks end' >>lines
while IFS= read -r line; do
  n=$((n + 1))
  case $line in
    'ok - '*) echo "ok $n - ${line#ok - }" ;;
    *) bad=$((bad + 1)); echo "not ok $n - ${line#not ok - }"; sed 's/^/# /' said ;;
  esac
done <lines

# ---- Spelling
if ! command -v aspell >/dev/null || ! "$python" -c '' 2>/dev/null || [ -z "$(aspell dump dicts 2>/dev/null | grep '^en$')" ]; then
  skip 'the spelling of the pages' 'aspell and its English words are not installed'
else
  printf 'Quern\nspeling\n' | aspell list --lang=en --ignore-case --personal="$source/docs/site/spelling.txt" >said
  [ "$(cat said)" = speling ]; ok $? 'the speller knows the words of docs/site/spelling.txt, and finds an error'
  "$python" "$source/docs/site/words.py" >words && [ "$(wc -l <words)" -gt 1000 ] &&
    aspell list --lang=en --ignore-case --personal="$source/docs/site/spelling.txt" <words >said
  [ ! -s said ]; ok $? 'the words of all pages are known to it, or to docs/site/spelling.txt'
fi

# ---- Blocks
if ! "$python" -c 'import numpy' 2>/dev/null; then
  skip 'the blocks of pages' "$python has no NumPy"
else
  try 'the library is installed' cmake --install "$build" --prefix "$work/prefix"
  lib=$(dirname "$(find "$work/prefix" -name 'libquern.so.0')")
  PATH=$work/prefix/bin:$work/bin:$PATH PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib PYTHONPATH=$build/python QUERN_CACHE_DIR=$work/cache
  mkdir bin && printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >bin/python3 && chmod +x bin/python3
  PATH=$work/bin:$PATH
  export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH PYTHONPATH QUERN_CACHE_DIR
  unset QUERN_SOURCE_DIR QUERN_BUILD_DIR
  "$python" -c "import sys; sys.path.insert(0, '$source/docs/site'); import python_api, quern; sys.exit(', '.join(python_api.undocumented(quern)) or 0)" >said 2>&1
  ok $? 'the reference has every public name of the Python package, with its docstring'
  if [ ! -e /dev/nvidiactl ] && [ -e "$build/tests/fake/libcuda.so.1" ]; then
    QUERN_CUDA_PATH=$build/tests/fake
    export QUERN_CUDA_PATH
  fi
  # Four pages compile for half of the time: one of them each day.
  before=$n turn=0
  for page in $(grep -lE '^```(sh|c|cpp|python)$' "$source"/docs/*.md "$source"/docs/[a-z]*/*.md "$source/README.md" "$source/python/README.md"); do
    case $page in
      */framework.md | */first_hour.md | */cross.md | */howto/cmake.md)
        turn=$((turn + 1))
        in_part $turn 4 || { skip "$(basename "$page")" 'of another day'; continue; }
        ;;
    esac
    "$python" "$source/tests/support/manual/run_blocks.py" "$page" $((n + 1)) >lines
    cat lines
    n=$((n + $(grep -c '^\(not \)\{0,1\}ok ' lines))) bad=$((bad + $(grep -c '^not ok ' lines)))
  done
  [ $((n - before)) -gt 100 ]; ok $? 'these are more than 100 blocks'
fi

# ---- The site
[ -x "$build/docs/venv/bin/python" ] && [ -z "${QUERN_TEST_PYTHON-}" ] && python=$build/docs/venv/bin/python # of `bootstrap.sh docs`
if ! "$python" -c 'import matplotlib' 2>/dev/null; then
  skip 'measured errors' "$python has no Matplotlib"
else
  cat >wrong.lua <<'END'
unary "acme.less" { doc = "Declares less than its error.", dtypes = floating, body = "exp(x) * 3", ulp = { f32 = 0.5, f64 = 0.5 } }
row "acme.center" { doc = "Declares less than its error.", dtypes = floating, body = "x - mean(x)", bound = "u * abs(x) / 64" }
unary "acme.narrow" { doc = "Is not there in f64.", dtypes = { "f32" }, body = "x * 3" }
END
  (cd "$source" && lua5.4 docs/site/facts.lua "$work/wrong.lua") >facts.json
  cat >measure.py <<'END'
import json, sys
sys.path.insert(0, sys.argv[1] + "/docs/site")
import errors, quern
quern.load_spec("wrong.lua")
ops = {op["name"]: op for op in json.load(open("facts.json"))["ops"]}
wanted = {"exp": "error", "gelu_backward": "error", "softmax": "error", "cumulative_sum": "error", "divmod": "error", "where_backward": "exact",
          "cummax": "exact", "nextafter": "exact", "gcd": "none", "where": "none", "acme.less": "above", "acme.center": "above", "acme.narrow": "none"}
for name, kind in wanted.items():
    found = errors.measured(ops[name], ops)
    if found.kind != kind or bool(found.picture) != (kind == "error") or not found.words:
        print(name, found.kind, found.words)
END
  "$python" measure.py "$source" >said 2>&1; [ ! -s said ]
  ok $? 'errors of ops of each kind are measured, drawn and compared with the declared bound'
fi
if [ "${QUERN_TEST_EXHAUSTIVE-}" != 1 ]; then
  skip 'the whole site' 'in `test full`'
elif ! "$python" -c 'import sphinx, myst_parser, furo, matplotlib' 2>/dev/null; then
  skip 'the whole site' "$python has no Sphinx, MyST, Furo and Matplotlib: ./bootstrap.sh docs builds it in an environment of its own"
else
  try 'the site is built, and no link of it is broken' "$python" "$source/docs/site/make.py" --out "$work/site"
  grep 'pages of ops' said | grep -oE '[0-9]+' | paste -s | {
    read -r pages plots examples errors exact none above
    [ "$pages" -gt 300 ] && [ "$plots" = "$pages" ] && [ $((errors + exact + none)) = "$pages" ] && [ "$above" = 0 ] && [ "$examples" -gt 170 ]
  }
  ok $? 'each op has a page, a plot, and a measured error that is not above its bound'
  chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
  if [ -z "$chromium" ]; then
    skip 'how its pages look' 'there is no Chromium'
  else
    mkdir bad && printf '<div style="width: 3000px">one two three four five six seven eight</div>' >bad/wide.html && printf '<p></p>' >bad/empty.html
    "$python" "$source/tests/support/manual/look_at_pages.py" "$chromium" bad >said 2>&1
    [ $? = 1 ] && grep -q '^wide.html at 380: .* wider' said && grep -q '^empty.html at 1300: empty' said
    ok $? 'a page that is empty, or wider than the window, is seen'
    try 'no page of the site is' "$python" "$source/tests/support/manual/look_at_pages.py" "$chromium" "$work/site/html"
  fi
fi
done_testing
