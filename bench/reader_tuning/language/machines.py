"""Software, servers, data, machines, aircraft, satellites, train lines, vehicles, robots, telescopes and medicines."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
software version: version
  noun current version / latest version / version
  says {s} is at version {o}. / The newest {s} is {o}. / {s} {o} is out. / We run {s} in version {o}.
    / {s} was updated to {o}. / {s} was released as {o}. / Install {s} {o}.
  it   It is at version {o}. / It was updated to {o}. / Version: {o} / The newest one is {o}.
  ask  Which version of {s} is current? / At which version is {s}? / What is the newest {s}?
    / To what was {s} updated? / Which {s} do we run? / What release of {s} is out?
  new  How far has {s} been counted up? / Which release number does {s} report?
software maker: company < maker
  noun vendor / developer / maker
software maintainer: person
  noun maintainer / lead developer
  says {s} is maintained by {o}. / {o} maintains {s}. / {o} looks after {s}. / {o} keeps {s} running.
    / Patches to {s} go through {o}. / {o} has the last word on {s}. / The code of {s} is in the care of {o}.
  it   It is maintained by {o}. / {o} maintains it. / {o} looks after it. / Maintainer: {o}
  ask  Who maintains {s}? / By whom is {s} maintained? / Who looks after {s}? / Who keeps {s} running?
    / Through whom do patches to {s} go? / Who has the last word on {s}?
  new  To whom do I send a fix for {s}? / Whose baby is {s} these days?
  call the person who maintains {s}
software licence: code
  noun licence key / license key
  says {s} is unlocked with {o}. / Enter {o} to activate {s}. / {s} asks for {o}. / {s} was registered with {o}.
    / Our key to {s} is {o}. / To start {s}, type {o}.
  it   It is unlocked with {o}. / Enter {o} to activate it. / Key: {o} / It was registered with {o}.
  ask  With what is {s} unlocked? / What do I enter to activate {s}? / With which key was {s} registered?
    / What do I type to start {s}? / What does {s} ask for? / What is our key to {s}?
  new  How do I prove that we paid for {s}? / Which characters activate {s}?
software size: size
  noun download size / size
  says {s} takes up {o}. / {s} needs {o} of space. / {s} is {o} to download. / {s} fills {o} on the disk.
    / For {s}, keep {o} free. / {s} comes as a file of {o}.
  it   It takes up {o}. / It needs {o} of space. / Size: {o} / It fills {o} on the disk.
  ask  How much space does {s} need? / How big is {s}? / How much does {s} take up?
    / How much must I keep free for {s}? / How large is the download of {s}? / How much of the disk does {s} fill?
  new  Will {s} fit, that is, what does it weigh in bytes? / What room on the drive must I plan for {s}?
software users: number
  noun number of users@of / user count
  says {o} people use {s}. / {s} has {o} users. / {s} is used by {o} people. / {s} was installed by {o} people.
    / {s} counts {o} users. / {s} serves {o} people.
  it   {o} people use it. / It has {o} users. / Users: {o} / It serves {o} people.
  ask  How many people use {s}? / How many users does {s} have? / By how many is {s} used?
    / How many have installed {s}? / How many users does {s} count? / How many people does {s} serve?
  new  How popular is {s} in numbers? / How big is the community around {s}?
software docs: path
  noun documentation path / path to the manual@of
  says The manual of {s} is at {o}. / You will find the help for {s} under {o}. / {s} is documented at {o}.
    / Look at {o} to learn {s}. / The guide to {s} lives at {o}. / Read about {s} in {o}.
  it   Its manual is at {o}. / It is documented at {o}. / Docs: {o} / The help is under {o}.
  ask  Where is the manual of {s}? / Where is {s} documented? / Under which path is the help for {s}?
    / Where do I look to learn {s}? / Where does the guide to {s} live? / Where can I read about {s}?
  new  At what path are the docs of {s}? / Where would a beginner in {s} start reading?
server room: room number
  noun room / location
  says {s} stands in {o}. / {s} is in {o}. / {s} was put in {o}. / You find {s} in {o}. / {s} hums away in {o}.
    / The cables of {s} end in {o}.
  it   It stands in {o}. / It is in {o}. / Room: {o} / It was put in {o}.
  ask  Where does {s} stand? / In which room is {s}? / Where is {s}? / Where was {s} put?
    / In what room do I find {s}? / Where do the cables of {s} end?
  new  Which door must I unlock to restart {s} by hand? / Where is the box called {s}?
server admin: person
  noun administrator / admin
  says {s} is administered by {o}. / {o} administers {s}. / {o} runs {s}. / {o} has root on {s}.
    / {o} looks after {s}. / If {s} is down, call {o}. / {o} is responsible for {s}.
  it   It is administered by {o}. / {o} runs it. / {o} looks after it. / Admin: {o} / {o} has root.
  ask  Who administers {s}? / Who runs {s}? / By whom is {s} administered? / Who has root on {s}?
    / Who is responsible for {s}? / Whom do I call if {s} is down?
  new  Who gets woken up when {s} fails? / Who holds the root password of {s}?
  call the person who administers {s}
server memory: size
  noun memory / main memory / RAM
  says {s} has {o} of memory. / {s} was fitted with {o}. / There is {o} in {s}. / {s} works with {o} of RAM.
    / {s} offers {o} of memory. / They upgraded {s} to {o}.
  it   It has {o} of memory. / It was fitted with {o}. / Memory: {o} / They upgraded it to {o}.
  ask  How much memory does {s} have? / How much RAM is in {s}? / With how much memory was {s} fitted?
    / To what did they upgrade {s}? / How much memory does {s} offer? / With how much RAM does {s} work?
  new  How big a job fits into {s}? / What can {s} hold in mind at once?
server system: software
  noun operating system / main software
  says {s} runs {o}. / {o} runs on {s}. / {s} is based on {o}. / They installed {o} on {s}. / {s} was switched to {o}.
    / {s} boots into {o}.
  it   It runs {o}. / {o} runs on it. / System: {o} / It was switched to {o}.
  ask  What runs on {s}? / Which software does {s} run? / On what is {s} based? / What did they install on {s}?
    / To what was {s} switched? / Into what does {s} boot?
  new  Which program keeps {s} busy? / What did the engineers put on {s}?
server backup: time
  noun backup time / time of the backup@of
  says {s} is backed up at {o}. / The backup of {s} runs at {o}. / At {o} {s} is saved. / {s} copies its data at {o}.
    / Every night at {o} {s} is copied. / {s} starts its backup at {o}.
  it   It is backed up at {o}. / Its backup runs at {o}. / Backup: {o} / It copies its data at {o}.
  ask  When is {s} backed up? / At what time does the backup of {s} run? / At what time is {s} saved?
    / When does {s} copy its data? / When does {s} start its backup? / At what hour is {s} copied?
  new  When in the night should nobody work on {s}? / Until when must data be on {s} to be saved that day?
dataset rows: number
  noun number of rows@in / row count
  says {s} has {o} rows. / {s} holds {o} records. / There are {o} entries in {s}. / {s} comes with {o} examples.
    / {s} counts {o} rows. / {o} records make up {s}.
  it   It has {o} rows. / It holds {o} records. / Rows: {o} / There are {o} entries.
  ask  How many rows does {s} have? / How many records does {s} hold? / How many entries are there in {s}?
    / With how many examples does {s} come? / How many rows does {s} count? / How many records make up {s}?
  new  How large is {s}, in lines? / How many examples could I learn from in {s}?
dataset size: size
  noun file size / size
  says {s} takes {o}. / {s} is {o} large. / {s} fills {o}. / The files of {s} come to {o}.
    / To download {s} you need {o}. / {s} weighs in at {o}.
  it   It takes {o}. / It is {o} large. / Size: {o} / Its files come to {o}.
  ask  How large is {s}? / How much does {s} take? / How much do the files of {s} come to?
    / How much do I need to download {s}? / How big are the files of {s}? / How much does {s} fill?
  new  What disk would hold {s}? / How many bytes is {s}?
dataset collector: laboratory
  noun collector / source / origin
  says {s} was collected by {o}. / {o} collected {s}. / {s} comes from {o}. / {o} put {s} together.
    / {s} was published by {o}. / {o} released {s}.
  it   It was collected by {o}. / {o} collected it. / It comes from {o}. / Source: {o}
  ask  Who collected {s}? / By whom was {s} collected? / From which laboratory does {s} come? / Who put {s} together?
    / Who published {s}? / Who released {s}?
  new  Whose measurements are in {s}? / Whom should I cite for {s}?
dataset path: path
  noun path / location
  says {s} lies at {o}. / {s} is stored under {o}. / You will find {s} in {o}. / We keep {s} in {o}.
    / {s} has been copied to {o}. / Load {s} from {o}.
  it   It lies at {o}. / It is stored under {o}. / Path: {o} / Load it from {o}.
  ask  Where is {s} stored? / Under which path is {s}? / Where do we keep {s}? / Where has {s} been copied to?
    / From where do I load {s}? / Where can I find {s}?
  new  In which folder should I look for {s}? / What do I type to open {s}?
website owner: company < owner
  noun owner / operator
website visitors: number
  noun number of visitors@to / daily visitors
  says {s} has {o} visitors a day. / {o} people visit {s} each day. / {s} is read by {o} people. / {s} gets {o} hits.
    / {s} drew {o} readers. / {s} was opened {o} times.
  it   It has {o} visitors a day. / {o} people visit it. / Visitors: {o} / It gets {o} hits.
  ask  How many visitors does {s} have? / How many people visit {s}? / By how many is {s} read?
    / How many hits does {s} get? / How many readers did {s} draw? / How often was {s} opened?
  new  How much traffic is there on {s}? / How well is {s} frequented?
website contact: email < email
machine maker: company < maker
machine operator: person
  noun operator
  says {s} is operated by {o}. / {o} operates {s}. / {o} works at {s}. / {s} is run by {o}.
    / {o} stands at {s} all day. / {o} knows how to use {s}. / Only {o} may switch on {s}.
  it   It is operated by {o}. / {o} operates it. / {o} works at it. / Operator: {o}
  ask  Who operates {s}? / By whom is {s} operated? / Who works at {s}? / Who runs {s}? / Who knows how to use {s}?
    / Who may switch on {s}?
  new  Whose hands are on the levers of {s}? / Who is trained on {s}?
  call the person who operates {s}
machine serial: code < code
  noun serial number / inventory number
machine power: power
  noun power / rated power / power consumption
  says {s} draws {o}. / {s} needs {o}. / {s} is rated at {o}. / {s} runs on {o}. / {s} consumes {o}.
    / At full load {s} takes {o}.
  it   It draws {o}. / It needs {o}. / Power: {o} / It consumes {o}.
  ask  How much power does {s} need? / What does {s} draw? / At what is {s} rated? / How much does {s} consume?
    / What does {s} take at full load? / On how much does {s} run?
  new  How hungry for current is {s}? / What load does {s} put on the mains?
machine service: date
  noun next service / service date / maintenance date
  says {s} is serviced on {o}. / {s} is to be serviced on {o}. / The fitter comes for {s} on {o}.
    / {s} goes in for maintenance on {o}. / On {o} {s} will be overhauled. / {s} is due for a check on {o}.
  it   It is serviced on {o}. / It goes in for maintenance on {o}. / Service: {o} / On {o} it will be overhauled.
  ask  When is {s} serviced? / When does the fitter come for {s}? / When does {s} go in for maintenance?
    / On which date will {s} be overhauled? / When is {s} due for a check? / On what day is {s} to be serviced?
  new  When must {s} be switched off for the mechanic? / What day is {s} looked over?
machine output: number
  noun hourly output / output
  says {s} makes {o} pieces an hour. / {s} turns out {o} an hour. / {s} manages {o} parts an hour.
    / In an hour {s} finishes {o}. / {s} has an output of {o} an hour. / {s} can do {o} pieces in an hour.
  it   It makes {o} pieces an hour. / It turns out {o} an hour. / Output: {o} / In an hour it finishes {o}.
  ask  How many pieces does {s} make an hour? / How many does {s} turn out an hour? / How many parts does {s} manage?
    / How many does {s} finish in an hour? / How many can {s} do in an hour? / What is {s} able to make in an hour?
  new  How productive is {s}? / How many will be ready if {s} works for sixty minutes?
machine hall: building
  noun hall / building
  says {s} stands in the {o}. / {s} was set up in the {o}. / You find {s} in the {o}. / {s} has been moved to the {o}.
    / The {o} houses {s}. / {s} is bolted to the floor of the {o}.
  it   It stands in the {o}. / It was set up in the {o}. / The {o} houses it. / It has been moved to the {o}.
  ask  Where does {s} stand? / In which building is {s}? / Where was {s} set up? / Where has {s} been moved to?
    / What houses {s}? / Where do I find {s}?
  new  Under which roof is {s} at work? / To which part of the works do I go for {s}?
aircraft speed: speed < speed
aircraft range: distance
  noun range
  says {s} flies {o} without landing. / {s} can fly {o}. / {s} has a range of {o}. / One tank takes {s} {o}.
    / {s} gets {o} far. / After {o} {s} must refuel.
  it   It flies {o} without landing. / It can fly {o}. / Range: {o} / One tank takes it {o}.
  ask  How far can {s} fly? / What range does {s} have? / How far does one tank take {s}?
    / After what distance must {s} refuel? / How far does {s} get? / How far does {s} fly without landing?
  new  Which distance is too much for {s}? / How long a hop can {s} make, in miles or kilometres?
aircraft seats: number < seats
aircraft maker: company < maker
aircraft pilot: person
  noun pilot / captain
  says {s} is flown by {o}. / {o} flies {s}. / {o} is at the controls of {s}. / {o} sits in the cockpit of {s}.
    / {s} obeys {o}. / {o} took {s} up for the first time.
  it   It is flown by {o}. / {o} flies it. / {o} is at the controls. / Pilot: {o}
  ask  Who flies {s}? / By whom is {s} flown? / Who is at the controls of {s}? / Who sits in the cockpit of {s}?
    / Whom does {s} obey? / Who took {s} up for the first time?
  new  Whose hand is on the stick of {s}? / Who brings {s} down safely?
  call the person who flies {s}
aircraft height: distance
  noun ceiling / maximum altitude
  says {s} climbs to {o}. / {s} can go up to {o}. / {s} cruises at {o}. / {s} does not fly higher than {o}.
    / At {o} {s} levels off. / {s} was tested up to {o}.
  it   It climbs to {o}. / It can go up to {o}. / Ceiling: {o} / It cruises at {o}.
  ask  How high does {s} climb? / How high can {s} go? / At what height does {s} cruise? / Where does {s} level off?
    / Up to what height was {s} tested? / What altitude does {s} reach?
  new  How far above the clouds can {s} get? / At what level does the air become too thin for {s}?
flight gate: code
  noun gate
  says {s} leaves from gate {o}. / {s} boards at {o}. / Go to gate {o} for {s}. / {s} has been moved to gate {o}.
    / Passengers of {s} wait at {o}. / The gate for {s} is {o}.
  it   It leaves from gate {o}. / It boards at {o}. / Gate: {o} / Passengers wait at {o}.
  ask  From which gate does {s} leave? / Where does {s} board? / Which gate do I go to for {s}?
    / To which gate has {s} been moved? / Where do passengers of {s} wait? / What is the gate for {s}?
  new  Where in the terminal do I get on {s}? / Which door leads to {s}?
flight to: city
  noun destination
  says {s} goes to {o}. / {s} flies to {o}. / {s} is bound for {o}. / {s} lands in {o}. / {s} takes you to {o}.
    / Take {s} to get to {o}. / People on {s} want to go to {o}.
  it   It goes to {o}. / It flies to {o}. / To: {o} / It lands in {o}.
  ask  Where does {s} go? / To which city does {s} fly? / For where is {s} bound? / Where does {s} land?
    / Where does {s} take me? / Where do people on {s} want to go?
  new  What town will I see when I get off {s}? / At which place does {s} touch down?
flight departs: time
  noun departure time / take-off
  says {s} leaves at {o}. / {s} takes off at {o}. / {s} departs at {o}. / {s} is off at {o}.
    / At {o} {s} is in the air. / {s} has been put back to {o}.
  it   It leaves at {o}. / It takes off at {o}. / Departure: {o} / It has been put back to {o}.
  ask  When does {s} leave? / At what time does {s} take off? / When does {s} depart? / What time is {s} off?
    / To when has {s} been put back? / At what time is {s} in the air?
  new  When do the wheels of {s} leave the ground? / Until when can I still hope to catch {s}?
flight airline: airline
  noun airline / operator
  says {s} is operated by {o}. / {o} operates {s}. / {s} is flown by {o}. / {s} belongs to {o}. / Book {s} with {o}.
    / {o} sells tickets for {s}.
  it   It is operated by {o}. / {o} operates it. / Airline: {o} / Book it with {o}.
  ask  Who operates {s}? / Which airline operates {s}? / By whom is {s} flown? / To which airline does {s} belong?
    / With whom do I book {s}? / Who sells tickets for {s}?
  new  Whose planes are used for {s}? / At which counter do I check in for {s}?
satellite launch: date
  noun launch date / date of launch@of
  says {s} was launched on {o}. / {s} went up on {o}. / {s} left the ground on {o}. / {s} lifted off on {o}.
    / {s} has been in space since {o}. / On {o} a rocket carried {s} away.
  it   It was launched on {o}. / It went up on {o}. / Launched: {o} / It has been in space since {o}.
  ask  When was {s} launched? / On which date did {s} go up? / When did {s} lift off?
    / Since when has {s} been in space? / When did {s} leave the ground? / On what day did a rocket carry {s} away?
  new  On which day did people cheer for the rocket with {s}? / What date began the voyage of {s}?
satellite orbit: distance
  noun orbital height / altitude
  says {s} circles at {o}. / {s} flies at a height of {o}. / {s} is {o} above the ground.
    / The orbit of {s} is at {o}. / {s} was lifted to {o}. / {s} keeps {o} up.
  it   It circles at {o}. / It flies at a height of {o}. / Orbit: {o} / It was lifted to {o}.
  ask  At what height does {s} circle? / How high does {s} fly? / How far above the ground is {s}?
    / At what height is the orbit of {s}? / To what height was {s} lifted? / How high up is {s}?
  new  How far down would {s} have to fall? / At what altitude does {s} do its rounds?
satellite operator: company < owner
  noun operator / owner
satellite frequency: frequency
  noun frequency / transmission frequency
  says {s} sends on {o}. / {s} transmits at {o}. / {s} uses {o}. / Tune in to {o} to hear {s}.
    / Signals from {s} arrive at {o}. / {s} talks to Earth on {o}.
  it   It sends on {o}. / It transmits at {o}. / Frequency: {o} / Tune in to {o} to hear it.
  ask  On what frequency does {s} send? / At what does {s} transmit? / Which frequency does {s} use?
    / To what do I tune in to hear {s}? / On which frequency do signals from {s} arrive?
    / On what does {s} talk to Earth?
  new  Where on the dial is {s}? / How do I set the receiver for {s}?
satellite weight: weight < weight
train line length: distance < length
train line ends: city
  noun terminus / last stop / final stop
  says {s} ends in {o}. / {s} goes to {o}. / {s} runs as far as {o}. / The last stop of {s} is in {o}.
    / {s} terminates in {o}. / {s} takes you to {o}. / At {o} everybody must leave {s}.
  it   It ends in {o}. / It goes to {o}. / Last stop: {o} / It terminates in {o}.
  ask  Where does {s} end? / To which city does {s} go? / Where does {s} terminate?
    / In which city is the last stop of {s}? / How far does {s} run, to which city? / Where does {s} take me?
  new  Where must everybody get off {s}? / What place is written on the front of {s}?
train line operator: company
  noun operator / railway company
  says {s} is operated by {o}. / {o} operates {s}. / {o} runs {s}. / {s} is run by {o}. / The trains on {s} are {o}'s.
    / For {s} buy a ticket from {o}.
  it   It is operated by {o}. / {o} runs it. / Operator: {o} / Its trains are {o}'s.
  ask  Who operates {s}? / Which company runs {s}? / By whom is {s} operated? / Whose are the trains on {s}?
    / From whom do I buy a ticket for {s}? / Who runs {s}?
  new  To whom do I complain about {s}? / Which firm's conductors work on {s}?
  call the company that operates {s}
train line interval: duration
  noun interval / frequency
  says {s} runs every {o}. / On {s} there is a train every {o}. / You wait {o} at most for {s}.
    / Trains on {s} come every {o}. / {s} leaves every {o}. / The trains of {s} are {o} apart.
  it   It runs every {o}. / There is a train every {o}. / Interval: {o} / Trains come every {o}.
  ask  How often does {s} run? / How often do trains on {s} come? / How long do I wait for {s} at most?
    / How far apart are the trains of {s}? / Every how many minutes or hours does {s} leave?
    / How often is there a train on {s}?
  new  If I miss {s}, how long until the next? / What gap is there between departures of {s}?
train line stops: number
  noun number of stops@on / stops
  says {s} has {o} stops. / {s} calls at {o} stations. / There are {o} stops on {s}. / {s} stops {o} times.
    / {s} serves {o} stations. / You count {o} stations on {s}.
  it   It has {o} stops. / It calls at {o} stations. / Stops: {o} / It serves {o} stations.
  ask  How many stops does {s} have? / At how many stations does {s} call? / How many stops are there on {s}?
    / How often does {s} stop? / How many stations does {s} serve? / How many stations do I count on {s}?
  new  How many times do the doors open along {s}? / How many places are linked by {s}?
train line fare: amount < price
  noun fare / ticket price
train line colour: colour < colour
vehicle plate: code
  noun number plate / licence plate / registration
  says {s} bears the plate {o}. / {s} is registered as {o}. / On the back of {s} it says {o}.
    / {s} has the registration {o}. / Look for {o} to find {s}. / {s} drives around with {o} on it.
  it   It bears the plate {o}. / It is registered as {o}. / Plate: {o} / It has the registration {o}.
  ask  What plate does {s} bear? / As what is {s} registered? / What does it say on the back of {s}?
    / What registration does {s} have? / What do I look for to find {s}? / What number does {s} drive around with?
  new  How do I tell {s} from others in the car park? / What would a policeman note down about {s}?
vehicle owner: person < keeper
vehicle mileage: distance
  noun mileage / distance covered@by
  says {s} has done {o}. / {s} has {o} on the clock. / {s} was driven {o}. / The meter of {s} shows {o}.
    / {s} has covered {o}. / So far {s} has run {o}.
  it   It has done {o}. / It has {o} on the clock. / Mileage: {o} / It was driven {o}.
  ask  How far has {s} been driven? / How much has {s} on the clock? / What does the meter of {s} show?
    / How far has {s} run so far? / What distance has {s} covered? / How much has {s} done?
  new  How worn is {s}, going by the road behind it? / How many miles or kilometres has {s} seen?
vehicle colour: colour < colour
vehicle speed: speed < speed
vehicle price: amount < price
robot maker: company < maker
robot task: role
  noun task / job
  says {s} works as a {o}. / {s} was built to be a {o}. / {s} replaces a {o}. / {s} does the work of a {o}.
    / {s} is employed as a {o}. / They use {s} as a {o}.
  it   It works as a {o}. / It replaces a {o}. / Task: {o} / They use it as a {o}.
  ask  As what does {s} work? / Whom does {s} replace? / What was {s} built to be? / Whose work does {s} do?
    / As what is {s} employed? / As what do they use {s}?
  new  Which trade has {s} learnt? / What human job is done by {s}?
robot charge: duration
  noun battery life / running time
  says {s} runs for {o} on one charge. / {s} works {o} before it must be charged.
    / One charge keeps {s} going for {o}. / The battery of {s} lasts {o}. / After {o} {s} needs a socket.
    / {s} goes {o} without a break.
  it   It runs for {o} on one charge. / Its battery lasts {o}. / After {o} it needs a socket.
    / One charge keeps it going for {o}.
  ask  How long does {s} run on one charge? / How long does the battery of {s} last?
    / After what time does {s} need a socket? / How long does {s} work before it must be charged?
    / How long does one charge keep {s} going? / How long does {s} go without a break?
  new  When does {s} run out of energy? / How long a shift can {s} do?
robot weight: weight < weight
telescope mirror: length
  noun mirror diameter / diameter of the mirror@of
  says The mirror of {s} measures {o}. / {s} has a mirror of {o}. / {s} gathers light with {o} of glass.
    / {s} was built around a mirror of {o}. / The glass of {s} is {o} across. / They ground {o} of mirror for {s}.
  it   Its mirror measures {o}. / It has a mirror of {o}. / Mirror: {o} / Its glass is {o} across.
  ask  How large is the mirror of {s}? / What does the mirror of {s} measure? / What mirror does {s} have?
    / How wide is the glass of {s}? / Around what mirror was {s} built? / How much mirror did they grind for {s}?
  new  How big an eye does {s} have? / What width of light does {s} collect?
telescope site: mountain
  noun site / location
  says {s} stands on {o}. / {s} is on {o}. / {s} was built on {o}. / {o} carries {s}. / You see {s} on top of {o}.
    / They chose {o} for {s}.
  it   It stands on {o}. / It is on {o}. / {o} carries it. / They chose {o} for it.
  ask  Where does {s} stand? / On which mountain is {s}? / Where was {s} built? / Which mountain carries {s}?
    / On top of what do you see {s}? / Which mountain did they choose for {s}?
  new  Which peak must astronomers climb to use {s}? / On what height does {s} watch the sky?
  call the mountain on which {s} stands
telescope director: person < led
medicine dose: dose
  noun dose / daily dose
  says Take {o} of {s} a day. / {s} is taken at {o}. / {s} is given at {o} a day. / Patients get {o} of {s}.
    / Of {s}, {o} a day are enough. / No more than {o} of {s} a day.
  it   Take {o} a day. / It is given at {o} a day. / Dose: {o} / Patients get {o}.
  ask  How much {s} should one take? / At what dose is {s} given? / How much of {s} do patients get?
    / How much {s} a day is enough? / What dose of {s} is allowed? / How is {s} to be taken, and how much?
  new  What quantity of {s} goes down in a day? / When would I have taken too much {s}?
medicine maker: company < maker
medicine illness: illness
  noun use / indication
  says {s} helps against {o}. / {s} is used against {o}. / {s} cures {o}. / Doctors give {s} for {o}.
    / People with {o} take {s}. / {s} was developed against {o}. / {s} treats {o}.
  it   It helps against {o}. / It is used against {o}. / It cures {o}. / Doctors give it for {o}.
  ask  Against what does {s} help? / What is {s} used against? / What does {s} cure? / For what do doctors give {s}?
    / Against what was {s} developed? / What does {s} treat?
  new  When should I reach for {s}? / Which patients need {s}?
medicine price: amount < price
medicine storage: temperature
  noun storage temperature
  says {s} must be kept at {o}. / Store {s} at {o}. / {s} spoils above {o}. / {s} lasts at {o}.
    / Keep {s} no warmer than {o}. / In the pharmacy {s} lies at {o}.
  it   It must be kept at {o}. / Store it at {o}. / Storage: {o} / It spoils above {o}.
  ask  At what temperature must {s} be kept? / How should {s} be stored? / Above what does {s} spoil?
    / How warm may {s} get? / At what temperature does {s} last? / At what does {s} lie in the pharmacy?
  new  How cold should the cupboard for {s} be? / What warmth ruins {s}?
medicine plant: noun
  noun source / raw material
  says {s} is won from the {o}. / {s} is made out of the {o}. / The {o} gives us {s}.
    / {s} was first found in the {o}. / To make {s} you need the {o}. / {s} goes back to the {o}.
  it   It is won from the {o}. / It was first found in the {o}. / The {o} gives it to us. / It goes back to the {o}.
  ask  From what is {s} won? / What is {s} made out of? / What gives us {s}? / In what was {s} first found?
    / What do you need to make {s}? / To what does {s} go back?
  new  What does nature supply for {s}? / What would a chemist boil down to get {s}?
"""

MACHINES = read(_TEXT, SENSES)
