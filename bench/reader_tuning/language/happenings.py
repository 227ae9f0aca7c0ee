"""Festivals, matches, battles, treaties, meetings, courses, expeditions, experiments, elections, concerts, prizes."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
festival place: city < held
festival start: date < begins
  noun opening day / start
festival star: musician
  noun headliner / star / main act
  says {o} is the star of {s}. / {o} headlines {s}. / {s} closes with {o}. / {s} has booked {o}.
    / People come to {s} for {o}. / On the main stage of {s} you see {o}.
  it   {o} headlines it. / It has booked {o}. / It closes with {o}. / People come for {o}. / Main act: {o}
  ask  Who headlines {s}? / Who is the star of {s}? / Whom has {s} booked? / With whom does {s} close?
    / For whom do people come to {s}? / Who is on the main stage of {s}?
  new  Who is at the top of the bill at {s}? / Which act sells the tickets of {s}?
festival sponsor: company < sponsor
festival visitors: number
  noun number of visitors@at / attendance
  says {s} drew {o} people. / {o} people went to {s}. / {s} was visited by {o} people. / {s} sold {o} tickets.
    / {o} fans came to {s}. / The crowd at {s} was put at {o}.
  it   It drew {o} people. / {o} people went. / Visitors: {o} / It sold {o} tickets.
  ask  How many people went to {s}? / How many people did {s} draw? / By how many was {s} visited?
    / How many tickets did {s} sell? / How many fans came to {s}? / At what was the crowd at {s} put?
  new  How well attended was {s}? / What were the numbers at {s}?
festival length: duration < duration
match score: score
  noun score / result / final score
  says {s} ended {o}. / {s} finished {o}. / The score of {s} was {o}. / At the whistle, {s} stood at {o}.
    / {s} was decided by {o}. / It was {o} in {s}. / {s} went {o}.
  it   It ended {o}. / It finished {o}. / Score: {o} / At the whistle it stood at {o}.
  ask  How did {s} end? / How did {s} finish? / What was the score of {s}? / At what did {s} stand at the whistle?
    / What did {s} end like? / How did {s} go?
  new  What did the scoreboard show at the end of {s}? / What was the outcome of {s}, in numbers?
match referee: person
  noun referee / umpire
  says {s} was refereed by {o}. / {o} refereed {s}. / {o} blew the whistle in {s}. / {o} was in charge of {s}.
    / {s} was overseen by {o}. / The cards in {s} were shown by {o}.
  it   It was refereed by {o}. / {o} blew the whistle. / {o} was in charge. / Referee: {o}
  ask  Who refereed {s}? / By whom was {s} refereed? / Who blew the whistle in {s}? / Who was in charge of {s}?
    / By whom was {s} overseen? / Who showed the cards in {s}?
  new  Whose decisions counted in {s}? / Who was the umpire at {s}?
  call the person who refereed {s}
match scorer: athlete
  noun scorer / best player / match-winner
  says {o} scored in {s}. / {s} was decided by {o}. / {o} was the best player in {s}. / The goal in {s} came from {o}.
    / {o} found the net in {s}. / {s} was {o}'s game.
  it   {o} scored. / It was decided by {o}. / {o} was the best player. / The goal came from {o}.
  ask  Who scored in {s}? / By whom was {s} decided? / Who was the best player in {s}?
    / From whom came the goal in {s}? / Who found the net in {s}? / Whose game was {s}?
  new  Which player made the difference in {s}? / Who put the ball in during {s}?
match crowd: number
  noun attendance / number of spectators@at
  says {o} people watched {s}. / {s} was seen by {o} fans. / {o} spectators came to {s}.
    / There were {o} in the stands at {s}. / {s} sold {o} tickets. / The crowd at {s} numbered {o}.
  it   {o} people watched it. / {o} spectators came. / Attendance: {o} / It was seen by {o} fans.
  ask  How many people watched {s}? / How many spectators came to {s}? / By how many was {s} seen?
    / How many were in the stands at {s}? / How many tickets did {s} sell? / How large was the crowd at {s}?
  new  How full were the stands at {s}? / How many eyes were on {s}, in persons?
match place: site
  noun venue / ground
  says {s} was played at {o}. / {s} took place at {o}. / They played {s} at {o}. / {o} was the scene of {s}.
    / {s} was moved to {o}. / {o} hosted {s}.
  it   It was played at {o}. / It took place at {o}. / They played it at {o}. / {o} hosted it.
  ask  Where was {s} played? / Where did {s} take place? / At which ground did they play {s}?
    / To where was {s} moved? / Where did they play {s}? / What was the scene of {s}?
  new  On what turf was {s} decided? / Which arena saw {s}?
battle year: year
  noun year
  says {s} was fought in {o}. / {s} took place in {o}. / {s} dates from {o}. / In {o} came {s}. / {s} happened in {o}.
    / {s} was in {o}. / Historians place {s} in {o}.
  it   It was fought in {o}. / It took place in {o}. / Year: {o} / Historians place it in {o}.
  ask  When was {s} fought? / In which year was {s}? / When did {s} take place? / What year was {s} fought in?
    / When did {s} happen? / In what year do historians place {s}?
  new  What date do pupils learn for {s}? / How far in the past is {s}, by year?
battle winner: monarch < winner
  noun winner / victor
battle dead: number
  noun number of dead@in / death toll
  says {o} people died in {s}. / {s} cost {o} lives. / {o} soldiers fell in {s}. / {s} left {o} dead.
    / After {s} they buried {o}. / {s} claimed {o} victims.
  it   {o} people died. / It cost {o} lives. / Dead: {o} / {o} soldiers fell. / It left {o} dead.
  ask  How many people died in {s}? / How many lives did {s} cost? / How many soldiers fell in {s}?
    / How many dead did {s} leave? / How many did they bury after {s}? / How many victims did {s} claim?
  new  How bloody was {s}, in men lost? / How many never came home from {s}?
battle general: person
  noun commander / general
  says The troops in {s} were led by {o}. / {o} commanded in {s}. / In {s} the orders came from {o}.
    / {o} led the army in {s}. / {s} was {o}'s plan. / {o} was general in {s}.
  it   The troops were led by {o}. / {o} commanded. / The orders came from {o}. / {o} led the army.
  ask  Who commanded in {s}? / By whom were the troops in {s} led? / From whom came the orders in {s}?
    / Who led the army in {s}? / Who was general in {s}? / Whose plan was {s}?
  new  Under whom did men fight in {s}? / Who directed the army at {s}?
  call the person who commanded in {s}
battle place: village
  noun battlefield / nearest village
  says {s} took place near {o}. / {s} was fought outside {o}. / {o} saw {s}.
    / The fields of {o} were the scene of {s}. / {s} raged around {o}. / The armies of {s} met at {o}.
  it   It took place near {o}. / It was fought outside {o}. / It raged around {o}. / The armies met at {o}.
  ask  Where was {s} fought? / Where did {s} take place? / Which place saw {s}? / Around which place did {s} rage?
    / Where did the armies of {s} meet? / Near which village was {s}?
  new  Whose fields were trampled in {s}? / Where could one dig for bullets of {s}?
treaty signed: date
  noun date of signing@of / signing date
  says {s} was signed on {o}. / They signed {s} on {o}. / {s} bears the date {o}. / {s} was concluded on {o}.
    / On {o} {s} was sealed. / {s} is dated {o}.
  it   It was signed on {o}. / It bears the date {o}. / Signed: {o} / It was concluded on {o}.
  ask  When was {s} signed? / When did they sign {s}? / What date does {s} bear? / When was {s} concluded?
    / On which day was {s} sealed? / How is {s} dated?
  new  On what day did pens touch {s}? / Since when has {s} stood on paper?
treaty place: city
  noun place of signing@of / place
  says {s} was signed in {o}. / {s} was negotiated in {o}. / They met in {o} for {s}. / {s} was drawn up in {o}.
    / {o} is where {s} was concluded. / The delegates of {s} gathered in {o}.
  it   It was signed in {o}. / It was negotiated in {o}. / They met in {o} for it. / {o} is where it was concluded.
  ask  Where was {s} signed? / In which city was {s} negotiated? / Where did they meet for {s}?
    / Where was {s} drawn up? / Where was {s} concluded? / Where did the delegates of {s} gather?
  new  Which city lent its table to {s}? / To which place did the powers travel to settle {s}?
treaty articles: number
  noun number of articles@in / articles
  says {s} has {o} articles. / {s} consists of {o} articles. / There are {o} articles in {s}.
    / {s} runs to {o} articles. / {s} is set out in {o} articles. / They agreed on {o} articles in {s}.
  it   It has {o} articles. / It consists of {o} articles. / Articles: {o} / It runs to {o} articles.
  ask  How many articles does {s} have? / Of how many articles does {s} consist? / How many articles are there in {s}?
    / To how many articles does {s} run? / In how many articles is {s} set out?
    / On how many articles did they agree in {s}?
  new  How long is {s}, in clauses? / How many points are listed in {s}?
treaty envoy: person
  noun chief negotiator / envoy
  says {o} negotiated {s}. / {s} was negotiated by {o}. / {s} is the work of {o}. / Without {o} there would be no {s}.
    / {o} brokered {s}. / {o} brought the parties to {s}.
  it   {o} negotiated it. / It was negotiated by {o}. / {o} brokered it. / It is the work of {o}.
  ask  Who negotiated {s}? / By whom was {s} negotiated? / Who brokered {s}? / Who brought the parties to {s}?
    / Without whom would there be no {s}? / Who was the envoy behind {s}?
  new  Whose diplomacy led to {s}? / Who talked both sides into {s}?
meeting chair: person
  noun chair / chairperson / moderator
  says {s} is chaired by {o}. / {o} chairs {s}. / {o} leads {s}. / {o} presides over {s}. / {s} is moderated by {o}.
    / {o} opens and closes {s}. / {o} is in charge of {s}.
  it   It is chaired by {o}. / {o} leads it. / {o} presides. / Chair: {o} / It is moderated by {o}.
  ask  Who chairs {s}? / Who leads {s}? / By whom is {s} chaired? / Who presides over {s}? / Who moderates {s}?
    / Who is in charge of {s}?
  new  Who gives people the word in {s}? / Who opens and closes {s}?
  call the person who chairs {s}
meeting room: room number
  noun room / meeting room
  says {s} is in {o}. / {s} takes place in {o}. / {s} has been moved to {o}. / Come to {o} for {s}.
    / They booked {o} for {s}. / {s} will be held in {o}.
  it   It is in {o}. / It takes place in {o}. / Room: {o} / It has been moved to {o}.
  ask  In which room is {s}? / Where is {s}? / Where does {s} take place? / Where has {s} been moved to?
    / Which room is booked for {s}? / Which room do I come to for {s}?
  new  Behind which door is {s}? / Where do I find the people of {s}?
meeting time: time
  noun time / start / starting time
  says {s} starts at {o}. / {s} begins at {o}. / {s} is at {o}. / Be in {s} at {o}. / {s} has been set for {o}.
    / People are expected at {s} by {o}.
  it   It starts at {o}. / It begins at {o}. / Time: {o} / It is at {o}.
  ask  At what time does {s} start? / What time is {s}? / When does {s} begin? / At what hour is {s}?
    / For what time has {s} been set? / By when are people expected at {s}?
  new  When must I be seated for {s}? / What does the clock say when {s} opens?
meeting date: date < when
meeting minutes: person
  noun minute-taker / secretary
  says {o} takes the minutes of {s}. / The minutes of {s} are written by {o}. / {o} writes the notes of {s}.
    / {o} keeps the record of {s}. / {o} will send round the minutes of {s}. / In {s} the pen is with {o}.
  it   {o} takes the minutes. / The minutes are written by {o}. / {o} writes the notes. / {o} keeps the record.
  ask  Who takes the minutes of {s}? / By whom are the minutes of {s} written? / Who writes the notes of {s}?
    / Who keeps the record of {s}? / Who will send round the minutes of {s}? / With whom is the pen in {s}?
  new  Who jots down what is said at {s}? / From whom do I get the protocol of {s}?
meeting length: duration < duration
meeting topic: noun
  noun topic / main item / subject
  says {s} is about the {o}. / {s} deals with the {o}. / At {s} they discuss the {o}.
    / The {o} is on the agenda of {s}. / {s} was called because of the {o}. / {s} turns to the {o}.
  it   It is about the {o}. / It deals with the {o}. / They discuss the {o}. / The {o} is on the agenda.
  ask  What is {s} about? / With what does {s} deal? / What do they discuss at {s}? / What is on the agenda of {s}?
    / Why was {s} called, because of what? / To what does {s} turn?
  new  What will people talk over in {s}? / What matter brings people to {s}?
course teacher: person
  noun teacher / lecturer / instructor
  says {s} is taught by {o}. / {o} teaches {s}. / {o} gives {s}. / {s} is given by {o}. / {o} lectures on {s}.
    / In {s} you learn from {o}. / Students of {s} listen to {o}.
  it   It is taught by {o}. / {o} teaches it. / {o} gives it. / Teacher: {o} / It is given by {o}.
  ask  Who teaches {s}? / By whom is {s} taught? / Who gives {s}? / Who lectures on {s}?
    / To whom do students of {s} listen? / From whom does one learn in {s}?
  new  Whose lectures make up {s}? / Who stands at the blackboard in {s}?
  call the person who teaches {s}
course day: weekday
  noun day / weekday
  says {s} is on {o}. / {s} meets every {o}. / {s} is taught on {o}. / On {o} there is {s}. / Go to {s} on {o}.
    / {s} takes place each {o}.
  it   It is on {o}. / It meets every {o}. / Day: {o} / It takes place each {o}.
  ask  On which day is {s}? / When is {s} taught? / Which weekday does {s} meet? / On what day is there {s}?
    / What day do I go to {s}? / On which day does {s} take place?
  new  Which day of the week is taken up by {s}? / When in the week must students get up for {s}?
course room: room number
  noun room / classroom
  says {s} is in {o}. / {s} is taught in {o}. / {s} meets in {o}. / Find {s} in {o}. / {s} was moved to {o}.
    / They reserved {o} for {s}.
  it   It is in {o}. / It is taught in {o}. / Room: {o} / It meets in {o}.
  ask  In which room is {s}? / Where is {s} taught? / Where does {s} meet? / Where was {s} moved to?
    / What room is reserved for {s}? / Which room is {s} in?
  new  Behind which door is {s} given? / Where do students sit for {s}?
course credits: number
  noun number of credits@for / credits
  says {s} is worth {o} credits. / {s} gives {o} credits. / You get {o} credits for {s}. / {s} counts for {o} points.
    / {s} earns you {o} credits. / Whoever passes {s} gets {o} points.
  it   It is worth {o} credits. / It gives {o} credits. / Credits: {o} / It counts for {o} points.
  ask  How many credits is {s} worth? / How many credits does {s} give? / How many credits do I get for {s}?
    / For how many points does {s} count? / How many credits does {s} earn me?
    / How many points does one get for passing {s}?
  new  How much does {s} add to my degree? / What is {s} good for, in points?
course exam: date
  noun exam date / date of the exam@in
  says The exam in {s} is on {o}. / {s} is examined on {o}. / {s} ends with a test on {o}.
    / On {o} students are tested in {s}. / Prepare for {s} by {o}. / You sit the paper for {s} on {o}.
  it   The exam is on {o}. / It ends with a test on {o}. / Exam: {o} / It is examined on {o}.
  ask  When is the exam in {s}? / On which date is {s} examined? / When does {s} end with a test?
    / When are students tested in {s}? / By when should I prepare for {s}? / When do I sit the paper for {s}?
  new  On what day must I know everything about {s}? / When is the final of {s}?
course book: book
  noun textbook / set book
  says {s} uses {o}. / Students of {s} read {o}. / {s} follows {o}. / For {s} you need {o}. / {s} is based on {o}.
    / {o} is required for {s}.
  it   It uses {o}. / Students read {o}. / It follows {o}. / Textbook: {o}
  ask  Which book does {s} use? / What do students of {s} read? / What does {s} follow?
    / Which book do I need for {s}? / On which book is {s} based? / What is required for {s}?
  new  What should I buy for {s}? / Which pages will be studied in {s}, from which work?
  call the book used in {s}
expedition leader: person < led
expedition goal: mountain
  noun goal / destination
  says {s} set out for {o}. / {s} aims at {o}. / {s} wants to reach {o}. / {s} heads for {o}. / {s} was sent to {o}.
    / {o} is where {s} is going.
  it   It set out for {o}. / It aims at {o}. / It heads for {o}. / Goal: {o}
  ask  For where did {s} set out? / What does {s} aim at? / What does {s} want to reach? / Where is {s} heading?
    / Where was {s} sent? / Where is {s} going?
  new  On which peak would {s} put its flag? / What is the dream of {s}?
expedition start: date < begins
expedition ship: vessel
  noun ship / vessel
  says {s} travels on {o}. / {s} sails on {o}. / {o} carries {s}. / {s} has chartered {o}. / {s} went aboard {o}.
    / The ship that takes {s} is {o}.
  it   It travels on {o}. / It sails on {o}. / {o} carries it. / It has chartered {o}.
  ask  On which ship does {s} travel? / Which vessel carries {s}? / On what does {s} sail?
    / Which ship has {s} chartered? / Aboard which ship did {s} go? / Which ship takes {s}?
  new  What keeps {s} afloat? / On whose planks does {s} cross the sea?
  call the ship that carries {s}
expedition members: number < members
experiment leader: person < led
  noun principal investigator / experimenter
experiment lab: laboratory
  noun laboratory / lab
  says {s} is run at {o}. / {s} was carried out at {o}. / {o} carried out {s}. / {s} was done in {o}.
    / They set up {s} at {o}. / {s} takes place at {o}.
  it   It is run at {o}. / It was carried out at {o}. / {o} carried it out. / They set it up at {o}.
  ask  Where is {s} run? / Where was {s} carried out? / Which laboratory carried out {s}? / Where did they set up {s}?
    / In which lab was {s} done? / Where does {s} take place?
  new  On whose benches was {s} performed? / Which research house hosts {s}?
experiment result: percentage
  noun result / measured value / outcome
  says {s} gave {o}. / {s} showed {o}. / {s} came out at {o}. / {s} ended with {o}. / They found {o} in {s}.
    / {s} yielded {o}. / The finding of {s} was {o}.
  it   It gave {o}. / It showed {o}. / Result: {o} / It came out at {o}. / It yielded {o}.
  ask  What did {s} give? / What did {s} show? / What was found in {s}? / At what did {s} come out?
    / What did {s} yield? / With what did {s} end?
  new  What number should be reported for {s}? / What came to light in {s}?
experiment heat: temperature
  noun temperature / working temperature
  says {s} was run at {o}. / In {s} they heated the sample to {o}. / {s} needs {o}. / During {s} it was {o}.
    / {s} was kept at {o}. / The oven for {s} was set to {o}.
  it   It was run at {o}. / It was kept at {o}. / Temperature: {o} / The oven was set to {o}.
  ask  At what temperature was {s} run? / How hot was it in {s}? / To what did they heat the sample in {s}?
    / What temperature does {s} need? / At what was {s} kept? / To what was the oven for {s} set?
  new  What did the thermometer read during {s}? / How much heat does {s} call for?
experiment length: duration < duration
experiment sample: number
  noun sample size / number of samples@in
  says {s} used {o} samples. / {s} was repeated {o} times. / {o} samples went into {s}.
    / For {s} they took {o} samples. / {s} looked at {o} cases. / {s} had {o} participants.
  it   It used {o} samples. / {o} samples went into it. / Samples: {o} / It looked at {o} cases.
  ask  How many samples did {s} use? / How many samples went into {s}? / How many samples did they take for {s}?
    / How many cases did {s} look at? / How many participants did {s} have? / How often was {s} repeated?
  new  How broad is the basis of {s}? / On how many pieces of evidence does {s} rest?
election winner: person < winner
election turnout: percentage
  noun turnout / participation
  says {o} voted in {s}. / {s} had a turnout of {o}. / {o} of the voters took part in {s}.
    / {s} drew {o} to the polls. / In {s}, {o} cast a vote. / {s} saw {o} at the ballot box.
  it   {o} voted. / It had a turnout of {o}. / Turnout: {o} / {o} took part.
  ask  How many voted in {s}? / What turnout did {s} have? / How many of the voters took part in {s}?
    / How many did {s} draw to the polls? / How many cast a vote in {s}? / How high was the turnout in {s}?
  new  What share of the people cared about {s}? / How strong was the rush to the polls in {s}?
election date: date < when
concert conductor: person
  noun conductor / musical director
  says {s} is conducted by {o}. / {o} conducts {s}. / {o} raises the baton in {s}. / {s} is under the baton of {o}.
    / In {s} the orchestra follows {o}. / {o} is the musical head of {s}.
  it   It is conducted by {o}. / {o} conducts it. / It is under the baton of {o}. / Conductor: {o}
  ask  Who conducts {s}? / By whom is {s} conducted? / Under whose baton is {s}? / Who raises the baton in {s}?
    / Whom does the orchestra follow in {s}? / Who is the musical head of {s}?
  new  Who stands on the rostrum in {s}? / Who sets the beat in {s}?
concert price: amount < entry
  noun ticket price
concert place: site
  noun venue / hall
  says {s} is at {o}. / {s} takes place at {o}. / {s} is given at {o}. / Hear {s} at {o}. / {o} is the venue of {s}.
    / {s} fills {o}.
  it   It is at {o}. / It takes place at {o}. / It is given at {o}. / Venue: {o}
  ask  Where is {s}? / Where does {s} take place? / In which hall is {s} given? / Where can I hear {s}?
    / What is the venue of {s}? / Which hall does {s} fill?
  new  Where should I go to listen to {s}? / Under which roof does {s} sound?
prize winner: person
  noun winner / laureate / holder
  says {s} went to {o}. / {o} received {s}. / {o} won {s}. / {s} was awarded to {o}. / {o} was honoured with {s}.
    / They gave {s} to {o}. / {o} took home {s}. / The jury chose {o} for {s}.
  it   It went to {o}. / {o} received it. / {o} won it. / It was awarded to {o}. / They gave it to {o}.
  ask  Who won {s}? / Who received {s}? / To whom did {s} go? / To whom was {s} awarded?
    / Whom did the jury choose for {s}? / Who was honoured with {s}? / To whom did they give {s}?
  new  Who took home {s}? / On whose shelf does {s} stand?
  call the person who won {s} / the person who received {s}
prize money: amount
  noun prize money / endowment / value
  says {s} is worth {o}. / {s} brings the winner {o}. / {s} comes with {o}. / Whoever gets {s} gets {o}.
    / {s} is endowed with {o}. / With {s} goes a cheque for {o}.
  it   It is worth {o}. / It comes with {o}. / It is endowed with {o}. / Prize money: {o}
  ask  How much is {s} worth? / How much does {s} bring the winner? / With how much does {s} come?
    / With how much is {s} endowed? / How much does one get with {s}? / What is the cheque that goes with {s}?
  new  How rich does {s} make its winner? / What sum is handed over with {s}?
prize donor: company < sponsor
  noun donor / sponsor
prize year: year
  noun first year / year of the first award@of
  says {s} was first given in {o}. / {s} has been awarded since {o}. / {s} goes back to {o}.
    / The first {s} was that of {o}. / {s} was created in {o}. / Since {o} they have handed out {s}.
  it   It was first given in {o}. / It has been awarded since {o}. / It goes back to {o}. / It was created in {o}.
  ask  When was {s} first given? / Since when has {s} been awarded? / In which year was {s} created?
    / To what year does {s} go back? / When was the first {s}? / Since what year have they handed out {s}?
  new  How old is the tradition of {s}? / What year saw the beginnings of {s}?
"""

HAPPENINGS = read(_TEXT, SENSES)
