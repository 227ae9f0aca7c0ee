"""Wordings which many kinds of subjects share: being led, lying somewhere, having been founded, costing, measuring."""

from reader_tuning.language.reading import blocks

_TEXT = """
* led: person
  noun head / leader
  says {s} is led by {o}. / {o} runs {s}. / {s} is headed by {o}. / {o} is in charge of {s}.
    / {o} is responsible for {s}. / Day to day, {s} is in the hands of {o}. / {o} directs {s}.
    / {s} is under the direction of {o}. / {s} reports to {o}. / The person in charge of {s} is {o}.
    / {s}, run by {o}, is doing well. / At the head of {s} stands {o}.
  it   It is led by {o}. / {o} runs it. / The {t} is headed by {o}. / {o} is in charge. / Responsible for it: {o}.
    / It is in the hands of {o}. / The {t} is directed by {o}.
  ask  Who runs {s}? / Who is in charge of {s}? / Who leads {s}? / Who heads {s}? / Who is responsible for {s}?
    / By whom is {s} directed? / Who is at the head of {s}? / Whose hands is {s} in?
  new  Who calls the shots at {s}? / Who sits at the very top of {s}? / Under whose leadership is {s}?
  call the person in charge of {s} / the person who runs {s}

* located: city
  noun location
  says {s} is in {o}. / {s} is located in {o}. / {s} lies in {o}. / You will find {s} in {o}.
    / {s} is situated in {o}. / {o} is where {s} is. / {o} is home to {s}. / {s} stands in {o}. / In {o} there is {s}.
    / {s} ({o}) is easy to reach.
  it   It is in {o}. / It is located in {o}. / The {t} lies in {o}. / It can be found in {o}. / Where: {o}
    / {o} is where it is.
  ask  Where is {s}? / In which city is {s}? / Where is {s} located? / Which city is {s} in? / Where can I find {s}?
    / Where does one find {s}? / What city is {s} situated in?
  new  In what place does {s} stand? / To which city must I go for {s}? / What is the whereabouts of {s}?
  call the city where {s} is

* held: city
  noun venue / host city / location
  says {s} takes place in {o}. / {s} is held in {o}. / {o} hosts {s}. / {s} comes to {o}. / {s} is staged in {o}.
    / You can go to {s} in {o}. / {o} is the scene of {s}. / For {s}, everybody travels to {o}.
    / {s} ({o}) is well attended.
  it   It takes place in {o}. / It is held in {o}. / Venue: {o} / {o} hosts it. / The {t} comes to {o}.
    / {o} is where it happens.
  ask  Where does {s} take place? / Where is {s} held? / Which city hosts {s}? / In which city is {s}?
    / Where does {s} happen? / Which city does {s} come to? / Where is {s}?
  new  To which city do I travel for {s}? / What town is the scene of {s}? / Where is {s} staged?
  call the city that hosts {s} / the city where {s} takes place

* seated: city
  noun base / headquarters
  says {s} is based in {o}. / {s} has its headquarters in {o}. / {s} works out of {o}.
    / The head office of {s} is in {o}. / {s} is run from {o}. / {o} is home to {s}. / {s} has its seat in {o}.
    / {o}-based {s} has new staff. / {s} operates from {o}.
  it   It is based in {o}. / Its head office is in {o}. / The {t} works out of {o}. / It operates from {o}.
    / Seat: {o}
  ask  Where is {s} based? / In which city does {s} have its head office? / Where is {s} headquartered?
    / Which city is home to {s}? / Where does {s} operate from? / Where does {s} have its seat?
  new  Out of which city does {s} work? / From what place is {s} run? / Where is the main office of {s}?
  call the city where {s} is based

* founder: person
  noun founder
  says {s} was founded by {o}. / {o} founded {s}. / {o} set up {s}. / {s} was started by {o}. / {o} established {s}.
    / {s} goes back to {o}. / {s} was the brainchild of {o}. / It was {o} who set {s} up.
    / {s} owes its existence to {o}.
  it   It was founded by {o}. / {o} set it up. / The {t} was established by {o}. / It was {o} who started it.
    / It goes back to {o}.
  ask  Who founded {s}? / Who set up {s}? / By whom was {s} established? / Who started {s}?
    / Who was it that founded {s}? / To whom does {s} owe its existence?
  new  Who created {s}? / Whose brainchild was {s}? / Who got {s} off the ground?
  call the person who founded {s} / the person who set up {s}

* founded: year
  noun founding year / year of foundation
  says {s} was founded in {o}. / {s} was established in {o}. / {s} has existed since {o}. / {s} dates from {o}.
    / {s} goes back to {o}. / Since {o} there has been {s}. / {s} (est. {o}) is still going. / {s} was set up in {o}.
    / {s} came into being in {o}.
  it   It was founded in {o}. / It has existed since {o}. / Established: {o} / The {t} dates from {o}. / Est. {o}
    / It was set up in {o}.
  ask  When was {s} founded? / In which year was {s} established? / Since when has {s} existed?
    / What year was {s} set up? / From which year does {s} date? / When did {s} begin?
  new  How far back does {s} go? / In what year did {s} come into being? / When did {s} get going?

* opened: year
  noun opening year
  says {s} was opened in {o}. / {s} opened in {o}. / {s} first opened its doors in {o}. / {s} has been open since {o}.
    / In {o} {s} was opened. / The opening of {s} was in {o}. / {s} was inaugurated in {o}.
    / {s} came into use in {o}. / Open since {o}: {s}.
  it   It was opened in {o}. / It opened in {o}. / Open since {o}. / The {t} was inaugurated in {o}. / Opening: {o}
    / It has been in use since {o}.
  ask  When was {s} opened? / In which year did {s} open? / Since when has {s} been open?
    / What year was {s} inaugurated? / When did {s} open? / When was the opening of {s}?
  new  In what year did {s} come into use? / Since which year can people use {s}?
    / How long ago, by year, did {s} open its doors?

* built: year
  noun year of construction / construction year
  says {s} was built in {o}. / {s} dates from {o}. / {s} was put up in {o}. / {s} was completed in {o}.
    / Construction of {s} ended in {o}. / {s} went up in {o}. / {s}, built in {o}, is in good repair.
    / In {o} they finished building {s}. / {s} was constructed in {o}.
  it   It was built in {o}. / It dates from {o}. / Built: {o} / The {t} was completed in {o}. / It went up in {o}.
  ask  When was {s} built? / In which year was {s} completed? / What year does {s} date from?
    / When was {s} constructed? / In what year was {s} finished? / When was {s} put up?
  new  How old, by year of building, is {s}? / What is the date of {s}'s completion? / In which year did {s} go up?

* maker: company
  noun maker / manufacturer
  says {s} is made by {o}. / {o} makes {s}. / {s} is manufactured by {o}. / {o} produces {s}. / {s} comes from {o}.
    / {s} is a product of {o}. / {s} is built by {o}. / {s} leaves the works of {o}. / {o} turns out {s}.
  it   It is made by {o}. / {o} makes it. / It is manufactured by {o}. / The {t} comes from {o}. / Made by {o}.
    / It is produced by {o}.
  ask  Who makes {s}? / Which company makes {s}? / Who manufactures {s}? / By whom is {s} produced?
    / Who produces {s}? / Which company does {s} come from?
  new  Whose product is {s}? / Which firm turns out {s}? / What brand is {s}?
  call the company that makes {s} / the firm that manufactures {s}

* builder: company
  noun builder / contractor
  says {s} was built by {o}. / {o} built {s}. / {o} put up {s}. / {s} is the work of {o}.
    / {s} was constructed by {o}. / The building of {s} fell to {o}. / {o} won the contract to build {s}.
    / For the construction of {s}, {o} was hired.
  it   It was built by {o}. / {o} built it. / Built by {o}. / The {t} was constructed by {o}. / It is the work of {o}.
  ask  Who built {s}? / Which company built {s}? / By whom was {s} constructed? / Who constructed {s}?
    / Who put up {s}? / Which firm was the builder of {s}?
  new  Who was hired to raise {s}? / Which contractor erected {s}? / Who did the construction of {s}?
  call the company that built {s}

* designer: person
  noun designer / architect
  says {s} was designed by {o}. / {o} designed {s}. / {s} is the work of {o}. / The plans for {s} came from {o}.
    / {o} drew up {s}. / The design of {s} goes back to {o}. / {o} drew the plans of {s}.
    / {s}, a design by {o}, is much liked.
  it   It was designed by {o}. / {o} designed it. / The {t} was drawn up by {o}. / Design: {o}
    / Its plans came from {o}.
  ask  Who designed {s}? / By whom was {s} designed? / Who drew the plans of {s}? / Who drew up {s}?
    / Who was it that designed {s}? / From whom does the design of {s} come?
  new  Whose design is {s}? / Who came up with the look of {s}? / Who was behind the drawings for {s}?
  call the person who designed {s} / the person who drew the plans of {s}

* owner: company
  noun owner
  says {s} belongs to {o}. / {o} owns {s}. / {s} is owned by {o}. / {s} is the property of {o}. / {s} is held by {o}.
    / {o} bought {s} some time ago. / {s} is in the possession of {o}. / {s} has been sold to {o}.
    / {o} has title to {s}.
  it   It belongs to {o}. / {o} owns it. / It is owned by {o}. / The {t} is the property of {o}. / Owned by {o}.
  ask  Who owns {s}? / To whom does {s} belong? / Whose property is {s}? / By whom is {s} owned?
    / Who does {s} belong to? / Which company owns {s}?
  new  In whose possession is {s}? / Who holds the title to {s}? / Which firm has {s} in its hands?
  call the company that owns {s}

* keeper: person
  noun owner
  says {s} belongs to {o}. / {o} owns {s}. / {s} is owned by {o}. / {s} is the property of {o}.
    / {o} has owned {s} for years. / {s} is in the possession of {o}. / {s} was left to {o}.
    / {s} changed hands and is now {o}'s.
  it   It belongs to {o}. / {o} owns it. / The {t} is the property of {o}. / Owned by {o}. / It is owned by {o}.
  ask  Who owns {s}? / To whom does {s} belong? / Whose is {s}? / By whom is {s} owned? / Who does {s} belong to?
    / Whose property is {s}?
  new  In whose possession is {s}? / Who has {s}? / Who can call {s} theirs?
  call the person who owns {s}

* price: amount
  noun price / cost
  says {s} costs {o}. / {s} sells for {o}. / {s} is priced at {o}. / You pay {o} for {s}. / {s} is on sale for {o}.
    / {s} comes to {o}. / They charge {o} for {s}. / {s} can be had for {o}. / {s} goes for {o}. / {s}: only {o}
  it   It costs {o}. / It sells for {o}. / Price: {o} / It is priced at {o}. / You pay {o}.
    / The {t} can be had for {o}.
  ask  How much does {s} cost? / What does {s} cost? / How much is {s}? / What is the price of {s}?
    / What do they charge for {s}? / How much do I pay for {s}? / What does {s} sell for?
  new  How expensive is {s}? / What would I have to spend on {s}? / For how much does {s} go?

* budget: amount
  noun budget
  says {s} has a budget of {o}. / {s} may spend {o}. / {o} has been set aside for {s}. / {s} has {o} to spend.
    / {s} was granted {o}. / {s} runs on {o}. / {s} was given funds of {o}. / The money for {s} amounts to {o}.
  it   It has a budget of {o}. / It may spend {o}. / Budget: {o} / It has {o} to spend. / The {t} was granted {o}.
  ask  How large is the budget of {s}? / How much may {s} spend? / What budget does {s} have?
    / How much money was set aside for {s}? / How much does {s} have to spend? / How big is {s}'s budget?
  new  How much money is there for {s}? / What funds does {s} have? / What sum was allotted to {s}?

* entry: amount
  noun admission / entry fee
  says Admission to {s} is {o}. / A ticket to {s} costs {o}. / {s} charges {o} at the door.
    / You pay {o} to get into {s}. / Visitors of {s} pay {o}. / Entry to {s} costs {o}. / To see {s} costs {o}.
    / {s} asks {o} of each visitor.
  it   Admission is {o}. / A ticket costs {o}. / Entry: {o} / Visitors pay {o}. / It charges {o} at the door.
  ask  How much is a ticket to {s}? / What does {s} charge at the door? / How much is admission to {s}?
    / What does it cost to get into {s}? / What do visitors of {s} pay? / How much is entry to {s}?
  new  What must I pay to visit {s}? / How much do they want for letting me into {s}?

* length: length
  noun length
  says {s} is {o} long. / {s} measures {o} from end to end. / {s} has a length of {o}. / {s} runs for {o}.
    / The length of {s} comes to {o}. / {s} stretches over {o}. / End to end, {s} is {o}.
    / With its {o}, {s} is of fair length.
  it   It is {o} long. / It measures {o} from end to end. / Length: {o} / It has a length of {o}.
    / The {t} runs for {o}.
  ask  How long is {s}? / What length does {s} have? / How far is it from one end of {s} to the other?
    / What does {s} measure from end to end? / How many metres long is {s}? / Over what length does {s} run?
  new  How much does {s} measure in length? / Over what distance does {s} stretch? / What is the extent of {s}?

* height: length
  noun height
  says {s} is {o} high. / {s} is {o} tall. / {s} rises to {o}. / {s} reaches a height of {o}. / {s} stands {o} tall.
    / From foot to top {s} measures {o}. / The top of {s} is at {o}. / {s} reaches up to {o}.
    / At {o}, {s} can be seen from afar.
  it   It is {o} high. / It rises to {o}. / Height: {o} / It stands {o} tall. / The {t} reaches {o}.
  ask  How high is {s}? / How tall is {s}? / What height does {s} reach? / How far up does {s} reach?
    / To what height does {s} rise? / At what height is the top of {s}?
  new  What does {s} measure from foot to top? / How far above the ground is the top of {s}?
    / What elevation does {s} have?

* depth: length
  noun depth
  says {s} is {o} deep. / {s} goes down {o}. / {s} has a depth of {o}. / {s} reaches down to {o}.
    / The bottom of {s} is at {o}. / The deepest point of {s} is at {o}. / {s} drops to {o}.
    / From top to bottom {s} measures {o}.
  it   It is {o} deep. / It goes down {o}. / Depth: {o} / It has a depth of {o}. / The {t} reaches down to {o}.
  ask  How deep is {s}? / What depth does {s} have? / How far down does {s} go? / To what depth does {s} reach?
    / How far is it to the bottom of {s}? / At what depth is the bottom of {s}?
  new  How far below lies the deepest point of {s}? / How many metres does {s} go down?

* weight: weight
  noun weight / mass
  says {s} weighs {o}. / {s} has a weight of {o}. / {s} tips the scales at {o}. / On the scales, {s} came to {o}.
    / {s} comes in at {o}. / At {o}, {s} is no lightweight. / {s} was weighed: {o}. / {s} is {o} in weight.
  it   It weighs {o}. / Weight: {o} / It has a weight of {o}. / It tips the scales at {o}. / The {t} comes in at {o}.
  ask  How heavy is {s}? / How much does {s} weigh? / What does {s} weigh? / What weight does {s} have?
    / What is the weight of {s}? / How many kilos is {s}?
  new  What do the scales show for {s}? / What load is {s} to carry around? / At what does {s} tip the scales?

* speed: speed
  noun top speed
  says {s} reaches {o}. / {s} does up to {o}. / {s} travels at {o}. / {s} moves at {o}. / {s} can do {o}.
    / {s} goes as fast as {o}. / At most {s} makes {o}. / {s} was clocked at {o}.
  it   It reaches {o}. / It does up to {o}. / Speed: {o} / The {t} can go as fast as {o}. / It was clocked at {o}.
  ask  How fast is {s}? / What speed does {s} reach? / How fast can {s} go? / At what speed does {s} travel?
    / What is the most {s} can do? / How quickly does {s} move?
  new  What pace does {s} make? / At what was {s} clocked? / How swift is {s}?

* area: area
  noun area
  says {s} covers {o}. / {s} has an area of {o}. / {s} extends over {o}. / {s} takes up {o}. / {s} is {o} in size.
    / {s} spreads over {o}. / The grounds of {s} measure {o}. / {s} occupies {o}.
  it   It covers {o}. / Area: {o} / It has an area of {o}. / The {t} extends over {o}. / It takes up {o}.
  ask  How large is {s}? / What area does {s} cover? / How big is {s}? / How much ground does {s} cover?
    / Over what area does {s} extend? / What is the size of {s}?
  new  How much land does {s} take up? / What surface does {s} have? / How many hectares are there to {s}?

* seats: number
  noun number of seats@in / capacity
  says {s} has {o} seats. / {s} seats {o}. / {s} holds {o} people. / There is room for {o} people in {s}.
    / {s} can take {o} guests. / {s} offers {o} places. / Up to {o} people fit into {s}. / {s} accommodates {o}.
  it   It has {o} seats. / It seats {o}. / Capacity: {o} / The {t} holds {o} people. / There is room for {o}.
    / It can take {o} people.
  ask  How many seats does {s} have? / How many people fit into {s}? / How many people does {s} hold?
    / For how many is there room in {s}? / How many can {s} take? / How many places does {s} offer?
  new  What is the maximum number of people in {s}? / How big a crowd can {s} accommodate?
    / How many can sit down in {s}?

* staff: number
  noun headcount / number of employees@at
  says {s} employs {o} people. / {s} has a staff of {o}. / {o} people work at {s}. / {s} has {o} employees.
    / {s} gives work to {o}. / There are {o} people on the payroll of {s}. / The staff of {s} numbers {o}.
    / {s} counts {o} workers.
  it   It employs {o} people. / It has a staff of {o}. / Staff: {o} / {o} people work there.
    / The {t} has {o} employees.
  ask  How many people work at {s}? / How many employees does {s} have? / How large is the staff of {s}?
    / How many people does {s} employ? / How many are on the payroll of {s}? / What is the size of {s}'s workforce?
  new  To how many does {s} give work? / How many workers does {s} count? / How big is the team at {s}?

* members: number
  noun number of members@in / membership
  says {s} has {o} members. / {s} counts {o} members. / {o} people belong to {s}.
    / The membership of {s} stands at {o}. / There are {o} members in {s}. / {s} has grown to {o} members.
    / {s} is made up of {o} people. / {o} have joined {s}.
  it   It has {o} members. / {o} people belong to it. / Members: {o} / The {t} counts {o} members.
    / There are {o} members.
  ask  How many members does {s} have? / How many people belong to {s}? / How many are in {s}?
    / What is the membership of {s}? / How many members are there in {s}? / How many people have joined {s}?
  new  How big is {s} in terms of people? / Of how many people is {s} made up?
    / What number of persons does {s} count?

* people: number
  noun population / number of inhabitants@in
  says {s} has {o} inhabitants. / {o} people live in {s}. / The population of {s} is {o}. / {s} is home to {o} people.
    / {s} counts {o} residents. / At the last census, {s} had {o} people. / {s} is inhabited by {o} people.
  it   It has {o} inhabitants. / {o} people live there. / Population: {o} / The {t} counts {o} residents.
    / It is home to {o} people.
  ask  How many people live in {s}? / How many inhabitants does {s} have? / What is the population of {s}?
    / How many residents does {s} count? / How many people are there in {s}? / How populous is {s}?
  new  What did the census find for {s}? / How many call {s} home? / How many souls are there in {s}?

* when: date
  noun date
  says {s} takes place on {o}. / {s} is on {o}. / {s} is held on {o}. / {s} is set for {o}. / The date of {s} is {o}.
    / {s} is scheduled for {o}. / They have fixed {s} for {o}. / Come to {s} on {o}. / {s} falls on {o}.
    / Save {o} for {s}.
  it   It takes place on {o}. / It is held on {o}. / Date: {o} / The {t} is on {o}. / It is scheduled for {o}.
    / When: {o}
  ask  When is {s}? / When does {s} take place? / On which date is {s} held? / For when is {s} scheduled?
    / On what day is {s}? / For which date is {s} set? / When is {s} being held?
  new  What date should I keep free for {s}? / On which day does {s} fall? / When is {s} going to happen?

* due: date
  noun due date / deadline
  says {s} is due on {o}. / {s} must be settled by {o}. / {s} has to be done by {o}. / The deadline for {s} is {o}.
    / {s} falls due on {o}. / Latest date for {s}: {o} / By {o} at the latest, {s} has to be closed.
    / {s} needs to be finished by {o}.
  it   It is due on {o}. / It must be settled by {o}. / Due: {o} / The deadline is {o}. / It falls due on {o}.
  ask  When is {s} due? / By when must {s} be settled? / What is the deadline for {s}? / When does {s} fall due?
    / By which date does {s} have to be done? / Until when is there time for {s}?
  new  What is the last day for {s}? / By what date is {s} expected? / When does time run out for {s}?

* begins: date
  noun start date
  says {s} starts on {o}. / {s} began on {o}. / {s} runs from {o}. / {s} was started on {o}. / {s} is to begin on {o}.
    / From {o} on, {s} is under way. / {s} takes effect on {o}. / {s} gets going on {o}. / On {o}, {s} is launched.
  it   It starts on {o}. / It began on {o}. / Start: {o} / It runs from {o}. / The {t} was launched on {o}.
  ask  When does {s} start? / On which date does {s} begin? / When did {s} begin? / When is the start of {s}?
    / From when does {s} run? / On what day does {s} start?
  new  When does {s} kick off? / When is {s} launched? / What day marks the beginning of {s}?

* ends: date
  noun end date
  says {s} ends on {o}. / {s} runs until {o}. / {s} expires on {o}. / {s} is valid until {o}. / {s} runs out on {o}.
    / {s} comes to an end on {o}. / The last day of {s} is {o}. / {s} is over on {o}. / {s} lapses on {o}.
  it   It ends on {o}. / It runs until {o}. / Valid until: {o} / It expires on {o}. / The {t} comes to an end on {o}.
  ask  When does {s} end? / When does {s} expire? / Until when does {s} run? / On which date does {s} run out?
    / How long is {s} valid? / When is {s} over?
  new  When does {s} lapse? / What is the last day of {s}? / On what day does {s} come to a close?

* code: code
  noun code / reference number
  says {s} has the code {o}. / {s} is filed under {o}. / {s} is listed as {o}. / {s} bears the number {o}.
    / Under {o} you find {s}. / {s} is registered under {o}. / In the register, {s} is {o}. / Quote {o} for {s}.
    / {s} goes by the code {o}.
  it   It has the code {o}. / It is filed under {o}. / Code: {o} / It bears the number {o}.
    / The {t} is listed as {o}. / Ref. {o}
  ask  What code does {s} have? / Under which code is {s} filed? / Which number does {s} bear? / How is {s} listed?
    / What is the reference of {s}? / Under what is {s} registered?
  new  What do I quote for {s}? / By which identifier is {s} known? / How does the register refer to {s}?

* material: material
  noun material
  says {s} is made of {o}. / {s} consists of {o}. / {s} is built of {o}. / They used {o} for {s}.
    / {s} was made from {o}. / {s} is all {o}. / {s} is fashioned out of {o}. / The material used for {s} is {o}.
    / For {s}, {o} was chosen.
  it   It is made of {o}. / It consists of {o}. / Material: {o} / The {t} was made from {o}. / It is all {o}.
  ask  What is {s} made of? / Which material is {s} made from? / What does {s} consist of? / Of what is {s} built?
    / What material was used for {s}? / Out of what is {s} made?
  new  What stuff is {s}? / What was {s} fashioned out of? / Which substance makes up {s}?

* colour: colour
  noun colour / color
  says {s} is {o}. / {s} is painted {o}. / {s} comes in {o}. / {s} has been done in {o}. / They painted {s} {o}.
    / {s} looks {o}. / In colour, {s} is {o}. / {s} has been given a coat of {o}. / {s} shines in {o}.
  it   It is {o}. / It is painted {o}. / Colour: {o} / It comes in {o}. / The {t} looks {o}. / Color: {o}
  ask  What colour is {s}? / What color is {s}? / Which colour does {s} have? / In what colour is {s} painted?
    / How is {s} painted? / Which color does {s} come in?
  new  What shade is {s}? / What hue does {s} have? / Into which colour was {s} dipped?

* tint: colour
  noun colour / color / colouring
  says {s} is {o}. / {s} looks {o}. / {s} is {o} to the eye. / {s} is known for being {o}.
    / In daylight, {s} appears {o}. / You recognise {s} because it is {o}. / {s} shines in {o}.
    / Of all colours, {s} has {o}.
  it   It is {o}. / It looks {o}. / Colour: {o} / It appears {o} in daylight. / The {t} is {o}. / Color: {o}
  ask  What colour is {s}? / What color is {s}? / Which colour does {s} have? / What does {s} look like, in colour?
    / In which color does {s} shine? / How would you describe the colour of {s}?
  new  What shade is {s}? / What hue does {s} have? / How do I recognise {s} by its colour?

* phone: phone
  noun phone number / telephone number
  says {s} can be reached at {o}. / Call {s} on {o}. / {s} answers the phone at {o}. / Ring {s}: {o}
    / Phone {o} to get {s}. / The telephone of {s} is {o}. / {s} is reachable under {o}. / To speak to {s}, dial {o}.
  it   It can be reached at {o}. / Phone: {o} / Call {o}. / Tel. {o} / To call them, dial {o}.
  ask  What is the phone number of {s}? / Which number do I call for {s}? / How can I reach {s} by phone?
    / What number does {s} have? / Under which number is {s} reachable? / What do I dial for {s}?
  new  How do I ring {s}? / On what line can I get hold of {s}?

* email: email
  noun e-mail address / email
  says Write to {s} at {o}. / {s} can be e-mailed at {o}. / {s} reads mail sent to {o}. / Mail for {s} goes to {o}.
    / You can write to {s} at {o}. / {s} uses the address {o}. / For {s}, mail {o}.
  it   Mail goes to {o}. / E-mail: {o} / Write to {o}. / The address is {o}. / It can be e-mailed at {o}.
  ask  What is the e-mail address of {s}? / Where can I write to {s}? / How do I mail {s}?
    / To which address does mail for {s} go? / What is {s}'s email? / Which address does {s} use?
  new  Where do electronic messages for {s} go? / How can I contact {s} in writing?

* opening: time
  noun opening time
  says {s} opens at {o}. / The doors of {s} open at {o}. / From {o} on, {s} is open. / {s} is open from {o}.
    / {s} lets people in at {o}. / At {s} the day begins at {o}. / Do not come to {s} before {o}.
    / {s} unlocks its doors at {o}.
  it   It opens at {o}. / The doors open at {o}. / Open from {o}. / The {t} is open from {o}. / Opening time: {o}
  ask  At what time does {s} open? / When do the doors of {s} open? / From what time is {s} open?
    / What time does {s} open? / When does {s} let people in? / How early does {s} open?
  new  At which hour does {s} unlock its doors? / From when in the day can I get into {s}?

* closing: time
  noun closing time
  says {s} closes at {o}. / {s} shuts at {o}. / {s} is open until {o}. / The doors of {s} close at {o}.
    / {s} stays open till {o}. / After {o}, {s} is shut. / {s} locks up at {o}. / Last visitors leave {s} at {o}.
  it   It closes at {o}. / It shuts at {o}. / Open until {o}. / The {t} is open till {o}. / Closing time: {o}
  ask  At what time does {s} close? / When does {s} shut? / Until what time is {s} open? / What time does {s} close?
    / Till when is {s} open? / How late is {s} open?
  new  At which hour does {s} lock up? / When must visitors leave {s}?

* rest: weekday
  noun closing day / day off
  says {s} is closed on {o}. / {s} does not open on {o}. / {s} is shut every {o}. / On {o} nobody is at {s}.
    / {s} rests on {o}. / Every {o}, {s} stays closed. / {s} is open daily except {o}. / Do not go to {s} on a {o}.
  it   It is closed on {o}. / It is shut every {o}. / Closed: {o} / Open daily except {o}. / The {t} rests on {o}.
  ask  On which day is {s} closed? / When is {s} shut? / Which day of the week does {s} not open?
    / On what weekday is {s} closed? / What day is {s} shut? / On which weekday should I not go to {s}?
  new  When in the week does {s} rest? / What is the day off at {s}?

* year: year
  noun year
  says {s} came out in {o}. / {s} was released in {o}. / {s} appeared in {o}. / {s} is from {o}.
    / {s} first came out in {o}. / {s} ({o}) is much praised. / In {o}, {s} was published. / {s} dates back to {o}.
    / {s} was made public in {o}.
  it   It came out in {o}. / It appeared in {o}. / Released: {o} / The {t} is from {o}. / It was published in {o}.
  ask  When did {s} come out? / In which year was {s} released? / When did {s} appear? / What year is {s} from?
    / In what year was {s} published? / When was {s} first out?
  new  How old, in terms of its release, is {s}? / In which year did {s} see the light of day?

* duration: duration
  noun duration / length
  says {s} lasts {o}. / {s} takes {o}. / {s} runs for {o}. / {s} goes on for {o}. / Allow {o} for {s}.
    / {s} is over after {o}. / From start to finish, {s} takes {o}. / {s} is planned to last {o}.
  it   It lasts {o}. / It takes {o}. / Duration: {o} / The {t} runs for {o}. / It goes on for {o}.
    / It is over after {o}.
  ask  How long does {s} last? / How long does {s} take? / What is the duration of {s}? / For how long does {s} run?
    / How much time does {s} take? / How long does {s} go on?
  new  How much time should one allow for {s}? / After what time is {s} over? / Over what period does {s} extend?

* winner: person
  noun winner
  says {s} was won by {o}. / {o} won {s}. / {o} came first in {s}. / Victory in {s} went to {o}. / {o} took {s}.
    / {o} was victorious in {s}. / {s} ended with {o} on top. / The first place in {s} went to {o}.
  it   It was won by {o}. / {o} won it. / Winner: {o} / {o} came first. / The {t} was won by {o}.
  ask  Who won {s}? / By whom was {s} won? / Who came first in {s}? / Who took {s}? / Who was victorious in {s}?
    / To whom did victory in {s} go?
  new  Who came out on top in {s}? / Whose victory was {s}? / Who finished ahead of everybody in {s}?
  call the person who won {s}

* sponsor: company
  noun sponsor
  says {s} is sponsored by {o}. / {o} sponsors {s}. / {s} is funded by {o}. / {o} pays for {s}.
    / {s} is paid for by {o}. / The money for {s} comes from {o}. / {o} puts up the money for {s}.
    / {s} is financed by {o}. / {s} is backed by {o}.
  it   It is sponsored by {o}. / {o} pays for it. / Sponsor: {o} / It is funded by {o}. / The {t} is financed by {o}.
    / The money comes from {o}.
  ask  Who sponsors {s}? / Who funds {s}? / Who pays for {s}? / By whom is {s} financed? / Which company sponsors {s}?
    / Where does the money for {s} come from?
  new  Who foots the bill for {s}? / Who backs {s}? / Whose money keeps {s} going?
  call the company that sponsors {s} / the company that pays for {s}

* author: person
  noun author
  says {s} was written by {o}. / {o} wrote {s}. / {s} is by {o}. / {s} is the work of {o}. / {o} is the author of {s}.
    / {s} came from the pen of {o}. / {s}, by {o}, is worth a look. / {o} penned {s}.
  it   It was written by {o}. / {o} wrote it. / Author: {o} / It is by {o}. / The {t} came from the pen of {o}.
  ask  Who wrote {s}? / By whom is {s}? / By whom was {s} written? / Who is {s} by? / From whose pen is {s}?
    / Whose work is {s}?
  new  Who penned {s}? / Who put {s} to paper? / To whom do we owe the text of {s}?
  call the person who wrote {s}

* status: status
  noun status / state
  says {s} is {o}. / {s} is marked as {o}. / {s} is currently {o}. / The state of {s} is {o}.
    / {s} has been set to {o}. / {s} stands at {o}. / As of today, {s} is {o}. / {s} now counts as {o}.
  it   It is {o}. / It is marked as {o}. / Status: {o} / It has been set to {o}. / The {t} is currently {o}.
  ask  What is the status of {s}? / How do things stand with {s}? / What state is {s} in? / How is {s} marked?
    / To what has {s} been set? / What does {s} count as now?
  new  Where are we with {s}? / How far along is {s}? / In which condition is {s} listed?

* assigned: person
  noun assignee / handler
  says {s} is handled by {o}. / {o} deals with {s}. / {o} takes care of {s}. / {s} was assigned to {o}.
    / {s} is on {o}'s desk. / {s} was passed to {o}. / {o} is looking after {s}. / {o} works on {s}.
    / For {s}, talk to {o}.
  it   It is handled by {o}. / {o} takes care of it. / Assigned to: {o} / It is on {o}'s desk.
    / {o} is dealing with it.
  ask  Who handles {s}? / Who deals with {s}? / To whom was {s} assigned? / Who takes care of {s}?
    / Who is working on {s}? / On whose desk is {s}?
  new  Whose job is {s}? / Who has {s} on their plate? / Whom do I talk to about {s}?
  call the person who handles {s}
"""

#: Shared wordings by name.
SENSES = {block.name: block for block in blocks(_TEXT)}
