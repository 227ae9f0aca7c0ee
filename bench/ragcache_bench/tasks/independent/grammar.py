"""Names and values made up anew for every question: a grammar of words, syllables, letters and digits."""

import random
import re
from functools import cache

_SLOT = re.compile(r"<([^>]+)>")

#: What each slot may become; alternatives stand between bars, and may have slots themselves.
GRAMMAR = {
    # syllables
    "start": "Bel | Bor | Cald | Cor | Dag | Del | Dun | Ebb | Fal | Fen | Gar | Gol | Had | Hesk | Ild | Jor "
    "| Kald | Kem | Lam | Lod | Mab | Mer | Nar | Nim | Ol | Orm | Pell | Pol | Quen | Rask | Rim | Sal "
    "| Sed | Tarn | Tob | Ulv | Vand | Ves | Wend | Wil | Yar | Zel",
    "middle": "a | e | i | o | u | ab | al | ani | ber | do | el | era | eri | gar | ig | ili | ka | len | lo | mi "
    "| na | or | ova | ra | ren | ri | se | ta | ul | ve | vi",
    "end": "bert | dan | dor | fax | gan | kin | lack | len | lin | low | mar | mond | nac | neth | nor | rick "
    "| rin | ros | sen | stal | tan | ten | thar | tin | ton | vane | vel | ven | ver | zon",
    "proper": "<start><end> | <start><middle><end> | <start><middle><middle><end>",
    "townend": "beck | bourne | bridge | bury | dale | den | ford | gate | ham | haven | holt | hurst | ley | mere "
    "| minster | mouth | ness | shaw | stead | stoke | thorpe | wade | well | wick | worth",
    "place": "<start><townend> | <start><middle><townend> | <start><townend> | Port <start><end> "
    "| <start><townend> Bay",
    # people
    "woman": "Adela | Agnes | Beatrix | Celia | Cosima | Dora | Edith | Elin | Esther | Fatima | Flora | Greta "
    "| Hanna | Ida | Ilsa | Ingrid | Irena | Judit | Kamala | Leonie | Livia | Lucia | Magda | Mei "
    "| Nadia | Noor | Olga | Paula | Rosa | Ruth | Sabine | Selma | Tamara | Thea | Ursula | Vera | Wilma "
    "| Yuki | Zora",
    "man": "Abel | Albin | Anton | Aziz | Bruno | Carlo | Cyril | Diego | Edgar | Emil | Felix | Gustav | Hamid "
    "| Hugo | Igor | Ismail | Ivo | Jakob | Jonas | Kofi | Lars | Leon | Luca | Marek | Nils | Omar "
    "| Oskar | Pavel | Ravi | Rolf | Samuel | Stefan | Takeo | Tomas | Victor | Walter | Yusuf",
    "surnameend": "ahl | ander | arsky | bach | berg | dahl | ecki | enko | ey | feld | gaard | hewen | idge | ikov "
    "| inen | ison | lund | man | mark | nick | oni | quist | sky | son | stone | strand | ulo | wald "
    "| wright",
    "surname": "<start><surnameend> | <start><middle><surnameend> | Ash<surnameend> | Mar<middle><surnameend> "
    "| O'<start><end>",
    "given": "<woman> | <man>",
    "person": "<given> <surname> | <given> <surname> | <given> <letter>. <surname> | Dr. <given> <surname>",
    # ordinary words
    "adj": "Blind | Bold | Bright | Broken | Clever | Crooked | Dancing | Distant | Drifting | Empty | Endless "
    "| Faithful | Flying | Gentle | Hidden | Hollow | Hungry | Idle | Jolly | Laughing | Lonely | Lucky "
    "| Merry | Noble | Patient | Proud | Quiet | Restless | Rolling | Secret | Silent | Sleeping | Steady "
    "| Stubborn | Sudden | Thirsty | Wandering | Wild | Winter",
    "noun": "Anchor | Anvil | Arrow | Badger | Barrel | Beacon | Bell | Candle | Comet | Compass | Cricket "
    "| Crown | Drum | Eagle | Falcon | Feather | Hammer | Harp | Heron | Kettle | Kite | Ladder | Lantern "
    "| Magnet | Mirror | Needle | Orchard | Otter | Owl | Pebble | Pigeon | Pilgrim | Raven | Saddle "
    "| Shepherd | Spindle | Sparrow | Thistle | Turtle | Whistle",
    "field": "<of> of <thing> | <thing>",
    "of": "the age | the chemistry | the movement | the origin | the growth | the sound | the decay | the history",
    "thing": "beetles | bog mosses | bone marrow | cave bats | clouds | coral | deep wells | earthworms "
    "| eel larvae | fern spores | glaciers | hailstones | honeycombs | lichens | lightning | moth wings "
    "| night frost | sand dunes | sea fog | snail shells | sunspots | tree rings | volcanoes "
    "| whale songs",
    "gadget": "<kindly> <ware>",
    "kindly": "folding | electric | wooden | wind-up | waterproof | pocket | garden | kitchen | hand-made",
    "ware": "bicycles | blankets | boots | brushes | chairs | clocks | combs | fans | flutes | gloves | hats "
    "| ladles | lamps | locks | pans | pumps | razors | scales | sledges | tents | toys | umbrellas "
    "| valves | whisks",
    "crop": "barley | beetroot | black beans | buckwheat | cabbage | carrots | celery | chard | flax | hops "
    "| leeks | lentils | millet | oats | onions | parsnips | peas | plums | potatoes | pumpkins "
    "| radishes | rye | spelt | spinach | turnips | yellow maize",
    "ailment": "<state> <trouble>",
    "state": "mild | severe | sudden | chronic | seasonal",
    "trouble": "back pain | colds | cramps | dizziness | earache | fever | gout | hay fever | headaches | heartburn "
    "| hiccups | itching | migraine | nausea | rashes | sore throats | stiff joints | toothache",
    "material": "<treated> <stuff> | <stuff>",
    "treated": "crushed | glazed | polished | pressed | rough | split",
    "stuff": "basalt | brick | cement | chalk | clay | concrete | cork | flint | glass | granite | gravel | larch "
    "| limestone | marble | oak | pine | sandstone | shale | slate | tiles",
    "metal": "brass | bronze | copper | gilded | iron | ivory | jade | lead | pewter | silver | tin",
    "relic": "bracelet | bull | chalice | chariot | coin | crocodile | dagger | flask | goblet | hare | helmet "
    "| key | lion | mask | shield | spoon | sundial | swan | thimble | throne",
    "wood": "ash | birch | cherry | ebony | elm | maple | rosewood | walnut | willow",
    "instrument": "banjo | bassoon | cello | clarinet | dulcimer | fiddle | guitar | mandolin | marimba | oboe "
    "| recorder | viola | xylophone | zither",
    "colour": "<shade> <hue>",
    "shade": "bright | dark | deep | dusty | light | pale | soft",
    "hue": "blue | brown | cream | green | grey | orange | pink | purple | red | yellow",
    "drug": "<drugstart><drugmiddle><drugend>",
    "drugstart": "Ab | Cef | Dex | Flu | Gly | Hep | Ket | Lor | Mox | Nov | Pra | Rox | Sul | Tal | Vor | Xan | Zep",
    "drugmiddle": "a | ali | amo | ero | evi | i | ido | ipra | olu | ova | uri | yta",
    "drugend": "cin | dex | dol | fen | lin | mab | mil | nal | pine | pril | ril | stat | tol | vir | xel | zine",
    # letters, digits and dates
    "letter": "A | B | C | D | E | F | G | H | J | K | L | M | N | P | R | S | T | V | W | X",
    "code": "<letter>-<100..999> | <letter><letter><10..99> | <11..99><letter> | <letter><100..999>",
    "clock": "<7..20>:15 | <7..20>:30 | <7..20>:45",
    "weekday": "<dayname> mornings | <dayname> afternoons | <dayname> evenings",
    "dayname": "Monday | Tuesday | Wednesday | Thursday | Friday | Saturday | Sunday",
    "month": "January | February | March | April | May | June | July | August | September | October | November "
    "| December",
    "recent": "<1961..2025>",
    "twodigits": "01 | 02 | 03 | 04 | 05 | 06 | 07 | 08 | 09 | 10 | 11 | 12",
    "day": "<1..28> <month> <recent> | <month> <1..28>, <recent> | <recent>-<twodigits>-<twodigits> "
    "| <13..28>.<1..12>.<recent> | the <4..20>th of <month> <recent>",
    "year": "<1788..2023>",
    # who and when, for idle sentences
    "folk": "readers | neighbours | visitors | our older members | the usual volunteers | people on the phone",
    "often": "often | sometimes | rarely | usually | now and then",
    "lately": "last autumn | this week | over the holidays | before the deadline | in the meantime | not long ago",
}


@cache
def _alternatives(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split(" | "))


def compose(rng: random.Random, pattern: str) -> str:
    """Make up a text.

    Parameters
    ----------
    rng : random.Random
        What chooses.
    pattern : str
        Alternatives between bars, of which one is chosen; in it ``<name>`` becomes what the grammar has under that
        name, and ``<3..40>`` a number from 3 to 40.

    Returns
    -------
    str
        For ``"<adj> <noun> | Unit <code>"``, say, "Rolling Anvil".
    """
    return _SLOT.sub(lambda slot: _filled(rng, slot[1]), rng.choice(_alternatives(pattern)))


def _filled(rng: random.Random, slot: str) -> str:
    if ".." not in slot:
        return compose(rng, GRAMMAR[slot])
    low, high = slot.split("..")
    number = rng.randint(int(low), int(high))
    return f"{number:,}" if number >= 10_000 else str(number)
