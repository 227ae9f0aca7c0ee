"""Whether every question fits the model: told before anything is encoded, not in the middle of a run."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from ragcache.engine.plan import fits
from ragcache.errors import PromptTooLong
from ragcache.layout import Linked
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Segment, Template
from ragcache_bench.contenders import Contender
from ragcache_bench.tasks import KNOWN, Example
from ragcache_bench.tasks.example import add_titles


def check_lengths(
    tasks: Mapping[str, Sequence[Example]], field: Sequence[Contender], reader: Reader, sampling: Sampling
) -> None:
    """Refuse questions that the model cannot take, all sets' together.

    Prompts are as long as the longest that some contender reads: with title lines, and with link tokens.

    Raises
    ------
    PromptTooLong
        If a prompt and the longest answer do not fit; the message counts them by task.
    """
    prompts = {name: list(_prompts(examples, field, reader)) for name, examples in tasks.items()}
    long = {name: [one for one in of if not fits(one[1], sampling, reader)] for name, of in prompts.items()}
    long = {name: of for name, of in long.items() if of}
    if not long:
        return
    counts = ", ".join(f"{len(of)} of {len(tasks[name])} questions of {name}" for name, of in long.items())
    worst, prompt = max((one for of in long.values() for one in of), key=lambda one: len(one[1]))
    raise PromptTooLong(
        f"{counts} do not fit {reader.label}, which takes {reader.limit:,} tokens with the {sampling.max_new_tokens:,} "
        f"of --max-new-tokens: the longest, {worst.id}, has {len(prompt):,} in {len(worst.chunks)} chunks; "
        f"{_cure(long)}"
    )


def _prompts(
    examples: Sequence[Example], field: Sequence[Contender], reader: Reader
) -> Iterator[tuple[Example, Prompt]]:
    template, titled = Template(reader.tokenizer), any(who.titled for who in field)
    linked = any(isinstance(who.method.layout, Linked) for who in field)
    links = [Segment(reader.links.ids(0), link=True)] if reader.links and linked else []
    segment = cache(partial(template.chunk, chunk=""))
    for example in examples:
        texts = (add_titles(example) if titled else example).chunks
        chunks = [part for text in texts for part in (segment(text), *links)]
        yield example, template.prompt(chunks, example.question)


def _cure(tasks: Mapping[str, object]) -> str:
    """What makes prompts shorter: generated tasks have as many chunks as they have."""
    fewer = ["give each question fewer chunks with --chunks N"] if any(name not in KNOWN for name in tasks) else []
    made = [name for name in tasks if name in KNOWN]
    return ", and ".join([*fewer, *([f"leave {', '.join(made)} out of --tasks"] if made else [])])
