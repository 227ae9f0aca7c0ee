"""What can be said and asked about an invented world: one row per relation, its phrasings first to last by ease."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """One kind of fact about a subject `{s}` with a value `{o}`.

    Attributes
    ----------
    name : str
        Key of the relation within its subject kind.
    subject, value : str
        Kinds of names, as `Names.draw` knows them.
    says : tuple of str
        Self-contained statements, the subject before the value; the first is the plainest.
    it : tuple of str
        Statements which leave the subject to the section they stand in.
    asks : tuple of str
        Questions seen in training.
    unseen : tuple of str
        Questions kept for evaluation and the demo corpus.
    phrase : tuple of str
        Noun phrases for the value, for two-hop questions.
    """

    name: str
    subject: str
    value: str
    says: tuple[str, ...]
    it: tuple[str, ...]
    asks: tuple[str, ...]
    unseen: tuple[str, ...]
    phrase: tuple[str, ...] = ()


def _plain(
    name: str,
    subject: str,
    value: str,
    noun: str,
    says: tuple[str, ...] = (),
    it: tuple[str, ...] = (),
    asks: tuple[str, ...] = (),
    unseen: tuple[str, ...] = (),
    phrase: tuple[str, ...] = (),
) -> Relation:
    word = "Who" if value in ("person", "company") else "What"
    of = "the {s}" if subject in ("product", "policy") else "{s}"
    return Relation(
        name, subject, value,
        (f"The {noun} of {of} is {{o}}.", *says),
        (f"The {noun} is {{o}}.", *it),
        (f"{word} is the {noun} of {of}?", *asks),
        unseen,
        (f"the {noun} of {of}", *phrase) if value in ("person", "company") else (),
    )  # fmt: skip


RELATIONS: tuple[Relation, ...] = (
    _plain("lead", "project", "person", "lead",
           ("{s} is led by {o}.",),
           ("It is led by {o}.",),
           ("Who leads {s}?", "Who is in charge of {s}?", "By whom is {s} led?"),
           ("Which person leads {s}?", "Who is the person leading {s}?"),
           ("the person who leads {s}",)),
    _plain("base", "project", "city", "base",
           ("{s} is based in {o}.",), ("It is based in {o}.",),
           ("Where is {s} based?", "In which city is {s} based?", "Which city is {s} based in?"),
           ("Where is the base of {s}?",)),
    _plain("budget", "project", "amount", "budget",
           ("{s} has a budget of {o}.",), ("It has a budget of {o}.",),
           ("How large is the budget of {s}?", "What budget does {s} have?"),
           ("How big is the budget of {s}?", "How much is the budget of {s}?")),
    _plain("code", "project", "code", "code",
           ("{s} has the code {o}.", "{s} is listed under code {o}."), ("It has the code {o}.",),
           ("Which code does {s} have?", "What code does {s} have?"), ("Under which code is {s} listed?",)),
    _plain("sponsor", "project", "company", "sponsor",
           ("{s} is funded by {o}.",), ("It is funded by {o}.",),
           ("Who funds {s}?", "Which company funds {s}?", "By whom is {s} funded?"),
           ("Which company is the sponsor of {s}?",),
           ("the company that funds {s}",)),
    _plain("start", "project", "date", "start date",
           ("{s} starts on {o}.", "{s} began on {o}."), ("It starts on {o}.",),
           ("When does {s} start?", "On which date does {s} start?"), ("When is the start date of {s}?",)),
    _plain("material", "project", "material", "main material",
           ("{s} works with {o}.", "{s} uses {o}."), ("It works with {o}.",),
           ("Which material does {s} use?",),
           ("What material does {s} use?", "Which material is the main material of {s}?")),
    _plain("town", "person", "city", "home town",
           ("{s} lives in {o}.", "{s} moved to {o}."), ("They live in {o}.",),
           ("Where does {s} live?", "In which city does {s} live?", "Which city does {s} live in?"),
           ("Where is the home town of {s}?",)),
    _plain("role", "person", "role", "job",
           ("{s} works as a {o}.", "{s} is a {o}."), ("They work as a {o}.",),
           ("What does {s} work as?",), ("Which job does {s} have?", "As what does {s} work?")),
    _plain("badge", "person", "badge", "badge number",
           ("{s} carries badge {o}.", "{s} has the badge number {o}."), ("They carry badge {o}.",),
           ("Which badge does {s} carry?", "What badge does {s} carry?"), ("Which badge number does {s} have?",)),
    _plain("mentor", "person", "person", "mentor",
           ("{s} was trained by {o}.",), ("They were trained by {o}.",),
           ("Who trained {s}?", "Which person trained {s}?"), ("By whom was {s} trained?",),
           ("the person who trained {s}",)),
    _plain("employer", "person", "company", "employer",
           ("{s} works for {o}.",), ("They work for {o}.",),
           ("Which company does {s} work for?", "Who employs {s}?", "By whom is {s} employed?"),
           ("For which company does {s} work?",),
           ("the company that employs {s}",)),
    _plain("room", "person", "room number", "office",
           ("{s} sits in {o}.", "{s} can be found in {o}."), ("They sit in {o}.",),
           ("Where does {s} sit?", "In which room does {s} sit?"), ("Which room does {s} sit in?",)),
    _plain("office", "company", "city", "head office",
           ("The head office of {s} is in {o}.", "{s} is run from {o}."),
           ("The head office is in {o}.", "It is run from {o}."),
           ("Where is the head office of {s}?", "In which city is the head office of {s}?"),
           ("Which city is the head office of {s} in?",)),
    _plain("founder", "company", "person", "founder",
           ("{s} was founded by {o}.",), ("It was founded by {o}.",),
           ("Who founded {s}?", "By whom was {s} founded?"), ("Which person founded {s}?",),
           ("the person who founded {s}",)),
    _plain("phone", "company", "badge", "phone number",
           ("{s} can be reached under {o}.",), ("It can be reached under {o}.",),
           ("Which phone number does {s} have?",), ("What phone number does {s} have?",)),
    _plain("maker", "product", "company", "maker",
           ("The {s} is made by {o}.",), ("It is made by {o}.",),
           ("Who makes the {s}?", "Which company makes the {s}?"), ("By whom is the {s} made?",),
           ("the company that makes the {s}",)),
    _plain("price", "product", "amount", "price",
           ("The {s} costs {o}.",), ("It costs {o}.",),
           ("How much does the {s} cost?", "What does the {s} cost?"), ("How much is the {s}?",)),
    _plain("designer", "product", "person", "designer",
           ("The {s} was designed by {o}.",), ("It was designed by {o}.",),
           ("Who designed the {s}?", "By whom was the {s} designed?"), ("Which person designed the {s}?",),
           ("the person who designed the {s}",)),
    _plain("colour", "product", "colour", "colour",
           ("The {s} is painted {o}.",), ("It is painted {o}.",),
           ("Which colour does the {s} have?",), ("What colour does the {s} have?",)),
    _plain("manager", "site", "person", "manager",
           ("{s} is managed by {o}.",), ("It is managed by {o}.",),
           ("Who manages {s}?", "Which person manages {s}?"), ("By whom is {s} managed?",),
           ("the person who manages {s}",)),
    _plain("capacity", "site", "number", "number of desks",
           ("{s} has {o} desks.", "{s} has room for {o} people."), ("It has {o} desks.",),
           ("How many desks does {s} have?",), ("How many people does {s} have room for?",)),
    _plain("opened", "site", "year", "opening year",
           ("{s} was opened in {o}.",), ("It was opened in {o}.",),
           ("When was {s} opened?", "In which year was {s} opened?"), ("What year was {s} opened in?",)),
    _plain("owner", "policy", "person", "owner",
           ("The {s} is owned by {o}.",), ("It is owned by {o}.",),
           ("Who owns the {s}?", "By whom is the {s} owned?"), ("Which person owns the {s}?",),
           ("the person who owns the {s}",)),
    _plain("limit", "policy", "amount", "limit",
           ("The {s} sets a limit of {o}.", "The {s} allows up to {o}."), ("It allows up to {o}.",),
           ("How much does the {s} allow?",), ("What limit does the {s} set?",)),
    _plain("review", "policy", "date", "review date",
           ("The {s} is reviewed on {o}.",), ("It is reviewed on {o}.",),
           ("When is the {s} reviewed?",), ("On which date is the {s} reviewed?",)),
    _plain("host", "event", "city", "host city",
           ("{s} takes place in {o}.",), ("It takes place in {o}.",),
           ("Where does {s} take place?", "In which city does {s} take place?"),
           ("Which city does {s} take place in?",)),
    _plain("speaker", "event", "person", "main speaker",
           ("{s} is opened by {o}.",), ("It is opened by {o}.",),
           ("Who opens {s}?", "By whom is {s} opened?"), ("Which person opens {s}?",), ("the person who opens {s}",)),
    _plain("day", "event", "date", "date",
           ("{s} is held on {o}.",), ("It is held on {o}.",),
           ("When is {s} held?", "On which date is {s} held?"), ("On what date is {s} held?",)),
    _plain("captain", "vessel", "person", "captain",
           ("{s} is sailed by {o}.",), ("It is sailed by {o}.",),
           ("Who sails {s}?", "By whom is {s} sailed?"), ("Which person sails {s}?",), ("the person who sails {s}",)),
    _plain("cargo", "vessel", "material", "cargo",
           ("{s} carries {o}.",), ("It carries {o}.",), ("What does {s} carry?",), ("Which cargo does {s} carry?",)),
    _plain("yard", "vessel", "company", "builder",
           ("{s} was built by {o}.",), ("It was built by {o}.",),
           ("Who built {s}?", "Which company built {s}?"), ("By whom was {s} built?",),
           ("the company that built {s}",)),
    _plain("port", "vessel", "city", "home port",
           ("{s} is at home in {o}.",), ("It is at home in {o}.",),
           ("Where is {s} at home?",), ("In which port is {s} at home?",)),
    Relation("secret", "word", "badge", ("The secret code for {s} is {o}.",), ("The secret code is {o}.",),
             ("What is the secret code for {s}?",), ("Which secret code belongs to {s}?",)),
    Relation("where", "thing", "room", ("The {s} is in the {o}.", "Somebody left the {s} in the {o}."),
           ("It is in the {o}.",),
             ("Where is the {s}?",), ("In which room is the {s}?",)),
)  # fmt: skip
BY_SUBJECT: dict[str, tuple[Relation, ...]] = {
    kind: tuple(r for r in RELATIONS if r.subject == kind) for kind in {r.subject for r in RELATIONS}
}
