"""Values from closed vocabularies or of digits: dates, amounts, measures, codes; in several styles."""

from collections.abc import Callable
from random import Random

from reader_tuning.language import words as w
from reader_tuning.language.sounds import syllables

Make = Callable[[Random], str]
_ORDINAL = {1: "st", 21: "st", 2: "nd", 22: "nd", 3: "rd", 23: "rd"}
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def _number(rng: Random) -> str:
    high = rng.choice((99, 999, 9999, 99999))
    value = rng.randint(2, high)
    return f"{value:,}" if value > 9999 or rng.random() < 0.5 else str(value)


def _amount(rng: Random) -> str:
    value = rng.choice((rng.randint(2, 999), rng.randrange(1000, 99999, 10), rng.randrange(100000, 9999999, 1000)))
    text = rng.choice((f"{value:,}", f"{value:,}", f"{value}", f"{value:,}.{rng.randrange(5, 99, 5):02d}"))
    draw = rng.random()
    if draw < 0.3:
        return rng.choice("€$£¥") + text
    if draw < 0.4:
        return f"{rng.randint(2, 95)}.{rng.randint(1, 9)} million {rng.choice(('euros', 'dollars', 'pounds', 'yen'))}"
    if draw < 0.55:
        return rng.choice((f"EUR {text}", f"{text} USD", f"{text} GBP", f"CHF {text}", f"{text} SEK", f"{text} €"))
    return f"{text} {rng.choice(('euros', 'euros', 'dollars', 'pounds', 'francs', 'crowns', 'yen', 'pesos', 'rupees'))}"


def _date(rng: Random) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(1990, 2035)
    name = w.MONTHS[month - 1]
    return rng.choice(
        (
            f"{day} {name} {year}",
            f"{day} {name} {year}",
            f"{year}-{month:02d}-{day:02d}",
            f"{name} {day}, {year}",
            f"{day:02d}.{month:02d}.{year}",
            f"{day} {name}",
            f"{name} {day}",
            f"{day} {name[:3]} {year}",
            f"{day}/{month}/{year}",
            f"{day}{_ORDINAL.get(day, 'th')} {name} {year}",
        )
    )


def _code(rng: Random) -> str:
    letters = "".join(rng.choice(_LETTERS) for _ in range(rng.randint(1, 3)))
    number = rng.randint(10, 99999)
    return rng.choice(
        (
            str(rng.randint(1000, 99999)),
            f"{letters}-{number}",
            f"{letters}{number}",
            f"{number}-{letters}",
            f"{letters}/{number}/{rng.randint(10, 35)}",
            f"{letters}-{number}-{rng.choice(_LETTERS)}",
            f"{number:05d}",
        )
    )


