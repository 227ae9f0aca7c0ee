"""Makers of names: of made-up words, ordinary words, letters and digits, with and without a type word."""

from collections.abc import Callable, Sequence
from random import Random

from reader_tuning.language import words as w
from reader_tuning.language.sounds import syllables

Make = Callable[[Random], str]
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def _word(rng: Random) -> str:
    """An ordinary word with a capital."""
    return rng.choice(w.ADJECTIVES if rng.random() < 0.5 else w.NOUNS).capitalize()


def _noun(rng: Random) -> str:
    return rng.choice(w.NOUNS).capitalize()


def _pair(rng: Random) -> str:
    """Two ordinary words, "Rolling Anvil"."""
    first = rng.choice(w.ADJECTIVES if rng.random() < 0.75 else w.NOUNS)
    second = rng.choice(w.NOUNS)
    return f"{first.capitalize()} {second.capitalize()}"


def _root(rng: Random) -> str:
    """One word, made up or ordinary or a surname."""
    draw = rng.random()
    return syllables(rng) if draw < 0.6 else _word(rng) if draw < 0.8 else _last(rng)


def _mark(rng: Random) -> str:
    """Letters and digits, "K-417"."""
    letters = "".join(rng.choice(_LETTERS) for _ in range(rng.choice((1, 1, 2, 2, 3))))
    digits = rng.randint(2, 9999)
    return rng.choice((f"{letters}-{digits}", f"{letters}{digits}", f"{letters} {digits}", f"{digits}{letters[0]}"))


def _given(rng: Random) -> str:
    return rng.choice(w.FIRST_NAMES) if rng.random() < 0.6 else syllables(rng, 1, 2)


