# SPDX-License-Identifier: Apache-2.0
"""Builds the package for pip and its like (PEP 517, 660): owns the finding of libquern, the compiling of src/**/*.c against it,
wheels and sdists. Needs Python, its headers and a C compiler, and nothing from an index. Must not know what the package does.

The library is looked for in the prefix that QUERN_PREFIX names; if that is not set, where pkg-config knows quern, in
CMAKE_PREFIX_PATH, in the interpreter's own prefix, ~/.local, /usr/local and /usr. CC, CPPFLAGS, CFLAGS, LDFLAGS are heeded."""
import ast
import base64
import gzip
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULE = "_quern.abi3.so"
STUB = "__init__.pyi"


def stop(sentence):
    """Ends the build with one sentence instead of a traceback."""
    raise SystemExit("quern: " + sentence)


def read_project():
    """[project] of pyproject.toml. Python reads TOML since 3.11 only; strings and arrays of strings are alike in both."""
    section = re.search(r"^\[project\]\n(.*?)(?=^\[|\Z)", (HERE / "pyproject.toml").read_text("utf-8"), re.M | re.S).group(1)
    return {key: ast.literal_eval(value) for key, value in re.findall(r'^([a-z-]+) = ("[^"\n]*"|\[[^]]*\])', section, re.M)}


PROJECT = read_project()


# ---- The library ------------------------------------------------------------------------------------------------------
def ask_pkg_config(variable):
    """A folder that quern.pc names; blanks in it come escaped from some versions."""
    answer = subprocess.run(["pkg-config", "--variable=" + variable, "quern"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            universal_newlines=True, check=True).stdout.strip()
    return Path(os.path.normpath(answer if os.path.isdir(answer) else " ".join(shlex.split(answer))))


def places():
    """Where the library may be, best first: the folder of its headers, and folders for the library itself."""
    def below(prefix):
        lib = [prefix / "lib", prefix / "lib64"]
        if sysconfig.get_config_var("MULTIARCH"):
            lib.append(prefix / "lib" / sysconfig.get_config_var("MULTIARCH"))
        return prefix / "include", lib

    named = os.environ.get("QUERN_PREFIX")
    if named:
        prefix = Path(named).expanduser()
        yield below(prefix if prefix.is_absolute() else stop("QUERN_PREFIX is {}, expected an absolute path.".format(named)))
        return
    try:
        yield ask_pkg_config("includedir"), [ask_pkg_config("libdir")]
    except (OSError, subprocess.CalledProcessError):
        pass  # no pkg-config, or it does not know quern
    prefixes = [prefix for prefix in re.split("[:;]", os.environ.get("CMAKE_PREFIX_PATH", "")) if prefix]
    for prefix in prefixes + [sys.prefix, sys.base_prefix, os.path.expanduser("~/.local"), "/usr/local", "/usr"]:
        yield below(Path(prefix).absolute())


def header_version(header, parts="MAJOR|MINOR|PATCH"):
    """As quern.h has it, which is the one place of the version."""
    return ".".join(re.findall(r"^#define QUERN_VERSION_(?:" + parts + r") +(\d+)", header.read_text("utf-8"), re.M))


def read_version():
    """The version of the repository that this folder is in; of an sdist, its own. Where only this folder was copied elsewhere, as
    pip did before 21.3, that of the library."""
    header, info = HERE.parent / "include" / "quern" / "quern.h", HERE / "PKG-INFO"
    if info.exists():
        return re.search(r"^Version: (.*)$", info.read_text("utf-8"), re.M).group(1)
    headers = [header] + [include / "quern" / "quern.h" for include, _ in ([] if header.exists() else places())]
    header = next((header for header in headers if header.exists()), None)
    return header_version(header) if header else stop(
        "the C library is not found. Install it first (cmake --install build); if its prefix is not one of the usual ones, set "
        "QUERN_PREFIX to it.")


VERSION = read_version()
STEM = "{}-{}".format(PROJECT["name"], VERSION)
DIST_INFO = STEM + ".dist-info"


def find_library():
    """The folder of the headers and the shared library's file, of this package's minor version."""
    wanted = VERSION.rsplit(".", 1)[0]
    looked = {}
    for include, folders in places():
        header = include / "quern" / "quern.h"
        library = next((folder / "libquern.so" for folder in folders if (folder / "libquern.so").exists()), None)
        if not header.exists():
            looked.setdefault(include.parent, "nothing")
            continue
        version = header_version(header, "MAJOR|MINOR")
        if version != wanted:
            looked[include.parent] = "version " + version
        elif not (include / "quern" / "dlpack_exchange.h").exists():
            looked[include.parent] = "version {}, without quern/dlpack_exchange.h".format(version)
        elif not library:
            looked[include.parent] = "headers, but no lib/libquern.so"
        else:
            return include, library
    stop("the C library, version {}, is not found. Install it first (cmake --install build); if its prefix is not one of the "
         "usual ones, set QUERN_PREFIX to it. Looked in {}.".format(
             wanted, ", ".join("{} ({})".format(*place) for place in looked.items())))


# ---- Compiling --------------------------------------------------------------------------------------------------------
def find_compiler():
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        return named if shutil.which(named[0]) else stop("CC names the C compiler {}, which is not there.".format(named[0]))
    # The one that Python was built with, if it is here.
    for command in (sysconfig.get_config_var("CC") or "cc", "cc", "gcc", "clang"):
        if shutil.which(shlex.split(command)[0]):
            return shlex.split(command)
    stop("there is no C compiler. Install one (Debian: apt install gcc libc6-dev), or name it by CC.")


def check_interpreter():
    if sys.implementation.name != "cpython":
        stop("the package is for CPython, and this is {}.".format(sys.implementation.name))
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        stop("the package needs CPython's stable ABI, which free-threaded builds do not have.")


def compile_module(target):
    """src/**/*.c as one shared object, which finds libquern where it is now."""
    check_interpreter()
    include, library = find_library()
    compiler = find_compiler()
    headers = sorted({sysconfig.get_path("include"), sysconfig.get_path("platinclude")})
    if not any(os.path.exists(os.path.join(folder, "Python.h")) for folder in headers):
        stop("Python.h is not in {}. Install Python's headers (Debian: apt install python3-dev).".format(" or ".join(headers)))

    def flags(name):
        return shlex.split(os.environ.get(name, ""))

    command = [*compiler, "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE",
               *["-I" + str(folder) for folder in (HERE / "src", *headers, include)], *flags("CPPFLAGS"), *flags("CFLAGS"),
               *[str(source) for source in sorted((HERE / "src").rglob("*.c"))],
               "-o", str(target), str(library), "-Xlinker", "-rpath", "-Xlinker", str(library.parent), *flags("LDFLAGS")]
    print(" ".join(map(shlex.quote, command)), flush=True)
    if subprocess.run(command).returncode != 0:
        stop("the C compiler failed; its messages are above.")


def write_stub(parent, target):
    """Writes the types (.pyi) of the package in `parent`. Imports it in another process, since a back end may build more than once."""
    run = subprocess.run([sys.executable, "-B", str(HERE / "stubs.py"), str(parent), str(target)])
    if run.returncode != 0:
        stop("the package has been compiled, but does not load; the reason is above.")


def package_sources():
    return [HERE / "quern" / "py.typed", *sorted((HERE / "quern").glob("*.py"))]


# ---- Metadata ---------------------------------------------------------------------------------------------------------
def license_files():
    """The repository's, or what an sdist has of it; none where only this folder was copied elsewhere, as pip did before 21.3."""
    return [file for file in (HERE / "LICENSE", HERE.parent / "LICENSE") if file.exists()][:1]


def metadata_text():
    lines = ["Metadata-Version: 2.4", "Name: " + PROJECT["name"], "Version: " + VERSION]
    lines += ["{}: {}".format(field, PROJECT[key]) for field, key in (
        ("Summary", "description"), ("Requires-Python", "requires-python"), ("License-Expression", "license"))]
    lines += ["License-File: " + file.name for file in license_files()]
    lines += ["Keywords: " + ",".join(PROJECT["keywords"]), *["Classifier: " + name for name in PROJECT["classifiers"]]]
    lines += ["Description-Content-Type: text/markdown; charset=UTF-8", "", ""]
    return "\n".join(lines).encode() + (HERE / PROJECT["readme"]).read_bytes()


def wheel_tag():
    return "cp39-abi3-" + re.sub("[-.]", "_", sysconfig.get_platform())


def dist_info():
    wheel = "Wheel-Version: 1.0\nGenerator: quern {}\nRoot-Is-Purelib: false\nTag: {}\n".format(VERSION, wheel_tag())
    licenses = {"licenses/" + file.name: file.read_bytes() for file in license_files()}
    return {"METADATA": metadata_text(), "WHEEL": wheel.encode(), **licenses}


def write_metadata(folder):
    for name, content in dist_info().items():
        file = Path(folder) / DIST_INFO / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return DIST_INFO


# ---- Archives: the same bytes for the same content ----------------------------------------------------------------------
def epoch():
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800)  # 1980-01-01: a zip knows no earlier day


