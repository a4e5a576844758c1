"""A section of a page that is otherwise written by hand."""

from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    """Return the lines before and after the section of a grid; a reader does not see them."""
    return f"<!-- results/{name} -->", f"<!-- end of results/{name} -->"


def replace_section(page: Path, name: str, section: str) -> list[Path]:
    """Replace the section of a page; return the page, or nothing if the section is empty."""
    if not section:
        return []
    begin, end = marks(name)
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page} must have the lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{section}\n{end}{after}", encoding="utf-8")
    return [page]
