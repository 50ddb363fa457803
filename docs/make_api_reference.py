#!/usr/bin/env python3
"""Writes docs/api/cpp.md and docs/api/c.md from the comments of include/jitconv/*.h.

    docs/make_api_reference.py           says whether the pages are current; exit code 1 if not (a ctest entry)
    docs/make_api_reference.py --write   writes them

Reads the subset of C++ that the public headers use: namespaces, structs, classes, enums, functions, typedefs, macros,
with /// or /** */ before a declaration and ///< or /**< */ behind it. Python 3.9, standard library only.
"""
from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADERS = ROOT / "include" / "jitconv"
NOTICE = "<!-- Generated from include/jitconv: edit the headers, then run docs/make_api_reference.py --write. -->"
EXPORTS = re.compile(r"\bJITCONV_(?:C_)?API\s+")
DOC, TRAILING = "///", "///<"


@dataclasses.dataclass
class Declaration:
    """One declaration of a header, with the text of its comments."""
    doc: list[str]
    code: list[str]
    members: list[Declaration] = dataclasses.field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.code)

    @property
    def aggregate(self) -> re.Match[str] | None:
        return re.match(r"(?:typedef )?(enum|struct|class)(?: class)? (\w+)[^;]*{", EXPORTS.sub("", self.text))

    @property
    def is_function(self) -> bool:
        return "(" in self.text.split("=")[0] and not self.aggregate


def with_line_comments(text: str) -> str:
    """Turns /** ... */ into /// lines, so that C and C++ read alike."""

    def replaced(match: re.Match[str]) -> str:
        mark = TRAILING if match[2] else DOC
        indent = re.sub(r"\S", " ", match[1])
        lines = [re.sub(r"^\s*\*? ?", "", line).rstrip() if i else line.strip()
                 for i, line in enumerate(match[3].rstrip().split("\n"))]
        return match[1] + ("\n" + indent).join(f"{mark} {line}".rstrip() for line in lines)

    return re.sub(r"(?m)^([^\n]*?)/\*\*(<?)(.*?)\*/", replaced, text, flags=re.DOTALL)


def depth_change(code: str, opening: str, closing: str) -> int:
    return code.count(opening) - code.count(closing)


def is_complete(code: list[str]) -> bool:
    """Whether the lines are a whole declaration; the body of an inline function ends one, too."""
    text = "\n".join(code)
    if depth_change(text, "(", ")") or depth_change(text, "{", "}"):
        return False
    return text.endswith(";") or (text.endswith("}") and "(" in text)


def split_trailing(line: str) -> tuple[str, str | None]:
    """Code and the ///< comment behind it; comments that are not documentation are dropped."""
    code, mark, comment = line.partition(TRAILING)
    if not mark:
        return re.sub(r"\s*//(?!/).*$", "", line).rstrip(), None
    return code.rstrip(), comment.strip()


def parse(lines: list[str]) -> list[Declaration]:
    """The declarations of a namespace's or an aggregate's body. Enumerators are read by enumerators()."""
    result: list[Declaration] = []
    doc: list[str] = []
    code: list[str] = []
    body: list[str] = []  # the lines of the declaration with their comments
    for line in lines:
        stripped = line.strip()
        if not code:
            if stripped.startswith(TRAILING):
                if result:
                    result[-1].doc.append(stripped[len(TRAILING):].strip())
                continue
            if stripped.startswith(DOC):
                doc.append(line.strip()[len(DOC):])
                continue
            if stripped.startswith("#define") and doc:
                result.append(Declaration(doc, [stripped]))
                doc = []
                continue
            if not stripped or re.match(r"//|#|/\*|(public|private|protected):", stripped):
                doc = []
                if stripped.startswith("private:"):
                    return result
                continue
        text, trailing = split_trailing(line)
        body.append(line)
        if stripped.startswith(DOC) or not text.strip():
            continue
        code.append(text)
        if not is_complete(code):
            continue
        declaration = Declaration(doc + ([trailing] if trailing else []), dedented(code))
        if declaration.aggregate:
            inner = body[next(i for i, one in enumerate(body) if "{" in one):]
            declaration.members = members_of(declaration, inner)
        result.append(declaration)
        doc, code, body = [], [], []
    return result


