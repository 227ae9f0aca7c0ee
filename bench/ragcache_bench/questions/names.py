"""Names, numbers and dates for invented worlds; one name in ten is held out from training, by its hash."""

import random
import zlib
from collections.abc import Callable

FIRST = (
    "Anna Ben Clara David Emma Frank Grace Henry Ida James Karen Louis Mara Nina Oscar Paula Ralph Sarah Thomas "
    "Ursula Victor Wendy Peter Alice Bruno Cecil Diana Edgar Fiona George Helen Irene Jack Kate Leo Mary Nathan "
    "Olga Philip Rosa Simon Tara Walter Yvonne Daniel Sandra John Julie Fred Lily Brian Greg Amina Bilal Chen Dalia "
    "Elif Farid Hana Ines Jorge Kofi Lucia Mateo Noor Pavel Ravi Sofia Tomas Vera Yusuf Zoe"
).split()
LAST = (
    "Quill Stone Baker Frost Hale Moss Lane Reed Wolf Cole Park Webb Nash Voss Blake Dean Ford Gray Hunt Kerr Lowe "
    "Marsh North Page Rowe Sharp Thorn Vance West York Ash Birch Crane Drake Finch Glass Hart Jarvis Knox Lark Mills "
    "Noble Orr Pike Quinn Rhodes Swift Tate Upton Wren Alvarez Bauer Costa Dubois Eriksen Fischer Garcia Haddad "
    "Ivanov Jansen Kowalski Larsen Moreau Novak Okafor Petrov Rossi Santos Tanaka Weber"
).split()
CITY = (
    "Oslo Paris Rome Lima Cairo Berlin Madrid Vienna Prague Dublin Lisbon Athens Delhi Tokyo Seoul Boston Denver "
    "Austin Geneva Zurich Bergen Turin Milan Lyon Porto Ghent Leeds Malmo Perth Quito Riga Tunis Dakar Accra Hanoi "
    "Kyoto Osaka Basel Bonn Cork"
).split()
ADJECTIVE = (
    "Blue Red Green Iron Silver Golden Silent Bright Dark Cold Warm Swift Hidden Broken Ancient Lucky Crystal Copper "
    "Amber Scarlet White Black Wild Calm Deep High Low Long Rapid Solar"
).split()
NOUN = (
    "Tide River Falcon Harbor Lantern Bridge Meadow Comet Anchor Forest Canyon Beacon Glacier Summit Orchid Raven "
    "Tiger Island Thunder Mirror Compass Garden Window Castle Desert Engine Feather Hammer Ladder Needle"
).split()
HEAD = (
    "Ka Mo Ri Te Lu Sa Ve No Dra Fen Gor Hal Jin Kel Lor Mar Nor Or Pel Quin Ros Sil Tam Ul Var Wen Xan Yor Zed Bra "
    "Cal Del El Fal Gre Hu Is Jo Kir Lan Mir Nil Os Pra Rud Shi Tor Urs Vel Wil Yan Zor Ban Cor Dun Eth Flo Gil Hol Ivo"
).split()
TAIL = (
    "ka len mir don ra vik sa tor lo na bek dia gan hil jo ko lu mo nis pe rin sha tan va wyn xa yo zar bor cus dra el "
    "fi gor ham is jen kil lan mon ner os pra quil ros sim tes um ver win yas zu"
).split()
TOPIC = (
    "Travel Parking Laptop Hotel Training Meeting Badge Visitor Overtime Printing Holiday Canteen Bicycle Phone "
    "Storage Cleaning Shipping Safety Archive Guest Housing Sickness Gift Music Garden Tool Uniform Ladder Key "
    "Energy Heating Waste Coffee Delivery Password Backup Camera Drone Taxi Flight"
).split()
MATERIAL = (
    "copper glass wood steel paper cotton marble rubber silk wool clay gold salt sand oil wax tin zinc leather bronze "
    "bamboo granite carbon nylon resin ice coal chalk linen brass"
).split()
ROLE = (
    "baker biologist carpenter chemist cook designer doctor driver farmer gardener geologist lawyer librarian "
    "mechanic nurse painter pilot planner plumber printer programmer secretary teacher translator writer buyer "
    "surveyor tailor miller potter sailor welder"
).split()
COLOUR = "red blue green yellow white black grey brown pink orange purple silver".split()
THING = (
    "ball key book lamp coin ring cup map pen hat bag box watch apple knife rope flute drum letter photo candle scarf "
    "brush spoon plate clock doll shoe"
).split()
ROOM = (
    "kitchen garden bathroom bedroom hallway office cellar attic library garage park school cinema station market "
    "bakery museum hotel harbor church"
).split()
MONTH = ("January February March April May June July August September October November December").split()


def held_out(name: str) -> bool:
    """Whether `name` never occurs in training (one name in ten, by CRC-32)."""
    return zlib.crc32(name.encode()) % 10 == 0


