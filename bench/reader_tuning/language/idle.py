"""Sentences which answer nothing, put together from many frames."""

import re
from random import Random

from reader_tuning.language import words as w

_FRAMES = """
{Who} {did} {when}.
{Who} {did}.
{When}, {who} {did}.
{Who} {did} and {did} {when}.
{Who}, who {did}, seemed in good spirits.
The {noun} by the {place} is {adj}.
The {noun} near the {place} has been {done} {when}.
There is a {adj} {noun} in the {place}.
Nobody has seen the {adj} {noun} since {month}.
It {rained} {when}.
{When} it {rained}, so {who} {did}.
The weather was {adj} {when}.
Please keep the {place} {adj}.
Please return the {noun} to the {place} {when}.
Remember to close the {noun} in the {place}.
Visitors are asked not to touch the {noun}.
A {adj} {noun} stands next to the {place}.
The {adj} {noun} will be {done} in {month}.
In {month} the {place} was {done}.
Some say that the {noun} is too {adj}.
Others prefer a {adj} {noun}.
The {place} smelt of {stuff} {when}.
They ordered more {stuff} for the {place}.
The price of {stuff} has gone up again.
There was not enough {stuff} {when}.
A box of {stuff} arrived {when}.
The walls are made of {stuff} and feel {adj}.
What matters most, according to {who}, is a {adj} {noun}.
{Who} promised to {do} {when}.
{Who} would like to {do} {when}.
{Who} forgot to {do}.
{Who} plans to {do} in {month}.
Before anyone could {do}, {who} {did}.
Whenever it {rained}, {who} {did}.
Although {who} {did}, the {noun} stayed {adj}.
Because the {noun} was {adj}, {who} {did}.
The reason for the {noun} is not known.
As for the {noun}, opinions differ.
The {noun} and the {noun} were {done} together.
Neither the {noun} nor the {noun} was of any use.
The {place} is {adj} at this time of the year.
The way to the {place} leads past a {adj} {noun}.
From the {place} one can see a {adj} {noun}.
The old {place} has given way to a {adj} one.
Lunch was served in the {place} {when}.
There will be {food} and {food} {when}.
The canteen offers {food} {dish} {when}.
{Who} recommends the {food} {dish}.
The {food} was {adj}, the {food} less so.
A {animal} was seen near the {place} {when}.
The {animal} in the {place} belongs to nobody.
Children like the {animal} best.
Two {animal} pictures hang in the {place}.
More about the {noun} will follow.
See the notes on the {noun} for more.
The section on the {noun} is still empty.
This part was {done} {when}.
The {noun} is described elsewhere.
A photo of the {noun} is attached.
The list of {noun} parts was {done} {when}.
The next {idea} is planned for {month}.
The last {idea} went on for too long.
The {idea} was {adj} but fair.
There were few remarks on the {idea}.
The {idea} has been put off until {month}.
{Who} disagreed with the {idea}.
{Who} asked for another {idea}.
A copy of the {idea} is kept in the {place}.
Minutes of the {idea} were taken by hand.
The {idea} is open to everyone.
Questions about the {idea} are welcome {when}.
Every {weekday}, {who} {did}.
On {weekday} the {place} is usually quiet.
By {weekday} the {noun} should be {done}.
{Who} is on holiday until {weekday}.
The {place} was painted {colour} {when}.
A {colour} {noun} was found in the {place}.
{Who} prefers {colour} to {colour}.
The {colour} {noun} goes well with {stuff}.
Someone left a {colour} {thing} in the {place}.
The {thing} on the desk is {adj}.
Who took the {thing} from the {place}, nobody could say.
A {thing} costs more than a {thing} these days.
{Who} collects every {adj} {thing} there is.
Lost: one {adj} {thing}, last seen in the {place}.
For sale: a {adj} {thing}, hardly used.
Note: the {place} is {adj} {when}.
Reminder: {do} {when}.
To do: {do}, then {do}.
- {do}
- the {noun} is {adj}
Thanks to {who} for the {adj} {noun}.
Good news: the {noun} has been {done}.
It is said that {who} once {did}.
In short, the {noun} was {adj}.
On the whole, the {idea} was {adj}.
Apart from that, {who} {did}.
Meanwhile, {who} {did} in the {place}.
Years ago, {who} {did} here.
Nothing has changed in the {place} since {month}.
If the {noun} is {adj}, ask at the {place}.
Should it rain, the {idea} moves to the {place}.
Not every {noun} is as {adj} as this one.
How the {noun} came to the {place} is a long story.
The younger ones {did}, the others {did}.
About {number} people walked past the {place} {when}.
It took {number} minutes to reach the {place}.
The {noun} was {adj} for about {number} days.
""".strip().splitlines()
_WHO = """
the team, somebody, a visitor, the night shift, one of the guests, nobody, the board, a neighbour, an old friend,
everyone, the new intern, a student, the caretaker, two colleagues, the mayor's office, a reader, the cook, some
of the children, the neighbours, a passer-by, the guide, a former member, an expert, the morning crew, a reporter,
the whole family, a tourist, the owner of the shop, the postman, most people, a few of us, the chair, an engineer,
the band, a customer
"""
_DID = """
had lunch, left early, asked for more coffee, looked at the plans, talked about the weather, read the minutes,
waited for the train, closed the windows, was pleased with the results, took a long break, lost a key, found an
umbrella, cleaned the desks, told a joke, made tea, sang a song, moved the chairs, counted the boxes, wrote a
letter, took notes, arrived late, went home, changed the bulbs, fed the fish, watered the plants, checked the
lists, raised a question, nodded politely, fell asleep, praised the soup, complained about the noise, repaired a
shelf, painted a door, drew a map, took a photo, played cards, missed the bus, rang the bell, opened a window,
tidied the drawers, ordered new paper
"""
_DO = """
clean the desks, water the plants, check the lists, close the windows, call the printer, sort the mail, buy more
paper, move the chairs, repair the shelf, write a report, send the forms, book a table, sweep the yard, label the
boxes, thank the guests, read the manual, lock the gate, bring a coat, ask for help, return the keys, take a
break, order lunch
"""
_WHEN = """
today, last week, again, after the meeting, before noon, as usual, for a while, without a word, this morning, late
at night, twice a year, in the afternoon, the other day, at the weekend, during the break, once more, in the end,
all of a sudden, from time to time, a month ago, over the summer, on the way back, at short notice, in spring, as
far as we know
"""
_DONE = """
cleaned, repaired, moved, replaced, painted, measured, photographed, checked, removed, restored, polished,
forgotten, discussed, renamed, covered, rebuilt, inspected, praised, copied, locked
"""
_RAINED = "rained, snowed, was windy, was foggy, thundered, hailed, was sunny, was very hot, was freezing, drizzled"


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.replace("\n", " ").split(",") if part.strip())


