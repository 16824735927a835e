"""Build the image that the Dockerfile describes without a container engine, as root.

    Dockerfile ──> stages ──> for each instruction a layer, below the cache folder
    Debian's packages ──> the bottom layer, in place of python:3.13-slim

A RUN sees the layers below it as one overlay file system in a mount namespace of its own; what it
writes is its layer. A layer is named by all that it depends on, and is built once.

`python -m tools.image.build` prints the layers, the environment and the entry point as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import fnmatch
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tools.image import debian
from tools.image.dockerfile import DockerfileError, Instruction, Stage, expand, parse, settings

ROOT = Path(__file__).resolve().parents[2]

#: Where this machine gets packages of Python: the only variables that reach a RUN from outside.
_PASSED_ON = (
    *("PIP_CERT", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_TRUSTED_HOST"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
#: And the only files.
_SHARED = ("/etc/hosts", "/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs")
#: Other checkouts build too, and containers run from layers.
_KEPT_SECONDS = 24 * 3600
#: Arguments: the root, options of the overlay, and the command.
_MOUNTED = """
set -eu
root=$1 options=$2
shift 2
mount -t overlay overlay -o "$options" "$root"
if [ -e "$root/proc" ]; then
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    for each in $SHARED; do
        if [ -e "$each" ] && [ -e "$root$each" ]; then
            mount --bind "$each" "$root$each"
        fi
    done
fi
exec "$@"
"""


#: Fills a layer, given an empty folder to work in.
Maker = Callable[[Path, Path], None]


class BuildError(Exception):
    """Why there is no image: one line for the caller of the script."""


@dataclass
class Image:
    """What an instruction builds on, and what the last one gives."""

    #: bottom first
    layers: list[Path]
    #: names the layers and all that made them
    key: str
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": debian.PATH})
    arguments: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0:0"
    entry_point: list[str] = field(default_factory=list)

    def lower(self) -> str:
        """Return the layers as an overlay file system takes them: top first."""
        return ":".join(map(str, reversed(self.layers)))


def cache_folder() -> Path:
    """Return the folder that holds the layers, whether it is there yet or not."""
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = os.environ.get("KUBESCHED_CACHE") or f"{shared}/kubesched"
    return Path(root).expanduser().absolute() / "image"


def say(text: str) -> None:
    """Write one progress line."""
    print(f"image: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def exclusive(cache: Path) -> Iterator[None]:
    """Let one run at a time build layers."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class Builder:
    """Builds the stages of one Dockerfile."""

    def __init__(self, context: Path, cache: Path) -> None:
        self._context = context
        self._layers = cache / "layers"
        self._layers.mkdir(exist_ok=True)
        self._ignored = Ignored((context / ".dockerignore").read_text())
        self._stages: dict[str, Image] = {}

    def build(self, stages: list[Stage], arguments: dict[str, str]) -> Image:
        """Build all stages; return the last."""
        for stage in stages:
            image = self._base(stage.base)
            for instruction in stage.instructions:
                self._follow(image, instruction, arguments)
            self._stages[stage.name] = image
        return image

    def forget_others(self) -> None:
        """Delete layers that no build had a use for since yesterday."""
        for each in self._layers.iterdir():
            if each.stat().st_mtime < time.time() - _KEPT_SECONDS:
                shutil.rmtree(each)

    def _base(self, name: str) -> Image:
        version = name.partition(":")[2].partition("-")[0]
        if version != debian.PYTHON:
            raise BuildError(f"{name}: the stand-in has Python {debian.PYTHON} ({debian.SUITE})")
        key = _digest(Path(debian.__file__).read_text())
        layer = self._layer(key, f"base of Debian's packages for {name}", debian.make)
        return Image([layer], key)

    def _layer(self, key: str, what: str, make: Maker) -> Path:
        """Return the layer of a key; `make(layer, scratch)` fills it if it is not there."""
        folder = self._layers / key[:16]
        if folder.exists():
            os.utime(folder)
        else:
            say(what)
            with tempfile.TemporaryDirectory(dir=self._layers, prefix="part-") as scratch:
                part = Path(scratch) / "whole"
                part.mkdir()
                (Path(scratch) / "scratch").mkdir()
                make(part / "layer", Path(scratch) / "scratch")
                part.rename(folder)
        return folder / "layer"

    def _add(self, image: Image, what: str, key: str, make: Maker) -> None:
        image.key = _digest(image.key, what, image.folder, json.dumps(image.environment), key)
        image.layers = [*image.layers, self._layer(image.key, what, make)]

    def _follow(self, image: Image, instruction: Instruction, given: dict[str, str]) -> None:
        argument = instruction.argument
        known = {**image.arguments, **image.environment}
        match instruction.word:
            case "ENV":
                image.environment.update(settings(argument, known))
            case "LABEL":
                image.labels.update(settings(argument, known))
            case "ARG":
                name, _, default = argument.partition("=")
                image.arguments[name] = given.get(name, default)
            case "WORKDIR":
                image.folder = str(PurePosixPath(image.folder) / expand(argument, known))
            case "USER":
                image.user = argument
            case "ENTRYPOINT":
                image.entry_point = json.loads(argument)
            case "COPY":
                self._copy(image, argument)
            case "RUN":
                self._run(image, argument)
            case "EXPOSE":
                pass  # a note to readers
            case other:
                raise DockerfileError(f"{other}: not an instruction that this builder knows")

    def _copy(self, image: Image, argument: str) -> None:
        *sources, target = shlex.split(argument)
        into = str(PurePosixPath(image.folder) / target)
        what = f"COPY {argument}"
        if sources[0].startswith("--from="):
            other = self._stages[sources.pop(0).partition("=")[2]]

            def copy(layer: Path, scratch: Path) -> None:
                to = layer / into.lstrip("/")
                to.mkdir(parents=True)
                for source in sources:
                    command = ("cp", "-a", f"{scratch}/root/{source.strip('/')}/.", str(to))
                    self._mounted(scratch, f"lowerdir={other.lower()}", *command)

            self._add(image, what, other.key, copy)
            return
        files = sorted((target, file) for source in sources for target, file in self._files(source))
        content = _digest(*(f"{name} {_digest_of(file)}" for name, file in files))

        def copy_files(layer: Path, _: Path) -> None:
            layer.mkdir()
            for name, file in files:
                to = layer / into.lstrip("/") / name
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)

        self._add(image, what, content, copy_files)

    def _files(self, source: str) -> Iterator[tuple[str, Path]]:
        """The files that a source of COPY stands for, by their path below its target."""
        path = self._context / source
        if path.is_file():
            yield path.name, path
            return
        for file in path.rglob("*"):
            if file.is_file() and not self._ignored(file.relative_to(self._context)):
                yield file.relative_to(path).as_posix(), file

    def _run(self, image: Image, argument: str) -> None:
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment = {**passed, **image.arguments, **image.environment}

        def execute(layer: Path, scratch: Path) -> None:
            layer.mkdir()
            (scratch / "work").mkdir()
            options = f"lowerdir={image.lower()},upperdir={layer},workdir={scratch}/work"
            pairs = (f"{name}={value}" for name, value in environment.items())
            shell = f"mkdir -p {image.folder} && cd {image.folder} && {argument}"
            command = ("env", "-i", *pairs, "chroot", f"{scratch}/root", "/bin/sh", "-c", shell)
            self._mounted(scratch, options, *command)

        self._add(image, f"RUN {argument}", json.dumps(image.arguments), execute)

    def _mounted(self, scratch: Path, options: str, *command: str) -> None:
        """Run a command in a mount namespace that has an overlay at scratch/root."""
        root = scratch / "root"
        root.mkdir(exist_ok=True)
        namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
        done = subprocess.run(
            [*namespaces, "sh", "-c", _MOUNTED, "sh", root, options, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "SHARED": " ".join(_SHARED)},
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-5:]
            raise BuildError(f"{command[-1][:200]} failed: {' / '.join(said)}")


