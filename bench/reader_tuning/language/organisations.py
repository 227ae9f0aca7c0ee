"""Companies, clubs, committees, schools, hospitals and the like."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
company chief: person < led
  noun managing director / chief executive / boss
company office: city < seated
company founder: person < founder
company since: year < founded
company phone: phone < phone
company email: email < email
company staff: number < staff
company turnover: amount
  noun turnover / annual revenue / yearly sales
  says {s} takes {o} a year. / {s} turned over {o} last year. / Sales at {s} came to {o}.
    / {s} earned {o} over the year. / The books of {s} show revenue of {o}. / In its last year {s} brought in {o}.
  it   It turned over {o}. / Sales came to {o}. / It takes {o} a year. / Revenue: {o}
  ask  How much does {s} turn over? / What revenue does {s} have? / How much does {s} take in a year?
    / What were the sales of {s}? / How much did {s} earn?
  new  How much money did {s} bring in? / What do the books of {s} show for the year?
company parent: company
  noun parent company / owner / holding company
  says {s} belongs to {o}. / {s} was taken over by {o}. / {o} owns {s}. / {s} is a subsidiary of {o}.
    / {o} acquired {s}. / {s} is part of {o}. / {o} holds all shares in {s}.
  it   It belongs to {o}. / It is a subsidiary of {o}. / {o} owns it. / It was bought by {o}.
  ask  Who owns {s}? / Which company does {s} belong to? / Who took over {s}? / Of which company is {s} a subsidiary?
    / By whom was {s} acquired?
  new  Who bought {s}? / Which firm stands above {s}? / Who holds the shares in {s}?
  call the company that owns {s} / the company that took over {s}
company product: product
  noun best-known product / main product / bestseller
  says {s} makes the {o}. / {s} is known for the {o}. / {s} sells the {o}. / The {o} is what {s} is known for.
    / {s} earns most with the {o}. / The {o} comes from {s}.
  it   It makes the {o}. / It is known for the {o}. / It sells mostly the {o}. / Its range is led by the {o}.
  ask  What does {s} make? / What is {s} known for? / Which product does {s} sell? / With what does {s} earn most?
    / What is produced by {s}?
  new  For what article is {s} famous? / What can one buy from {s}?
company auditor: company
  noun auditor / accounting firm
  says {s} is audited by {o}. / {o} audits {s}. / {o} checks the books of {s}.
    / The accounts of {s} are examined by {o}. / {s} has its books checked by {o}.
    / The annual accounts of {s} were signed off by {o}.
  it   It is audited by {o}. / {o} checks its books. / Its accounts are examined by {o}. / The books go to {o}.
  ask  Who audits {s}? / Who checks the books of {s}? / By whom are the accounts of {s} examined?
    / Which firm audits {s}? / Who signed off the accounts of {s}?
  new  Who goes over the figures at {s}? / Which company inspects the finances of {s}?
company rival: company
  noun main rival / main competitor / strongest competitor
  says {s} competes with {o}. / {o} competes with {s}. / {s} fears {o} most. / The rival of {s} is {o}.
    / {s} is up against {o}. / In its field, {s} has to beat {o}.
  it   It competes with {o}. / It is up against {o}. / Its keenest competitor is {o}. / The one to beat is {o}.
  ask  Who competes with {s}? / Which company is {s} up against? / With whom does {s} compete?
    / Who is the competitor of {s}? / Whom does {s} have to beat?
  new  Who is fighting {s} for customers? / Which firm is a threat to {s}?
company bank: company
  noun bank / house bank
  says {s} banks with {o}. / {s} keeps its money at {o}. / {s} has its accounts at {o}.
    / {o} handles the money of {s}. / The accounts of {s} are at {o}. / {s} does its banking through {o}.
  it   It banks with {o}. / Its accounts are at {o}. / It keeps its money at {o}. / Its money is with {o}.
  ask  With whom does {s} bank? / Where does {s} keep its money? / Where does {s} have its accounts?
    / Who handles the money of {s}? / Which bank does {s} use?
  new  At which institution does {s} hold its funds? / Through whom does {s} make payments?
hospital head: person < led
  noun medical director / chief physician / head
hospital place: city < located
hospital beds: number
  noun number of beds@in / bed count
  says {s} has {o} beds. / {s} can take {o} patients. / There are {o} beds in {s}.
    / {o} patients can be treated at {s}. / {s} offers {o} beds. / At {s}, {o} beds stand ready.
  it   It has {o} beds. / It can take {o} patients. / Beds: {o} / There are {o} beds.
  ask  How many beds does {s} have? / How many patients can {s} take? / How many beds are there in {s}?
    / For how many patients is there room at {s}? / How many can be treated at {s}?
  new  How many sick people can {s} admit? / How large is {s}, in beds?
hospital since: year < opened
hospital emergency: phone
  noun emergency number / emergency line
  says In an emergency, call {s} on {o}. / {s} takes emergency calls on {o}.
    / The emergency desk of {s} answers at {o}. / Dial {o} for the emergency room of {s}.
    / Urgent calls to {s} go to {o}. / {s}'s ambulances are called on {o}.
  it   In an emergency, call {o}. / Emergency calls: {o} / Its emergency desk answers at {o}.
    / For an ambulance, dial {o}.
  ask  Which number do I dial for an emergency at {s}? / How do I reach the emergency desk of {s}?
    / Where do urgent calls to {s} go? / On what number does {s} take emergency calls?
    / How is an ambulance of {s} called?
  new  What should I dial if I need {s} at once? / How is {s} alerted?
laboratory head: person < led
  noun director / principal investigator / head
laboratory place: city < located
laboratory money: company < sponsor
laboratory field: subject
  noun field / research area / speciality
  says {s} works on {o}. / {s} does research in {o}. / {s} specialises in {o}. / {s} is devoted to {o}.
    / Research at {s} is about {o}. / The people at {s} study {o}.
  it   It works on {o}. / It does research in {o}. / Field: {o} / It specialises in {o}. / Its people study {o}.
  ask  What does {s} work on? / In what does {s} do research? / What does {s} specialise in?
    / What do they study at {s}? / To what field is {s} devoted?
  new  Which science is practised at {s}? / What are the researchers of {s} interested in?
laboratory room: room number
  noun main room / address in the building
  says {s} is in {o}. / You find {s} in {o}. / {s} occupies {o}. / {s} was moved to {o}. / {s} uses {o}.
    / Go to {o} for {s}.
  it   It is in {o}. / It occupies {o}. / Room: {o} / You find it in {o}. / It was moved to {o}.
  ask  In which room is {s}? / Which room does {s} occupy? / Which room do I go to for {s}?
    / What room was {s} moved to? / Which room does {s} use?
  new  On which door does it say {s}? / Behind which door is {s}?
university rector: person < led
  noun rector / president / vice-chancellor
university place: city < located
university since: year < founded
university students: number
  noun number of students@at / enrolment
  says {s} has {o} students. / {o} students are enrolled at {s}. / {s} teaches {o} students.
    / {o} people study at {s}. / There are {o} students at {s}. / {s} counts {o} undergraduates and graduates.
  it   It has {o} students. / {o} people study there. / Students: {o} / {o} students are enrolled.
  ask  How many students does {s} have? / How many people study at {s}? / How many students are enrolled at {s}?
    / How many does {s} teach? / How many are there at {s} to study?
  new  How large is the student body of {s}? / How many young people attend {s}?
university fee: amount
  noun tuition fee / tuition
  says A year at {s} costs {o}. / Students at {s} pay {o}. / {s} charges its students {o}.
    / To study at {s} costs {o}. / {s} asks {o} in fees. / Studying at {s} comes to {o} a year.
  it   A year costs {o}. / Students pay {o}. / Fees: {o} / It charges its students {o}.
  ask  How much does a year at {s} cost? / What do students pay at {s}? / What does {s} charge its students?
    / How much are fees at {s}? / What does it cost to study at {s}?
  new  How much money does one need for {s}? / What must I pay to be taught at {s}?
university mascot: animal
  noun mascot / heraldic animal
  says The mascot of {s} is a {o}. / {s} has a {o} as its mascot. / A {o} is the mascot of {s}.
    / {s} is represented by a {o}. / The teams of {s} play under the sign of the {o}.
    / On the crest of {s} there is a {o}.
  it   Its mascot is a {o}. / Its crest shows a {o}. / It is represented by a {o}. / Mascot: {o}
  ask  What animal is the mascot of {s}? / Which animal represents {s}? / What is on the crest of {s}?
    / Which beast stands for {s}? / Under the sign of which animal do the teams of {s} play?
  new  Which creature do students of {s} cheer for? / What animal does {s} have on its arms?
school head: person < led
  noun headteacher / principal / head
school place: city < located
school pupils: number
  noun number of pupils@at / enrolment
  says {s} has {o} pupils. / {o} children go to {s}. / {s} teaches {o} children. / {o} pupils attend {s}.
    / There are {o} children at {s}. / {s} counts {o} boys and girls.
  it   It has {o} pupils. / {o} children go there. / Pupils: {o} / {o} pupils attend it.
  ask  How many pupils does {s} have? / How many children go to {s}? / How many attend {s}?
    / How many children does {s} teach? / How many boys and girls does {s} count?
  new  How many kids are at {s}? / How large is {s}, in children?
school bell: time
  noun start of lessons@at / first bell
  says Lessons at {s} start at {o}. / {s} begins at {o}. / The first bell at {s} rings at {o}.
    / At {s}, classes begin at {o}. / Pupils of {s} must be there by {o}. / {s} starts its day at {o}.
  it   Lessons start at {o}. / The first bell rings at {o}. / Classes begin at {o}. / It starts its day at {o}.
  ask  When do lessons at {s} start? / At what time does {s} begin? / When does the first bell ring at {s}?
    / What time do classes at {s} begin? / By when must pupils be at {s}?
  new  How early does teaching begin at {s}? / When does the school day start at {s}?
school uniform: colour
  noun uniform colour / colour of the uniform@at
  says Pupils of {s} wear {o}. / The uniform of {s} is {o}. / {s} dresses its pupils in {o}. / They wear {o} at {s}.
    / At {s} everybody wears {o}. / The blazers of {s} are {o}.
  it   Its uniform is {o}. / Pupils wear {o}. / Everybody there wears {o}. / The blazers are {o}.
  ask  What colour is the uniform of {s}? / What colour do pupils of {s} wear?
    / In what colour does {s} dress its pupils? / Which colour are the blazers of {s}? / What color is worn at {s}?
  new  How do I tell pupils of {s} by their clothes? / What shade are the jackets at {s}?
museum director: person < led
  noun director / head / chief curator
museum place: city < located
museum since: year < opened
museum entry: amount < entry
museum rest: weekday < rest
museum architect: person < designer
museum treasure: painting
  noun most famous work / prize exhibit / main attraction
  says {s} owns {o}. / {s} is best known for {o}. / People come to {s} to see {o}. / {o} hangs in {s}.
    / {o} can be seen in {s}. / The pride of {s} is {o}. / {s} shows {o}.
  it   It owns {o}. / It is best known for {o}. / {o} hangs there. / Its pride is {o}. / Visitors come to see {o}.
  ask  What is {s} best known for? / Which work hangs in {s}? / What do people come to see in {s}?
    / What is the pride of {s}? / Which famous work does {s} own?
  new  What should I look at in {s}? / What draws the visitors to {s}?
museum visitors: number
  noun number of visitors@to / yearly attendance
  says {s} had {o} visitors last year. / {o} people visited {s}. / {s} was seen by {o} people.
    / {s} counted {o} visitors. / {o} tickets to {s} were sold. / {o} people came to {s}.
  it   It had {o} visitors. / {o} people came. / Visitors: {o} / It counted {o} visitors.
  ask  How many people visited {s}? / How many visitors did {s} have? / How many came to {s}?
    / How many visitors did {s} count? / By how many people was {s} seen?
  new  How popular is {s}, in people a year? / How big is the audience of {s}?
orchestra conductor: person < led
  noun conductor / chief conductor / music director
  says {o} conducts {s}. / {o} holds the baton at {s}.
  it   {o} conducts it.
  ask  Who conducts {s}? / Who holds the baton at {s}?
orchestra place: city < seated
orchestra players: number < members
orchestra hall: site
  noun concert hall / home / hall
  says {s} plays at {o}. / {s} performs in {o}. / {s} gives its concerts at {o}. / {o} is where {s} plays.
    / The concerts of {s} are at {o}. / You can hear {s} at {o}.
  it   It plays at {o}. / It performs in {o}. / Its concerts are at {o}. / You can hear it at {o}.
  ask  Where does {s} play? / In which hall does {s} perform? / Where are the concerts of {s}? / Where can I hear {s}?
    / Where does {s} give its concerts?
  new  On what stage does {s} appear? / To which house do I go to listen to {s}?
orchestra soloist: musician
  noun soloist / star
  says {o} plays the solos with {s}. / {s} has engaged {o}. / {o} is the star of {s}.
    / The solos at {s} are played by {o}. / {s} goes on tour with {o}. / {o} stands in front of {s}.
  it   {o} plays the solos. / Its solos are played by {o}. / It has engaged {o}. / Soloist: {o}
  ask  Who plays the solos with {s}? / Who is the star of {s}? / Whom has {s} engaged?
    / With whom does {s} go on tour? / By whom are the solos at {s} played?
  new  Which player stands out at {s}? / Who is featured by {s}?
club chair: person < led
  noun chair / president / chairwoman
  says {o} chairs {s}. / {s} elected {o} as its president.
  it   {o} chairs it.
  ask  Who chairs {s}? / Whom did {s} elect?
club place: city < seated
club members: number < members
club since: year < founded
club fee: amount
  noun membership fee / annual fee / subscription
  says Members of {s} pay {o} a year. / {s} charges its members {o}. / To belong to {s} costs {o}.
    / Joining {s} costs {o}. / {s} asks {o} of each member. / It takes {o} to join {s}.
  it   Members pay {o} a year. / It charges its members {o}. / Fee: {o} / Joining costs {o}.
  ask  How much do members of {s} pay? / What does it cost to join {s}? / What does {s} charge its members?
    / How much is membership of {s}? / How much does it take to join {s}?
  new  What are the dues of {s}? / How much would I have to hand over to belong to {s}?
club evening: weekday
  noun club night / meeting day
  says {s} meets on {o}. / {s} comes together every {o}. / The members of {s} meet each {o}.
    / On {o} there is a meeting of {s}. / {s} holds its evenings on {o}. / {o} is the day of {s}.
  it   It meets on {o}. / Members come together every {o}. / It holds its evenings on {o}. / Meets: {o}
  ask  On which day does {s} meet? / When do the members of {s} meet? / Which weekday does {s} come together?
    / What day does {s} hold its evenings? / On what day of the week is there a meeting of {s}?
  new  When in the week would I meet people of {s}? / Which evening is taken up by {s}?
team coach: person
  noun coach / trainer / manager
  says {s} is coached by {o}. / {o} coaches {s}. / {o} trains {s}. / {s} is trained by {o}.
    / {s} has hired {o} to coach it. / The training of {s} is in the hands of {o}. / {o} picks the side for {s}.
  it   It is coached by {o}. / {o} trains it. / {o} picks the side. / Its players listen to {o}.
  ask  Who coaches {s}? / Who trains {s}? / By whom is {s} coached? / Who picks the side for {s}?
    / In whose hands is the training of {s}?
  new  Who tells the players of {s} what to do? / Who prepares {s} for its games?
  call the person who coaches {s} / the person who trains {s}
team captain: athlete
  noun captain / skipper
  says {s} is captained by {o}. / {o} captains {s}. / {o} leads {s} onto the field. / {o} wears the armband for {s}.
    / The players of {s} chose {o} as captain. / {s} plays under the captaincy of {o}.
  it   It is captained by {o}. / {o} wears the armband. / {o} leads it onto the field.
    / Its players chose {o} as captain.
  ask  Who captains {s}? / Who leads {s} onto the field? / Who wears the armband for {s}?
    / Whom did the players of {s} choose as captain? / By whom is {s} captained?
  new  Which player heads {s} in a game? / Who tosses the coin for {s}?
team sport: sport
  noun sport / discipline
  says {s} plays {o}. / {s} competes in {o}. / {s} was formed for {o}. / The sport of {s} is {o}.
    / In {o}, {s} is feared. / {s} goes in for {o}.
  it   It plays {o}. / It competes in {o}. / Sport: {o} / It goes in for {o}.
  ask  What does {s} play? / Which sport does {s} compete in? / What sport is {s} in? / What kind of team is {s}?
    / What does {s} go in for?
  new  In which game is {s} active? / What do the people of {s} do for sport?
team shirt: colour
  noun shirt colour / kit colour / jersey
  says {s} plays in {o}. / The shirts of {s} are {o}. / {s} wears {o}. / You know {s} by its {o} shirts.
    / The players of {s} wear {o}. / {s} takes the field in {o}.
  it   It plays in {o}. / Its shirts are {o}. / The players wear {o}. / It takes the field in {o}.
  ask  What colour are the shirts of {s}? / In which colour does {s} play? / What do the players of {s} wear?
    / What colour does {s} wear? / By what colour do you know {s}?
  new  How is {s} dressed for a game? / What color is the jersey of {s}?
team ground: site
  noun home ground / stadium
  says {s} plays its home games at {o}. / {s} is at home at {o}. / {o} is the ground of {s}. / The home of {s} is {o}.
    / Fans of {s} go to {o}. / {s} receives its opponents at {o}.
  it   It plays its home games at {o}. / It is at home at {o}. / Home: {o} / Its fans go to {o}.
  ask  Where does {s} play its home games? / Where is {s} at home? / At which ground does {s} play?
    / Where do fans of {s} go? / Where does {s} receive its opponents?
  new  Which arena belongs to {s}? / Where would I watch {s} in its own town?
committee chair: person
  noun chair / chairperson / head
  says {s} is chaired by {o}. / {o} chairs {s}. / {o} presides over {s}. / {o} heads {s}. / {s} meets under {o}.
    / {o} takes the chair in {s}. / {o} runs {s}. / {o} leads {s}.
  it   It is chaired by {o}. / {o} presides over it. / {o} is in the chair. / It meets under {o}.
  ask  Who chairs {s}? / Who presides over {s}? / By whom is {s} chaired? / Who heads {s}?
    / Who is in the chair of {s}? / Who leads {s}?
  new  Who opens the sessions of {s}? / Who gives people the floor in {s}?
  call the person who chairs {s} / the person who presides over {s}
committee day: weekday
  noun meeting day / regular day
  says {s} meets on {o}. / {s} sits every {o}. / {s} convenes each {o}. / On {o} there is a session of {s}.
    / The sessions of {s} are on {o}. / {o} is the day on which {s} sits.
  it   It meets on {o}. / It sits every {o}. / It convenes each {o}. / Meets: {o}
  ask  On which day does {s} meet? / When does {s} sit? / What weekday does {s} convene?
    / On what day are the sessions of {s}? / Which day of the week does {s} meet?
  new  When in the week is {s} in session? / Which weekday is kept free for {s}?
committee members: number < members
committee room: room number
  noun meeting room / usual room
  says {s} meets in {o}. / {s} sits in {o}. / The sessions of {s} are in {o}. / They keep {o} free for {s}.
    / {s} has booked {o}. / {s} comes together in {o}.
  it   It meets in {o}. / It sits in {o}. / It has booked {o}. / Sessions are in {o}.
  ask  In which room does {s} meet? / Where does {s} sit? / Where are the sessions of {s}? / What room has {s} booked?
    / Which room is kept for {s}?
  new  Behind which door does {s} confer? / Where do I go to attend {s}?
committee clerk: person
  noun secretary / clerk / minute-taker
  says {o} takes the minutes for {s}. / {o} keeps the records of {s}. / The minutes of {s} are written by {o}.
    / {s} has {o} for its paperwork. / {o} writes down what {s} decides. / The paperwork of {s} is done by {o}.
  it   {o} takes the minutes. / Its minutes are written by {o}. / {o} keeps its records.
    / The paperwork is done by {o}.
  ask  Who takes the minutes for {s}? / Who keeps the records of {s}? / By whom are the minutes of {s} written?
    / Who does the paperwork of {s}? / Who writes down what {s} decides?
  new  Who notes what is said in {s}? / Who is the scribe of {s}?
  call the person who takes the minutes for {s}
charity head: person < led
charity place: city < seated
charity donor: company < sponsor
  noun main donor / biggest donor
charity cause: noun
  noun symbol / emblem
  says {s} has a {o} as its emblem. / The badge of {s} shows a {o}. / {s} uses the sign of a {o}.
    / A {o} stands for {s}. / On the leaflets of {s} you see a {o}. / {s} is known by its {o}.
  it   Its emblem is a {o}. / Its badge shows a {o}. / Its sign is a {o}. / On its leaflets you see a {o}.
  ask  What does the badge of {s} show? / What sign does {s} use? / What stands for {s}?
    / What do you see on the leaflets of {s}? / By what is {s} known?
  new  What picture does {s} put on its papers? / How do I recognise {s}?
agency head: person < led
  noun director / commissioner / head
agency place: city < seated
agency phone: phone < phone
agency budget: amount < budget
newspaper editor: person
  noun editor / editor-in-chief / chief editor
  says {s} is edited by {o}. / {o} edits {s}. / {o} decides what {s} prints. / The newsroom of {s} is run by {o}.
    / {o} is at the helm of {s}. / {o} is in charge of {s}. / At {s}, the last word is {o}'s.
  it   It is edited by {o}. / {o} edits it. / {o} decides what it prints. / Its newsroom is run by {o}.
  ask  Who edits {s}? / By whom is {s} edited? / Who decides what {s} prints? / Who runs the newsroom of {s}?
    / Who is at the helm of {s}? / Who is in charge of {s}?
  new  Who has the last word at {s}? / Under whom do the journalists of {s} work?
  call the person who edits {s}
newspaper owner: company < owner
  noun publisher / owner
newspaper copies: number
  noun circulation / print run
  says {s} sells {o} copies. / {s} prints {o} copies a day. / {o} copies of {s} are sold. / {s} reaches {o} readers.
    / {s} goes out to {o} people. / Every day {o} people buy {s}.
  it   It sells {o} copies. / {o} copies are printed. / It reaches {o} readers. / Copies: {o}
  ask  How many copies does {s} sell? / How many copies of {s} are printed? / How many readers does {s} reach?
    / How many people buy {s}? / To how many does {s} go out?
  new  How widely is {s} read? / What is the daily sale of {s}?
newspaper place: city < seated
airline hub: city < seated
  noun hub / home airport
airline fleet: number
  noun fleet size / number of planes@in the fleet of
  says {s} flies {o} planes. / {s} has {o} aircraft. / The fleet of {s} counts {o} planes. / {o} aircraft fly for {s}.
    / {s} operates {o} planes. / {s} owns {o} jets.
  it   It flies {o} planes. / It has {o} aircraft. / Fleet: {o} / {o} planes fly for it.
  ask  How many planes does {s} fly? / How many aircraft does {s} have? / How large is the fleet of {s}?
    / How many planes does {s} operate? / How many jets does {s} own?
  new  How many machines does {s} keep in the air? / What number of airliners wear the colours of {s}?
airline boss: person < led
  noun chief executive / boss
library head: person < led
  noun librarian / head librarian
library place: city < located
library books: number
  noun number of books@in / stock
  says {s} holds {o} books. / {s} has {o} volumes. / There are {o} books in {s}.
    / {o} books stand on the shelves of {s}. / {s} owns {o} titles. / {s} lends from a stock of {o}.
  it   It holds {o} books. / It has {o} volumes. / Books: {o} / There are {o} books.
  ask  How many books does {s} hold? / How many volumes does {s} have? / How many books are there in {s}?
    / How many titles does {s} own? / How many books stand on the shelves of {s}?
  new  How much is there to read at {s}? / How big is the stock of {s}?
library period: duration
  noun lending period / loan period
  says {s} lends books for {o}. / Books from {s} may be kept for {o}. / You may keep a book of {s} for {o}.
    / Loans from {s} last {o}. / {s} wants its books back after {o}. / At {s}, a loan runs for {o}.
  it   It lends books for {o}. / Books may be kept for {o}. / Loans last {o}. / Books are due back after {o}.
  ask  For how long does {s} lend books? / How long may I keep a book from {s}? / How long do loans from {s} last?
    / After what time does {s} want its books back? / How long does a loan at {s} run?
  new  When must I return what I borrow at {s}? / How much time do I get for a book from {s}?
library closing: time < closing
"""

ORGANISATIONS = read(_TEXT, SENSES)
