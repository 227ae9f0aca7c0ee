"""People: at work, at school, in hospital, on the stage, on the track and on the throne."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
person town: city
  noun home town / place of residence / home
  says {s} lives in {o}. / {s} resides in {o}. / {s} moved to {o}. / {s} has settled in {o}. / {s} has a flat in {o}.
    / {o} is where {s} lives. / The home of {s} is in {o}. / {s} makes {its} home in {o}.
    / In {o} you will find {s}'s house.
  it   They live in {o}. / They have settled in {o}. / Lives in: {o} / They moved to {o}. / {o} is where they live.
  ask  Where does {s} live? / In which city does {s} live? / Where is {s} at home? / Which city does {s} live in?
    / Where has {s} settled? / To which city did {s} move? / In what town does {s} reside?
  new  Which place does {s} call home? / Where is {s}'s house? / What town is {s} a resident of?
  call the city where {s} lives
person birthplace: city
  noun birthplace / place of birth
  says {s} was born in {o}. / {s} comes from {o}. / {s} is a native of {o}. / {s} hails from {o}.
    / {o} is where {s} was born. / {s} first saw the light of day in {o}. / By birth {s} is from {o}.
  it   They were born in {o}. / They come from {o}. / Born in: {o} / They hail from {o}.
    / {o} is where they were born.
  ask  Where was {s} born? / Where does {s} come from? / In which city was {s} born? / Which city is {s} a native of?
    / Where does {s} hail from? / What city is {s} from?
  new  In what place did {s} come into the world? / Where did the life of {s} begin?
  call the city where {s} was born
person birthday: date
  noun birthday / date of birth
  says {s} was born on {o}. / {s} has {its} birthday on {o}. / {s} celebrates on {o}.
    / On {o} {s} came into the world. / Bring cake for {s} on {o}. / The passport of {s} says born {o}.
  it   They were born on {o}. / They celebrate on {o}. / Born: {o} / Their passport says {o}. / Bring cake on {o}.
  ask  When was {s} born? / On which day was {s} born? / When does {s} have {its} birthday? / When does {s} celebrate?
    / On what date was {s} born? / When is the birthday of {s}?
  new  When should I congratulate {s}? / What day did {s} come into the world?
    / What birth date stands in the passport of {s}?
person role: role
  noun job / profession / occupation
  says {s} works as a {o}. / {s} is a {o}. / {s} earns {its} living as a {o}. / By trade {s} is a {o}.
    / {s} has become a {o}. / {s} is employed as a {o}. / {s} trained to be a {o}. / {s}, a {o}, joined last year.
    / Our {o} is {s}.
  it   They work as a {o}. / They are a {o}. / Job: {o} / By trade they are a {o}. / Profession: {o}
  ask  What does {s} work as? / What is {s} by trade? / What does {s} do for a living? / As what does {s} work?
    / Which job does {s} have? / What line of work is {s} in? / What has {s} become?
  new  How does {s} earn money? / In what capacity is {s} employed? / What is {s}'s calling?
person employer: company
  noun employer
  says {s} works for {o}. / {o} employs {s}. / {s} is employed by {o}. / {s} has a job at {o}.
    / {s} is on the payroll of {o}. / {s} was hired by {o}. / {s} earns {its} money at {o}. / {s} is with {o}.
    / {s} joined {o}.
  it   They work for {o}. / They are employed by {o}. / They are with {o}. / {o} hired them. / Works at: {o}
  ask  Who does {s} work for? / Which company does {s} work for? / Who employs {s}? / By whom is {s} employed?
    / Where does {s} have a job? / Who hired {s}? / For which company does {s} work?
  new  On whose payroll is {s}? / Which firm pays {s}? / Who gave {s} a job?
  call the company that {s} works for / the company that employs {s}
person boss: person
  noun boss / manager / line manager / supervisor
  says {s} reports to {o}. / {s} works under {o}. / {o} is {s}'s superior. / {s} takes orders from {o}.
    / {s} answers to {o}. / {o} supervises {s}. / {s} is managed by {o}. / {o} oversees the work of {s}.
  it   They report to {o}. / They work under {o}. / {o} supervises them. / They answer to {o}. / Reports to: {o}
  ask  Who does {s} report to? / To whom does {s} report? / Under whom does {s} work? / Who supervises {s}?
    / Whom does {s} answer to? / Who manages {s}? / From whom does {s} take orders?
  new  Who is above {s}? / Who tells {s} what to do? / Who oversees what {s} does?
  call the person {s} reports to
person mentor: person
  noun mentor / teacher / tutor
  says {s} was trained by {o}. / {o} trained {s}. / {s} learnt the trade from {o}. / {o} taught {s}.
    / {s} was a pupil of {o}. / {s} owes {its} training to {o}. / {s} studied under {o}. / {o} took {s} under a wing.
  it   They were trained by {o}. / {o} taught them. / They learnt the trade from {o}. / They studied under {o}.
    / Trained by {o}.
  ask  Who trained {s}? / Who taught {s}? / By whom was {s} trained? / From whom did {s} learn the trade?
    / Whose pupil was {s}? / Under whom did {s} study?
  new  Who showed {s} the ropes? / Who passed the craft on to {s}?
  call the person who trained {s} / the person who taught {s}
person spouse: person
  noun spouse / partner
  says {s} is married to {o}. / {s} married {o}. / {o} and {s} are husband and wife. / {s} is the spouse of {o}.
    / {s} shares {its} life with {o}. / {s} wed {o}. / {s} tied the knot with {o}.
  it   They are married to {o}. / They married {o}. / They share their life with {o}. / They wed {o}.
    / Married to: {o}
  ask  Who is {s} married to? / To whom is {s} married? / Whom did {s} marry? / With whom does {s} share {its} life?
    / Who is the husband or wife of {s}? / Whom did {s} wed?
  new  With whom did {s} tie the knot? / Who is the better half of {s}?
  call the person who is married to {s}
person badge: badge
  noun badge number / staff number / employee number
  says {s} carries badge {o}. / {s} wears badge {o}. / {s} was issued badge {o}. / Badge {o} belongs to {s}.
    / {s} is registered under {o}. / On the badge of {s} it says {o}. / {s} signs in with {o}.
  it   They carry badge {o}. / Badge {o} is theirs. / Badge: {o} / They were issued badge {o}.
    / They sign in with {o}.
  ask  Which badge does {s} carry? / What badge does {s} wear? / Which number is on the badge of {s}?
    / With what number does {s} sign in? / Which badge belongs to {s}? / Under what number is {s} registered?
  new  What does it say on {s}'s badge? / How is {s} numbered in the staff list?
person room: room number
  noun office / desk / room
  says {s} sits in {o}. / {s} works in {o}. / {s} can be found in {o}. / You will find {s} in {o}.
    / {s} has moved to {o}. / {s} has {its} desk in {o}. / {s} shares {o} with others. / Knock at {o} for {s}.
  it   They sit in {o}. / They work in {o}. / Room: {o} / They can be found in {o}. / They have moved to {o}.
    / Office: {o}
  ask  Where does {s} sit? / In which room does {s} sit? / Where can I find {s}? / Which room is {s} in?
    / Where does {s} have {its} desk? / In what room does {s} work?
  new  Which door do I knock at for {s}? / To which room should I go to see {s}?
person phone: phone < phone
person email: email < email
person hobby: sport
  noun hobby / pastime / favourite sport
  says {s} likes {o}. / {s} spends weekends on {o}. / In {its} free time {s} goes in for {o}. / {s} is keen on {o}.
    / {s} enjoys {o}. / {s} is fond of {o}. / After work {s} does some {o}.
  it   They like {o}. / They are keen on {o}. / Hobby: {o} / They enjoy {o}. / Weekends are for {o}.
  ask  What does {s} like to do? / What is {s} keen on? / What does {s} enjoy? / What is {s} fond of?
    / What does {s} do in {its} free time? / How does {s} spend weekends?
  new  What does {s} do for fun? / What keeps {s} busy after work?
person instrument: instrument
  noun instrument
  says {s} plays the {o}. / {s} is learning the {o}. / {s} took up the {o}. / {s} practises the {o}.
    / {s} owns a fine old {o} and plays it daily. / You can hear {s} on the {o}.
  it   They play the {o}. / They took up the {o}. / Instrument: {o} / They practise the {o}.
    / You hear them on the {o}.
  ask  What does {s} play? / Which instrument does {s} play? / What instrument did {s} take up?
    / What is {s} learning to play? / On what can one hear {s}? / What does {s} practise?
  new  What kind of music-maker is in {s}'s hands? / What would {s} bring to a band?
person tongue: tongue
  noun native language / mother tongue / first language
  says {s} speaks {o}. / {s} grew up speaking {o}. / {s} is a native speaker of {o}. / At home {s} speaks {o}.
    / {s} talks to {its} children in {o}. / The language of {s} is {o}.
  it   They speak {o}. / They grew up speaking {o}. / Language: {o} / At home they speak {o}.
  ask  Which language does {s} speak? / What language did {s} grow up with? / What does {s} speak at home?
    / Of which language is {s} a native speaker? / In which language does {s} talk to {its} children?
    / What language is {s}'s?
  new  In what tongue would {s} dream? / How must I talk to be understood by {s}?
person pet: animal
  noun pet
  says {s} keeps a {o}. / {s} has a {o} at home. / {s} owns a {o}. / A {o} lives with {s}.
    / {s} is often seen with a {o}. / {s} looks after a {o}.
  it   They keep a {o}. / They have a {o} at home. / Pet: {o} / A {o} lives with them.
  ask  What pet does {s} have? / Which animal does {s} keep? / What animal lives with {s}?
    / What does {s} have at home by way of animals? / What animal does {s} own? / Which animal does {s} look after?
  new  What creature does {s} feed? / With what beast is {s} often seen?
person car: vehicle
  noun car / vehicle
  says {s} drives the {o}. / {s} comes to work in the {o}. / {s} bought the {o}. / {s} gets about in the {o}.
    / The {o} belongs to {s}. / {s} parks the {o} outside.
  it   They drive the {o}. / They bought the {o}. / They come to work in the {o}. / They get about in the {o}.
  ask  What does {s} drive? / Which car does {s} have? / Which vehicle does {s} drive?
    / In what does {s} come to work? / What car did {s} buy? / What does {s} get about in?
  new  What is {s} behind the wheel of? / What does {s} park outside?
person salary: amount
  noun salary / pay / wage
  says {s} earns {o}. / {s} is paid {o}. / {s} makes {o}. / {s} gets {o}. / {s} draws a salary of {o}.
    / The pay of {s} comes to {o}. / They pay {s} {o}.
  it   They earn {o}. / They are paid {o}. / Salary: {o} / They draw a salary of {o}. / They make {o}.
  ask  How much does {s} earn? / What is {s} paid? / How much does {s} make? / What salary does {s} draw?
    / How much does {s} get? / What do they pay {s}?
  new  What does {s} take home? / How well is {s} remunerated?
person degree: subject
  noun subject / field of study
  says {s} studied {o}. / {s} has a degree in {o}. / {s} graduated in {o}. / {s} read {o} at university.
    / {s} took a degree in {o}. / {s} knows a lot about {o}, having studied it.
  it   They studied {o}. / They have a degree in {o}. / Degree: {o} / They graduated in {o}.
  ask  What did {s} study? / In what did {s} graduate? / In which subject does {s} have a degree?
    / What did {s} read at university? / What is the degree of {s} in? / Which subject did {s} take a degree in?
  new  What is {s} qualified in? / What did {s} learn at college?
person school: university
  noun alma mater / university
  says {s} went to {o}. / {s} studied at {o}. / {s} graduated from {o}. / {s} is a graduate of {o}.
    / {s} got {its} degree from {o}. / {o} is where {s} studied. / {s} spent {its} student days at {o}.
  it   They went to {o}. / They studied at {o}. / They graduated from {o}. / {o} is where they studied.
  ask  Where did {s} study? / Which university did {s} go to? / From where did {s} graduate?
    / Of which university is {s} a graduate? / At which university did {s} study? / Who gave {s} a degree?
  new  Where was {s} a student? / Which university educated {s}?
  call the university {s} went to
person vacation: nation
  noun holiday destination / favourite country
  says {s} spends {its} holidays in {o}. / {s} travels to {o} every year. / {s} is off to {o}.
    / {s} goes on vacation to {o}. / {s} loves to visit {o}. / Each summer {s} is in {o}.
  it   They spend their holidays in {o}. / They travel to {o} every year. / They go on vacation to {o}.
    / Each summer they are in {o}.
  ask  Where does {s} go on holiday? / Which country does {s} travel to? / Where does {s} spend {its} vacation?
    / To which country is {s} off? / Which country does {s} love to visit? / Where is {s} each summer?
  new  Where does {s} go to get away? / What land does {s} like to tour?
person deputy: person
  noun deputy / stand-in
  says {o} stands in for {s}. / When {s} is away, {o} takes over. / {s} is represented by {o}.
    / {o} deputises for {s}. / {o} fills in for {s}. / In the absence of {s}, ask {o}. / {o} covers for {s}.
  it   {o} stands in for them. / When they are away, {o} takes over. / In their absence, ask {o}.
    / {o} covers for them.
  ask  Who stands in for {s}? / Who takes over when {s} is away? / By whom is {s} represented?
    / Who deputises for {s}? / Who covers for {s}? / Who fills in for {s}?
  new  Whom do I ask in the absence of {s}? / Who steps in if {s} is ill?
  call the person who stands in for {s}
athlete team: team
  noun team / side
  says {s} plays for {o}. / {s} has signed for {o}. / {s} is under contract with {o}. / {s} turns out for {o}.
    / {s} belongs to {o}. / {o} signed {s}. / {s} joined {o}.
  it   They play for {o}. / They have signed for {o}. / They are under contract with {o}. / {o} signed them.
  ask  Which team does {s} play for? / For whom does {s} play? / Who signed {s}?
    / With which team is {s} under contract? / What team does {s} belong to? / For which side does {s} turn out?
  new  In whose colours is {s} seen? / Who has {s} in its squad?
  call the team {s} plays for
athlete sport: sport
  noun sport / discipline / event
  says {s} does {o}. / {s} competes in {o}. / {s} is a star of {o}. / {s} took up {o} as a child.
    / {s} made {its} name in {o}. / {s} lives for {o}.
  it   They do {o}. / They compete in {o}. / Sport: {o} / They made their name in {o}.
  ask  What sport does {s} do? / In which sport does {s} compete? / In what did {s} make {its} name?
    / What did {s} take up as a child? / What does {s} compete in? / Which sport does {s} live for?
  new  At what is {s} good? / For what kind of contest does {s} train?
athlete shirt: number
  noun shirt number / jersey number / start number
  says {s} wears number {o}. / {s} starts with number {o}. / Number {o} is {s}. / {s} has {o} on the back.
    / {s} was given number {o}. / The {o} on the field is {s}.
  it   They wear number {o}. / They start with number {o}. / Number {o} is theirs. / They have {o} on the back.
  ask  What number does {s} wear? / Which number is on the back of {s}? / With which number does {s} start?
    / What number was {s} given? / Under which number does {s} compete? / Which number is {s}?
  new  How do I spot {s} by the digits on the shirt? / What figure is on {s}'s jersey?
athlete nation: nation
  noun country / nation
  says {s} competes for {o}. / {s} carries the flag of {o}. / {s} is in the squad of {o}. / {s} represents {o}.
    / {s} is a champion of {o}. / {s} runs in the colours of {o}.
  it   They compete for {o}. / They represent {o}. / Country: {o} / They carry the flag of {o}.
  ask  For which country does {s} compete? / Which country does {s} represent? / Whose flag does {s} carry?
    / What nation is {s} a champion of? / In the colours of which country does {s} run?
    / Which country is {s} in the squad of?
  new  What anthem is played when {s} wins? / Where does {s} hold a passport, as a sportsperson?
athlete coach: person
  noun coach / trainer
  says {s} is coached by {o}. / {o} coaches {s}. / {s} trains under {o}. / {o} prepares {s} for the season.
    / {s} trusts {o} with {its} training. / {s} works with {o} every day.
  it   They are coached by {o}. / {o} coaches them. / They train under {o}. / Coach: {o}
  ask  Who coaches {s}? / By whom is {s} coached? / Under whom does {s} train? / Who prepares {s} for the season?
    / With whom does {s} work every day? / To whom does {s} trust {its} training?
  new  Who gets {s} into shape? / Who stands beside {s} with the stopwatch?
  call the person who coaches {s}
athlete best: length
  noun personal best / best mark
  says {s} has cleared {o}. / {s} reached {o}. / The best that {s} has managed is {o}.
    / {s} holds a personal record of {o}. / {s} once made {o}. / {s} improved to {o}.
  it   They have cleared {o}. / They reached {o}. / Best: {o} / They improved to {o}.
  ask  What is the best {s} has managed? / How far did {s} get? / What mark has {s} reached?
    / What personal record does {s} hold? / What has {s} cleared? / To what did {s} improve?
  new  What can {s} do on a good day? / At what stands the record of {s}?
monarch realm: country
  noun realm / kingdom
  says {s} ruled {o}. / {s} was the sovereign of {o}. / {s} reigned over {o}. / {o} was ruled by {s}.
    / {s} sat on the throne of {o}. / {s} governed {o}. / The people of {o} bowed to {s}.
  it   They ruled {o}. / They reigned over {o}. / {o} was theirs. / They sat on the throne of {o}. / Realm: {o}
  ask  What did {s} rule? / Over which country did {s} reign? / Which country did {s} rule?
    / Where did {s} sit on the throne? / Which country did {s} govern? / Of what was {s} the sovereign?
  new  Whose crown did {s} wear? / Which people bowed to {s}?
  call the country that {s} ruled
monarch crowned: year
  noun year of coronation / coronation year
  says {s} was crowned in {o}. / {s} came to the throne in {o}. / {s} took the crown in {o}.
    / In {o} {s} became ruler. / The reign of {s} began in {o}. / {s} has reigned since {o}. / {s} acceded in {o}.
  it   They were crowned in {o}. / They came to the throne in {o}. / Crowned: {o} / Their reign began in {o}.
  ask  When was {s} crowned? / In which year did {s} come to the throne? / When did {s} take the crown?
    / What year did the reign of {s} begin? / Since when has {s} reigned? / In what year did {s} become ruler?
  new  When was the coronation of {s}? / From what year on did {s} govern?
monarch heir: person
  noun heir / successor
  says {s} was succeeded by {o}. / {o} followed {s} on the throne. / {s} left the crown to {o}. / After {s} came {o}.
    / {o} inherited from {s}. / {s} named {o} to follow.
  it   They were succeeded by {o}. / {o} followed on the throne. / They left the crown to {o}. / Heir: {o}
    / After them came {o}.
  ask  Who succeeded {s}? / Who followed {s} on the throne? / By whom was {s} succeeded?
    / To whom did {s} leave the crown? / Who came after {s}? / Who inherited from {s}?
  new  Who was next in line to {s}? / Who took over from {s}?
  call the person who succeeded {s}
monarch palace: castle
  noun palace / residence / seat
  says {s} lived in {o}. / {s} held court at {o}. / {s} built {o} and stayed there. / {s} resided at {o}.
    / The court of {s} was at {o}. / {s} received visitors at {o}.
  it   They lived in {o}. / They held court at {o}. / The court was at {o}. / They received visitors at {o}.
  ask  Where did {s} live? / Where did {s} hold court? / In which palace did {s} reside? / Where was the court of {s}?
    / At which residence did {s} receive visitors? / What castle did {s} stay in?
  new  Under which roof did {s} dwell? / To what house would one go to see {s}?
student major: subject
  noun main subject / major
  says {s} studies {o}. / {s} majors in {o}. / {s} is reading for a degree in {o}. / {s} has chosen {o}.
    / {s} is enrolled in {o}. / {s} is working towards a degree in {o}.
  it   They study {o}. / They major in {o}. / Subject: {o} / They are enrolled in {o}.
  ask  What does {s} study? / In what does {s} major? / Which subject has {s} chosen? / In what is {s} enrolled?
    / What subject is {s} reading? / Towards a degree in what is {s} working?
  new  What is {s} at university to learn? / Which lectures does {s} mainly go to?
student university: university
  noun university / college
  says {s} is a student at {o}. / {s} goes to {o}. / {s} attends {o}. / {s} was admitted to {o}. / {o} admitted {s}.
    / {s} is enrolled with {o}.
  it   They go to {o}. / They attend {o}. / {o} admitted them. / They are a student at {o}.
  ask  Which university does {s} go to? / Where is {s} a student? / Which university does {s} attend?
    / To which university was {s} admitted? / Who admitted {s}? / What university is {s} enrolled with?
  new  On which campus would I meet {s}? / Where will {s} graduate?
  call the university that {s} attends
student number: code
  noun student number / matriculation number
  says {s} is enrolled under number {o}. / On the card of {s} it says {o}. / {s} was given the number {o}.
    / {s} signs papers with {o}. / {s} writes {o} on every exam. / The office knows {s} as {o}.
  it   They are enrolled under {o}. / Their card says {o}. / Number: {o} / They write {o} on every exam.
  ask  Under which number is {s} enrolled? / What does it say on the card of {s}? / What number was {s} given?
    / What does {s} write on every exam? / With which number does {s} sign papers? / As what does the office know {s}?
  new  How is {s} listed in the student register? / What are the digits on {s}'s student card?
student supervisor: person
  noun supervisor / adviser / thesis adviser
  says {s} writes {its} thesis under {o}. / {o} supervises {s}. / {s} is supervised by {o}.
    / {s} discusses {its} work with {o}. / {o} advises {s}. / {s} is looked after by {o}.
  it   They write their thesis under {o}. / {o} supervises them. / {o} advises them. / Adviser: {o}
  ask  Who supervises {s}? / Under whom does {s} write {its} thesis? / Who advises {s}? / By whom is {s} supervised?
    / With whom does {s} discuss {its} work? / Who looks after {s}?
  new  Which professor is guiding {s}? / Who reads the drafts of {s}?
  call the person who supervises {s}
student grade: percentage
  noun final mark / exam result / grade
  says {s} scored {o}. / {s} got {o} in the exam. / {s} passed with {o}. / {s} was marked {o}. / {s} achieved {o}.
    / The exam of {s} was worth {o}.
  it   They scored {o}. / They got {o} in the exam. / Mark: {o} / They passed with {o}.
  ask  What did {s} score? / How did {s} do in the exam? / What mark did {s} get? / With what did {s} pass?
    / How was {s} marked? / What did {s} achieve?
  new  How good was the paper of {s}? / What was {s} awarded for the test?
patient doctor: person
  noun doctor / physician / GP
  says {s} is treated by {o}. / {o} treats {s}. / {s} sees {o}. / {s} is under the care of {o}. / {o} examined {s}.
    / {s} has an appointment with {o}.
  it   They are treated by {o}. / {o} treats them. / They see {o}. / Doctor: {o} / They are under the care of {o}.
  ask  Who treats {s}? / By whom is {s} treated? / Which doctor does {s} see? / Under whose care is {s}?
    / Who examined {s}? / With whom does {s} have an appointment?
  new  Who prescribes for {s}? / Whom does {s} go to when ill?
  call the person who treats {s}
patient ward: room number
  noun bed / ward
  says {s} lies in {o}. / {s} was put in {o}. / {s} is being cared for in {o}. / Visitors find {s} in {o}.
    / {s} was moved to {o}. / They took {s} to {o}.
  it   They lie in {o}. / They were put in {o}. / Room: {o} / They were moved to {o}.
  ask  In which room does {s} lie? / Where was {s} put? / Where do visitors find {s}? / Which room is {s} in?
    / Where was {s} moved to? / Where is {s} being cared for?
  new  To which door should I bring flowers for {s}? / What room did they take {s} to?
patient illness: illness
  noun diagnosis / complaint / illness
  says {s} suffers from {o}. / {s} came in with {o}. / {s} was diagnosed with {o}. / {s} is being treated for {o}.
    / {s} has {o}. / {s} complains of {o}.
  it   They suffer from {o}. / They came in with {o}. / Diagnosis: {o} / They are being treated for {o}.
  ask  What does {s} suffer from? / With what did {s} come in? / What was {s} diagnosed with?
    / What is {s} being treated for? / What does {s} have? / Of what does {s} complain?
  new  What is wrong with {s}? / Which condition did the doctors find in {s}?
patient medicine: medicine
  noun medication / prescription
  says {s} takes {o}. / {s} was prescribed {o}. / {s} is on {o}. / They give {s} {o}. / {s} gets {o} daily.
    / {s} must not forget {o}.
  it   They take {o}. / They were prescribed {o}. / They are on {o}. / They get {o} daily.
  ask  What does {s} take? / What was {s} prescribed? / Which medicine is {s} on? / Which drug does {s} get?
    / What do they give {s}? / Which medicine must {s} not forget?
  new  What pills are meant for {s}? / What is {s} being medicated with?
musician instrument: instrument
  noun instrument
  says {s} plays the {o}. / {s} is known for playing the {o}. / {s} is a master of the {o}.
    / On stage {s} plays the {o}. / {s} fell for the {o} early. / {s} teaches the {o}.
  it   They play the {o}. / They are a master of the {o}. / They teach the {o}. / Instrument: {o}
  ask  Which instrument does {s} play? / What does {s} play on stage? / Of which instrument is {s} a master?
    / What instrument is {s} known for? / What does {s} teach? / For which instrument did {s} fall early?
  new  What does {s} perform on? / What would I see in the hands of {s} at a concert?
musician genre: genre
  noun style / kind of music
  says {s} is at home in {o}. / {s} records {o}. / {s} sings and plays {o}. / {s} loves {o} above all.
    / {s} grew up with {o}. / {s} has turned to {o}.
  it   They are at home in {o}. / They record {o}. / Style: {o} / They have turned to {o}.
  ask  What kind of music does {s} make? / In which style is {s} at home? / What style does {s} record?
    / What does {s} love above all? / With what music did {s} grow up? / What has {s} turned to?
  new  In which part of the record shop do I find {s}? / How would you label the music of {s}?
musician label: company
  noun record label / label
  says {s} records for {o}. / {s} is signed to {o}. / {o} has {s} under contract. / {o} brings out the records of {s}.
    / {s} went over to {o}. / The albums of {s} appear with {o}.
  it   They record for {o}. / They are signed to {o}. / {o} brings out their records. / Label: {o}
  ask  For whom does {s} record? / To which label is {s} signed? / Who brings out the records of {s}?
    / Who has {s} under contract? / With whom do the albums of {s} appear? / Which company does {s} record for?
  new  Whose logo is on the records of {s}? / Which firm sells the music of {s}?
musician debut: year
  noun debut / year of debut
  says {s} first went on stage in {o}. / {s} made {its} debut in {o}. / {s} has performed since {o}.
    / The career of {s} began in {o}. / {s} gave a first concert in {o}. / {s} has been in the business since {o}.
  it   They made their debut in {o}. / They have performed since {o}. / Debut: {o} / Their career began in {o}.
  ask  When did {s} make {its} debut? / Since when has {s} performed? / In which year did the career of {s} begin?
    / When did {s} first go on stage? / When did {s} give a first concert?
    / Since what year has {s} been in the business?
  new  When did the public first hear {s}? / How far back does the career of {s} reach?
"""

PEOPLE_RELATIONS = read(_TEXT, SENSES)
