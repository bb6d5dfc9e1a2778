"""What one source file shows of its authors' habits, by tree-sitter: a query for each language.

A query names what it catches: `functions`, `classes`, `constants` (the names of these), `import`, `require`
and `use` (what is imported), `block` and `suite` (what is indented), `string` and `other-string`, `statement`
and `no-statement`, `mark` (says that a function is a test), `assigned` (names given a value in a module).
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from functools import lru_cache
from typing import TypedDict

from tree_sitter import Language, Node, Parser, Query, QueryCursor

DEEPEST = 300  # levels below which nobody's habits are looked for
LONGEST_LINE = 5_000  # characters; beyond that no person wrote it
JUNK = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class Import(TypedDict):
    how: str  # import, require, use
    target: str  # as the source names it: `..model`, `node:fs`, `std`
    top: bool  # not inside a function, class or condition
    said: str  # the whole statement, where it is short


class Found(TypedDict):
    functions: list[str]
    classes: list[str]
    constants: list[str]
    imports: list[Import]  # in order
    modules: list[str]  # that a Rust file declares
    indentation: dict[str, int]
    quotes: dict[str, int]
    semicolons: dict[str, int]
    tests: int  # functions marked as such


PYTHON = """
(function_definition name: (identifier) @functions)
(class_definition name: (identifier) @classes)
(module (expression_statement (assignment left: (identifier) @assigned)))
(module (expression_statement (augmented_assignment left: (identifier) @assigned)))
(module (expression_statement (assignment left: (identifier) @constants right: [
    (string) (concatenated_string) (integer) (float) (true) (false)
    (unary_operator argument: [(integer) (float)])])))
(global_statement (identifier) @assigned)
(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (dotted_name) @import))
(import_from_statement module_name: (_) @import)
(block) @suite
(string) @string
(expression_statement (string) @other-string)
"""
LITERAL = "[(string) (number) (true) (false) (regex) (unary_expression argument: (number))]"
JAVASCRIPT = f"""
(function_declaration name: (identifier) @functions)
(generator_function_declaration name: (identifier) @functions)
(function_expression name: (identifier) @functions)
(method_definition name: [(property_identifier) (private_property_identifier)] @functions)
(variable_declarator name: (identifier) @functions value: [(arrow_function) (function_expression)])
(assignment_expression
    left: (member_expression property: (property_identifier) @functions)
    right: [(arrow_function) (function_expression)])
(program (lexical_declaration
    kind: "const" (variable_declarator name: (identifier) @constants value: {LITERAL})))
(program (export_statement (lexical_declaration
    kind: "const" (variable_declarator name: (identifier) @constants value: {LITERAL}))))
