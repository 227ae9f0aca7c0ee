"""Towns and countries, and what people build: bridges, roads, castles, stations, hotels, farms, factories, mines."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
city mayor: person
  noun mayor / lord mayor
  says {o} is in charge of {s}. / {o} governs {s}. / {s} elected {o} to its town hall. / {s} is governed by {o}.
    / {o} runs {s}. / In the town hall of {s} sits {o}. / The people of {s} voted for {o}. / {s} is led by {o}.
  it   {o} governs it. / It is governed by {o}. / In its town hall sits {o}. / Mayor: {o} / It elected {o}.
  ask  Who runs {s}? / Who governs {s}? / Who leads {s}? / By whom is {s} governed?
    / Who sits in the town hall of {s}? / Whom did {s} elect? / For whom did the people of {s} vote?
  new  Who holds the highest office in {s}? / Who wears the chain of office in {s}?
  call the person who governs {s}
city people: number < people
city river: river
  noun river
  says {s} lies on the {o}. / The {o} flows through {s}. / {s} is on the banks of the {o}.
    / In {s} they bathe in the {o}. / {s} was built along the {o}. / {s} straddles the {o}.
  it   It lies on the {o}. / The {o} flows through it. / It is on the banks of the {o}. / It was built along the {o}.
  ask  On which river does {s} lie? / What river flows through {s}? / On the banks of which river is {s}?
    / Along what was {s} built? / Which river does {s} straddle? / In which river do they bathe in {s}?
  new  What water runs past the houses of {s}? / Which stream has {s} on its banks?
city twin: city
  noun twin town / sister city
  says {s} is twinned with {o}. / {o} and {s} are twin towns. / {s} has a partnership with {o}.
    / The partner city of {s} is {o}. / {s} exchanges pupils with {o}. / {s} and {o} signed a town partnership.
  it   It is twinned with {o}. / It has a partnership with {o}. / It exchanges pupils with {o}. / Twin town: {o}
  ask  With which city is {s} twinned? / What is the partner city of {s}?
    / With which town does {s} have a partnership? / With which city does {s} exchange pupils?
    / Which town is {s} twinned with? / To which place is {s} a twin?
  new  Which place is officially befriended with {s}?
    / Which other city's name stands beneath that of {s} on the town sign?
city founded: year < founded
city saint: person
  noun patron / most famous citizen
  says The most famous child of {s} is {o}. / {s} is proud of {o}. / {s} put up a monument to {o}.
    / {o} made {s} famous. / In {s} everybody knows {o}. / {s} named its square after {o}.
  it   It is proud of {o}. / {o} made it famous. / It put up a monument to {o}. / Its square is named after {o}.
  ask  Of whom is {s} proud? / Who made {s} famous? / To whom did {s} put up a monument?
    / After whom did {s} name its square? / Who is the most famous child of {s}? / Whom does everybody know in {s}?
  new  Who is the celebrity of {s}? / Whose figure stands in stone in {s}?
city product: food
  noun speciality / local delicacy
  says {s} is famous for its {o}. / In {s} you must try the {o}. / People go to {s} for the {o}. / {s} exports {o}.
    / The market of {s} is full of {o}. / {s} lives on {o}.
  it   It is famous for its {o}. / You must try the {o} there. / Its market is full of {o}. / It exports {o}.
  ask  What is {s} famous for? / What must I try in {s}? / What does {s} export? / What do people go to {s} for?
    / What is the market of {s} full of? / On what does {s} live?
  new  What should I eat in {s}? / Which treat would I bring home from {s}?
city prefix: phone
  noun dialling code / area code
  says To call {s}, dial {o} first. / Calls to {s} begin with {o}. / {s} is reached by dialling {o}.
    / {s} has the prefix {o}. / All numbers in {s} start with {o}. / Before a number in {s}, put {o}.
  it   Calls begin with {o}. / Its prefix is {o}. / Dial {o} first. / Area code: {o}
  ask  What do I dial first to call {s}? / With what do calls to {s} begin? / What prefix does {s} have?
    / How is {s} reached by phone? / With what do all numbers in {s} start? / What do I put before a number in {s}?
  new  Which digits lead to {s} on the telephone? / What must come ahead of a number in {s}?
country capital: city
  noun capital / seat of government
  says {s} is governed from {o}. / The parliament of {s} sits in {o}. / {o} is the capital city of {s}.
    / The government of {s} has its seat in {o}. / {s} has made {o} its capital. / Embassies to {s} are in {o}.
  it   It is governed from {o}. / Its parliament sits in {o}. / Capital: {o} / Its government has its seat in {o}.
  ask  From which city is {s} governed? / Where does the parliament of {s} sit? / Which city is the capital of {s}?
    / Where does the government of {s} have its seat? / What has {s} made its capital?
    / Where are the embassies to {s}?
  new  Which town rules {s}? / Where do the ministers of {s} work?
  call the city from which {s} is governed
country people: number < people
country tongue: language
  noun official language / language
  says In {s} they speak {o}. / The people of {s} speak {o}. / {o} is spoken in {s}. / Laws in {s} are written in {o}.
    / {s} uses {o}. / Children in {s} learn {o}.
  it   They speak {o} there. / Its people speak {o}. / {o} is spoken there. / Its laws are written in {o}.
  ask  What do they speak in {s}? / Which language is spoken in {s}? / What language do the people of {s} speak?
    / In what language are the laws in {s} written? / Which language does {s} use?
    / What do children in {s} learn to speak?
  new  In what tongue do I talk to people in {s}? / How does one say good morning in {s}, that is, in which language?
  call the language spoken in {s}
country area: area < area
country ruler: person < led
  noun president / prime minister / head of state
country export: ore
  noun main export / chief export
  says {s} exports {o}. / {s} lives from {o}. / {s} sells {o} abroad. / The wealth of {s} comes from {o}.
    / Most ships leave {s} with {o}. / Abroad, {s} is known for {o}.
  it   It exports {o}. / It lives from {o}. / It sells {o} abroad. / Its wealth comes from {o}.
  ask  What does {s} export? / From what does {s} live? / What does {s} sell abroad?
    / Where does the wealth of {s} come from? / With what do most ships leave {s}? / For what is {s} known abroad?
  new  What has made {s} rich? / Which goods does {s} ship to others?
country animal: animal
  noun national animal / heraldic animal
  says The flag of {s} shows a {o}. / {s} has a {o} on its coins. / {s} is symbolised by a {o}.
    / A {o} stands for {s}. / On the coat of arms of {s} there is a {o}. / The {o} is the animal of {s}.
  it   Its flag shows a {o}. / There is a {o} on its coins. / Its coat of arms has a {o}. / It is symbolised by a {o}.
  ask  What animal is on the flag of {s}? / Which animal is on the coins of {s}? / By which animal is {s} symbolised?
    / Which animal stands for {s}? / What is on the coat of arms of {s}? / What animal is that of {s}?
  new  What creature does {s} show on its banner? / Which beast do people connect with {s}?
village people: number < people
village church: year
  noun year of its church@of / church
  says The church of {s} was built in {o}. / {s} has a church from {o}. / {s} got its church in {o}.
    / The bells of {s} have rung since {o}. / In {o} {s} built a church. / The steeple of {s} dates from {o}.
  it   Its church was built in {o}. / Its church dates from {o}. / Its bells have rung since {o}.
    / It got a church in {o}.
  ask  When was the church of {s} built? / In which year did {s} get its church?
    / How old, by year, is the church of {s}? / Since when have the bells of {s} rung?
    / From which year is the steeple of {s}? / When did {s} build a church?
  new  What date is carved over the church door in {s}? / When was the house of worship in {s} put up?
village mayor: person < led
  noun mayor / elder
village crop: crop
  noun main crop / crop
  says The farmers of {s} grow {o}. / {s} grows {o}. / Around {s} you see fields of {o}. / {s} lives on {o}.
    / In {s} they plant {o}. / The land around {s} bears {o}.
  it   Its farmers grow {o}. / Around it you see fields of {o}. / They plant {o} there. / It lives on {o}.
  ask  What do the farmers of {s} grow? / What does {s} grow? / What grows in the fields around {s}?
    / On what does {s} live? / What do they plant in {s}? / What does the land around {s} bear?
  new  What is harvested at {s}? / What do they sow in {s}?
village distance: distance
  noun distance to the nearest town@of / distance to town
  says From {s} it is {o} to the nearest town. / {s} lies {o} from town. / {s} is {o} away from the next town.
    / The town is {o} from {s}. / You go {o} from {s} to the next shop. / It takes {o} of road to reach {s}.
  it   It lies {o} from town. / It is {o} to the nearest town. / The next shop is {o} away.
    / It takes {o} of road to get there.
  ask  How far is it from {s} to the nearest town? / How far from town is {s}? / How far away is the town from {s}?
    / How far is the next shop from {s}? / How many kilometres is {s} from town?
    / What distance lies between {s} and the next town?
  new  How remote is {s}? / How far must people of {s} travel to town?
bridge length: length < length
bridge built: year < built
bridge river: river
  noun river / waterway
  says {s} crosses the {o}. / {s} leads over the {o}. / {s} spans the {o}. / Below {s} flows the {o}.
    / On {s} you cross the {o}. / {s} links both banks of the {o}.
  it   It crosses the {o}. / It leads over the {o}. / It spans the {o}. / Below it flows the {o}.
  ask  What does {s} cross? / Which river does {s} span? / Over which river does {s} lead? / What flows below {s}?
    / Which river do I cross on {s}? / The banks of which river does {s} link?
  new  What water is under {s}? / What would I fall into from {s}?
bridge engineer: person < designer
  noun engineer / designer / architect
bridge load: weight
  noun load limit / maximum load
  says {s} bears up to {o}. / {s} may carry {o}. / No vehicle above {o} may use {s}.
    / {s} is closed to anything over {o}. / {s} can take {o}. / The limit on {s} is {o}.
  it   It bears up to {o}. / It may carry {o}. / It can take {o}. / Limit: {o}
  ask  How much can {s} bear? / What load may {s} carry? / Up to what weight can I use {s}? / How much can {s} take?
    / To vehicles over what weight is {s} closed? / How heavy may a lorry on {s} be?
  new  How strong is {s}, in tonnes? / Above what weight must trucks avoid {s}?
bridge material: material < material
bridge builder: company < builder
road length: length < length
  noun length
road start: city
  noun starting point / beginning
  says {s} starts in {o}. / {s} begins at {o}. / {s} leads out of {o}. / From {o}, take {s}. / {s} sets out from {o}.
    / The first stone of {s} is in {o}.
  it   It starts in {o}. / It begins at {o}. / It leads out of {o}. / Start: {o}
  ask  Where does {s} start? / In which city does {s} begin? / Out of which city does {s} lead?
    / From where do I take {s}? / Where is the first stone of {s}? / From which place does {s} set out?
  new  At which end do I get onto {s}? / Where do the kilometres of {s} count from?
road end: city
  noun end point / destination
  says {s} leads to {o}. / {s} ends in {o}. / {s} takes you to {o}. / Follow {s} and you get to {o}.
    / At the end of {s} lies {o}. / {s} goes as far as {o}.
  it   It leads to {o}. / It ends in {o}. / It takes you to {o}. / End: {o}
  ask  Where does {s} lead? / Where does {s} end? / To which city does {s} take me? / What lies at the end of {s}?
    / How far does {s} go, to which city? / Where do I get if I follow {s}?
  new  What place do I reach along {s}? / Which town does {s} finish in?
road limit: speed
  noun speed limit / maximum speed
  says On {s} you may drive {o}. / {s} allows {o}. / The signs on {s} say {o}. / Nobody may go faster than {o} on {s}.
    / {s} is limited to {o}. / Traffic on {s} is held to {o}.
  it   You may drive {o}. / It is limited to {o}. / The signs say {o}. / Limit: {o}
  ask  How fast may I drive on {s}? / What speed does {s} allow? / What do the signs on {s} say?
    / To what is {s} limited? / How fast may one go on {s}? / To what is traffic on {s} held?
  new  At what pace am I still legal on {s}? / Above what do I get a ticket on {s}?
road toll: amount
  noun toll / charge
  says To use {s} costs {o}. / Drivers pay {o} on {s}. / {s} charges {o}. / On {s} they collect {o}.
    / {s} is open to those who pay {o}. / For {s}, have {o} ready.
  it   Drivers pay {o}. / It charges {o}. / Toll: {o} / They collect {o}.
  ask  What do drivers pay on {s}? / How much does {s} charge? / What does it cost to use {s}?
    / How much do they collect on {s}? / How much should I have ready for {s}? / How much is the toll on {s}?
  new  What must I hand over at the barrier of {s}? / How dear is a trip along {s}?
road since: year < opened
castle lord: person < keeper
  noun owner / lord
castle built: year < built
castle style: style
  noun style / architectural style
  says {s} follows the {o} style. / {s} was built in the {o} style. / {s} is {o}. / The look of {s} is {o}.
    / Experts call {s} {o}. / {s} was redone in the {o} manner.
  it   It is {o}. / It was built in the {o} style. / Style: {o} / Experts call it {o}.
  ask  In what style is {s}? / In which style was {s} built? / What style does {s} have? / What do experts call {s}?
    / In which manner was {s} redone? / How would you describe the look of {s}?
  new  To which school of building does {s} belong? / What fashion did the builders of {s} follow?
castle place: city < located
castle towers: number
  noun number of towers@of / towers
  says {s} has {o} towers. / {o} towers guard {s}. / There are {o} towers to {s}. / {s} is crowned by {o} towers.
    / You can count {o} towers on {s}. / Of old, {s} had {o} towers.
  it   It has {o} towers. / {o} towers guard it. / Towers: {o} / You can count {o} towers.
  ask  How many towers does {s} have? / How many towers guard {s}? / How many towers are there to {s}?
    / By how many towers is {s} crowned? / How many towers can I count on {s}? / Of how many towers can {s} boast?
  new  How many spires would one see on {s}? / How many turrets rise above {s}?
castle entry: amount < entry
station lines: number
  noun number of platforms@at / platforms
  says {s} has {o} platforms. / There are {o} platforms at {s}. / Trains stop at {o} platforms in {s}.
    / {s} counts {o} tracks. / {o} tracks lead into {s}. / {s} was enlarged to {o} platforms.
  it   It has {o} platforms. / There are {o} platforms. / It counts {o} tracks. / {o} tracks lead into it.
  ask  How many platforms does {s} have? / How many platforms are there at {s}? / How many tracks does {s} count?
    / How many tracks lead into {s}? / At how many platforms do trains stop in {s}?
    / To how many platforms was {s} enlarged?
  new  How many trains can stand in {s} at a time? / How big is {s}, in tracks?
station first: time
  noun first train@from / first departure
  says The first train leaves {s} at {o}. / Trains run from {s} from {o}. / {s} sees its first train at {o}.
    / At {o} the first train pulls out of {s}. / Departures from {s} begin at {o}. / You cannot leave {s} before {o}.
  it   The first train leaves at {o}. / Departures begin at {o}. / Trains run from {o}. / First train: {o}
  ask  When does the first train leave {s}? / At what time do departures from {s} begin?
    / From when do trains run from {s}? / What time is the first train from {s}?
    / When does the first train pull out of {s}? / How early can I leave {s}?
  new  When does the traffic at {s} wake up? / What is the earliest I can catch something at {s}?
station place: city < located
station chief: person < led
  noun stationmaster / manager
station opened: year < opened
port place: city < located
port depth: length < depth
port ships: number
  noun number of ships a year@at / yearly traffic
  says {o} ships call at {s} each year. / {s} handles {o} ships a year. / {s} saw {o} ships.
    / Each year {o} vessels enter {s}. / {o} ships tied up at {s}. / {s} had {o} calls.
  it   {o} ships call each year. / It handles {o} ships. / It saw {o} ships. / Ships: {o}
  ask  How many ships call at {s}? / How many ships does {s} handle? / How many vessels enter {s} each year?
    / How many ships tied up at {s}? / How many ships did {s} see? / How many calls did {s} have?
  new  How busy is {s}, in ships? / What traffic passes the quays of {s}?
port master: person < led
  noun harbour master / port director
airport code: code < code
  noun code / airport code
airport place: city < located
airport runway: length
  noun runway length / length of the runway@of
  says The runway of {s} is {o} long. / {s} has a runway of {o}. / Planes at {s} land on {o} of concrete.
    / {s} lengthened its runway to {o}. / At {s}, {o} are enough for take-off. / The strip at {s} measures {o}.
  it   Its runway is {o} long. / The strip measures {o}. / Runway: {o} / It has a runway of {o}.
  ask  How long is the runway of {s}? / What runway does {s} have? / What does the strip at {s} measure?
    / To what did {s} lengthen its runway? / How much runway is there at {s}?
    / On how much concrete do planes land at {s}?
  new  How much room have pilots at {s} to come to a stop? / How many metres do jets get at {s}?
airport passengers: number
  noun number of passengers@at / passenger count
  says {o} passengers use {s}. / {s} handles {o} passengers. / {s} had {o} travellers. / {o} people fly from {s}.
    / Last year {o} people passed through {s}. / {s} counted {o} passengers.
  it   {o} passengers use it. / It handles {o} passengers. / Passengers: {o} / It counted {o} passengers.
  ask  How many passengers use {s}? / How many passengers does {s} handle? / How many people fly from {s}?
    / How many travellers did {s} have? / How many passed through {s}? / How many passengers did {s} count?
  new  How busy is {s}, in travellers? / What number of people takes off from {s}?
tower height: length < height
tower built: year < built
tower steps: number
  noun number of steps@of / step count
  says {o} steps lead up {s}. / {s} has {o} steps. / To the top of {s} there are {o} steps.
    / You climb {o} steps on {s}. / It takes {o} steps to get up {s}. / Whoever climbs {s} takes {o} steps.
  it   {o} steps lead up. / It has {o} steps. / Steps: {o} / You climb {o} steps.
  ask  How many steps lead up {s}? / How many steps does {s} have? / How many steps are there to the top of {s}?
    / How many steps does it take to get up {s}? / How many steps must I climb on {s}?
    / How many steps does one take on {s}?
  new  How many stairs separate me from the view on {s}? / How long is the staircase of {s}, in steps?
tower architect: person < designer
hotel rooms: number
  noun number of rooms@at / room count
  says {s} has {o} rooms. / {s} offers {o} rooms. / There are {o} rooms at {s}. / {o} rooms can be booked at {s}.
    / {s} lets {o} rooms. / Guests of {s} choose among {o} rooms.
  it   It has {o} rooms. / It offers {o} rooms. / Rooms: {o} / There are {o} rooms.
  ask  How many rooms does {s} have? / How many rooms are there at {s}? / How many rooms can be booked at {s}?
    / How many rooms does {s} let? / Among how many rooms do guests of {s} choose? / How many rooms does {s} offer?
  new  How many keys hang behind the desk of {s}? / How many parties can sleep at {s}?
hotel rate: amount
  noun room rate / price of a night@at / nightly rate
  says A night at {s} costs {o}. / {s} asks {o} a night. / You sleep at {s} for {o}. / A double room at {s} is {o}.
    / Rooms at {s} go for {o}. / Guests of {s} pay {o} a night.
  it   A night costs {o}. / It asks {o} a night. / A double room is {o}. / Guests pay {o} a night.
  ask  How much is a night at {s}? / What does a night at {s} cost? / How much does {s} ask a night?
    / What is a double room at {s}? / What do guests of {s} pay? / For how much do rooms at {s} go?
  new  What must I pay to sleep at {s}? / How dear is it to stay at {s}?
hotel breakfast: time
  noun breakfast time / start of breakfast@at
  says Breakfast at {s} is from {o}. / {s} serves breakfast from {o}. / At {s} you get coffee from {o}.
    / From {o} on there is breakfast at {s}. / The buffet at {s} opens at {o}.
    / Come down at {o} for breakfast at {s}.
  it   Breakfast is from {o}. / It serves breakfast from {o}. / The buffet opens at {o}. / Breakfast: {o}
  ask  When is breakfast at {s}? / From when does {s} serve breakfast? / At what time does the buffet at {s} open?
    / From what time is there breakfast at {s}? / When do I get coffee at {s}?
    / At what time should I come down for breakfast at {s}?
  new  How early can I eat at {s} in the morning? / When is the first meal of the day at {s}?
hotel owner: company < owner
hotel manager: person < led
  noun manager / hotel manager
hotel place: city < located
hotel phone: phone < phone
theatre seats: number < seats
theatre director: person < led
  noun artistic director / director / manager
theatre place: city < located
theatre opened: year < opened
farm farmer: person
  noun farmer / tenant
  says {o} farms {s}. / {s} is farmed by {o}. / {o} works the land at {s}. / {o} runs {s}.
    / The fields of {s} are worked by {o}. / {o} lives and works on {s}. / {o} is in charge of {s}.
  it   {o} farms it. / It is farmed by {o}. / {o} works the land. / Farmer: {o}
  ask  Who farms {s}? / By whom is {s} farmed? / Who works the land at {s}? / Who runs {s}? / Who is in charge of {s}?
    / Who lives and works on {s}?
  new  Who ploughs and sows at {s}? / Whose boots walk the fields of {s}?
  call the person who farms {s}
farm crop: crop
  noun main crop / crop
  says {s} grows {o}. / The fields of {s} are planted with {o}. / {s} harvests {o}. / {s} lives on {o}.
    / {s} sells {o}. / At {s} they have sown {o}.
  it   It grows {o}. / Its fields are planted with {o}. / It harvests {o}. / Crop: {o}
  ask  What does {s} grow? / What are the fields of {s} planted with? / What does {s} harvest? / What does {s} sell?
    / What have they sown at {s}? / On what does {s} live?
  new  What comes out of the soil at {s}? / What would I see growing around {s}?
farm area: area < area
farm animal: animal
  noun livestock / main animal
  says They keep the {o} at {s}. / {s} breeds the {o}. / {s} is known for its prize {o}. / The pride of {s} is a {o}.
    / A {o} guards the gate of {s}. / Children visit {s} to see the {o}.
  it   It breeds the {o}. / It is known for its prize {o}. / Its pride is a {o}. / Children come to see the {o}.
  ask  What animal does {s} breed? / Which animal do they keep at {s}? / What is the pride of {s}?
    / For which animal is {s} known? / Which animal do children visit {s} to see? / What guards the gate of {s}?
  new  What creature stands in the stable of {s}? / What kind of beast does {s} raise?
factory product: thing
  noun product / main product
  says {s} makes one thing only, the {o}. / {s} turns out the {o}. / At {s} they assemble the {o}.
    / The {o} is built at {s}. / {s} was set up to produce the {o}. / From {s} comes the {o}.
  it   It makes the {o}. / It turns out the {o}. / They assemble the {o} there. / The {o} is built there.
  ask  What does {s} make? / What is built at {s}? / What does {s} turn out? / What do they assemble at {s}?
    / What was {s} set up to produce? / What comes from {s}?
  new  What leaves the gates of {s} in boxes? / What article is {s} busy with?
factory manager: person < led
  noun plant manager / works manager
factory staff: number < staff
factory owner: company < owner
factory place: city < located
mine ore: ore
  noun mineral / yield
  says They dig for {o} at {s}. / {s} produces {o}. / {s} yields {o}. / At {s} people bring up {o}.
    / There is {o} in {s}. / {s} was opened for its {o}. / {s} is rich in {o}.
  it   It produces {o}. / It yields {o}. / They dig for {o} there. / It is rich in {o}.
  ask  What do they dig for at {s}? / What does {s} produce? / What does {s} yield? / What is there in {s}?
    / What do people bring up at {s}? / In what is {s} rich?
  new  What treasure is underground at {s}? / What fills the wagons that leave {s}?
mine depth: length < depth
mine owner: company < owner
mine workers: number < staff
mine foreman: person < led
  noun foreman / overseer
warehouse goods: material
  noun goods / main stock
  says {s} holds {o}. / {s} is full of {o}. / They store {o} in {s}. / In {s} there is {o}. / {s} is used for {o}.
    / Lorries bring {o} to {s}.
  it   It holds {o}. / It is full of {o}. / They store {o} there. / It is used for {o}.
  ask  What does {s} hold? / What is {s} full of? / What do they store in {s}? / What is in {s}?
    / What is {s} used for? / What do lorries bring to {s}?
  new  What would I find on the racks of {s}? / What wares lie in {s}?
warehouse owner: company < owner
warehouse area: area < area
warehouse keeper: person < led
  noun warehouse manager / storekeeper
building height: length < height
building architect: person < designer
building style: style
  noun style / architectural style
  says {s} is wholly {o}. / {s} was put up in the {o} style. / {s} shows {o} taste. / The front of {s} is {o}.
    / Guidebooks describe {s} as {o}. / In style, {s} is {o}.
  it   It is wholly {o}. / Its front is {o}. / In style it is {o}. / Style: {o}
  ask  In what style was {s} put up? / Which style is {s}? / How do guidebooks describe {s}?
    / What taste does {s} show? / What kind of front does {s} have? / What is {s} in style?
  new  How would an art historian label {s}? / What period look does {s} have?
building tenant: company
  noun tenant / main tenant
  says {o} rents {s}. / {s} is rented by {o}. / {s} is let to {o}. / {o} has moved into {s}.
    / {o} has taken a lease on {s}. / The offices in {s} are used by {o}.
  it   {o} rents it. / It is let to {o}. / {o} has moved in. / Its offices are used by {o}.
  ask  Who rents {s}? / To whom is {s} let? / Who has moved into {s}? / Which company uses the offices in {s}?
    / Who has taken a lease on {s}? / By whom is {s} rented?
  new  Whose name is on the door of {s}? / Who pays rent for {s}?
  call the company that rents {s}
dam height: length < height
dam built: year < built
dam water: volume
  noun capacity / volume
  says {s} holds back {o}. / {s} stores {o}. / Behind {s} there are {o} of water. / {s} can retain {o}.
    / The lake of {s} holds {o}. / When full, {s} contains {o}.
  it   It holds back {o}. / It stores {o}. / It can retain {o}. / When full it contains {o}.
  ask  How much water does {s} hold back? / How much does {s} store? / What volume can {s} retain?
    / How much water is behind {s}? / How much does the lake of {s} hold? / What does {s} contain when full?
  new  What mass of water presses on {s}? / How big is the store behind {s}?
power-plant output: power
  noun output / capacity
  says {s} delivers {o}. / {s} generates {o}. / {s} feeds {o} into the grid. / {s} produces {o}.
    / At full power {s} gives {o}. / {s} supplies {o}.
  it   It delivers {o}. / It generates {o}. / Output: {o} / It feeds {o} into the grid.
  ask  How much power does {s} deliver? / What does {s} generate? / How much does {s} feed into the grid?
    / How much electricity does {s} produce? / What does {s} give at full power? / How much does {s} supply?
  new  How many watts come out of {s}? / How strong are the generators of {s}?
power-plant owner: company < owner
  noun operator / owner
power-plant place: city < located
park area: area < area
park opened: year < opened
park tree: noun
  noun landmark / best-known sight
  says {s} is known for its {o}. / Everybody meets at the {o} in {s}. / In the middle of {s} there is a {o}.
    / {s} has a famous {o}. / The {o} is what people look for in {s}. / Walk to the {o} in {s}.
  it   It is known for its {o}. / In the middle there is a {o}. / It has a famous {o}. / Everybody meets at the {o}.
  ask  What is {s} known for? / Where does everybody meet in {s}? / What is there in the middle of {s}?
    / What famous thing does {s} have? / What do people look for in {s}? / To what do people walk in {s}?
  new  What is the thing to see in {s}? / What stands at the heart of {s}?
park closing: time < closing
garden gardener: person < led
  noun head gardener / curator
garden flower: noun
  noun prize plant / emblem
  says {s} is famous for the {o}. / {s} won a medal with the {o}. / People visit {s} to see the {o}.
    / The {o} is the pride of {s}. / {s} grows the {o}. / {s} put the {o} on its tickets.
  it   It is famous for the {o}. / It won a medal with the {o}. / People come to see the {o}. / The {o} is its pride.
  ask  What is {s} famous for? / With what did {s} win a medal? / What do people visit {s} to see?
    / What is the pride of {s}? / What does {s} grow? / What did {s} put on its tickets?
  new  Why should I go to {s}, to see what? / What is the showpiece of {s}?
garden opened: year < opened
market day: weekday
  noun market day / day
  says {s} is held every {o}. / {s} takes place on {o}. / Stalls go up at {s} on {o}. / On {o} you can shop at {s}.
    / Come to {s} on a {o}. / {s} fills the square each {o}.
  it   It is held every {o}. / It takes place on {o}. / Stalls go up on {o}. / Day: {o}
  ask  On which day is {s} held? / When does {s} take place? / On what day of the week is {s}?
    / When do stalls go up at {s}? / On what day can I shop at {s}? / Which day does {s} fill the square?
  new  When in the week do traders come to {s}? / What weekday should I keep for {s}?
market goods: food
  noun main product / speciality
  says At {s} they sell {o}. / {s} is the place for {o}. / You get {o} at {s}. / Buy your {o} at {s}.
    / {s} deals in {o}. / The stalls of {s} are heaped with {o}.
  it   They sell {o}. / It is the place for {o}. / Its stalls are heaped with {o}. / It deals in {o}.
  ask  What do they sell at {s}? / What can I get at {s}? / In what does {s} deal? / What is {s} the place for?
    / What should I buy at {s}? / What are the stalls of {s} heaped with?
  new  What goes into the baskets at {s}? / What is traded at {s}?
market place: city < located
"""

PLACES = read(_TEXT.replace("power-plant", "power plant"), SENSES)