def _measure(low: int, high: int, units: str, decimals: float = 0.3) -> Make:
    """A maker of a number with one of the units."""
    names = units.split(", ")

    def make(rng: Random) -> str:
        value = rng.randint(low, rng.choice((high, max(low + 1, high // 10))))
        text = f"{value}.{rng.randint(1, 9)}" if rng.random() < decimals else f"{value:,}"
        return f"{text} {rng.choice(names)}"

    return make


def _time(rng: Random) -> str:
    hour, minute = rng.randint(6, 22), rng.choice((0, 10, 15, 20, 30, 40, 45, 50))
    twelve = hour % 12 or 12
    half = "am" if hour < 12 else "pm"
    return rng.choice(
        (
            f"{hour:02d}:{minute:02d}",
            f"{hour}.{minute:02d}",
            f"{twelve}:{minute:02d} {half}",
            f"{twelve} {half}",
            f"{hour}:{minute:02d} h",
        )
    )


def _phone(rng: Random) -> str:
    a, b, c = rng.randint(20, 999), rng.randint(100, 999), rng.randint(1000, 9999)
    return rng.choice(
        (f"+{rng.randint(30, 99)} {a} {b} {c}", f"0{a} {b}{c}", f"({a:03d}) {b}-{c}", f"0{a}-{b} {c}", f"{b}-{c}")
    )


def _email(rng: Random) -> str:
    name = rng.choice(
        (rng.choice(w.FIRST_NAMES), syllables(rng), "info", "office", "desk", rng.choice(w.NOUNS))
    ).lower()
    tail = rng.choice(("", "", f".{syllables(rng).lower()}", str(rng.randint(2, 99))))
    return f"{name}{tail}@{syllables(rng).lower()}.{rng.choice(('org', 'com', 'net', 'example', 'co.uk', 'eu'))}"


def _path(rng: Random) -> str:
    parts = [rng.choice(w.NOUNS) for _ in range(rng.randint(1, 3))]
    return "/" + "/".join(parts) + rng.choice(("", "", "/", f"/v{rng.randint(1, 9)}", ".html", ".csv"))


def _version(rng: Random) -> str:
    return rng.choice(("", "", "v")) + ".".join(str(rng.randint(0, 30)) for _ in range(rng.choice((2, 3, 3))))


def _coordinates(rng: Random) -> str:
    north, east = f"{rng.randint(1, 80)}.{rng.randint(10, 99)}", f"{rng.randint(1, 170)}.{rng.randint(10, 99)}"
    return rng.choice((f"{north}° N, {east}° E", f"{north}° S, {east}° W", f"{north}, {east}", f"{north} N {east} W"))


def _percentage(rng: Random) -> str:
    number = rng.choice((str(rng.randint(2, 99)), f"{rng.randint(0, 99)}.{rng.randint(1, 9)}"))
    return number + rng.choice((" percent", "%", " per cent", "%", " %"))


def _rating(rng: Random) -> str:
    best = rng.choice((5, 6, 10))
    return rng.choice(
        (
            f"{rng.randint(1, best)} out of {best}",
            f"{rng.randint(1, best - 1)}.{rng.randint(1, 9)}/{best}",
            f"{rng.randint(1, best)} stars",
            rng.choice(("A+", "A-", "B+", "B-", "C+", "AA", "BBB", "AAA")),
        )
    )


def _temperature(rng: Random) -> str:
    return rng.choice(
        (
            f"{rng.randint(-60, 900)} °C",
            f"{rng.randint(2, 240)} degrees",
            f"{rng.randint(20, 450)} °F",
            f"minus {rng.randint(2, 80)} degrees",
            f"{rng.randint(3, 900)} kelvin",
        )
    )


def _score(rng: Random) -> str:
    a, b = rng.randint(0, 9), rng.randint(0, 9)
    return rng.choice((f"{a}-{b}", f"{a}:{b}", f"{a} to {b}", f"{a * 9}-{b * 8 + 1}"))


def _room_number(rng: Random) -> str:
    n = rng.randint(2, 999)
    return rng.choice(
        (
            f"room {n}",
            f"room {n}",
            f"Room {rng.choice(_LETTERS)}{n}",
            f"room {rng.randint(1, 9)}.{n:02d}",
            f"office {n}",
            f"suite {n}",
            f"desk {n}",
        )
    )


def _period(rng: Random) -> str:
    return rng.choice((f"the {rng.randint(4, 20)}th century", f"the {rng.randint(4, 19)}th dynasty"))


def _address(rng: Random) -> str:
    street = f"{syllables(rng)} {rng.choice(('Street', 'Road', 'Lane', 'Avenue', 'Square'))}"
    return rng.choice(
        (
            f"{rng.randint(1, 200)} {street}",
            f"{syllables(rng)}straat {rng.randint(1, 90)}",
            f"{rng.randint(1, 99)}{rng.choice('abc')} {street}",
        )
    )


def _choice(words: tuple[str, ...]) -> Make:
    return lambda rng: rng.choice(words)


_BEFORE = tuple(word for word in w.ADJECTIVES if word[0] not in "aeiou")


def _phrase(words: tuple[str, ...]) -> Make:
    """A word alone, or with others that belong to the answer: a reader of single words leaves them out."""

    def make(rng: Random) -> str:
        word, draw = rng.choice(words), rng.random()
        if draw < 0.5:
            return word
        if draw < 0.8:
            return f"{rng.choice(_BEFORE)} {word}"
        if draw < 0.9:
            return f"{word} and {rng.choice([other for other in words if other != word])}"
        return f"{word} from the {rng.choice(w.NOUNS)}"

    return make


def _days(rng: Random) -> str:
    day, part = rng.choice(w.WEEKDAYS), rng.choice(("mornings", "afternoons", "evenings", "nights"))
    return rng.choice(
        (day, day, f"{day} {part}", f"{day} {part}", f"{day} in {rng.choice(w.MONTHS)}", f"{day} at {_time(rng)}")
    )


_LENGTH = _measure(2, 900, "metres, meters, m, feet, centimetres, ft")
#: Kinds whose values are drawn from closed vocabularies or made of digits; shared by training and evaluation.
VALUES: dict[str, Make] = {
    "number": _number,
    "amount": _amount,
    "date": _date,
    "code": _code,
    "badge": _code,
    "year": lambda rng: str(rng.choice((rng.randint(1901, 2024), rng.randint(1100, 2030)))),
    "room number": _room_number,
    "time": _time,
    "phone": _phone,
    "email": _email,
    "path": _path,
    "version": _version,
    "coordinates": _coordinates,
    "percentage": _percentage,
    "rating": _rating,
    "temperature": _temperature,
    "score": _score,
    "period": _period,
    "address": _address,
    "length": _LENGTH,
    "distance": _measure(2, 9000, "kilometres, km, miles, kilometers"),
    "weight": _measure(2, 900, "kilograms, kg, tonnes, tons, grams, pounds"),
    "duration": _measure(2, 90, "minutes, hours, days, weeks, months, years", 0.05),
    "speed": _measure(5, 900, "km/h, mph, knots, metres per second"),
    "area": _measure(2, 9000, "hectares, acres, square metres, square kilometres, square feet"),
    "volume": _measure(2, 9000, "litres, liters, cubic metres, gallons, millilitres"),
    "power": _measure(2, 900, "kilowatts, kW, megawatts, watts, horsepower"),
    "size": _measure(2, 900, "gigabytes, GB, megabytes, MB, terabytes, TB"),
    "dose": _measure(5, 500, "milligrams, mg, drops, tablets, millilitres", 0.1),
    "frequency": _measure(2, 900, "MHz, GHz, kHz, megahertz"),
    "material": _phrase(w.MATERIALS),
    "colour": _phrase(w.COLOURS),
    "room": _choice(w.ROOMS),
    "role": _phrase(w.ROLES),
    "nation": _choice(w.COUNTRIES),
    "tongue": _choice(w.TONGUES),
    "animal": _phrase(w.ANIMALS),
    "food": _phrase(w.FOODS),
    "instrument": _phrase(w.INSTRUMENTS),
    "weekday": _days,
    "month": _choice(w.MONTHS),
    "sport": _choice(w.SPORTS),
    "genre": _phrase(w.GENRES),
    "style": _phrase(w.STYLES),
    "subject": _phrase(w.SUBJECTS),
    "noun": _phrase(tuple(noun for noun in w.NOUNS if noun[0] not in "aeiou")),
    "status": _choice(
        tuple("open closed pending approved rejected paused active expired archived cancelled overdue draft".split())
    ),
    "priority": _choice(tuple("low medium high urgent critical minor normal".split())),
    "season": _choice(tuple("spring summer autumn winter".split())),
    "crop": _phrase(
        tuple(
            "wheat barley rye oats maize rice potatoes beet hops tea coffee cotton flax tobacco sugarcane soy".split()
        )
    ),
    "ore": _phrase(
        tuple(
            "coal copper gold silver tin zinc iron lead nickel salt slate uranium lithium cobalt gypsum marble".split()
        )
    ),
    "habitat": _phrase(
        tuple("marshland rainforest tundra grassland woodland mangroves reefs heathland deserts caves rivers".split())
    ),
    "diet": _phrase(
        tuple("insects seeds fish berries leaves nectar roots worms plankton mice fruit moss algae bark eggs".split())
    ),
    "illness": _phrase(
        tuple("asthma migraine gout malaria insomnia eczema arthritis hay-fever bronchitis anaemia measles flu".split())
    ),
}
