"""Write the pages and schemas that are made from the code: python -m scripts.make_docs

docs/api.md and docs/schema/*.json come from handler/schema.py and handler/errors.py, the table in docs/operations.md
from handler/settings.py. A test keeps them equal, so the pages cannot say what the code does not do.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from handler import errors, schema
from handler.errors import WorkerError
from handler.settings import Settings

DOCS = Path(__file__).resolve().parents[1] / "docs"
SETTINGS_MARKS = ("<!-- settings: made by scripts/make_docs.py -->\n", "<!-- /settings -->\n")
ROOTS: dict[str, type[BaseModel]] = {
    "job-input": schema.JobInput,
    "job-output": schema.JobOutput,
    "envelope": schema.Envelope,
    "progress": schema.Progress,
    "error": schema.ErrorInfo,
}
INTRO = """\
# The job contract, version {version}

Made from `handler/schema.py` and `handler/errors.py` by `scripts/make_docs.py`; do not edit. The same as JSON Schema:
{schemas}.

A job is `POST /v2/{{endpoint}}/run` with `{{"input": {{...}}}}`; its result is `output` of
`GET /v2/{{endpoint}}/status/{{id}}`. The body of `/run` holds 10 MB, so about 7.4 MB of a document as `file_base64`.
Unknown keys are refused with the name of the nearest known one. Give exactly one of {sources}, or `warmup`, or `probe`.
`formats` {reserved} are reserved: refused as `unsupported_format` in this version.

    curl -s "$RUNPOD_API_URL/$RUNPOD_ENDPOINT_ID/run" -H "Authorization: Bearer $RUNPOD_API_KEY" \\
      -H 'Content-Type: application/json' \\
      -d '{{"input": {{"file_url": "https://example.org/report.pdf", "pages": "1-3", "furniture": "keep"}}}}'

