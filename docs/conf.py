"""The documentation site: `make docs` builds it from the pages that GitHub shows."""

import re
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

from lossforge import __version__, plot
from lossforge.catalog import names

DOCS = Path(__file__).parent
project = "lossforge"
author = "lossforge contributors"
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "_extra"]
highlight_language = "none"  # what has no language is output or a formula

html_theme = "furo"
html_title = "lossforge"
html_show_copyright = False
html_math_renderer = "mathml"  # needs neither a script nor a network
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2b62b3", "color-brand-content": "#2b62b3"},
    "dark_css_variables": {"color-brand-primary": "#7fb0f5", "color-brand-content": "#7fb0f5"},
}
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]

myst_heading_anchors = 4
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_inherit_docstrings = False
napoleon_use_ivar = True
napoleon_use_rtype = False

ABOUT_PICTURES = (
    "The pictures show each loss with its defaults at ten classes, against the probability of the "
    "label, the other nine being alike: the value, and the pull on the label's logit, minus the "
    "derivative, beside those of CE and MAE. What pulls most at small probabilities learns fast, "
    "from wrong labels too. `forward` and `backward` have symmetric noise of 0.2; on this line of "
    "predictions clipped logits (CE+LC, SR) are constant, NL learns what a sample is not, and both "
    "views of GJS are the same. `lossforge plot` draws these and more."
)


def file_name(name: str) -> str:
    """Name the file of a loss's picture, with + in words."""
    return f"{name.lower().replace('+', '_plus_')}.svg"


def draw_losses(app: Sphinx) -> None:
    """Draw every loss of the catalogue with its defaults."""
    folder = DOCS / "_plots"
    folder.mkdir(exist_ok=True)
    for name in names():
        drawn = plot.loss(plot.example(name, 10), name=name, theme="clear")
        plot.save(drawn, folder / file_name(name))


def write_explorer() -> None:
    """Write the explorer where the site takes it from; the folder must be there from the start."""
    folder = DOCS / "_extra"
    folder.mkdir(exist_ok=True)
    (folder / "explorer.html").write_text(plot.explorer(), encoding="utf-8")


def as_sphinx_reads_it(app: Sphinx, docname: str, content: list[str]) -> None:
    """Make of a page as GitHub needs it one of the site; show the pictures of the losses."""
    content[0] = re.sub(r'<a id="([\w-]+)"></a>', r"(\1)=", content[0])
    pages = r"\]\((?:\.\./)+(CONTRIBUTING|CHANGELOG)\.md"
    content[0] = re.sub(pages, lambda link: f"](/{link[1].lower()}.md", content[0])
    # the page is made with the site, and is not there on GitHub
    link = '<p><a href="explorer.html"><b>Open the explorer</b></a></p>'
    content[0] = content[0].replace("<!-- explorer -->", link)
    if docname != "catalog":
        return

    def shown(heading: re.Match[str]) -> str:
        known = heading[1] in names()
        file = file_name(heading[1])
        return heading[0] + f"\n\n![{heading[1]} against p](_plots/{file})" * known

    content[0] = re.sub(r"^## (\S+).*$", shown, content[0], flags=re.MULTILINE)
    content[0] = content[0].replace("\n(", f"\n{ABOUT_PICTURES}\n\n(", 1)


def absolute_values(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """In docstrings a bar is a bar, and no substitution."""
    lines[:] = [re.sub(r"(?<![\\`])\|", r"\\|", line) for line in lines]


def visit_math(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Formulas as MathML."""
    block = isinstance(node, nodes.math_block)
    text = node.astext()
    if block and ("&" in text or r"\\" in text):
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    self.body.append(tex2mathml(text, as_block=block))
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect what this site does beside the usual."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    write_explorer()
    app.connect("builder-inited", draw_losses)
    app.connect("source-read", as_sphinx_reads_it)
    app.connect("autodoc-process-docstring", absolute_values)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
