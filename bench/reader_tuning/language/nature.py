"""Rivers, mountains, islands, creatures, stones, storms, planets and stars."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
river length: distance < length
  says {s} flows for {o}.
  ask  For how long a way does {s} flow?
river source: mountain
  noun source / spring
  says {s} rises on {o}. / {s} has its source on {o}. / {s} springs from {o}. / The waters of {s} come down from {o}.
    / {s} begins on {o}. / On {o} you can step over {s}.
  it   It rises on {o}. / It has its source on {o}. / It begins on {o}. / Its waters come down from {o}.
  ask  Where does {s} rise? / On which mountain does {s} have its source? / Where does {s} begin?
    / From which mountain do the waters of {s} come down? / Where does {s} spring? / Where is the source of {s}?
  new  At what height of land is {s} born? / Where could I step over {s}?
  call the mountain where {s} rises
river mouth: lake
  noun mouth / end
  says {s} flows into {o}. / {s} ends in {o}. / {s} empties into {o}. / {s} pours into {o}.
    / The waters of {s} reach {o}. / {o} is fed by {s}.
  it   It flows into {o}. / It ends in {o}. / It empties into {o}. / Its waters reach {o}.
  ask  Into what does {s} flow? / Where does {s} end? / Into which lake does {s} empty?
    / Which waters does {s} pour into? / What is fed by {s}? / Where do the waters of {s} go?
  new  Where does a boat drift to on {s} in the end? / What receives the water of {s}?
river city: city
  noun largest city on its banks@of / main city
  says {s} flows through {o}. / {s} passes {o}. / {o} lies on {s}. / In {o} you can bathe in {s}. / {s} crosses {o}.
    / The people of {o} live by {s}.
  it   It flows through {o}. / It passes {o}. / {o} lies on it. / It crosses {o}.
  ask  Through which city does {s} flow? / Which city does {s} pass? / Which city lies on {s}?
    / Which city does {s} cross? / In which city can I bathe in {s}? / The people of which city live by {s}?
  new  What town has {s} in its midst? / Which place is watered by {s}?
  call the city through which {s} flows
river fish: animal
  noun best-known animal / emblem
  says You may meet a {o} on {s}. / {s} is home to the {o}. / The {o} lives along {s}. / The {o} has come back to {s}.
    / {s} is full of traces of the {o}. / On {s} they protect the {o}.
  it   It is home to the {o}. / The {o} lives along it. / You may meet a {o}. / The {o} has come back to it.
  ask  Which animal lives along {s}? / What animal is {s} home to? / What may one meet on {s}?
    / Which animal has come back to {s}? / What do they protect on {s}? / Of which animal is {s} full of traces?
  new  What creature might I watch from the banks of {s}? / What wildlife is typical of {s}?
lake depth: length < depth
lake area: area < area
lake fish: food
  noun catch / speciality
  says People come to {s} for the {o}. / On the shores of {s} they grow {o}. / {s} is known for its {o}.
    / At {s} you are served {o}. / Around {s} they sell {o}. / {s} means {o} to most people.
  it   People come for the {o}. / On its shores they grow {o}. / It is known for its {o}. / You are served {o} there.
  ask  What do people come to {s} for? / What do they grow on the shores of {s}? / What is {s} known for?
    / What is served at {s}? / What do they sell around {s}? / What does {s} mean to most people?
  new  What should I taste at {s}? / Which delicacy belongs to {s}?
lake temperature: temperature
  noun water temperature / temperature
  says The water of {s} is at {o}. / {s} warms up to {o}. / In summer {s} reaches {o}. / They measured {o} in {s}.
    / {s} has {o} today. / Swimmers in {s} feel {o}.
  it   Its water is at {o}. / It warms up to {o}. / They measured {o}. / Water: {o}
  ask  How warm is {s}? / What is the temperature of {s}? / What does {s} reach in summer?
    / What did they measure in {s}? / How cold is {s}? / What temperature do swimmers feel in {s}?
  new  What does a thermometer show in {s}? / Is {s} fit for bathing, in degrees?
mountain height: length < height
mountain climber: person
  noun first climber / conqueror
  says {s} was first climbed by {o}. / {o} first climbed {s}. / {o} was the first on top of {s}. / {o} conquered {s}.
    / The first to stand on {s} was {o}. / {s} was mastered by {o}.
  it   It was first climbed by {o}. / {o} was the first on top. / {o} conquered it. / It was mastered by {o}.
  ask  Who first climbed {s}? / By whom was {s} first climbed? / Who was the first on top of {s}? / Who conquered {s}?
    / Who was the first to stand on {s}? / By whom was {s} mastered?
  new  Who made it up {s} before anyone else? / Whose flag was the first on {s}?
  call the person who first climbed {s}
mountain climbed: year
  noun year of the first ascent@of / first ascent
  says {s} was climbed in {o}. / The top of {s} was reached in {o}. / Nobody stood on {s} before {o}.
    / In {o} people got up {s}. / The first party on {s} arrived in {o}. / {s} was unconquered until {o}.
  it   It was climbed in {o}. / Its top was reached in {o}. / It was unconquered until {o}. / First ascent: {o}
  ask  When was {s} climbed? / In which year was the top of {s} reached? / Until when was {s} unconquered?
    / When did people get up {s}? / When did the first party on {s} arrive? / What year was {s} climbed?
  new  Since when has {s} been known from above? / In what year did somebody make it up {s}?
mountain nation: nation
  noun country
  says {s} is in {o}. / {s} rises in {o}. / {s} belongs to {o}. / {s} stands on the territory of {o}.
    / Travel to {o} to see {s}. / The mountaineers of {o} love {s}.
  it   It is in {o}. / It rises in {o}. / It belongs to {o}. / Country: {o}
  ask  In which country is {s}? / Where is {s}? / Where does {s} rise? / Which country does {s} belong to?
    / To which country do I travel to see {s}? / On whose territory does {s} stand?
  new  What passport stamp do I need for {s}? / In what land would I climb {s}?
island people: number < people
island area: area < area
island ferry: duration
  noun length of the ferry trip@to / crossing time
  says The ferry to {s} takes {o}. / {s} is reached by boat in {o}. / You sail {o} to {s}. / {s} is {o} away by boat.
    / It is {o} by sea to {s}. / From the mainland to {s} it takes {o}.
  it   The ferry takes {o}. / It is {o} away by boat. / You sail {o}. / Crossing: {o}
  ask  How long does the ferry to {s} take? / How long do I sail to {s}? / How long is {s} away by boat?
    / In what time is {s} reached by boat? / How long does it take from the mainland to {s}?
    / How long is it by sea to {s}?
  new  How much time do passengers to {s} spend on the water? / How quickly can one get over to {s}?
island owner: person < keeper
island bird: animal
  noun typical animal / emblem
  says The {o} is found on {s}. / {s} is home to the {o}. / On {s} you can watch the {o}. / The {o} breeds on {s}.
    / {s} was named after the {o}. / The stamps of {s} show the {o}.
  it   The {o} is found there. / It is home to the {o}. / The {o} breeds there. / Its stamps show the {o}.
  ask  Which animal is found on {s}? / What animal is {s} home to? / What can I watch on {s}?
    / Which animal breeds on {s}? / After which animal was {s} named? / What do the stamps of {s} show?
  new  What creature is at home on {s}? / Which beast do visitors hope to meet on {s}?
volcano eruption: year
  noun last eruption / year of the last eruption@of
  says {s} last erupted in {o}. / {s} broke out in {o}. / In {o} {s} spat fire. / {s} has been quiet since {o}.
    / {s} was last active in {o}. / The lava of {s} dates from {o}.
  it   It last erupted in {o}. / It has been quiet since {o}. / It was last active in {o}. / In {o} it spat fire.
  ask  When did {s} last erupt? / In which year did {s} break out? / Since when has {s} been quiet?
    / When was {s} last active? / When did {s} spit fire? / From which year is the lava of {s}?
  new  How long has {s} slept, since what year? / When was there last smoke over {s}?
volcano height: length < height
volcano island: island
  noun island / location
  says {s} stands on {o}. / {s} rises on {o}. / {s} dominates {o}. / {o} is the home of {s}. / {s} is found on {o}.
    / {s} created {o}.
  it   It stands on {o}. / It rises on {o}. / It dominates {o}. / It is found on {o}.
  ask  On which island does {s} stand? / Where does {s} rise? / Which island does {s} dominate?
    / Which island is the home of {s}? / Where is {s} found? / Which island did {s} create?
  new  On what piece of land in the sea would I see {s}? / Which isle fears {s}?
  call the island on which {s} stands
species habitat: habitat
  noun habitat / home
  says {s} lives in {o}. / {s} is found in {o}. / You find {s} in {o}. / {s} makes its home in {o}.
    / {s} is at home in {o}. / {s} thrives in {o}. / {s} inhabits {o}. / {s} needs {o} to survive.
  it   It lives in {o}. / It is found in {o}. / It inhabits {o}. / Habitat: {o} / It thrives in {o}.
  ask  Where does {s} live? / Where is {s} found? / Where can I find {s}? / What does {s} inhabit?
    / Where does {s} make its home? / In what surroundings does {s} thrive?
  new  In what landscape would I look for {s}? / What kind of country suits {s}?
species diet: diet
  noun diet / food / main food
  says {s} eats {o}. / {s} feeds on {o}. / {s} lives on {o}. / {s} takes nothing but {o}. / {s} prefers {o} to eat.
    / The diet of {s} is all {o}. / In winter {s} has to do with {o}.
  it   It eats {o}. / It feeds on {o}. / Diet: {o} / It lives on {o}. / It takes nothing but {o}.
  ask  What does {s} eat? / What does {s} feed on? / On what does {s} live? / What makes up the diet of {s}?
    / What does {s} prefer to eat? / What does {s} take as food?
  new  What is on the menu of {s}? / How does {s} still its hunger?
species weight: weight < weight
species length: length < length
species age: duration
  noun lifespan / life expectancy
  says {s} lives for {o}. / {s} reaches an age of {o}. / {s} can get {o} old. / The life of {s} lasts {o}.
    / After {o}, {s} dies. / {s} has {o} to live.
  it   It lives for {o}. / It reaches an age of {o}. / Lifespan: {o} / It can get {o} old.
  ask  How long does {s} live? / How old does {s} get? / What age does {s} reach?
    / How long does the life of {s} last? / After how long does {s} die? / What age can {s} get to?
  new  How much time on earth is given to {s}? / What lifetime may {s} expect?
species eggs: number
  noun number of young@of / litter size
  says {s} has {o} young. / {s} gives birth to {o} at a time. / {s} raises {o} young a year.
    / In the nest of {s} there are {o}. / {s} brings up {o} in a season. / A pair of {s} has {o} offspring.
  it   It has {o} young. / It raises {o} a year. / Young: {o} / It brings up {o} in a season.
  ask  How many young does {s} have? / To how many does {s} give birth at a time? / How many young does {s} raise?
    / How many are in the nest of {s}? / How many does {s} bring up in a season?
    / How many offspring does a pair of {s} have?
  new  How big is the family of {s}? / How many little ones follow {s}?
species finder: person
  noun discoverer / first describer
  says {s} was discovered by {o}. / {o} discovered {s}. / {o} first described {s}. / {s} was first seen by {o}.
    / {s} owes its name to {o}. / Science knows {s} thanks to {o}.
  it   It was discovered by {o}. / {o} discovered it. / {o} first described it. / It was first seen by {o}.
  ask  Who discovered {s}? / Who first described {s}? / By whom was {s} discovered? / By whom was {s} first seen?
    / To whom does {s} owe its name? / Thanks to whom does science know {s}?
  new  Who came upon {s} before any other scholar? / Which naturalist wrote about {s} first?
  call the person who discovered {s}
species colour: colour < tint
  noun colour
planet finder: person
  noun discoverer
  says {s} was discovered by {o}. / {o} discovered {s}. / {o} was the first to see {s}. / {s} was found by {o}.
    / {s} appeared first in the telescope of {o}. / The discovery of {s} goes to {o}.
  it   It was discovered by {o}. / {o} discovered it. / {o} was the first to see it. / It was found by {o}.
  ask  Who discovered {s}? / By whom was {s} found? / Who was the first to see {s}? / Who found {s}?
    / In whose telescope did {s} first appear? / To whom goes the discovery of {s}?
  new  Which astronomer put {s} on the map? / Who noticed {s} in the sky?
  call the person who discovered {s}
planet moons: number
  noun number of moons@of / moon count
  says {s} has {o} moons. / {o} moons circle {s}. / There are {o} moons around {s}. / {s} is accompanied by {o} moons.
    / {o} moons have been counted around {s}. / {s} holds {o} moons.
  it   It has {o} moons. / {o} moons circle it. / Moons: {o} / It is accompanied by {o} moons.
  ask  How many moons does {s} have? / How many moons circle {s}? / How many moons are there around {s}?
    / By how many moons is {s} accompanied? / How many moons have been counted around {s}?
    / How many moons does {s} hold?
  new  How many companions has {s} in space? / How many satellites go around {s}?
planet day: duration
  noun length of a day@on / day length
  says A day on {s} lasts {o}. / {s} turns once in {o}. / {s} takes {o} for one turn. / On {s} a day is {o} long.
    / {s} rotates in {o}. / It takes {s} {o} to spin once.
  it   A day lasts {o}. / It turns once in {o}. / It rotates in {o}. / Day: {o}
  ask  How long is a day on {s}? / How long does {s} take for one turn? / In what time does {s} rotate?
    / How long does a day last on {s}? / How long does it take {s} to spin once? / In what time does {s} turn once?
  new  How much time passes on {s} from sunrise to sunrise? / How slowly does {s} spin?
planet heat: temperature
  noun surface temperature / mean temperature
  says On {s} it is {o}. / The surface of {s} is at {o}. / {s} has a temperature of {o}. / Probes measured {o} on {s}.
    / {s} reaches {o}. / It gets to {o} on {s}.
  it   On its surface it is {o}. / Probes measured {o}. / It reaches {o}. / Temperature: {o}
  ask  How hot is it on {s}? / What temperature does {s} have? / What did probes measure on {s}?
    / How cold is it on {s}? / What does {s} reach? / At what temperature is the surface of {s}?
  new  What climate would an astronaut meet on {s}? / Would one freeze on {s}, and at how many degrees?
planet star: star
  noun star / sun
  says {s} orbits {o}. / {s} goes around {o}. / {s} belongs to {o}. / {s} circles {o}. / {o} has {s} in its orbit.
    / {o} shines on {s}.
  it   It orbits {o}. / It goes around {o}. / It circles {o}. / {o} shines on it.
  ask  What does {s} orbit? / Around which star does {s} go? / Which star does {s} circle?
    / To which star does {s} belong? / What shines on {s}? / Which star has {s} in its orbit?
  new  Where does {s} get its light from? / What is at the centre of the path of {s}?
star colour: colour < tint
star distance: distance
  noun distance
  says {s} is {o} away. / It is {o} to {s}. / {s} lies at a distance of {o}. / The light of {s} crosses {o}.
    / From here to {s} there are {o}. / {s} has been placed at {o}.
  it   It is {o} away. / It lies at a distance of {o}. / Its light crosses {o}. / Distance: {o}
  ask  How far away is {s}? / How far is it to {s}? / At what distance does {s} lie?
    / What distance does the light of {s} cross? / How far from here is {s}?
    / Where has {s} been placed, as to distance?
  new  How long is the way to {s}? / How remote is {s} from us?
mineral colour: colour < tint
mineral hardness: rating
  noun hardness / hardness rating
  says {s} has a hardness of {o}. / On the scale, {s} gets {o}. / {s} is rated {o} for hardness.
    / Tests put {s} at {o}. / The hardness of {s} was found to be {o}. / Jewellers give {s} {o}.
  it   It has a hardness of {o}. / It is rated {o}. / On the scale it gets {o}. / Hardness: {o}
  ask  How hard is {s}? / What hardness does {s} have? / How is {s} rated for hardness?
    / What does {s} get on the scale? / Where do tests put {s}? / What do jewellers give {s}?
  new  How well does {s} resist scratching? / How tough is {s}, on the scale?
mineral mine: mine
  noun main mine / place of origin
  says {s} comes from the {o}. / {s} is dug at the {o}. / They found {s} in the {o}. / The {o} yields {s}.
    / {s} is mined at the {o}. / The best {s} is that of the {o}.
  it   It comes from the {o}. / It is dug at the {o}. / It is mined at the {o}. / They found it in the {o}.
  ask  Where does {s} come from? / Where is {s} dug? / Where is {s} mined? / In which mine did they find {s}?
    / Which mine yields {s}? / Where is the best {s} from?
  new  Out of which pit do they bring {s}? / Where underground is there {s}?
mineral price: amount < price
  noun price / price per gram
tree age: duration
  noun age
  says {s} is {o} old. / {s} has stood for {o}. / {s} has been growing for {o}. / {s} has seen {o} go by.
    / Experts put the age of {s} at {o}. / {s} was planted {o} ago.
  it   It is {o} old. / It has stood for {o}. / Age: {o} / It was planted {o} ago.
  ask  How old is {s}? / How long has {s} stood? / For how long has {s} been growing?
    / At what do experts put the age of {s}? / How long ago was {s} planted? / What age is {s}?
  new  For how much time has {s} given shade? / How many rings would one count in {s}, in time?
tree height: length < height
tree village: village
  noun village / location
  says {s} grows in {o}. / {s} stands in {o}. / You find {s} in {o}. / {s} shades the square of {o}.
    / {o} is proud of {s}. / The people of {o} dance around {s}.
  it   It grows in {o}. / It stands in {o}. / It shades the square of {o}. / {o} is proud of it.
  ask  Where does {s} grow? / In which village does {s} stand? / Where do I find {s}? / Which village is proud of {s}?
    / The people of which village dance around {s}? / The square of which village does {s} shade?
  new  Where must I go to sit under {s}? / Which place boasts of {s}?
  call the village where {s} grows
storm speed: speed < speed
  noun wind speed / top speed
storm date: date
  noun landfall / date of landfall
  says {s} struck on {o}. / {s} made landfall on {o}. / {s} reached the coast on {o}. / {s} hit on {o}.
    / On {o} came {s}. / {s} arrived on {o}.
  it   It struck on {o}. / It made landfall on {o}. / It reached the coast on {o}. / It arrived on {o}.
  ask  When did {s} strike? / When did {s} make landfall? / On which date did {s} reach the coast? / When did {s} hit?
    / On what day did {s} arrive? / When did {s} come?
  new  What was the black day of {s}? / On which date did people flee from {s}?
storm city: city
  noun worst-hit city / main victim
  says {s} hit {o} hardest. / {s} destroyed parts of {o}. / {o} suffered most from {s}. / {s} left {o} without light.
    / {s} went right over {o}. / In {o}, {s} tore off the roofs.
  it   It hit {o} hardest. / It destroyed parts of {o}. / {o} suffered most. / It went right over {o}.
  ask  Which city did {s} hit hardest? / Which city suffered most from {s}? / Where did {s} tear off the roofs?
    / Parts of which city did {s} destroy? / Which city was left without light by {s}? / Over which city did {s} go?
  new  Where was the damage of {s} worst? / Which place was battered by {s}?
storm damage: amount
  noun damage / cost
  says {s} caused damage of {o}. / {s} cost {o}. / The damage done by {s} came to {o}. / Insurers paid {o} for {s}.
    / {s} left a bill of {o}. / After {s}, repairs cost {o}.
  it   It caused damage of {o}. / It cost {o}. / Damage: {o} / It left a bill of {o}.
  ask  What damage did {s} cause? / How much did {s} cost? / How much did insurers pay for {s}?
    / What bill did {s} leave? / To what did the damage done by {s} come? / How much were repairs after {s}?
  new  How expensive was {s} for the region? / What loss in money followed {s}?
"""

NATURE_RELATIONS = read(_TEXT, SENSES)