class Ignored:
    """What .dockerignore keeps from the builder: `*` first, then what is let in, then names."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()]
        self._lines = [line.rstrip("/") for line in lines if line and not line.startswith("#")]

    def __call__(self, path: Path) -> bool:
        """Whether a file, given by its path below the context, is left out."""
        ignored = False
        for line in self._lines:
            pattern = line.removeprefix("!")
            if any(_matches(each, pattern) for each in (path, *path.parents)):
                ignored = not line.startswith("!")
        return ignored


def _matches(path: Path, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(path.name, pattern[3:])
    if pattern == "*":
        return len(path.parts) == 1
    return path.as_posix() == pattern


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _digest_of(file: Path) -> str:
    mode = file.stat().st_mode & 0o111
    return f"{mode:o} {hashlib.sha256(file.read_bytes()).hexdigest()}"


def build(context: Path = ROOT, cache: Path | None = None, **arguments: str) -> Image:
    """Build the image of a folder with a Dockerfile; raises BuildError."""
    if os.geteuid() != 0 or sys.platform != "linux":
        raise BuildError("layers are mounted, which needs Linux and root")
    cache = cache or cache_folder()
    try:
        stages = parse((context / "Dockerfile").read_text())
        with exclusive(cache):
            builder = Builder(context, cache)
            image = builder.build(stages, arguments)
            builder.forget_others()
    except (debian.BaseError, DockerfileError, subprocess.CalledProcessError) as error:
        raise BuildError(str(error)) from error
    return image


def main() -> int:
    """Run the command line."""
    argparse.ArgumentParser(description="Build the image without a container engine.").parse_args()
    try:
        image = build()
    except (BuildError, OSError) as error:
        say(str(error))
        return 1
    print(json.dumps(dataclasses.asdict(image), indent=2, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