class Names:
    """Draws names without repetition within one world.

    Parameters
    ----------
    rng : random.Random
        Source of randomness.
    held : bool
        Draw only held-out names (evaluation, the demo corpus) instead of only training names. Values from small
        closed vocabularies (months, colours, real cities) are shared.
    alike : float
        Share of two-word names which take their first word from another one of their kind.
    """

    def __init__(self, rng: random.Random, held: bool = False, alike: float = 0.0) -> None:
        self._rng = rng
        self._held = held
        self._alike = alike
        self._used: set[str] = set()
        self._first: dict[str, list[str]] = {}

    def draw(self, kind: str) -> str:
        """Return a fresh name of `kind`: person, project, company, product, site, policy, event, city, amount, …"""
        open_kind = _OPEN.get(kind)
        make = open_kind or VALUES[kind]
        for _ in range(2000):
            name = self._shared(kind, make(self._rng))
            if name not in self._used and (open_kind is None or held_out(name) == self._held):
                self._used.add(name)
                if self._alike and open_kind and " " in name:
                    self._first.setdefault(kind, []).append(name.split()[0])
                return name
        return self.draw("city") if kind == "real city" else make(self._rng)

    def _shared(self, kind: str, name: str) -> str:
        """Now and then with the first word of an earlier name."""
        known = self._first.get(kind)
        if known and " " in name and self._rng.random() < self._alike:
            return f"{self._rng.choice(known)} {name.split(' ', 1)[1]}"
        return name


def _syllables(rng: random.Random) -> str:
    return rng.choice(HEAD) + rng.choice(TAIL) + (rng.choice(TAIL) if rng.random() < 0.25 else "")


def _pair(first: list[str], second: list[str]) -> Callable[[random.Random], str]:
    return lambda rng: f"{rng.choice(first)} {rng.choice(second)}"


def _person(rng: random.Random) -> str:
    return f"{rng.choice(FIRST)} {rng.choice(LAST) if rng.random() < 0.7 else _syllables(rng)}"


def _project(rng: random.Random) -> str:
    return _syllables(rng) if rng.random() < 0.4 else _pair(ADJECTIVE, NOUN)(rng)


def _company(rng: random.Random) -> str:
    start = rng.choice(LAST) if rng.random() < 0.4 else _syllables(rng)
    return f"{start} {rng.choice(['Labs', 'Group', 'Works', 'Bank', 'Foods', 'Partners', 'Motors', 'Systems'])}"


def _product(rng: random.Random) -> str:
    start = rng.choice(NOUN) if rng.random() < 0.4 else _syllables(rng)
    return f"{start} {rng.choice(['Pump', 'Sensor', 'Lamp', 'Scale', 'Valve', 'Drill', 'Filter', 'Heater'])}"


def _site(rng: random.Random) -> str:
    start = rng.choice(ADJECTIVE + NOUN) if rng.random() < 0.5 else _syllables(rng)
    return f"{start} {rng.choice(['House', 'Hall', 'Tower', 'Court', 'Yard', 'Depot'])}"


def _policy(rng: random.Random) -> str:
    return f"{rng.choice(TOPIC)} {rng.choice(['Policy', 'Rule', 'Guideline', 'Code', 'Plan', 'Scheme'])}"


def _event(rng: random.Random) -> str:
    start = rng.choice(ADJECTIVE + NOUN) if rng.random() < 0.5 else _syllables(rng)
    return f"{start} {rng.choice(['Fair', 'Festival', 'Summit', 'Congress', 'Forum', 'Race'])}"


def _vessel(rng: random.Random) -> str:
    return f"{rng.choice(['MS', 'SS', 'HMS'])} {rng.choice(FIRST + NOUN) if rng.random() < 0.5 else _syllables(rng)}"


def _city(rng: random.Random) -> str:
    return rng.choice(CITY) if rng.random() < 0.35 else _syllables(rng)


def _amount(rng: random.Random) -> str:
    thousands, rest = rng.randint(1, 99), rng.randrange(0, 1000, 10)
    return f"{thousands},{rest:03d} euros" if rng.random() < 0.7 else f"{rng.randint(11, 999)} euros"


def _code(rng: random.Random) -> str:
    letters = rng.choice("ABCDEFGHKLMNPRSTVWXZ") + rng.choice(["", rng.choice("ABCDEFGHKLMNPRSTVWXZ")])
    return str(rng.randint(1000, 9999)) if rng.random() < 0.6 else f"{letters}-{rng.randint(100, 999)}"


def _date(rng: random.Random) -> str:
    day = f"{rng.randint(1, 28)} {rng.choice(MONTH)}"
    return f"{day} {rng.randint(2018, 2029)}" if rng.random() < 0.5 else day


_OPEN: dict[str, Callable[[random.Random], str]] = {
    "person": _person, "project": _project, "company": _company, "product": _product, "site": _site,
    "policy": _policy, "event": _event, "vessel": _vessel, "word": _syllables,
}  # fmt: skip
VALUES: dict[str, Callable[[random.Random], str]] = {
    "city": _city, "amount": _amount, "code": _code, "date": _date,
    "number": lambda rng: str(rng.randint(12, 999)),
    "badge": lambda rng: str(rng.randint(1000, 9999)),
    "year": lambda rng: str(rng.randint(1901, 2024)),
    "room number": lambda rng: f"room {rng.randint(100, 499)}",
    "material": lambda rng: rng.choice(MATERIAL), "colour": lambda rng: rng.choice(COLOUR),
    "thing": lambda rng: rng.choice(THING), "room": lambda rng: rng.choice(ROOM), "role": lambda rng: rng.choice(ROLE),
}  # fmt: skip
"""Kinds of values from small vocabularies, or digits; every other kind is a name."""
