"""Sentences which answer nothing."""

import random

from ragcache_bench.questions.names import COLOUR, MATERIAL, MONTH, ROOM, THING, TOPIC


def idle_sentence(rng: random.Random) -> str:
    """Return a sentence which answers nothing."""
    who = rng.choice(("The team", "Somebody", "A visitor", "The night shift", "One of the guests", "Nobody",
                      "The board", "A neighbour", "The committee", "An old friend", "Everyone",
                      "The new intern"))  # fmt: skip
    did = rng.choice((
        "had lunch", "left early", "asked for more coffee", "looked at the plans", "talked about the weather",
        f"painted a door {rng.choice(COLOUR)}", f"lost a {rng.choice(THING)}", f"cleaned the {rng.choice(ROOM)}",
        f"ordered some {rng.choice(MATERIAL)}", "read the minutes", "waited for the train", "closed the windows",
        f"mentioned the {rng.choice(TOPIC).lower()} forms", "was pleased with the results", "took a long break",
    ))  # fmt: skip
    when = rng.choice(("today", "last week", f"in {rng.choice(MONTH)}", "again", "on Tuesday",
                       "after the meeting", "before noon", "as usual", "for a while", "without a word"))  # fmt: skip
    plain = ("The meeting took an hour.", "It rained for a while.", "The street was quiet.",
             "More details will follow.", "The report was short.", "There were few questions.",
             "The work goes on as planned.", "Minutes were taken.", "The next review is open.",
             "All changes are kept on file.")  # fmt: skip
    return rng.choice(plain) if rng.random() < 0.25 else f"{who} {did} {when}."
