"""Text in any encoding: what its bytes say, what it declares, or the most likely of those that it could be in."""

import codecs
import re
from contextlib import suppress
from string import ascii_lowercase

from ragcache.retrieve.needs import needs

_BOMS = (  # the longer first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MEANT = {  # what browsers take a declaration for: a superset, and whoever can read it there sees no UTF-16
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis"), "cp932"),
    **dict.fromkeys(("", "utf-16", "utf-16le", "utf-16be"), "utf-8"),
    "euc-kr": "cp949",
}
# The letters beyond ASCII of languages that Windows wrote in these encodings. Which of them are in a text tells its
# encoding sooner than their frequencies do: a line may have one.
_LETTERS = {
    "cp1252": (  # German, French, Spanish, Portuguese, Italian, Catalan, Dutch, Swedish and Finnish, Danish, Icelandic
        "äöüß", "àâæçéèêëîïôùûüÿœ", "áéíñóúü", "àáâãçéêíóôõúü", "àèéìíîòóù", "àçèéíïòóúü", "áèéëíïóöü", "àåäéöü",
        "åæéèêòóôøü", "áæéíðóöúýþ",
    ),
    "cp1250": ("óąćęłńśźż", "áéíóúýčďěňřšťůž", "áäéíóôúýčďľĺňŕšťž", "áéíóöúüőű", "âîăşţ", "ćčđšž"),
    "cp1254": ("âçîöûüğış",),
    "cp1257": ("ąčėęįšūųž", "āčēģīķļņšūž", "äõöüšž"),
}  # fmt: skip
_SHARED = {*ascii_lowercase, *"ªºµ"}
# What stands in no word of theirs: a sign between letters, a capital behind a small one, four such letters in a row.
_STRAY = re.compile(
    r"""
    (?<=[^\W\d_])[^\x00-\x7f\s\xad·…\u2013\u2014\u2018\u2019](?<![^\W\d_])(?=[^\W\d_])
    | (?<=[a-zß-ÿ])[À-ÖØ-ÞŠŒŽŸ]
    | [^\W\d_a-zA-Z]{4}
    """,
    re.X,
)


def decode(data: bytes, declared: str = "") -> str:
    """Text in any encoding: a byte order mark's, the one declared, UTF-8, or a guess; lines end in line feeds."""
    return re.sub(r"\r\n?", "\n", _decoded(data, declared))


def _decoded(data: bytes, declared: str) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding)
    for encoding in (_MEANT.get(declared, declared), "utf-8"):
        with suppress(LookupError, ValueError):  # unknown, or not the one that it is in
            return data.decode(encoding)
    return _guess(data)


def _guess(data: bytes) -> str:
    """As an encoding whose letters are one language's, as cp1252 if they are several's, else by charset-normalizer."""
    for encoding, languages in (*_LETTERS.items(), ("cp1252", ("".join(_LETTERS["cp1252"]),))):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            letters = {letter for letter in set(text.lower()) if letter.isalpha()} - _SHARED
            if any(letters <= set(language) for language in languages) and not _STRAY.search(text):
                return text
    with needs():
        from charset_normalizer import from_bytes
    best = from_bytes(data).best()
    if best is None:
        raise ValueError("it is not text in any known encoding")
    return str(best)
