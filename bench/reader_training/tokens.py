"""The bundled reader's tokenizer: byte-level BPE, digits and newlines on their own, trained on the generator's text."""

import inspect
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import make_context
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<|pad|>", "<|bos|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_PLAIN_ENGLISH = ("argparse", "asyncio", "collections", "datetime", "decimal", "email", "fractions", "functools",
                  "http.client", "inspect", "ipaddress", "json", "logging", "os", "pathlib", "pickle", "random", "re",
                  "shutil", "socket", "sqlite3", "statistics", "string", "subprocess", "tarfile", "threading", "turtle",
                  "unittest", "urllib.request", "uuid", "zipfile")  # fmt: skip


def build_tokenizer(size: int = 2048, seed: int = 0) -> PreTrainedTokenizerFast:
    """Train the tokenizer.

    Parameters
    ----------
    size : int
        Vocabulary, special tokens included.
    seed : int
        Seed of the generated half of the text; the other half is the standard library's own documentation.

    Returns
    -------
    PreTrainedTokenizerFast
        Any text comes back as it was; with the reader's chat template.
    """
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("\n"), "isolated"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        _texts(seed),
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )  # fmt: skip
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<|bos|>", eos_token="<|end|>", pad_token="<|pad|>",
        additional_special_tokens=["<|system|>", "<|user|>", "<|assistant|>"], chat_template=TEMPLATE,
        model_max_length=4096, clean_up_tokenization_spaces=False,
    )  # fmt: skip


def _texts(seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    level = Level(entities=(2, 5), relations=(1, 4), groups=4, forms=9, filler=0.5, sections=0.5, twohop=0.3)
    for _ in range(4000):
        context = make_context(rng, level)
        yield "\n\n".join(context.chunks)
        for q in context.questions:
            yield f"Question: {q.text}"
            yield q.reply
    for name in _PLAIN_ENGLISH:
        module = sys.modules.get(name) or __import__(name, fromlist=["_"])
        for thing in (module, *vars(module).values()):
            yield inspect.getdoc(thing) or ""


def save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the tokenizer files which `AutoTokenizer` loads."""
    tokenizer.save_pretrained(folder)