def _last(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.35:
        return rng.choice(w.LAST_NAMES)
    if draw < 0.85:
        return syllables(rng, 1, 2)
    if draw < 0.95:
        joined = rng.choice(w.NOUNS) + rng.choice(("man", "ton", "wood", "ley", "field", "well", "by", "worth", "er"))
        return joined.capitalize()
    return rng.choice(("O'", "Mc", "de ", "van ", "von ", "Di ", "El-", "Fitz")) + syllables(rng, 1, 2)


def _person(rng: Random) -> str:
    name = f"{_given(rng)} {_last(rng)}"
    draw = rng.random()
    if draw < 0.8:
        return name
    if draw < 0.86:
        return f"{rng.choice(('Dr.', 'Prof.', 'Mr', 'Ms', 'Mrs', 'Sir', 'Captain', 'Judge', 'Dr'))} {name}"
    if draw < 0.92:
        return f"{name.split()[0]} {rng.choice(_LETTERS)}. {name.split(' ', 1)[1]}"
    if draw < 0.96:
        return f"{name}-{_last(rng).split()[-1]}"
    return f"{_given(rng)} {name}"


def _typed(types: str, bare: float = 0.0, before: Sequence[str] = (), place: float = 0.0) -> Make:
    """A maker of names which mostly end in a type word, now and then start with one or go without.

    Parameters
    ----------
    types : str
        Type words, separated by commas.
    bare : float
        Share without a type word.
    before : sequence of str
        Words that may stand in front instead, "Treaty of".
    place : float
        Share of those, where there are any.
    """
    kinds = types.split(", ")

    def make(rng: Random) -> str:
        draw = rng.random()
        start = _root(rng) if draw < 0.65 else _pair(rng) if draw < 0.85 else f"{_word(rng)} {syllables(rng)}"
        if rng.random() < bare:
            return start
        if before and rng.random() < place:
            return f"{rng.choice(before)} {start}"
        return f"{start} {rng.choice(kinds)}"

    return make


def _marked(types: str, bare: float = 0.5) -> Make:
    """A maker of names of letters and digits, with or without a type word: "Invoice K-417", "K-417"."""
    kinds = types.split(", ")
    return lambda rng: _mark(rng) if rng.random() < bare else f"{rng.choice(kinds)} {_mark(rng)}"


def _either(*makers: Make) -> Make:
    return lambda rng: rng.choice(makers)(rng)


def _city(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.2:
        return rng.choice(w.CITIES)
    if draw < 0.75:
        return syllables(rng)
    if draw < 0.9:
        end = rng.choice(("ton", "bury", "ford", "haven", "stad", "burg", "mouth", "ville", "field", "grad", "minster"))
        return (syllables(rng, 1, 1) if rng.random() < 0.5 else rng.choice(w.NATURE).capitalize()) + end
    start = rng.choice(
        ("Port", "Saint", "New", "Upper", "Lower", "Bad", "Fort", "North", "East", "Old", "San", "Mount")
    )
    return f"{start} {syllables(rng)}"


def _company(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.1:
        return f"{_last(rng)} & {rng.choice(('Sons', 'Daughters', 'Partners', 'Co', 'Company', _last(rng)))}"
    if draw < 0.15:
        return f"{_last(rng)}, {_last(rng)} and {_last(rng)}"
    if draw < 0.3:
        return syllables(rng) + rng.choice(("", "", "tech", "soft", "corp", "ex", "ix", "net", "pharm", "gen"))
    if draw < 0.38:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(2, 4))) + rng.choice(
            (" Group", "", " Ltd", " AG")
        )
    return _typed(
        "Labs, Group, Works, Bank, Foods, Partners, Motors, Systems, Industries, Ltd, Inc, Limited, Holdings, "
        "GmbH, AG, Logistics, Textiles, Instruments, Chemicals, Brothers, Trading, Energy, Robotics, Press, "
        "Consulting, Solutions, Engineering, Construction, Capital, Insurance, Studios, Supplies, Mills, "
        "Shipyards, Optics, Media, Ventures, Foundation, Trust, Ceramics, Dairies, Brewers, Freight, Airways, "
        "Steel, Paints, Digital, Networks"
    )(rng)


def _monarch(rng: Random) -> str:
    title = rng.choice(("King", "Queen", "Emperor", "Empress", "Duke", "Prince", "Princess", "Sultan", "Tsar"))
    number = rng.choice(("", "", " II", " III", " IV", " V", " VI", " the Bold", " the Elder", f" of {syllables(rng)}"))
    return f"{title} {syllables(rng, 1, 2) if rng.random() < 0.6 else rng.choice(w.FIRST_NAMES)}{number}"


def _title(rng: Random) -> str:
    """The title of a book, film, song or painting."""
    noun, other, adjective = rng.choice(w.NOUNS), rng.choice(w.NOUNS), rng.choice(w.ADJECTIVES).capitalize()
    one, two, name = noun.capitalize(), other.capitalize(), syllables(rng)
    return rng.choice(
        (
            f"The {adjective} {one}",
            f"{one} and {two}",
            f"The {one} of {name}",
            f"A {adjective} {one}",
            f"{adjective} {one}s",
            f"Letters from {name}",
            f"{one} in the {two}",
            f"The {name} {one}",
            f"{name}",
            f"Under the {one}",
            f"Songs of the {one}",
            f"{_given(rng)}'s {one}",
            f"The Last {one}",
            f"{one} No. {rng.randint(2, 40)}",
            f"Beyond {name}",
            f"How to Find a {one}",
            f"{adjective} {one}, {rng.choice(w.ADJECTIVES).capitalize()} {two}",
            f"Farewell to {name}",
            f"My {adjective} {one}",
            f"The {one} Who Stayed",
            f"Nine {one}s",
        )
    )


def _vessel(rng: Random) -> str:
    name = rng.choice((syllables(rng), syllables(rng), _pair(rng), _noun(rng), _given(rng)))
    return f"{rng.choice(('MS', 'SS', 'HMS', 'MV', 'RV', 'USS', 'SY', 'FV'))} {name}" if rng.random() < 0.6 else name


def _eatery(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.35:
        return f"The {_pair(rng)}"
    if draw < 0.5:
        return f"{_given(rng)}'s {rng.choice(('Kitchen', 'Table', 'Diner', 'Bistro', 'Grill', 'Place'))}"
    if draw < 0.6:
        return f"{rng.choice(('Chez', 'Casa', 'Trattoria', 'Taverna', 'Café'))} {syllables(rng)}"
    return _typed("Kitchen, Bistro, Inn, Grill, Tavern, Café, Brasserie, Diner, Eatery, Steakhouse", 0.1)(rng)


def _dish(rng: Random) -> str:
    first, second = rng.sample(w.FOODS, 2)
    dish = rng.choice(w.DISHES)
    return rng.choice(
        (
            f"{first} {dish}",
            f"{first} and {second} {dish}",
            f"{syllables(rng)} {dish}",
            f"{first} {dish} {syllables(rng)}",
        )
    )


def _species(rng: Random) -> str:
    first = rng.choice((rng.choice(w.ADJECTIVES), syllables(rng), rng.choice(w.NATURE)))
    return f"{first} {rng.choice(w.ANIMALS + w.NATURE[60:105])}"


def _course(rng: Random) -> str:
    subject = rng.choice(w.SUBJECTS).capitalize()
    return rng.choice((
        f"{subject} {rng.choice(('101', '204', '310', 'II', 'III', 'Seminar', 'Workshop'))}",
        f"{rng.choice(('Introduction to', 'Advanced', 'Applied', 'Topics in'))} {subject}",
        f"{_mark(rng)} {subject}",
        f"{subject} of {rng.choice(w.NOUNS).capitalize()}s",
    ))  # fmt: skip


def _website(rng: Random) -> str:
    tail = rng.choice(("", rng.choice(w.NOUNS)))
    return f"{syllables(rng).lower()}{tail}.{rng.choice(('org', 'com', 'net', 'example'))}"


def _committee(rng: Random) -> str:
    start = rng.choice((rng.choice(w.TOPICS), syllables(rng), _word(rng)))
    return f"{start} {rng.choice(('Committee', 'Board', 'Council', 'Commission', 'Panel', 'Task Force'))}"


def _star(rng: Random) -> str:
    return rng.choice(
        (
            syllables(rng),
            f"{syllables(rng)} {rng.choice(('b', 'c', 'd', 'Prime', 'Minor', 'II', 'IV'))}",
            f"{syllables(rng, 1, 1).upper()[:4]}-{rng.randint(10, 9999)}{rng.choice('bcdef')}",
        )
    )


def _device(types: str) -> Make:
    kinds = types.split(", ")

    def make(rng: Random) -> str:
        start = _root(rng)
        draw = rng.random()
        if draw < 0.35:
            return f"{start} {rng.choice(kinds)}"
        if draw < 0.6:
            return f"{start} {rng.choice((_mark(rng), str(rng.randint(2, 9999)), str(rng.randint(1, 99) * 10)))}"
        if draw < 0.75:
            return f"{_pair(rng)} {rng.choice(kinds)}"
        return f"{rng.choice(kinds)} {_mark(rng)}"

    return make


def _software(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.4:
        return syllables(rng) + rng.choice(("", "DB", "Kit", "Flow", "Base", "ly", "OS", "Pad", "Hub"))
    if draw < 0.6:
        return _noun(rng) + rng.choice(("Kit", "Flow", "DB", "Desk", "Sync", "Mill", "Works", "Stack"))
    return _typed("Studio, Engine, Suite, Server, Manager, Viewer, Toolkit, Scheduler, Editor, Gateway, Tracker")(rng)


def _host(rng: Random) -> str:
    word = rng.choice((syllables(rng).lower(), rng.choice(w.NOUNS), rng.choice(w.ADJECTIVES), "db", "web", "cache"))
    return rng.choice(
        (f"{word}-{rng.randint(1, 99):02d}", f"{word}{rng.randint(1, 40)}", f"{word}.{syllables(rng).lower()}.example")
    )


def _case(rng: Random) -> str:
    return rng.choice((f"{_last(rng)} v. {_last(rng)}", f"{_last(rng)} v. {_company(rng)}", f"Case {_mark(rng)}"))


def _route(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.3:
        return f"{rng.choice(('Line', 'Route'))} {rng.choice((str(rng.randint(1, 99)), _mark(rng)))}"
    return _typed("Line, Express, Railway, Loop, Tramway, Metro")(rng)


_PROJECT = _either(
    syllables,
    syllables,
    _pair,
    _pair,
    _typed("Project, Programme, Initiative, Scheme"),
    _mark,
    lambda rng: f"{rng.choice(('Project', 'Operation', 'Plan'))} {_root(rng)}",
)
_POLICY = _either(
    lambda rng: f"{rng.choice(w.TOPICS)} {rng.choice(('Policy', 'Rule', 'Guideline', 'Code', 'Plan', 'Scheme'))}",
    lambda rng: f"{rng.choice(w.TOPICS)} {rng.choice(('Directive', 'Standard', 'Procedure', 'Charter'))} {_mark(rng)}",
    lambda rng: f"{rng.choice(w.ADJECTIVES).capitalize()} {rng.choice(w.TOPICS)} {rng.choice(('Policy', 'Rule'))}",
    lambda rng: f"{syllables(rng)} {rng.choice(w.TOPICS)} {rng.choice(('Policy', 'Rule', 'Guideline', 'Code'))}",
)
_THING = _either(
    lambda rng: rng.choice(w.THINGS),
    lambda rng: f"{rng.choice(w.ADJECTIVES)} {rng.choice(w.THINGS)}",
    lambda rng: f"{rng.choice(w.COLOURS[:12])} {rng.choice(w.THINGS)}",
)


#: Kinds whose names are made up (or of many ordinary words); `held` chooses among them.
NAMES: dict[str, Make] = {
    "person": _person,
    "athlete": _person,
    "monarch": _monarch,
    "student": _person,
    "patient": _person,
    "musician": _person,
    "city": _city,
    "word": syllables,
    "project": _PROJECT,
    "company": _company,
    "policy": _POLICY,
    "thing": _THING,
    "vessel": _vessel,
    "title": _title,
    "book": _title,
    "film": _title,
    "song": _title,
    "painting": _title,
    "play": _title,
    "game": _title,
    "exhibition": _title,
    "podcast": _title,
    "restaurant": _eatery,
    "dish": _dish,
    "recipe": _dish,
    "species": _species,
    "planet": _star,
    "star": _star,
    "software": _software,
    "server": _host,
    "court case": _case,
    "train line": _route,
    "product": _device(
        "Pump, Sensor, Lamp, Scale, Valve, Drill, Filter, Heater, Kettle, Router, Lock, Fan, Chair, Mixer"
    ),
    "machine": _device("Press, Lathe, Loom, Mill, Crane, Mixer, Conveyor, Furnace, Saw, Compressor, Printer, Unit"),
    "aircraft": _device("Falcon, Glider, Jet, Trainer, Cruiser, Cub, Clipper"),
    "vehicle": _device("Truck, Van, Tractor, Coupe, Bus, Estate, Loader"),
    "robot": _device("Arm, Rover, Walker, Bot, Drone, Crawler"),
    "satellite": _device("Sat, Probe, Orbiter, Explorer, Scout"),
    "telescope": _typed("Telescope, Observatory, Array, Reflector"),
    "medicine": _either(
        lambda rng: syllables(rng, 2, 2), lambda rng: syllables(rng) + rng.choice(("ol", "ine", "ax", "um"))
    ),
    "site": _typed("House, Hall, Tower, Court, Yard, Depot, Campus, Building, Park, Works, Centre, Block", 0.1),
    "event": _typed(
        "Fair, Festival, Summit, Congress, Forum, Race, Conference, Gala, Expo, Symposium, Week, Day",
        0.0,
        ("Festival of", "Congress of", "Day of"),
        0.1,
    ),
    "festival": _typed("Festival, Carnival, Fair, Music Festival, Film Festival, Wine Festival, Street Party"),
    "museum": _typed("Museum, Gallery, Museum of Art, Collection, Maritime Museum, Toy Museum, City Museum"),
    "theatre": _typed("Theatre, Playhouse, Opera House, Stage"),
    "bridge": _typed("Bridge, Viaduct, Footbridge, Crossing, Aqueduct"),
    "river": _typed("River, Brook, Creek", 0.6, ("River",), 0.3),
    "lake": _typed("Lake, Pond, Reservoir, Lagoon", 0.0, ("Lake", "Loch"), 0.5),
    "mountain": _typed("Peak, Mountain, Hill, Ridge, Horn", 0.1, ("Mount", "Monte", "Ben", "Pico"), 0.5),
    "island": _typed("Island, Isle, Atoll, Rock, Key", 0.25, ("Isle of", "Isla"), 0.3),
    "volcano": _typed("Cone, Peak, Volcano", 0.4, ("Mount", "Monte"), 0.5),
    "glacier": _typed("Glacier, Icefield, Ice Cap"),
    "storm": _typed("Storm, Gale, Blizzard", 0.0, ("Storm", "Hurricane", "Cyclone", "Typhoon"), 0.8),
    "school": _typed("School, Academy, High School, Primary School, College, Grammar School"),
    "university": _typed("University, Institute, Polytechnic", 0.0, ("University of", "Institute of"), 0.4),
    "course": _course,
    "hospital": _typed("Hospital, Clinic, Infirmary, Medical Centre, General", 0.0, ("Hospital of", "St."), 0.1),
    "laboratory": _typed("Laboratory, Lab, Research Centre, Institute, Observatory"),
    "experiment": _either(_marked("Experiment, Trial, Run, Study"), _typed("Experiment, Trial, Study, Test")),
    "dataset": _either(
        _typed("Corpus, Dataset, Archive, Collection, Survey"), lambda rng: f"{syllables(rng)}-{rng.randint(2, 900)}"
    ),
    "website": _website,
    "contract": _marked("Contract, Agreement, Lease, Framework Contract"),
    "invoice": _marked("Invoice, Bill, Invoice no."),
    "ticket": _marked("Ticket, Issue, Request, Incident"),
    "account": _marked("Account, Account no., Customer account"),
    "parcel": _marked("Parcel, Package, Consignment"),
    "permit": _marked("Permit, Licence, Visa"),
    "booking": _marked("Booking, Reservation"),
    "claim": _marked("Claim, Insurance claim, Case"),
    "patent": _marked("Patent, Patent no."),
    "loan": _marked("Loan, Credit"),
    "order": _marked("Order, Purchase order, Order no."),
    "sample": _marked("Sample, Specimen, Core"),
    "law": _typed("Act, Bill, Regulation, Ordinance, Statute, Amendment", 0.0, ("Law on", "Act on"), 0.1),
    "treaty": _typed("Treaty, Accord, Pact, Convention", 0.0, ("Treaty of", "Peace of", "Convention of"), 0.6),
    "battle": _typed("Campaign, Siege, Uprising", 0.0, ("Battle of", "Siege of"), 0.8),
    "wine": _either(
        _title,
        lambda rng: f"{rng.choice(('Château', 'Domaine', 'Clos', 'Villa'))} {syllables(rng)}",
        _typed("Reserve, Cuvée, Estate"),
    ),
    "cheese": _typed("Blue, Brie, Cheddar, Tomme, Gouda, Cheese", 0.4),
    "club": _typed("Club, Rowing Club, Chess Club, Society, Association, Tennis Club, Sailing Club"),
    "team": _typed("Rovers, United, Wanderers, Tigers, Hawks, City, Athletic, Bears, Comets, Rangers"),
    "match": lambda rng: (
        f"{_root(rng)} v {_root(rng)}"
        if rng.random() < 0.5
        else f"{_root(rng)} {rng.choice(('Derby', 'Cup Final', 'Open', 'Semi-final', 'Playoff'))}"
    ),
    "committee": _committee,
    "orchestra": _typed("Philharmonic, Orchestra, Symphony Orchestra, Chamber Orchestra, Ensemble, Brass Band"),
    "choir": _typed("Choir, Singers, Chorale, Voices"),
    "language": lambda rng: syllables(rng) + rng.choice(("ish", "ese", "ic", "an", "i", "")),
    "village": _city,
    "country": lambda rng: syllables(rng) + rng.choice(("", "ia", "land", "stan", "mark")),
    "station": _typed("Station, Central, Junction, Road, Halt, Terminal", 0.1),
    "road": _typed("Road, Street, Avenue, Lane, Way, Highway", 0.0, ("Route",), 0.1),
    "park": _typed("Park, Gardens, Common, Nature Reserve, Forest Park, Green"),
    "castle": _typed("Castle, Fortress, Palace, Keep, Manor", 0.0, ("Castle", "Burg"), 0.2),
    "hotel": _typed("Hotel, Inn, Lodge, Resort, Guest House", 0.0, ("Hotel", "Grand Hotel"), 0.3),
    "tower": _typed("Tower, Lighthouse, Minaret, Spire"),
    "statue": _typed("Statue, Monument, Memorial, Fountain, Obelisk"),
    "farm": _typed("Farm, Ranch, Orchards, Dairy, Acres, Estate"),
    "mine": _typed("Mine, Colliery, Quarry, Pit"),
    "factory": _typed("Factory, Plant, Works, Mill, Foundry, Assembly Plant"),
    "warehouse": _either(
        _typed("Warehouse, Depot, Store, Distribution Centre"), _marked("Warehouse, Shed, Depot", 0.0)
    ),
    "port": _typed("Harbour, Docks, Quay, Marina", 0.0, ("Port of", "Port"), 0.5),
    "airport": _typed("Airport, International Airport, Airfield"),
    "airline": _typed("Air, Airways, Airlines, Wings"),
    "meeting": _either(
        _typed("Meeting, Briefing, Workshop, Retreat, Stand-up"),
        lambda rng: f"{rng.choice(w.TOPICS)} {rng.choice(('Meeting', 'Workshop', 'Review', 'Hearing', 'Call'))}",
    ),
    "expedition": _typed("Expedition, Survey, Voyage, Trek"),
    "charity": _typed("Trust, Foundation, Fund, Aid, Relief"),
    "newspaper": _typed("Times, Herald, Gazette, Post, Courier, Echo, Observer, Tribune"),
    "agency": _typed("Agency, Authority, Office, Bureau, Service"),
    "library": _typed("Library, Reading Room, Archive"),
    "garden": _typed("Garden, Botanical Garden, Arboretum, Rose Garden"),
    "market": _typed("Market, Bazaar, Farmers' Market"),
    "mineral": lambda rng: syllables(rng) + rng.choice(("ite", "ine", "spar", "lite")),
    "prize": _typed("Prize, Award, Medal, Cup, Fellowship"),
    "horse": _either(_pair, _title, syllables),
    "building": _typed("Building, House, Tower, Exchange, Mansion, Pavilion"),
    "dam": _typed("Dam, Weir, Barrage, Reservoir"),
    "power plant": _typed("Power Station, Wind Farm, Solar Park, Hydro Plant"),
    "fund": _typed("Fund, Bond, Index, Growth Fund"),
    "election": _typed("Election, By-election, Referendum, Vote"),
    "concert": _typed("Concert, Recital, Gala, Matinee"),
    "tree": lambda rng: f"{_root(rng)} {rng.choice(('Oak', 'Elm', 'Pine', 'Yew', 'Cedar', 'Lime', 'Beech', 'Plane'))}",
    "show": _title,
    "course unit": _marked("Module, Unit, Lesson", 0.0),
    "flight": _marked("Flight", 0.3),
}
