"""The documentation site, by Sphinx: `make docs` builds it, and nothing in it is loaded from elsewhere.

Sphinx with Furo and MyST-NB is what readers of zuko know; the pages stay plain Markdown, and the tutorials are
notebooks in Markdown that are executed at every build: a cache would show what older code printed.
"""

import logging
import os
import re

from docutils import nodes
from jupyter_client.manager import KernelManager
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import vma

project = "vma"
author = copyright = "The VMA authors"
version = release = vma.__version__

extensions = [
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "jupyter_execute"]
source_suffix = {".md": "myst-nb"}

myst_enable_extensions = ["dollarmath", "colon_fence", "html_image"]
myst_heading_anchors = 4
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for notebooks: threads that wait for each other take minutes
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_output_stderr = "remove-warn"  # what a notebook complains about is mended, not shown
logging.getLogger("traitlets").setLevel(logging.WARNING)  # which kernel runs is no news
KernelManager.transport_encryption.default_value = "auto"  # else each kernel warns that it is not

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
add_module_names = False
viewcode_follow_imported_members = False  # else sources link back to names under which nothing is documented
default_role = "literal"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"vma {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"


def math_as_mathml(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """A formula as MathML, which browsers draw by themselves: no script, and nothing to fetch."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    self.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def with_all_notes(app: Sphinx, page: str, source: list[str]) -> None:
    """The index of the lab notes lists its files for the sidebar too; on other sites it stays plain Markdown."""
    if page == "lab-notes/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n[a-z]*\n```\n"


def as_plain_text(app: Sphinx, what: str, name: str, of: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with formulas: |M| and x* mean what they say, and `code` is code."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = line.split("`")
            parts[::2] = [re.sub(r"([|*_\\])", r"\\\1", text) for text in parts[::2]]
            lines[number] = "`".join(parts)


def setup(app: Sphinx) -> None:
    """Formulas without JavaScript, the lab notes, and docstrings as they are written."""
    app.connect("source-read", with_all_notes)
    app.connect("autodoc-process-docstring", as_plain_text, priority=400)  # before napoleon
    app.add_html_math_renderer("mathml", (math_as_mathml, None), (math_as_mathml, None))
