"""What a model is trained to read: one row a recipe, as the papers train it, and the control."""

from dataclasses import dataclass, replace

from ragcache.errors import InvalidArgument
from ragcache.model.tuning import Attention, PositionScheme

#: Link tokens a document of KVLink's best model, and the numbers that its paper tries.
LINKS, LINKS_TRIED = 5, (0, 1, 5)


@dataclass(frozen=True)
class Recipe:
    """Attention, positions and link tokens of a training run.

    Attributes
    ----------
    name : str
        What `--recipe` calls it.
    attention : str
        Whom a chunk's tokens attend to: "full", everything before them; "independent", their own chunk alone;
        "alternating", each in turn, so that over two passes every context is read once either way.
    positions : str
        "reordered": a token's place in the prompt. "composite": every chunk begins where the first one does, and what
        follows the chunks begins behind the longest; so the shared range of TurboRAG's paper was read here.
    links : int
        Link tokens behind each chunk.
    paper : str
        arXiv number; none for the control.
    """

    name: str
    attention: Attention
    positions: PositionScheme = "reordered"
    links: int = 0
    paper: str = ""


RECIPES = {
    one.name: one
    for one in (
        Recipe("turborag", "independent", paper="2410.07590"),
        Recipe("turborag-composite", "independent", "composite", paper="2410.07590"),
        Recipe("block-attention", "alternating", paper="2409.15355"),
        Recipe("kvlink", "independent", links=LINKS, paper="2502.16002"),
        Recipe("full", "full"),
    )
}


def find_recipe(name: str, links: int | None = None) -> Recipe:
    """The recipe of that name, with so many link tokens.

    Raises
    ------
    InvalidArgument
        If there is none, or it has no link tokens and some are asked for.
    """
    if name not in RECIPES:
        raise InvalidArgument(f"no recipe is called {name!r}; name one of {', '.join(RECIPES)} with --recipe")
    recipe = RECIPES[name]
    if links is None:
        return recipe
    if name != "kvlink" and links:
        raise InvalidArgument(
            f"the recipe {name!r} has no link tokens, and --links is {links}; leave it out, or take --recipe kvlink"
        )
    if links not in LINKS_TRIED:
        raise InvalidArgument(f"--links is {links}; give {', '.join(map(str, LINKS_TRIED[:-1]))} or {LINKS_TRIED[-1]}")
    return replace(recipe, links=links)
