"""What a run trains on, and what it is examined by: never the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ragcache.errors import InvalidArgument
from ragcache_finetune.contexts import Context, hold_out, read_contexts
from ragcache_finetune.data import load_contexts
from ragcache_finetune.settings import Settings


@dataclass(frozen=True)
class Material:
    """What is trained on, and what is examined."""

    training: list[Context]
    held: list[Context]

    def examine_up_to(self, chunks: int, note: Callable[[str], None]) -> "Material":
        """The same, examined by contexts of so many chunks at most, since more have no trained link tokens."""
        held = [context for context in self.held if len(context.chunks) <= chunks]
        if len(held) < len(self.held):
            note(
                f"{len(self.held) - len(held)} of {len(self.held)} held-out contexts are not examined: they have more "
                f"than {chunks} chunks, and link tokens are trained for no more"
            )
        return replace(self, held=held)


def gather_material(settings: Settings, note: Callable[[str], None]) -> Material:
    """Load what `--data` names, and keep what is examined apart from it.

    Raises
    ------
    InvalidArgument
        If nothing can be learnt from it, or nothing is left to train on.
    """
    contexts = load_contexts(settings, note)
    if settings.validation:
        held = read_contexts(settings.validation)[: settings.held_out]
        known = {frozenset(context.chunks) for context in held}
        training = [context for context in contexts if frozenset(context.chunks) not in known]
        left, why = len(contexts) - len(training), f"{settings.validation} has the same"
    else:
        training, held = hold_out(contexts, settings.seed, settings.held_out)
        left, why = len(contexts) - len(training) - len(held), "they share chunks with those held out"
    if not training:
        raise InvalidArgument(
            f"no context of {settings.data} is left to train on: {why}; name a file of others with --validation, or "
            "hold none out with --held-out 0"
        )
    if left:
        note(
            f"{left} of {len(contexts)} contexts are not trained on: {why}; --held-out 0, or --validation with a file "
            "of others, keeps them"
        )
    return Material(training, held)


def count(contexts: Sequence[Context]) -> dict[str, int]:
    """How many contexts and questions, for the record."""
    return {"contexts": len(contexts), "questions": sum(len(context.asked) for context in contexts)}
