"""Lets mkdocs make pages of README.md and CONTRIBUTING.md, which lie outside of docs/, and work without a network."""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
SHIM = "assets/iframe_worker.js"
SHIM_URL = "https://unpkg.com/iframe-worker/shim"


def on_files(files: Files, config: Any) -> Files:
    for source, page in PAGES.items():
        text = site_text((ROOT / source).read_text())
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, SHIM, abs_src_path=str(ROOT / "third_party" / "iframe_worker" / "shim.js")))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Let a page on disk find the script by which it searches in the site itself, not on the network."""
    return output.replace(SHIM_URL, "../" * page.url.count("/") + SHIM)


def on_post_template(output: str, template_name: str, config: Any) -> str:
    return output.replace(SHIM_URL, "/" + SHIM)


def site_text(text: str) -> str:
    """The text of a page with links that work in the site.

    A link into docs/ becomes a link between pages. A link to another file of the repository becomes its text alone.
    """
    text = re.sub(r"\]\(docs/", "](", text)
    text = re.sub(r'(src|srcset)="docs/', r'\1="', text)
    for source, page in PAGES.items():
        text = text.replace(f"]({source}", f"]({page}")
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)", _link, text)


def _link(match: re.Match[str]) -> str:
    is_page = match[2] in PAGES.values() or (ROOT / "docs" / match[2]).exists()
    return match[0] if is_page else match[1]