def dedented(code: list[str]) -> list[str]:
    indent = len(code[0]) - len(code[0].lstrip())
    return [line[indent:] if not line[:indent].strip() else line.lstrip() for line in code]


def members_of(declaration: Declaration, body: list[str]) -> list[Declaration]:
    kind = declaration.aggregate[1] if declaration.aggregate else ""
    if kind == "enum":
        return enumerators(body)
    return parse(body[1:-1])


def enumerators(body: list[str]) -> list[Declaration]:
    result: list[Declaration] = []
    inner = re.sub(r"^[^{]*{|}[^}]*$", "", "\n".join(body), flags=re.DOTALL)
    for line in inner.split("\n"):
        text, trailing = split_trailing(line)
        names = [name.strip() for name in text.split(",") if name.strip()]
        result += [Declaration([trailing] if trailing and name == names[-1] else [], [name]) for name in names]
    return result


def namespace_body(text: str) -> list[str]:
    """What stands in namespace jitconv, or in extern "C", less namespaces for implementation."""
    match = re.search(r"namespace jitconv {\n(.*)\n}  // namespace jitconv", text, re.DOTALL)
    if match is None:
        match = re.search(r"#ifdef __cplusplus\nextern \"C\" {\n#endif\n(.*)#ifdef __cplusplus", text, re.DOTALL)
    if match is None:
        raise ValueError("no namespace jitconv and no extern \"C\"")
    return re.sub(r"namespace detail {\n.*?\n}(?:  // namespace detail)?\n", "", match[1], flags=re.DOTALL).split("\n")


def head_comment(text: str) -> str:
    """The comment a header opens with."""
    block = re.match(r"/\*\n(.*?)\*/", text, re.DOTALL)
    lines = block[1].split("\n") if block else re.match(r"(?://.*\n)+", text)[0].split("\n")  # type: ignore[index]
    return prose([re.sub(r"^\s*(//|\*)", "", line) for line in lines])


def escaped(text: str) -> str:
    """Plain text for Markdown; `code` stays as it is, pages of docs/ become links."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        part = parts[i].replace("*", "\\*").replace("<", "&lt;")
        parts[i] = re.sub(r"docs/([a-z_]+\.md)", r"[\1](../\1)", part)
    return "".join(parts)


def prose(lines: list[str]) -> str:
    """Paragraphs of a comment; lines that are indented further are formulas and stay as they are."""
    out: list[str] = []
    formula = False
    for line in lines:
        text = line.removeprefix(" ")
        if text.startswith("  ") != formula:
            formula = not formula
            out += ["```"] if not formula else ["", "```"]
            if not formula:
                out.append("")
        out.append(text.rstrip() if formula else escaped(text.strip()))
    if formula:
        out.append("```")
    return "\n".join(out).strip()


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def one_line(declaration: Declaration) -> str:
    return " ".join(escaped(line.strip()) for line in declaration.doc)


def summary(declaration: Declaration) -> str:
    """The first sentence of the comment."""
    sentence = re.match(r"(.*?)(?:[.:;](?: |$)|$)", one_line(declaration))
    return sentence[1] if sentence else ""


def signature(code: list[str]) -> str:
    """The declaration without the export macro and without the bodies of inline functions."""
    text = EXPORTS.sub("", "\n".join(code))
    margin = "\n" + " " * (text.find("(") + 1)
    text = re.sub(r"\n\s*", margin, text)
    text = re.sub(r"\)((?: const)?(?: noexcept)?)\s*(?::[^;{]*)?{.*?}$", r")\1;", text, flags=re.DOTALL | re.MULTILINE)
    return text


def undocumented(declarations: list[Declaration]) -> list[str]:
    """Names of types and functions without a comment; constructors need none."""
    names: list[str] = []
    for one in declarations:
        if not one.doc:
            names.append(name_of(one))
        if one.aggregate:
            own = one.aggregate[2]
            names += [f"{own}::{name_of(member)}" for member in shown_members(one)
                      if member.is_function and not member.doc and name_of(member) != f"{own}()"]
    return names


def field_rows(fields: list[Declaration]) -> list[str]:
    rows = ["| member | meaning |", "|---|---|"]
    rows += [f"| `{cell(' '.join(field.text.split()).rstrip(';'))}` | {cell(one_line(field))} |" for field in fields]
    return rows


def shown_members(declaration: Declaration) -> list[Declaration]:
    """Without comparison and constructors of plain values, which are what a reader expects, and without detail::."""
    hidden = re.compile(r"operator(==|<=>)|^constexpr \w+\(|\bdetail::")
    return [member for member in declaration.members if not hidden.search(member.text)]


def name_of(declaration: Declaration) -> str:
    aggregate = declaration.aggregate
    if aggregate:
        return f"{aggregate[1]} {aggregate[2]}"
    other = re.match(r"#define (\w+)|typedef \w+ \(\*(\w+)\)|typedef .*?(\w+);", declaration.text, re.DOTALL)
    if other:
        return other[1] or other[2] or other[3]
    names = re.findall(r"(\w+)\s*\(", signature(declaration.code))
    return f"{names[0]}()" if names else declaration.text


def section(declaration: Declaration) -> list[str]:
    """Markdown of one declaration of the namespace, without its heading."""
    out = [""]
    if declaration.aggregate is None:
        return out + ["```cpp", signature(declaration.code), "```", "", prose(declaration.doc)]
    head = EXPORTS.sub("", declaration.text.split("{")[0]).strip()
    if ":" in head:
        out += ["```cpp", head, "```", ""]
    if declaration.doc:
        out += [prose(declaration.doc), ""]
    shown = shown_members(declaration)
    fields = [member for member in shown if not member.is_function]
    if fields:
        out += [*field_rows(fields), ""]
    for function in (member for member in shown if member.is_function):
        out += ["```cpp", signature(function.code), "```", ""]
        if function.doc:
            out += [prose(function.doc), ""]
    return out[:-1]


class Anchors:
    """The anchors that GitHub gives to the headings of a page."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def of(self, heading: str) -> str:
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = self.used.get(slug, 0)
        self.used[slug] = count + 1
        return f"{slug}-{count}" if count else slug