def write_wheel(folder, files):
    """files: name in the archive -> bytes. Adds the metadata and RECORD."""
    files = {**files, **{DIST_INFO + "/" + name: content for name, content in dist_info().items()}}
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += "{},sha256={},{}\n".format(name, digest, len(content))
    files[DIST_INFO + "/RECORD"] = (record + DIST_INFO + "/RECORD,,\n").encode()
    wheel = "{}-{}.whl".format(STEM, wheel_tag())
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(epoch())[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, content)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory(prefix="quern-wheel-") as folder:
        package = Path(folder) / "quern"
        package.mkdir()
        for source in package_sources():
            shutil.copyfile(source, package / source.name)
        compile_module(package / MODULE)
        write_stub(folder, package / STUB)
        return write_wheel(wheel_directory, {"quern/" + file.name: file.read_bytes() for file in sorted(package.iterdir())})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The compiled module is put into the source folder, and that folder on the path."""
    compile_module(HERE / "quern" / MODULE)
    write_stub(HERE, HERE / "quern" / STUB)
    return write_wheel(wheel_directory, {"_quern_editable.pth": (str(HERE) + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    sources = [HERE / name for name in ("pyproject.toml", PROJECT["readme"], "build_backend.py", "stubs.py", "stubs.pyi")]
    sources += package_sources() + sorted((HERE / "src").rglob("*.[ch]"))
    files = {"PKG-INFO": metadata_text(), **{file.name: file.read_bytes() for file in license_files()}}
    files.update({source.relative_to(HERE).as_posix(): source.read_bytes() for source in sources})
    name = STEM + ".tar.gz"
    with open(os.path.join(sdist_directory, name), "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch()) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, content in files.items():
                entry = tarfile.TarInfo(STEM + "/" + path)
                entry.size, entry.mtime, entry.mode = len(content), epoch(), 0o644
                archive.addfile(entry, io.BytesIO(content))
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return write_metadata(metadata_directory)


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
