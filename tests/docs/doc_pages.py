"""The pages that people read: their code, commands, links and ids.

A comment before a block of code speaks to the tests: `<!-- not run: reason -->` leaves the block
out, `<!-- given: code -->` is what the reader has at this point, and `<!-- needs: file -->` a file
of LOSSFORGE_DATA that the reader has in the working folder; without it the block is left out.
"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
SHELL = ("", "bash", "console", "sh")
DATA = Path(os.environ.get("LOSSFORGE_DATA", "none"))
NOTE = re.compile(r"<!-- (not run|given|needs): (.*?) -->", re.DOTALL)
KINDS = ("not run", "needs")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")


def pages() -> list[Path]:
    """README, the other pages of the root, and all of docs/."""
    root = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")]
    return [*root, *sorted((ROOT / "docs").rglob("*.md"))]


def name(page: Path) -> str:
    """A page's path below the root."""
    return page.relative_to(ROOT).as_posix()


def tokens(page: Path) -> list[Token]:
    """A page as Markdown sees it."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Block:
    """A block of code, or what a comment says the reader has."""

    line: int  # of the opening fence, from 0
    language: str
    code: str
    skipped: str = ""  # why it is not run
    needs: str = ""  # a file in the folder of data

    @property
    def runs(self) -> bool:
        """Whether it is run here."""
        return not self.skipped and (not self.needs or (DATA / self.needs).is_file())

    @property
    def prompted(self) -> bool:
        """Whether it shows commands with their output."""
        return self.language in SHELL and self.code.startswith("$ ")

    def commands(self) -> list[list[str]]:
        """The commands of a shell block, cut into words."""
        if self.language not in SHELL:
            return []
        lines = self.code.replace("\\\n", " ").splitlines()
        if self.prompted:
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        words = [shlex.split(line, comments=True) for line in lines if _is_command(line)]
        return [part for line in words for part in _parts(line)]


def _is_command(line: str) -> bool:
    return re.match(r"(lossforge|make|torchrun|python|pip) ", line) is not None


def _parts(words: list[str]) -> Iterator[list[str]]:
    while "&&" in words:
        yield words[: words.index("&&")]
        words = words[words.index("&&") + 1 :]
    yield words


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    found, note = [], None
    for token in tokens(page):
        if token.type == "html_block":
            note = NOTE.search(token.content)
            if note and note[1] == "given":
                found.append(Block(token.map[0], "given", note[2]))
        elif token.type == "fence":
            skipped, needs = ((note and note[1] == kind and note[2]) or "" for kind in KINDS)
            found.append(Block(token.map[0], token.info.strip(), token.content, skipped, needs))
            note = None
        elif token.type == "paragraph_open":
            note = None
    return found


def script(page: Path) -> tuple[str, dict[int, str]]:
    """A page as a script, each line in its place, and the output that it shows by line.

    What the reader types at a `$` is run, and a TOML block that begins with `# name.toml` is
    written to that file.
    """
    lines = [""] * (len(page.read_text(encoding="utf-8").splitlines()) + 1)
    lines[0] = "from page_run import mark, shell, write"
    shown: dict[int, str] = {}
    last, left_out = None, False
    for block in blocks(page):
        at = block.line
        left_out = not block.runs or (left_out and block.language == "text")  # and its output
        if left_out:
            continue
        if block.language == "text":
            if last is None:
                raise ValueError(f"{name(page)}:{at + 1} shows output of nothing that is run")
            shown[last] = block.code
        elif block.language in ("python", "given"):
            lines[at] = f"mark({at})" if block.language == "python" else ""
            start = at + (block.language == "python")
            code = block.code.splitlines()
            lines[start : start + len(code)] = code
        elif file := re.match(r"# (\S+\.toml)\n", block.code):
            lines[at] = f"write({file[1]!r}, {block.code!r})"
        elif block.prompted:
            for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                at += 1
                lines[at] = f"mark({at}); shell({command!r})"
                shown[at] = output
                at += output.count("\n")
        last = block.line if block.language == "python" else None
    return "\n".join(lines), shown


def unlike(shown: str, real: str) -> str | None:
    """How output differs from what a page shows; None if it does not.

    Space is space, `...` is anything, and a number with a decimal point may be off by a tenth,
    behind ± by any amount: training ends a little elsewhere on another machine.
    """
    shown = re.sub(r"± [\d.]+", "± ...", shown)
    parts = [_pattern(word) for word in shown.split()]
    match = re.fullmatch(r"\s*" + r"\s+".join(parts) + r"\s*", real, re.DOTALL)
    if match is None:
        return f"shown:\n{shown}\nreal:\n{real}"
    numbers = [number for word in shown.split() for number in NUMBER.findall(word)]
    pairs = zip(numbers, match.groups(), strict=True)
    far = [f"{a} is {b}" for a, b in pairs if not _near(a, b)]
    return "; ".join(far) or None


def _pattern(word: str) -> str:
    pieces = re.split(r"(\.\.\.)", word)
    return "".join(".*?" if piece == "..." else _numbers(piece) for piece in pieces)


def _numbers(text: str) -> str:
    found = NUMBER.findall(text)
    rest = NUMBER.split(text)
    number = r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
    return "".join(re.escape(part) + number * (i < len(found)) for i, part in enumerate(rest))


def _near(shown: str, real: str) -> bool:
    if "." not in shown:
        return shown == real
    return abs(float(shown) - float(real)) <= 0.1 * abs(float(shown))


def links(page: Path) -> Iterator[tuple[int, str]]:
    """The line and target of every link and picture of a page, those in HTML too."""
    for token in tokens(page):
        for child in [token, *(token.children or [])]:
            line = (token.map or [0])[0] + 1
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield line, str(target)
            if child.type in ("html_block", "html_inline"):
                yield from (
                    (line, found) for found in re.findall(r'(?:href|src)="([^"]+)"', child.content)
                )


@lru_cache
def ids(page: Path) -> set[str]:
    """What a link to a part of this page may name: headings as GitHub names them, and HTML ids."""
    found: set[str] = set(re.findall(r'<a id="([^"]+)"', page.read_text(encoding="utf-8")))
    counts: dict[str, int] = {}
    listed = tokens(page)
    for heading, text in pairwise(listed):
        if heading.type == "heading_open":
            words = "".join(child.content for child in text.children or [])
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            counts[slug] = counts.get(slug, -1) + 1
            found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
    return found