_SLOTS: dict[str, tuple[str, ...]] = {
    "who": _list(_WHO), "did": _list(_DID), "do": _list(_DO), "when": _list(_WHEN), "done": _list(_DONE),
    "rained": _list(_RAINED), "noun": w.NOUNS, "adj": tuple(a for a in w.ADJECTIVES if a[0] not in "aeiou"),
    "place": w.ROOMS, "stuff": w.MATERIALS, "food": w.FOODS, "dish": w.DISHES, "month": w.MONTHS, "animal": w.ANIMALS,
    "weekday": w.WEEKDAYS, "colour": tuple(c for c in w.COLOURS if c[0] not in "aeiou"), "thing": w.THINGS,
    "idea": tuple("meeting review report audit survey lecture vote trial tour course lesson debate talk match".split()),
    "number": tuple(str(n) for n in range(3, 90)),
}  # fmt: skip


def idle_sentence(rng: Random) -> str:
    """Return a sentence which answers nothing.

    Parameters
    ----------
    rng : random.Random
        Source of randomness.

    Returns
    -------
    str
        One sentence, note or list item, beginning with a capital (a list item with a hyphen).
    """

    def filled(match: re.Match[str]) -> str:
        slot = match.group(1)
        text = rng.choice(_SLOTS[slot.lower()])
        return text[0].upper() + text[1:] if slot[0].isupper() else text

    text = re.sub(r"\{(\w+)\}", filled, rng.choice(_FRAMES))
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    return text[0].upper() + text[1:]