| status | `output` | `error` |
| --- | --- | --- |
| IN_QUEUE | | |
| IN_PROGRESS | a [Progress](#progress), or nothing yet | |
| COMPLETED | a [JobOutput](#joboutput); or an [Envelope](#envelope), with `delivery`, around one that is too large | |
| FAILED | `debug`, and the ledger where no page could be read | a JSON string of an [ErrorInfo](#errorinfo) |
| COMPLETED without `output` | the platform refused the result; look for it under its content key | |

Other states are the platform's own; any other text in `error` is too. The platform keeps a result for 30 minutes.

A document is `partial` when a page or region of it is `failed` or `truncated`; what is skipped, quarantined or
repetitive stands in `degraded` only. `blank` pages count as read. Every page asked for is in `pages`, with its original
number.

**Figures.** An [Artifact](#artifact) is named as the Markdown links it: write each to its `name` beside the Markdown,
and the links work. Its bytes are in `data`, or at `url` and under `key`; one with none of them did not fit anywhere and
is in `degraded`.

**Envelopes.** `gzip`: base64-decode and gunzip `data`. `s3`: GET `url` within the hour, or fetch `key` from the bucket.
`volume`: read `key` below the mount, or through the volume's S3 interface. Then compare `size` and `sha256`. Where
there is a volume, else a bucket, every result that is not `failed` also lies under
`glmocr/results/CONTENT_KEY/result.json` there.

**Content key.** sha256, in hex, over three lines joined by a newline: the document's own sha256 in hex (of its bytes
after unpacking); the options {options} with defaults filled in,
as JSON with sorted keys, no spaces, `formats` sorted and `pages` as few ascending ranges (`1-3,7,10-`; null for all);
the contract's version.

"""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _table(*columns: str, rows: Iterator[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *(tuple(map(_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def _type(prop: dict[str, Any]) -> str:
    """A JSON Schema type in words; named types are links."""
    if "$ref" in prop:
        name = prop["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in prop:
        return " or ".join(dict.fromkeys(_type(option) for option in prop["anyOf"]))
    if "prefixItems" in prop:
        return f"list of {len(prop['prefixItems'])} {_type(prop['prefixItems'][0])}s"
    if prop.get("type") == "array":
        return f"list of {_type(prop['items'])}"
    return f'`"{prop["const"]}"`' if "const" in prop else str(prop.get("type", "any"))


def _limits(prop: dict[str, Any]) -> str:
    options = [prop, *prop.get("anyOf", [])]
    words = {
        "minimum": "from {}",
        "exclusiveMinimum": "above {:g}",
        "maximum": "to {}",
        "maxLength": "at most {} characters",
    }
    return " ".join(text.format(option[key]) for key, text in words.items() for option in options if key in option)


def _default(prop: dict[str, Any]) -> str:
    if "default" not in prop:
        return "required"
    return "all zero" if isinstance(prop["default"], dict) and prop["default"] else f"`{json.dumps(prop['default'])}`"


def _fields(model: dict[str, Any]) -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        for name, prop in model.get("properties", {}).items():
            yield f"`{name}`", " ".join((_type(prop), _limits(prop))), _default(prop), prop.get("description", "")

    return _table("key", "type", "default", "meaning", rows=rows())


def _member_docs(enum: type[StrEnum]) -> dict[str, str]:
    """The string under each member, which Python itself does not keep."""
    (body,) = (node.body for node in ast.parse(textwrap.dedent(inspect.getsource(enum))).body if hasattr(node, "body"))
    names = [node.targets[0].id if isinstance(node, ast.Assign) else "" for node in body]  # type: ignore[attr-defined]
    return {
        enum[name].value: str(node.value.value)
        for name, node in zip(names, body[1:], strict=False)
        if name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _enum(enum: type[StrEnum]) -> str:
    docs = _member_docs(enum)
    return _table("value", "meaning", rows=((f"`{member.value}`", docs.get(member.value, "")) for member in enum))


def _error_rows() -> Iterator[tuple[str, ...]]:
    classes: dict[str, type[WorkerError]] = {}
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, WorkerError):
            classes.setdefault(value.code, value)
    for code in schema.ErrorCode:
        error = classes[code]
        yield f"`{code.value}`", "yes" if error.retryable else "no", error().message


def _section(name: str, definition: dict[str, Any]) -> str:
    kind = getattr(schema, name)
    if issubclass(kind, schema.ErrorCode):
        body = _table("value", "retryable", "meaning", rows=_error_rows())
    elif issubclass(kind, StrEnum):
        body = _enum(kind)
    else:
        body = _fields(definition)
    return f"## {name}\n\n{inspect.getdoc(kind)}\n\n{body}"


def _definitions() -> dict[str, dict[str, Any]]:
    """Every named type of the contract, roots first, in the order of the source."""
    found: dict[str, dict[str, Any]] = {}
    for root in ROOTS.values():
        definition = root.model_json_schema()
        found |= {root.__name__: definition} | definition.pop("$defs", {})
    order = list(vars(schema))
    roots = [root.__name__ for root in ROOTS.values()]
    rest = sorted(found.keys() - set(roots) - {"JsonValue"}, key=order.index)
    return {name: found[name] for name in (*roots, *rest)}


def api_page() -> str:
    """docs/api.md."""
    intro = INTRO.format(
        version=schema.CONTRACT_VERSION,
        schemas=", ".join(f"[{name}](schema/{name}.json)" for name in ROOTS),
        sources=", ".join(f"`{key}`" for key in schema.SOURCE_KEYS),
        options=", ".join(f"`{key}`" for key in schema.RESULT_OPTIONS),
        reserved=" and ".join(f"`{value}`" for value in sorted(schema.RESERVED_FORMATS)),
    )
    return intro + "".join(_section(name, definition) for name, definition in _definitions().items()).rstrip() + "\n"


def _setting_rows() -> Iterator[tuple[str, ...]]:
    properties = Settings.model_json_schema()["properties"]
    definitions = Settings.model_json_schema().get("$defs", {})
    for name, field in Settings.model_fields.items():
        prop = properties[name]
        refs = re.findall(r"#/\$defs/(\w+)", json.dumps(prop))
        choices = ", ".join(f"`{value}`" for ref in refs for value in definitions[ref].get("enum", ()))
        default = "" if field.default in (None, "", PydanticUndefined) else f"`{field.default}`"
        secret = "secret " if SecretStr.__name__ in str(field.annotation) else ""
        yield f"`{name.upper()}`", default, secret + (choices or _limits(prop)), field.description or ""


def settings_table() -> str:
    """The table of settings, between its two marks."""
    first, last = SETTINGS_MARKS
    return first + _table("variable", "default", "accepts", "meaning", rows=_setting_rows()) + last


def operations_page(page: str) -> str:
    """docs/operations.md with today's table in place of the one it has."""
    before, _, rest = page.partition(SETTINGS_MARKS[0])
    return before + settings_table() + rest.partition(SETTINGS_MARKS[1])[2]


def pages() -> dict[Path, str]:
    """Every generated file and what it should hold."""
    operations = DOCS / "operations.md"
    made = {DOCS / "api.md": api_page(), operations: operations_page(operations.read_text(encoding="utf-8"))}
    for name, model in ROOTS.items():
        made[DOCS / "schema" / f"{name}.json"] = json.dumps(model.model_json_schema(), indent=2) + "\n"
    return made


def main() -> None:
    """Write them all."""
    for path, content in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