(import_statement source: (string) @import)
(call_expression function: (identifier) @none arguments: (arguments . (string) @require .)
    (#eq? @none "require"))
(statement_block) @block
(class_body) @block
(string) @string
[(expression_statement) (lexical_declaration) (variable_declaration) (return_statement) (throw_statement)
    (import_statement)] @statement
(for_statement initializer: (_) @no-statement)
"""
JSX = "(jsx_attribute (string) @other-string)"
CLASSES = "[(class_declaration name: (_) @classes) (class name: (_) @classes)]"
TYPESCRIPT = """
(function_signature name: (identifier) @functions)
(method_signature name: (property_identifier) @functions)
(abstract_method_signature name: (property_identifier) @functions)
(abstract_class_declaration name: (_) @classes)
(interface_declaration name: (_) @classes)
(type_alias_declaration name: (_) @classes)
(enum_declaration name: (_) @classes)
(import_require_clause source: (string) @require)
[(interface_body) (enum_body)] @block
[(function_signature) (type_alias_declaration)] @statement
"""
GO = """
(function_declaration name: (identifier) @functions)
(method_declaration name: (field_identifier) @functions)
(method_elem name: (field_identifier) @functions)
(type_spec name: (type_identifier) @classes)
(type_alias name: (type_identifier) @classes)
(const_spec (identifier) @constants)
(import_spec path: (_) @import)
(block) @block
"""
RUST = """
(function_item name: (identifier) @functions)
(function_signature_item name: (identifier) @functions)
[(struct_item name: (_) @classes) (enum_item name: (_) @classes) (trait_item name: (_) @classes)
    (union_item name: (_) @classes) (type_item name: (_) @classes)]
(const_item name: (identifier) @constants)
(source_file (use_declaration argument: (_) @use))
(mod_item name: (identifier) @modules)
[(block) (declaration_list) (field_declaration_list) (enum_variant_list)] @block
(attribute_item (attribute [(identifier) @mark (scoped_identifier name: (identifier) @mark)]))
"""
JAVA = """
(method_declaration name: (identifier) @functions)
[(class_declaration name: (_) @classes) (interface_declaration name: (_) @classes)
    (enum_declaration name: (_) @classes) (record_declaration name: (_) @classes)
    (annotation_type_declaration name: (_) @classes)]
(field_declaration (modifiers) declarator: (variable_declarator name: (identifier) @constants))
(constant_declaration (modifiers) declarator: (variable_declarator name: (identifier) @constants))
[(block) (class_body) (interface_body)] @block
(method_declaration (modifiers [
    (marker_annotation name: (identifier) @mark) (annotation name: (identifier) @mark)]))
"""
# language -> the wheel's module, its function, the query
GRAMMARS = {
    "python": ("tree_sitter_python", "language", PYTHON),
    "javascript": ("tree_sitter_javascript", "language", JAVASCRIPT + JSX + CLASSES),
    "typescript": ("tree_sitter_typescript", "language_typescript", JAVASCRIPT + CLASSES + TYPESCRIPT),
    "tsx": ("tree_sitter_typescript", "language_tsx", JAVASCRIPT + JSX + CLASSES + TYPESCRIPT),
    "go": ("tree_sitter_go", "language", GO),
    "rust": ("tree_sitter_rust", "language", RUST),
    "java": ("tree_sitter_java", "language", JAVA),
}


@lru_cache
def _grammar(name: str) -> tuple[Parser, Query]:
    module, function, query = GRAMMARS[name]
    language = Language(getattr(importlib.import_module(module), function)())
    return Parser(language), Query(language, query)


def found(language: str, path: str, text: str) -> Found | None:
    """What a file shows; None for what no person wrote, or does not parse."""
    if JUNK.search(text) or len(max(text.split("\n"), key=len)) > LONGEST_LINE:
        return None
    parser, query = _grammar("tsx" if path.endswith(".tsx") else language)
    source = text.encode()  # valid UTF-8: other bytes can crash the parser
    tree = parser.parse(source)
    if tree.root_node.has_error:
        return None
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(DEEPEST)
    caught = cursor.captures(tree.root_node)
    marked = {node.start_byte for mark in caught.get("mark", ()) if (node := _marked(mark))}
    return {
        "functions": [_text(node) for node in caught.get("functions", ()) if node.start_byte not in marked],
        "classes": [_text(node) for node in caught.get("classes", ())],
        "constants": _constants(caught, java=language == "java"),
        "imports": _imports(caught),
        "modules": [_text(node) for node in caught.get("modules", ())],
        "indentation": _indentation(caught, source),
        "quotes": _quotes(caught, source),
        "semicolons": _semicolons(caught, source),
        "tests": len(marked),
    }


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _marked(mark: Node) -> Node | None:
    """The name of the test that an attribute of Rust or an annotation of Java stands at."""
    if not _text(mark).lower().startswith("test") and not _text(mark).lower().endswith("test"):
        return None
    place: Node | None = mark
    while place and place.type not in ("attribute_item", "method_declaration"):
        place = place.parent
    while place and place.type in ("attribute_item", "line_comment", "block_comment"):
        place = place.next_named_sibling
    return place.child_by_field_name("name") if place else None


def _constants(caught: dict[str, list[Node]], *, java: bool) -> list[str]:
    nodes = caught.get("constants", [])
    if java:
        nodes = [node for node in nodes if _static_final(node)]
    names = [_text(node) for node in nodes]
    times = Counter(_text(node) for node in caught.get("assigned", ()))
    return [name for name in names if times[name] <= 1]


def _static_final(name: Node) -> bool:
    field = name.parent and name.parent.parent
    modifiers = field and field.named_child(0)
    return modifiers is not None and {"static", "final"} <= {child.type for child in modifiers.children}


def _imports(caught: dict[str, list[Node]]) -> list[Import]:
    nodes = [(node, how) for how in ("import", "require", "use") for node in caught.get(how, ())]
    result: list[Import] = []
    for node, how in sorted(nodes, key=lambda each: each[0].start_byte):
        statement, top = node, True
        while statement.parent and not statement.type.endswith(("_statement", "_declaration")):
            statement = statement.parent
            top = top and not statement.type.endswith(("function", "function_expression"))
        if how == "use" and statement.start_byte != node.start_byte - 4:
            continue  # `pub use` hands on
        top = top and (statement.parent is None or statement.parent.parent is None)
        said = " ".join(_text(statement).split()) if statement.end_byte - statement.start_byte < 100 else ""
        result.append({"how": how, "target": _text(node).strip("\"'`"), "top": top, "said": said})
    return result


def _indentation(caught: dict[str, list[Node]], source: bytes) -> dict[str, int]:
    lines = source.split(b"\n")
    rows = [
        (head.start_point[0], node.start_point[0])
        for node in caught.get("suite", ())
        if (head := node.parent) is not None
    ]
    for node in caught.get("block", ()):
        head_row = row = node.start_point[0]
        last = node.end_point[0]
        while (row := row + 1) < last and not lines[row].strip():
            pass
        if row < last:
            rows.append((head_row, row))
    counts: Counter[str] = Counter()
    for head_row, row in rows:
        if head_row == row:
            continue
        outer, inner = _blanks(lines[head_row]), _blanks(lines[row])
        step = inner.removeprefix(outer)
        if step == b"\t":
            counts["tabs"] += 1
        elif step.strip(b" ") or not inner.startswith(outer) or not step:
            counts["mixed"] += 1
        else:
            counts[f"{len(step)} spaces"] += 1
    return counts


def _blanks(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(b" \t"))]


def _quotes(caught: dict[str, list[Node]], source: bytes) -> dict[str, int]:
    others = {node.start_byte for node in caught.get("other-string", ())}
    counts: Counter[str] = Counter()
    done = 0
    for start, end in sorted((node.start_byte, node.end_byte) for node in caught.get("string", ())):
        if start < done:
            continue  # inside an f-string, where only one kind of quotes was free
        done = end
        text = source[start:end].lstrip(b"rRbBuUfFtT")
        inside = text[1:-1]
        if start not in others and b"'" not in inside and b'"' not in inside:  # three quotes, too
            counts["double" if text[:1] == b'"' else "single"] += 1
    return counts


def _semicolons(caught: dict[str, list[Node]], source: bytes) -> dict[str, int]:
    others = {node.start_byte for node in caught.get("no-statement", ())}
    counts: Counter[str] = Counter()
    for node in caught.get("statement", ()):
        if node.start_byte not in others:
            end = node.end_byte
            counts["always" if b";" in source[end - 1 : end + 1] else "never"] += 1
    return counts