def read(header: str) -> tuple[str, list[Declaration]]:
    text = (HEADERS / header).read_text(encoding="utf-8")
    return head_comment(text), parse(namespace_body(with_line_comments(text)))


def page(title: str, introduction: str, headers: list[str]) -> str:
    anchors = Anchors()
    anchors.of(title)
    contents: list[str] = []
    body: list[str] = []
    problems: list[str] = []
    for header in headers:
        comment, declarations = read(header)
        problems += [f"{header}: {name} has no comment" for name in undocumented(declarations)]
        links: list[str] = []
        body += ["", f"## jitconv/{header}", "", comment]
        by_name: dict[str, list[Declaration]] = {}  # overloads share a heading
        for declaration in declarations:
            by_name.setdefault(name_of(declaration), []).append(declaration)
        header_anchor = anchors.of(f"jitconv/{header}")
        for name, overloads in by_name.items():
            links.append(f"- [`{name}`](#{anchors.of(name)}): {summary(overloads[0])}")
            body += ["", f"### {name}"]
            for declaration in overloads:
                body += section(declaration)
        contents += ["", f"[`jitconv/{header}`](#{header_anchor})", "", *links]
    if problems:
        raise ValueError("\n".join(problems))
    text = "\n".join([NOTICE, f"# {title}", "", introduction, *contents, *body])
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def pages() -> dict[pathlib.Path, str]:
    program = "[README.md](../../README.md) shows a program, [troubleshooting.md](../troubleshooting.md) the messages."
    cpp = f"Include `<jitconv/jitconv.hpp>`, link `jitconv::jitconv`. All names are in namespace `jitconv`.\n{program}"
    c = f"Include `<jitconv/jitconv.h>`, link `libjitconv.so`. The header is plain C99.\n{program}"
    folder = ROOT / "docs" / "api"
    headers = ["spec.h", "target.h", "kernel.h", "prepare.h", "tune.h", "error.h"]
    return {folder / "cpp.md": page("C++ interface", cpp, headers),
            folder / "c.md": page("C interface", c, ["jitconv.h"]).replace("```cpp\n", "```c\n")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the pages instead of comparing them")
    write = parser.parse_args().write
    try:
        wanted = pages()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in wanted.items():
        if write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale and not write:
        names = " and ".join(str(path.relative_to(ROOT)) for path in stale)
        print(f"{names}: not what include/jitconv says; run docs/make_api_reference.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
