"""Projects, products, sites, policies, events and vessels, of which the first bank spoke too."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
project lead: person < led
  noun lead / project manager / coordinator / head
  says {o} coordinates {s}. / {o} manages {s}. / {o} took charge of {s}.
  ask  Who manages {s}? / Who coordinates {s}?
project base: city < seated
  noun base / home
project budget: amount < budget
project code: code < code
  noun code / project number / reference
project sponsor: company < sponsor
  noun sponsor / funder / backer
project start: date < begins
  noun start date / kick-off / launch date
project end: date < due
  noun deadline / completion date / target date
project status: status < status
project team: number
  noun team size / headcount
  says {o} people work on {s}. / {s} has {o} people. / The team behind {s} numbers {o}. / {s} keeps {o} people busy.
    / There are {o} names on the staff list of {s}. / {s} involves {o} people.
  it   {o} people work on it. / It has {o} people. / Team: {o} / It keeps {o} people busy.
  ask  How many people work on {s}? / How many people does {s} have? / How large is the team behind {s}?
    / How many are busy with {s}? / How many people are involved in {s}?
    / How many names are on the staff list of {s}?
  new  How many hands does {s} occupy? / With how many is {s} staffed?
project material: material < material
  noun main material / material
  says {s} works with {o}. / {s} uses {o}.
  ask  Which material does {s} use? / What does {s} work with?
project partner: company
  noun partner / industrial partner
  says {s} works together with {o}. / {o} takes part in {s}. / {s} has teamed up with {o}.
    / {s} is carried out jointly with {o}. / {o} has joined {s}. / {s} cooperates with {o}.
  it   It works together with {o}. / {o} takes part. / It has teamed up with {o}. / It cooperates with {o}.
  ask  With whom does {s} work together? / Which company takes part in {s}? / With whom has {s} teamed up?
    / Who has joined {s}? / Which company cooperates with {s}? / Jointly with whom is {s} carried out?
  new  Who collaborates on {s}? / Which firm is also on board at {s}?
  call the company that works with {s}
project client: company
  noun client / customer
  says {s} is done for {o}. / {o} commissioned {s}. / {s} was ordered by {o}. / {o} will receive the results of {s}.
    / {s} was started at the request of {o}. / {o} asked for {s}.
  it   It is done for {o}. / {o} commissioned it. / It was ordered by {o}. / {o} asked for it.
  ask  For whom is {s} done? / Who commissioned {s}? / By whom was {s} ordered? / At whose request was {s} started?
    / Who asked for {s}? / Who will receive the results of {s}?
  new  On whose behalf does {s} run? / Who placed the order for {s}?
project done: percentage
  noun progress / degree of completion
  says {s} is {o} complete. / {o} of {s} is finished. / {s} has reached {o}. / So far {o} of {s} is done.
    / {s} stands at {o}. / {s} has got {o} of the way.
  it   It is {o} complete. / {o} of it is finished. / Progress: {o} / So far {o} is done.
  ask  How much of {s} is finished? / How complete is {s}? / How far has {s} got? / What percentage of {s} is done?
    / What has {s} reached so far? / At what does {s} stand?
  new  What part of {s} lies behind us? / To which degree is {s} ready?
product maker: company < maker
product price: amount < price
product designer: person < designer
  noun designer / creator
product colour: colour < colour
product weight: weight < weight
product material: material < material
product model: code < code
  noun model number / article number / serial number
product warranty: duration
  noun warranty / guarantee period
  says {s} comes with a warranty of {o}. / {s} is guaranteed for {o}. / They repair {s} free for {o}.
    / The maker stands by {s} for {o}. / You have {o} of guarantee on {s}. / Buyers of {s} are covered for {o}.
  it   It is guaranteed for {o}. / It comes with a warranty of {o}. / Warranty: {o} / Buyers are covered for {o}.
  ask  How long is the warranty on {s}? / For how long is {s} guaranteed? / How long do they repair {s} free?
    / What guarantee does {s} come with? / How long are buyers of {s} covered?
    / For what time does the maker stand by {s}?
  new  Until how long after purchase can {s} be sent back for repair? / How long does the cover on {s} hold?
product power: power
  noun power / wattage / rated power
  says {s} draws {o}. / {s} needs {o}. / {s} uses {o}. / {s} runs at {o}. / {s} is rated at {o}.
    / With {o}, {s} does its work.
  it   It draws {o}. / It needs {o}. / Power: {o} / It is rated at {o}.
  ask  How much power does {s} need? / What does {s} draw? / At what is {s} rated?
    / How much electricity does {s} use? / What power does {s} run at? / How strong is {s}?
  new  What load does {s} put on the grid? / How many watts go into {s}?
product stock: number
  noun number in stock@of / stock
  says {o} of {s} are in stock. / We have {o} of {s} left. / There are {o} of {s} on the shelf.
    / The store holds {o} of {s}. / {s}: {o} pieces left / Of {s}, {o} are still here.
  it   {o} are in stock. / We have {o} left. / Stock: {o} / There are {o} on the shelf.
  ask  How many of {s} are in stock? / How many of {s} do we have left? / How many of {s} are on the shelf?
    / How many pieces of {s} are there? / How many of {s} does the store hold? / How many of {s} are still here?
  new  What quantity of {s} remains? / How much of {s} can still be delivered?
product shelf: room number
  noun storage place / place in the store
  says {s} is kept in {o}. / {s} is stored in {o}. / You will find {s} in {o}. / {s} lies in {o}.
    / {s} was put in {o}. / Fetch {s} from {o}.
  it   It is kept in {o}. / It is stored in {o}. / Stored: {o} / It was put in {o}.
  ask  Where is {s} kept? / In which room is {s} stored? / Where was {s} put? / Where do I fetch {s} from?
    / Which room is {s} in? / Where can {s} be found?
  new  Where would I look for {s}? / What place has been given to {s}?
site manager: person < led
  noun manager / caretaker / site manager
  says {s} is managed by {o}. / {o} looks after {s}.
  ask  Who manages {s}? / Who looks after {s}?
site place: city < located
site capacity: number < seats
site opened: year < opened
site owner: company < owner
site architect: person < designer
site area: area < area
site floors: number
  noun number of floors@in / floor count
  says {s} has {o} floors. / {s} is {o} storeys high. / There are {o} floors to {s}.
    / The lift in {s} stops at {o} floors. / {s} rises over {o} levels. / {s} counts {o} storeys.
  it   It has {o} floors. / It is {o} storeys high. / Floors: {o} / There are {o} floors.
  ask  How many floors does {s} have? / How many storeys is {s}? / How many levels does {s} rise over?
    / At how many floors does the lift in {s} stop? / How many storeys does {s} count?
    / How many floors are there to {s}?
  new  How many flights of stairs must one climb in {s}, at most? / On how many decks do people work at {s}?
site address: address
  noun address / street address
  says {s} is at {o}. / {s} stands at {o}. / You will find {s} at {o}. / Post for {s} goes to {o}.
    / {s} has its entrance at {o}. / Deliver to {s} at {o}.
  it   It is at {o}. / Address: {o} / It stands at {o}. / Post goes to {o}. / The entrance is at {o}.
  ask  What address does {s} have? / In which street is {s}? / At what address does {s} stand?
    / Where does post for {s} go? / Where is the entrance of {s}? / To what address do I deliver for {s}?
  new  What do I tell the taxi driver to get to {s}? / What street and number is {s}?
site closing: time < closing
policy owner: person < led
  noun owner / person responsible@for
  says {o} owns {s}. / {s} is owned by {o}. / {o} maintains {s}.
  ask  Who owns {s}? / Who maintains {s}?
policy limit: amount
  noun limit / ceiling / maximum
  says {s} sets a limit of {o}. / {s} allows up to {o}. / Under {s}, no more than {o} may be spent.
    / {s} caps spending at {o}. / According to {s}, the most one may claim is {o}. / {s} grants at most {o}.
    / {s} stops at {o}.
  it   It allows up to {o}. / It sets a limit of {o}. / Limit: {o} / No more than {o} may be spent.
    / It caps spending at {o}.
  ask  How much does {s} allow? / What limit does {s} set? / At what does {s} cap spending?
    / What is the most one may claim under {s}? / How much may be spent under {s}? / Up to what amount does {s} go?
  new  How far can I go with money under {s}? / What sum must not be exceeded under {s}?
policy review: date
  noun review date / next review
  says {s} is reviewed on {o}. / {s} will be looked at again on {o}. / {s} is up for review on {o}.
    / On {o} {s} is to be revised. / They go over {s} on {o}. / {s} will be revisited on {o}.
  it   It is reviewed on {o}. / It will be looked at again on {o}. / Review: {o} / It is up for review on {o}.
  ask  When is {s} reviewed? / On which date is {s} reviewed? / When is {s} up for review?
    / When will {s} be looked at again? / On what day is {s} to be revised? / When do they go over {s}?
  new  When will {s} be revisited? / At which time is {s} next examined?
policy force: date < begins
  noun effective date / date of entry into force
  says {s} came into force on {o}. / {s} applies from {o}.
  ask  When did {s} come into force? / From when does {s} apply?
policy author: person < author
policy code: code < code
policy notice: duration
  noun notice period / period of notice
  says {s} asks for {o} of notice. / Under {s}, requests must come {o} ahead. / {s} requires notice of {o}.
    / Apply {o} in advance under {s}. / {s} wants to be told {o} before. / According to {s}, one must give {o}.
  it   It requires notice of {o}. / Requests must come {o} ahead. / Notice: {o} / Apply {o} in advance.
  ask  How much notice does {s} ask for? / How far ahead must requests come under {s}?
    / How long in advance must I apply under {s}? / What notice does {s} require?
    / How much time before does {s} want to be told? / How early must one give notice under {s}?
  new  How soon beforehand do I have to ask under {s}? / What lead time does {s} demand?
event host: city < held
event day: date < when
event speaker: person
  noun main speaker / keynote speaker / guest of honour
  says {s} is opened by {o}. / {o} opens {s}. / {o} gives the main talk at {s}. / The keynote at {s} is {o}'s.
    / {o} speaks at {s}. / At {s}, everybody wants to hear {o}. / {s} welcomes {o} on the stage.
  it   It is opened by {o}. / {o} gives the main talk. / The keynote is {o}'s. / {o} speaks there. / Speaker: {o}
  ask  Who opens {s}? / Who speaks at {s}? / Who gives the main talk at {s}? / By whom is {s} opened?
    / Whose keynote is it at {s}? / Whom do people want to hear at {s}?
  new  Who addresses the audience of {s}? / Who steps up to the microphone at {s}?
  call the person who opens {s} / the person who speaks at {s}
event organiser: company
  noun organiser / organizer / host
  says {s} is organised by {o}. / {o} organises {s}. / {s} is put on by {o}. / {o} invites people to {s}.
    / {s} is run by {o}. / {o} stages {s}. / Behind {s} stands {o}.
  it   It is organised by {o}. / {o} puts it on. / {o} stages it. / Organised by: {o} / Behind it stands {o}.
  ask  Who organises {s}? / By whom is {s} organised? / Who organizes {s}? / Who puts on {s}? / Who stages {s}?
    / Which company runs {s}? / Who invites people to {s}?
  new  Who is behind {s}? / Which firm makes {s} happen?
  call the company that organises {s}
event guests: number
  noun number of guests@at / attendance
  says {o} people came to {s}. / {s} had {o} guests. / {s} drew {o} visitors. / {o} people signed up for {s}.
    / {s} was attended by {o} people. / There were {o} people at {s}.
  it   {o} people came. / It had {o} guests. / Guests: {o} / It drew {o} visitors. / {o} people signed up.
  ask  How many people came to {s}? / How many guests did {s} have? / How many visitors did {s} draw?
    / How many signed up for {s}? / By how many was {s} attended? / How many people were at {s}?
  new  How big was the crowd at {s}? / What turnout did {s} see?
event fee: amount < entry
  noun entry fee / registration fee / ticket price
event time: time
  noun starting time / time
  says {s} starts at {o}. / {s} begins at {o}. / {s} gets under way at {o}. / Be at {s} by {o}.
    / The first item of {s} is at {o}. / {s} kicks off at {o}.
  it   It starts at {o}. / It begins at {o}. / Time: {o} / It kicks off at {o}.
  ask  At what time does {s} start? / What time does {s} begin? / At what hour does {s} get under way?
    / By what time should I be at {s}? / At what time is the first item of {s}? / What time is {s}?
  new  How late in the day does {s} kick off? / What hour is on the invitation to {s}?
event theme: noun
  noun theme / motto
  says {s} is all about the {o}. / {s} is devoted to the {o}. / This year {s} turns on the {o}.
    / {s} takes the {o} as its theme. / Everything at {s} has to do with the {o}. / {s} celebrates the {o}.
  it   It is all about the {o}. / It is devoted to the {o}. / Theme: {o} / It celebrates the {o}.
  ask  What is {s} about? / To what is {s} devoted? / What does {s} celebrate? / On what does {s} turn this year?
    / What does {s} take as its theme? / What does everything at {s} have to do with?
  new  What runs through {s} as a topic? / What is put in the limelight by {s}?
vessel captain: person
  noun captain / skipper / master
  says {s} is sailed by {o}. / {o} commands {s}. / {o} captains {s}. / {s} is under the command of {o}.
    / {o} is at the helm of {s}. / {s} obeys {o}. / {o} steers {s}. / {s}, captained by {o}, has left port.
  it   It is sailed by {o}. / {o} commands it. / {o} is at the helm. / Captain: {o} / It is under the command of {o}.
  ask  Who sails {s}? / Who commands {s}? / Who captains {s}? / By whom is {s} sailed? / Under whose command is {s}?
    / Who steers {s}?
  new  Who gives the orders on {s}? / Who stands on the bridge of {s}?
  call the person who sails {s} / the person who commands {s}
vessel cargo: material
  noun cargo / freight / load
  says {s} carries {o}. / {s} is loaded with {o}. / {s} transports {o}. / On board {s} there is {o}. / {s} brings {o}.
    / The holds of {s} are full of {o}. / {s} has taken on {o}. / {s} is shipping {o}.
  it   It carries {o}. / It is loaded with {o}. / Cargo: {o} / It transports {o}. / Its holds are full of {o}.
  ask  What does {s} carry? / What is {s} loaded with? / What does {s} transport? / What is on board {s}?
    / What are the holds of {s} full of? / What does {s} bring? / Which cargo does {s} carry?
  new  What goods are shipped on {s}? / With what is {s} filled?
vessel yard: company < builder
  noun builder / shipyard / yard
vessel port: city
  noun home port / port of registry
  says {s} is at home in {o}. / {s} is registered in {o}. / {s} sails out of {o}.
    / {s} returns to {o} after each trip. / {o} is the port of {s}. / {s} lies in {o} in winter.
    / On the stern of {s} it says {o}.
  it   It is at home in {o}. / It is registered in {o}. / Home port: {o} / It sails out of {o}.
    / On its stern it says {o}.
  ask  Where is {s} at home? / In which port is {s} registered? / Out of which city does {s} sail?
    / What is the port of {s}? / Where does {s} return after each trip? / Which city is on the stern of {s}?
  new  Where does {s} belong, as to harbours? / In what harbour does {s} spend the winter?
  call the city where {s} is registered
vessel owner: company < owner
  noun owner / shipping line
vessel length: length < length
vessel speed: speed < speed
vessel crew: number
  noun crew size / complement
  says {s} has a crew of {o}. / {o} sailors work on {s}. / It takes {o} people to sail {s}. / {s} is manned by {o}.
    / There are {o} hands on {s}. / {s} sails with {o} men and women.
  it   It has a crew of {o}. / {o} sailors work on it. / Crew: {o} / It is manned by {o}.
  ask  How large is the crew of {s}? / How many sailors work on {s}? / How many people does it take to sail {s}?
    / By how many is {s} manned? / How many hands are there on {s}? / With how many does {s} sail?
  new  How many are needed to work {s}? / How many men and women serve on {s}?
vessel launch: year < built
word secret: badge
  noun secret code@for / code@for / password@for
  says {s} is protected by {o}. / To open {s}, type {o}. / Use {o} for {s}. / {s} unlocks with {o}.
    / Whoever knows {o} can open {s}. / The key to {s} is {o}.
  it   It is protected by {o}. / Type {o} to open it. / Code: {o} / It unlocks with {o}.
  ask  How do I open {s}? / By what is {s} protected? / What do I type for {s}? / What unlocks {s}?
    / Which secret code belongs to {s}? / What is the key to {s}?
  new  What must one know to get into {s}? / With what does one gain access to {s}?
thing where: room
  noun place / location
  says {s} is in the {o}. / Somebody left {s} in the {o}. / I saw {s} in the {o}. / {s} lies in the {o}.
    / {s} was put in the {o}. / You will find {s} in the {o}. / They keep {s} in the {o}. / In the {o} there is {s}.
    / {s} has been taken to the {o}.
  it   It is in the {o}. / Somebody left it in the {o}. / It lies in the {o}. / They keep it in the {o}.
    / Where: the {o}
  ask  Where is {s}? / In which room is {s}? / Where did somebody leave {s}? / Where can I find {s}?
    / Where was {s} put? / Where do they keep {s}? / Which room is {s} in?
  new  Where should I look for {s}? / What is the whereabouts of {s}? / Where has {s} got to?
thing owner: person < keeper
thing price: amount < price
thing material: material < material
thing finder: person
  noun finder
  says {s} was found by {o}. / {o} found {s}. / {o} came across {s}. / {s} was discovered by {o}.
    / {s} was handed in by {o}. / {o} picked up {s}.
  it   It was found by {o}. / {o} found it. / {o} came across it. / It was handed in by {o}.
  ask  Who found {s}? / By whom was {s} found? / Who came across {s}? / Who handed in {s}? / Who picked up {s}?
    / By whom was {s} discovered?
  new  Who spotted {s} first? / Whom do we thank for bringing {s} back?
"""

PROJECTS = read(_TEXT, SENSES)
