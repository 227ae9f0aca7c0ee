"""What binds an index to the model that made its KV, and to the words that stand before every chunk."""

import json
from pathlib import Path

from ragcache.errors import IndexMismatch, InvalidArgument
from ragcache.errors import ingest as ingest_command
from ragcache.index.settings import check_codec
from ragcache.model.reader import Reader
from ragcache.prompt import SYSTEM, Template
from ragcache.store import CODEC, RAW, Catalog, Codec

_IN_MEMORY = "fingerprint_in_memory"  # setting: what the same model is called when no file stands for its weights
_SYSTEM = "system"
MADE_BY = "made_by"  # setting: what the fingerprint is made of; older indexes get it when they are next opened


def bind_template(catalog: Catalog, reader: Reader, system: str | None, path: Path) -> Template:
    """The template of an index, whose system prompt never changes: it stands in the left context of every KV.

    Raises
    ------
    InvalidArgument
        If the system prompt is blank.
    IndexMismatch
        If another system prompt is asked for than the index was made with.
    """
    if system is not None and not system.strip():
        raise InvalidArgument("the system prompt is blank; leave it out for the built-in one")
    known = (catalog.setting(_SYSTEM) or SYSTEM) if catalog.setting("fingerprint") else None
    if known is not None and system not in (None, known):
        raise IndexMismatch(
            f"the index {path} was made with the system prompt {known!r}, not {system!r}; open it without one, or run "
            f"`{ingest_command('NEW', paths='PATH…')}` for another index"
        )
    template = Template(reader.tokenizer, known or system or SYSTEM)
    if known is None:
        catalog.set_setting(_SYSTEM, template.system)
        catalog.set_setting("prefix_ids", list(template.prefix.token_ids))
        catalog.set_setting("prefix_text", template.prefix.text)
    return template


def bind_model(catalog: Catalog, reader: Reader, path: Path) -> str:
    """The fingerprint of the model that an index is of: a new one's is the reader's.

    A model that a program loaded has no file, so its weights are hashed in memory, and a model of the same weights that
    was loaded by name has another fingerprint. Where the two differ both are compared by what memory holds.

    Raises
    ------
    IndexMismatch
        If another model made the index, or another tokenizer or dtype.
    """
    made_by: str | None = catalog.setting("fingerprint")
    if made_by is None:
        catalog.set_setting("model", reader.label)
        catalog.set_setting(_IN_MEMORY, reader.fingerprint_in_memory)
        _describe(catalog, reader)
        catalog.set_setting("fingerprint", reader.fingerprint)
        return reader.fingerprint
    if made_by != reader.fingerprint and not _same_in_memory(catalog, reader):
        raise IndexMismatch(
            f"the index {path} was made by {catalog.setting('model')} ({made_by[:12]}), not by {reader.label} "
            f"({reader.fingerprint[:12]}) with its weights, tokenizer and dtype; ask with that model, or ingest into "
            "another --index"
        )
    if made_by == reader.fingerprint and catalog.setting(MADE_BY) is None:
        _describe(catalog, reader)
    return made_by


def _describe(catalog: Catalog, reader: Reader) -> None:
    described = reader.describe()
    catalog.set_setting(MADE_BY, json.loads(json.dumps(described, default=str)))  # a config may hold what JSON doesn't


def _same_in_memory(catalog: Catalog, reader: Reader) -> bool:
    known = catalog.setting(_IN_MEMORY)  # older indexes have none
    return known is not None and bool(known == reader.fingerprint_in_memory)


def bind_codec(catalog: Catalog, codec: Codec | None, path: Path) -> str:
    """The name of the codec that an index's KV is written in, which never changes: it is a part of every key.

    Raises
    ------
    IndexMismatch
        If another one is asked for.
    """
    known = catalog.setting(CODEC) or (RAW if catalog.setting("fingerprint") else None)  # as before there were any
    chosen = codec.name if codec else known or RAW
    check_codec(path, known, chosen)
    if catalog.setting(CODEC) is None and catalog.writable:
        catalog.set_setting(CODEC, chosen)
    return chosen
