"""Is the site whole, and does it load nothing from elsewhere? The end of `make docs`.

Every script, style, font and picture of every page must be a file of the site, and every link between pages must
lead to a page and, where it names one, to an anchor that is there.
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=\"([^\"]+)\"|<link\b[^>]*?href=\"([^\"]+)\""
)
LINKED = re.compile(r"<a\b[^>]*?\bhref=\"([^\"]+)\"")
ANCHOR = re.compile(r"\bid=\"([^\"]+)\"")
IN_STYLE = re.compile(r"(?:@import\s+|url\(\s*)[\"']?((?:https?:)?//[^\"')]+)")


def missing(page: Path, site: Path, anchors: dict[Path, set[str]]) -> list[str]:
    """What a page loads from elsewhere, or links and does not find."""
    text, wrong = page.read_text(), []
    loaded = [script or link for script, link in LOADED.findall(text)]
    wrong += [
        f"loads {url}" for url in loaded if urlsplit(url).scheme not in ("", "data") or url.startswith("//")
    ]
    for url in [*loaded, *LINKED.findall(text)]:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_relative_to(site) or not target.exists():
            wrong.append(f"has no {url}")
        elif parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]:
            wrong.append(f"has no anchor {url}")
    return wrong


def main(folder: str) -> None:
    """Exit with a list of what is wrong."""
    site = Path(folder).resolve()
    pages = sorted(site.rglob("*.html"))
    anchors = {page: set(ANCHOR.findall(page.read_text())) for page in pages}
    wrong = [f"{page.relative_to(site)} {what}" for page in pages for what in missing(page, site, anchors)]
    for style in site.rglob("*.css"):
        wrong += [f"{style.relative_to(site)} loads {url}" for url in IN_STYLE.findall(style.read_text())]
    if wrong or not pages:
        sys.exit("\n".join(wrong) or f"There is no page in {site}.")
    print(f"{len(pages)} pages: every link leads somewhere, and nothing is loaded from elsewhere.")


if __name__ == "__main__":
    main(*sys.argv[1:])
