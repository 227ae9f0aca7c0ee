"""Sentences that tell nothing: no name, no number, and nobody whom a following "she" or "it" could mean."""

import random
from collections.abc import Iterator

from ragcache_bench.tasks.independent.grammar import compose

#: Patterns, see `compose`; none longer than eleven words.
IDLE = (
    "More on this will follow when there is time.",
    "All of this was checked against older notes <lately>.",
    "Corrections are welcome, as long as they are polite.",
    "These lines were typed up in a hurry <lately>.",
    "Questions about this come up <often>, mostly from <folk>.",
    "Some details had to be left out for lack of space.",
    "Nothing here should come as a surprise to <folk>.",
    "We heard the same from <folk> <lately>.",
    "Opinions differ, as they <often> do in such matters.",
    "Let us stick to what is known for certain.",
    "There was talk of changes <lately>, but nothing came of that.",
    "We thank <folk> for their patience and their good humour.",
    "Rumours to the contrary were put to rest <lately>.",
    "Anyone may copy these notes and pass them on.",
    "The rain was so loud that we could hardly talk.",
    "Much has been said on the matter <lately>, little of it new.",
    "For some reason <folk> <often> get this wrong.",
    "We went over every line again <lately> and found no mistake.",
    "Please do not rely on what the old leaflets say.",
    "Here as elsewhere, things change more slowly than one thinks.",
    "Several letters on the matter are still waiting for an answer.",
    "What was doubtful has been crossed out in pencil.",
    "Photographs will be added as soon as they are ready.",
    "To be fair, <folk> had told us so before.",
    "Not everybody will find this interesting, and that is fine.",
    "Many thanks to all who sent us clippings <lately>.",
    "We have <often> been asked to put this in writing.",
    "As always, the small print matters more than the headline.",
    "Somebody had spilled coffee over the first draft of these pages.",
    "Other sources <often> say the same in other words.",
    "Should anything change, we will add a line at the end.",
    "Most of what we know was learned over lunch.",
    "Now and then <folk> ask why we bother to write this down.",
    "So much for the gossip, and back to the facts.",
    "A longer version exists but nobody wants to read that.",
    "In short, there is less mystery here than <folk> think.",
    "The weather was dreadful while these remarks were collected.",
    "We tried to keep things brief, <folk> prefer that.",
    "Some of the older papers were lost when the cellar flooded.",
    "We leave the rest to <folk> with better eyes.",
    "Everything else is hearsay and does not belong here.",
    "There is little to add to what was printed <lately>.",
    "Needless to say, any errors are ours alone.",
    "Further remarks were dropped after a long discussion.",
    "Lists like this are <often> out of date within months.",
    "Thanks to <folk>, several gaps could be filled <lately>.",
    "We asked around <lately> and got the same reply everywhere.",
    "Those who know better should please let us know.",
    "The spelling follows the old lists, with all their quirks.",
    "For once, all the sources agree with each other.",
    "Nobody at the table had any objections to this.",
    "Later notes <often> repeat this word for word.",
    "Some of this was first mentioned over tea <lately>.",
    "There has been a good deal of shouting about such things.",
    "We promised <folk> not to make too much of this.",
    "Details like these are <often> overlooked by <folk>.",
    "The next round of updates is due after the holidays.",
    "Whether any of this matters is for others to say.",
    "Old newspapers were of great help in putting this together.",
    "Our thanks also go to those who prefer to stay unnamed.",
    "This paragraph was shortened <lately> to make room for others.",
    "Please keep these pages dry and out of the sun.",
    "By all accounts, <folk> were pleased with how things went.",
    "We had hoped to say more, but time was short.",
    "Plenty of stories go round, and <folk> enjoy most of them.",
    "After that, everybody went home and slept well.",
    "As <folk> will remember, none of this was planned.",
    "The usual warnings apply, and we shall not repeat them.",
)

#: How a section begins, with the subject ``{s}``, article included, and its kind's name and plural.
INTRODUCTIONS = (
    "Next among the {plural}: {s}.",
    "{s}: one of the {plural} that we were asked to describe.",
    "What follows concerns {s}, one of the {plural} on our list.",
    "Of all the {plural} on our list, {s} brought us the most letters.",
    "Long-time readers know {s} from our earlier list of {plural}.",
    "Here are some notes on the {kind} called {s}.",
    "No list of {plural} would be complete without {s}.",
    "Now for something about {s}, long a favourite among our {plural}.",
    "The {kind} in question here is {s}.",
    "Under this heading we have put what we know of {s}.",
)

#: Titles of pages which are not about one subject only.
PAGE_TITLES = (
    "Notes on {plural}",
    "{Plural}: what we know",
    "Various {plural}, in no order",
    "From our list of {plural}",
    "{Plural} at a glance",
)


def idle_sentences(rng: random.Random) -> Iterator[str]:
    """Every idle sentence once, in random order."""
    for pattern in rng.sample(IDLE, len(IDLE)):
        yield compose(rng, pattern)
