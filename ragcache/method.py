"""Method: one choice on each axis, which is one way of answering from cached chunks."""

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from ragcache.attend import ScoreMod
from ragcache.checks import check_number
from ragcache.encode import Encoder, PromptEncoder
from ragcache.errors import InvalidArgument, UnsupportedModel, UntunedReader, finetune
from ragcache.layout import Layout, Retrieved
from ragcache.model.tuning import Tuning
from ragcache.schedule import Flat, Schedule
from ragcache.select import Selector
from ragcache.select.auxiliary import with_auxiliary

if TYPE_CHECKING:
    from ragcache.model.reader import Reader

AXES = ("encode", "select", "schedule", "attend", "layout")


@dataclass(frozen=True)
class Method:
    """One way of answering from cached chunks.

    Attributes
    ----------
    name : str
        What the table calls it.
    encode : Encoder or None
        Axis A; None loads nothing.
    select : Selector or None
        Axis B; None recomputes nothing.
    recompute : float or None
        Default share of selectable tokens; None for rows with a fixed cost.
    schedule : Schedule
        Axis C.
    attend : ScoreMod or None
        Axis D; None is plain attention.
    layout : Layout
        Axis E.
    paper : str
        arXiv number.
    about : str
        One line for the table.
    when, when_not : str
        What the row is for, and what it is not for.
    tuned : tuple of str
        Fields, as paths, whose defaults are ours in a row that has a paper.
    finetuned : str or None
        Recipe of `ragcache finetune` by which the model must have been tuned; None where any model will do.

    Raises
    ------
    InvalidArgument
        If something else needs extras that the encoder does not store.
    """

    name: str
    encode: Encoder | None
    select: Selector | None = None
    recompute: float | None = None
    schedule: Schedule = field(default_factory=Flat)
    attend: ScoreMod | None = None
    layout: Layout = field(default_factory=Retrieved)
    paper: str = ""
    about: str = ""
    # What is said of a row is no part of what it answers: benchmarks know an answer by the rest.
    when: str = field(default="", repr=False)
    when_not: str = field(default="", repr=False)
    tuned: tuple[str, ...] = field(default=(), repr=False)
    # Nor does what it asks of a model change what that model answers.
    finetuned: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        stored = self.encode.extras if self.encode else ()
        if lacking := sorted(set(self.needs) - set(stored)):
            raise InvalidArgument(
                f"method {self.name!r} takes {', '.join(lacking)}, which {choice(self.encode)} doesn't store"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Extras that are read when it answers."""
        parts = (self.select, self.schedule, self.attend, self.layout)
        return tuple(dict.fromkeys(extra for part in parts if part is not None for extra in part.needs))

    def budget(self, recompute: float | None) -> float:
        """The share to recompute: the caller's, or the row's default.

        Raises
        ------
        InvalidArgument
            If the share is outside [0, 1], or given for a row with a fixed cost.
        """
        if recompute is None:
            return self.recompute or 0.0
        check_number("recompute", recompute, 0, 1, "it is a share between 0 and 1")
        if self.recompute is None:
            raise InvalidArgument(
                f"method {self.name!r} has a fixed cost, so recompute={recompute:g} means nothing to it; "
                "leave it out, or see `ragcache methods` for rows that take a recompute ratio"
            )
        return recompute

    def shares_recompute(self, budget: float) -> bool:
        """Whether questions over one context may share its recomputation, since nothing about it depends on them."""
        chosen = budget >= 1 or (self.select is not None and self.select.query_agnostic)
        return budget > 0 and chosen and self.attend is None and self.schedule.precomputable

    def suits(self, tuning: Tuning | None) -> bool:
        """Whether the row takes a model that was tuned so, or not at all."""
        return self.finetuned is None or (tuning is not None and tuning.recipe == self.finetuned)

    def check_tuning(self, tuning: Tuning | None, model: str) -> None:
        """Refuse a model that was not tuned as the row takes it.

        Parameters
        ----------
        tuning : Tuning or None
            How the model was tuned, if it was.
        model : str
            What the message calls it.

        Raises
        ------
        UntunedReader
            If the row takes another recipe; one that takes none takes any model.
        """
        if self.finetuned is None or self.suits(tuning):
            return
        how = f"tuned by the recipe {tuning.recipe!r}" if tuning else "not tuned by any recipe"
        raise UntunedReader(
            f"method {self.name!r} takes a model tuned by the recipe {self.finetuned!r}, and {model} was {how}; tune "
            f"one with `{finetune(self.finetuned)}` and name its folder with --adapter, or take another --method, "
            "such as auto"
        )

    def check_reader(self, reader: "Reader") -> None:
        """Refuse a model that was not tuned as the row takes it, or whose layers carry a state that it cannot reuse.

        Raises
        ------
        UntunedReader, UnsupportedModel
            As `check_tuning` and `check_states`.
        """
        self.check_tuning(reader.tuning, reader.label)
        if reader.states and self.encode is not None:
            self.check_states(0, reader.label)

    def check_states(self, share: float, model: str) -> None:
        """Refuse what cannot be done with a model whose layers carry a state from token to token.

        Such a state passes through a chunk as a whole, so chunks are reused in order, and computed anew all or none.

        Parameters
        ----------
        share : float
            Of the reused tokens, to recompute.
        model : str
            What the message calls it.

        Raises
        ------
        UnsupportedModel
            If the row shapes attention, moves chunks, or chooses layer by layer, if it keeps KV of answered prompts, or
            if the share is another than 0 and 1.
        """
        why = f"{model} has layers that carry a state from token to token"
        plain = self.attend is None and isinstance(self.schedule, Flat) and isinstance(self.layout, Retrieved)
        if not plain or isinstance(self.encode, PromptEncoder):
            raise UnsupportedModel(
                f"{why}, and method {self.name!r} does more than reuse chunks in order",
                "Take another --method, such as auto or naive",
            )
        if 0 < share < 1:
            raise UnsupportedModel(
                f"{why}, and method {self.name!r} would recompute {share:.0%} of the tokens, one here and one there",
                "Name --recompute 0 or --recompute 1, or take --method auto, which recomputes nothing there",
            )

    def with_auxiliary(self, model: "str | Reader") -> "Method":
        """The same row with another auxiliary model: "smollm2", a hub id, a folder, or a reader.

        Raises
        ------
        InvalidArgument
            If the row has no auxiliary.
        """
        select = with_auxiliary(self.select, model)
        if select is None:
            raise InvalidArgument(
                f"method {self.name!r} has no auxiliary model to be {model!r}; leave --auxiliary out, or take "
                "--method cacheclip"
            )
        return replace(self, select=select)

    def as_dict(self) -> dict[str, Any]:
        """A row of `ragcache methods --json`."""
        return {
            "name": self.name,
            "paper": self.paper,
            "about": self.about,
            **{axis: choice(getattr(self, axis)) for axis in AXES},
            "recompute": self.recompute,
            "needs": list(self.needs),
            "finetuned": self.finetuned,
        }


def choice(value: object) -> str | None:
    """How a choice reads in a table: its name and fields."""
    if value is None or not is_dataclass(value):
        return None
    given = (f"{f.name}={getattr(value, f.name)!r}" for f in fields(value))
    return f"{type(value).__name__}({', '.join(given)})"
