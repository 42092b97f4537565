"""JUnit XML, as CI systems read it: one suite, a case each, failures with their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from surrecall import _render
from surrecall._errors import UsageError

# what XML 1.0 has no way to write
_FOREIGN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One case; `failure` is its first line, `details` what stands below it, and None of the first means that it passed."""

    group: str
    name: str
    failure: str | None = None
    details: str = ""


def write(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write the cases to a file. Raises UsageError when it can't be written."""
    failed = sum(case.failure is not None for case in cases)
    root = ElementTree.Element("testsuites", name=suite, tests=str(len(cases)), failures=str(failed), errors="0")
    one = ElementTree.SubElement(
        root, "testsuite", name=suite, tests=str(len(cases)), failures=str(failed), errors="0", skipped="0"
    )
    for case in cases:
        element = ElementTree.SubElement(one, "testcase", classname=_text(case.group), name=_text(case.name))
        if case.failure is not None:
            failure = ElementTree.SubElement(element, "failure", message=_text(case.failure), type="surrecall")
            failure.text = _text(f"{case.failure}\n{case.details}".strip())
    ElementTree.indent(root)
    try:
        path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", "name a file in a folder that is there") from error


def _text(text: str) -> str:
    return _FOREIGN.sub(" ", _render.printable(text))
