"""A wide bank of relations, names and idle sentences, from which readers are trained."""

from ragcache_bench.questions.relations import Relation

from reader_tuning.language.food import FOOD
from reader_tuning.language.happenings import HAPPENINGS
from reader_tuning.language.machines import MACHINES
from reader_tuning.language.nature import NATURE_RELATIONS
from reader_tuning.language.organisations import ORGANISATIONS
from reader_tuning.language.people import PEOPLE_RELATIONS
from reader_tuning.language.places import PLACES
from reader_tuning.language.projects import PROJECTS
from reader_tuning.language.records import RECORDS
from reader_tuning.language.works import WORKS

#: Every relation of the bank.
WIDE: tuple[Relation, ...] = (
    *PROJECTS,
    *PEOPLE_RELATIONS,
    *ORGANISATIONS,
    *PLACES,
    *NATURE_RELATIONS,
    *WORKS,
    *HAPPENINGS,
    *RECORDS,
    *MACHINES,
    *FOOD,
)
#: The same by subject kind.
WIDE_BY_SUBJECT: dict[str, tuple[Relation, ...]] = {
    kind: tuple(relation for relation in WIDE if relation.subject == kind)
    for kind in sorted({relation.subject for relation in WIDE})
}
