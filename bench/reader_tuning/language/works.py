"""Books, films, songs, paintings, plays, games, statues, exhibitions, podcasts and languages."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
book author: person < author
  noun author / writer
book year: year < year
  noun year of publication / publication year
book publisher: company
  noun publisher / publishing house
  says {s} is published by {o}. / {o} publishes {s}. / {s} was brought out by {o}. / {o} printed {s}.
    / {s} appeared with {o}. / {s} is in the list of {o}. / {o} bought the rights to {s}.
  it   It is published by {o}. / {o} brought it out. / It appeared with {o}. / Published by {o}.
  ask  Who publishes {s}? / Which company publishes {s}? / By whom was {s} brought out? / Who printed {s}?
    / With whom did {s} appear? / In whose list is {s}?
  new  Which house put {s} on the market? / Who sells {s} to the bookshops?
  call the company that publishes {s}
book pages: number
  noun number of pages@of / page count
  says {s} has {o} pages. / {s} runs to {o} pages. / There are {o} pages in {s}. / {s} is {o} pages long.
    / {s} fills {o} pages. / You read {o} pages of {s}.
  it   It has {o} pages. / It runs to {o} pages. / Pages: {o} / It is {o} pages long.
  ask  How many pages does {s} have? / How many pages are there in {s}? / How many pages is {s} long?
    / To how many pages does {s} run? / How many pages does {s} fill? / How many pages of {s} are there to read?
  new  How thick is {s}, in pages? / What number stands on the last sheet of {s}?
book language: tongue
  noun original language / language
  says {s} was written in {o}. / {s} first appeared in {o}. / {s} was translated from {o}.
    / The original of {s} is in {o}. / {s} is best read in {o}. / In {o}, {s} sounds better.
  it   It was written in {o}. / It first appeared in {o}. / It was translated from {o}. / Language: {o}
  ask  In which language was {s} written? / From which language was {s} translated?
    / In what language did {s} first appear? / What language is the original of {s} in?
    / In which language is {s} best read? / In what language does {s} sound better?
  new  What must I speak to read {s} as it was meant? / Which tongue did the writer of {s} use?
book hero: person
  noun hero / main character / heroine
  says {s} tells the story of {o}. / {s} is about {o}. / The hero of {s} is called {o}.
    / In {s}, {o} goes on a journey. / {s} follows {o}. / {o} is at the centre of {s}.
  it   It tells the story of {o}. / It is about {o}. / It follows {o}. / Hero: {o} / {o} is at its centre.
  ask  Whose story does {s} tell? / About whom is {s}? / What is the hero of {s} called? / Whom does {s} follow?
    / Who is at the centre of {s}? / Who goes on a journey in {s}?
  new  Whose adventures do readers of {s} share? / Who is the leading figure in {s}?
book shelf: code
  noun shelf mark / call number
  says {s} stands under {o}. / In the library {s} is at {o}. / Ask for {s} under {o}. / {s} has been shelved at {o}.
    / To borrow {s}, note {o}. / The catalogue gives {o} for {s}.
  it   It stands under {o}. / It has been shelved at {o}. / Shelf mark: {o} / The catalogue gives {o}.
  ask  Under what does {s} stand? / Where is {s} in the library? / Under what do I ask for {s}?
    / Where has {s} been shelved? / What do I note to borrow {s}? / What does the catalogue give for {s}?
  new  Which signature leads me to {s}? / How is {s} marked on its spine?
film director: person
  noun director / film-maker
  says {s} was directed by {o}. / {o} directed {s}. / {s} is a film by {o}. / {o} made {s}. / {s} was shot by {o}.
    / {o} stood behind the camera for {s}. / {s} is the latest from {o}.
  it   It was directed by {o}. / {o} directed it. / {o} made it. / Director: {o} / It is the latest from {o}.
  ask  Who directed {s}? / By whom was {s} directed? / Who made {s}? / By whom is the film {s}? / Who shot {s}?
    / Who stood behind the camera for {s}?
  new  Whose film is {s}? / Who told the actors in {s} what to do?
  call the person who directed {s}
film star: person
  noun leading actor / star / lead
  says {o} stars in {s}. / {s} stars {o}. / {o} plays the main part in {s}. / The lead in {s} is played by {o}.
    / {s} was written for {o}. / In {s} you see {o} at {its} best. / {o} is the face of {s}.
  it   {o} stars in it. / It stars {o}. / The main part is played by {o}. / It was written for {o}.
  ask  Who stars in {s}? / Who plays the main part in {s}? / By whom is the lead in {s} played?
    / For whom was {s} written? / Whom do you see in {s}? / Who is the face of {s}?
  new  Whose name is on the posters of {s}? / Which actor carries {s}?
  call the person who stars in {s}
film length: duration < duration
  noun running time / length
film year: year < year
  noun year of release / release year
film genre: genre
  noun genre / kind of film
  says {s} belongs to the genre of {o}. / {s} counts as {o}. / Critics file {s} under {o}. / {s} is sold as {o}.
    / {s} is pure {o}. / They describe {s} as {o}.
  it   It counts as {o}. / Critics file it under {o}. / Genre: {o} / It is pure {o}.
  ask  What genre is {s}? / To which genre does {s} belong? / Under what do critics file {s}?
    / What kind of film is {s}? / As what is {s} sold? / As what does {s} count?
  new  On which shelf of the video shop is {s}? / What sort of story does {s} offer?
film budget: amount < budget
film place: city
  noun filming location / location
  says {s} was filmed in {o}. / {s} was shot on the streets of {o}. / They made {s} in {o}. / {o} is seen in {s}.
    / The crew of {s} worked in {o}. / {o} served as the setting of {s}.
  it   It was filmed in {o}. / They made it in {o}. / {o} served as its setting. / Filmed in: {o}
  ask  Where was {s} filmed? / In which city was {s} shot? / Where did they make {s}? / Which city is seen in {s}?
    / Where did the crew of {s} work? / Which city served as the setting of {s}?
  new  Which streets do I see in {s}? / What town welcomed the cameras of {s}?
  call the city where {s} was filmed
song singer: musician
  noun singer / performer
  says {s} is sung by {o}. / {o} sings {s}. / {s} was recorded by {o}. / {o} made a hit of {s}.
    / {s} is on the new record of {o}. / {o} gave {s} its voice. / {s} was performed by {o}.
  it   It is sung by {o}. / {o} sings it. / It was recorded by {o}. / Singer: {o} / {o} made a hit of it.
  ask  Who sings {s}? / By whom is {s} sung? / Who recorded {s}? / Who made a hit of {s}? / Who performed {s}?
    / On whose new record is {s}?
  new  Whose voice is heard on {s}? / Who had success with {s}?
song writer: person
  noun songwriter / composer
  says {s} was composed by {o}. / {o} composed {s}. / {o} wrote {s}. / The tune of {s} is by {o}.
    / {s} came to {o} in a dream. / The royalties for {s} go to {o}.
  it   It was composed by {o}. / {o} composed it. / {o} wrote it. / Its tune is by {o}.
  ask  Who composed {s}? / Who wrote {s}? / By whom was {s} composed? / By whom is the tune of {s}?
    / To whom do the royalties for {s} go? / To whom did {s} come in a dream?
  new  Who thought up the melody of {s}? / From whose head is {s}?
  call the person who composed {s}
song length: duration < duration
  noun length / duration
song year: year < year
song chart: number
  noun chart position / highest position
  says {s} reached number {o}. / {s} got to number {o} in the charts. / {s} peaked at {o}.
    / The charts had {s} at {o}. / {s} climbed to number {o}. / At best, {s} stood at {o}.
  it   It reached number {o}. / It peaked at {o}. / Charts: {o} / It climbed to number {o}.
  ask  What number did {s} reach? / How high did {s} get in the charts? / At what did {s} peak?
    / Where did the charts have {s}? / To what number did {s} climb? / Where did {s} stand at best?
  new  How successful was {s} with buyers, as a place? / What rank did {s} make it to?
painting painter: person
  noun painter / artist
  says {s} was painted by {o}. / {o} painted {s}. / {s} is by {o}. / {s} is a work of {o}. / {o} signed {s}.
    / Experts attribute {s} to {o}. / {s} came from the brush of {o}.
  it   It was painted by {o}. / {o} painted it. / It is by {o}. / Painter: {o} / {o} signed it.
  ask  Who painted {s}? / By whom is {s}? / By whom was {s} painted? / Who signed {s}?
    / To whom do experts attribute {s}? / From whose brush is {s}?
  new  Which artist created {s}? / Whose signature is on {s}?
  call the person who painted {s}
painting museum: museum
  noun museum / home
  says {s} hangs in the {o}. / {s} can be seen in the {o}. / The {o} owns {s}. / {s} was given to the {o}.
    / {s} is on display at the {o}. / Visit the {o} to see {s}.
  it   It hangs in the {o}. / It can be seen in the {o}. / The {o} owns it. / It is on display at the {o}.
  ask  Where does {s} hang? / In which museum is {s}? / Which museum owns {s}? / Where can I see {s}?
    / To which museum was {s} given? / Where is {s} on display?
  new  On whose walls is {s}? / Which gallery must I visit for {s}?
  call the museum that owns {s}
painting style: style
  noun style / school
  says {s} is {o} in style. / {s} is painted in the {o} manner. / {s} counts as {o}. / Critics call {s} {o}.
    / {s} is an example of {o} art. / {s} belongs to the {o} school.
  it   It is {o} in style. / It counts as {o}. / Style: {o} / Critics call it {o}.
  ask  In what style is {s}? / In which manner is {s} painted? / As what does {s} count? / What do critics call {s}?
    / Of what art is {s} an example? / To which school does {s} belong?
  new  How is {s} labelled in art books? / Which movement stands behind {s}?
painting price: amount
  noun price at auction@of / hammer price / value
  says {s} was sold for {o}. / {s} fetched {o}. / {s} is insured for {o}. / Somebody paid {o} for {s}.
    / {s} is worth {o}. / At auction {s} went for {o}. / The bidding for {s} ended at {o}.
  it   It was sold for {o}. / It fetched {o}. / It is worth {o}. / Price: {o}
  ask  For how much was {s} sold? / What did {s} fetch? / How much is {s} worth? / How much did somebody pay for {s}?
    / For what is {s} insured? / For how much did {s} go at auction?
  new  What value is put on {s}? / At what sum did the bidding for {s} stop?
painting year: year
  noun year / year of origin
  says {s} was painted in {o}. / {s} dates from {o}. / {s} was finished in {o}. / {s} is from {o}.
    / In {o} the painter completed {s}. / The label on {s} says {o}.
  it   It was painted in {o}. / It dates from {o}. / It was finished in {o}. / Year: {o}
  ask  When was {s} painted? / From which year does {s} date? / When was {s} finished? / What year is {s} from?
    / What year does the label on {s} say? / In which year did the painter complete {s}?
  new  How old is {s}, going by its date? / When did the paint on {s} dry?
painting motif: noun
  noun motif / subject
  says {s} shows a {o}. / {s} depicts a {o}. / On {s} you see a {o}. / In the centre of {s} there is a {o}.
    / A {o} is the motif on {s}. / {s} is the picture of a {o}.
  it   It shows a {o}. / It depicts a {o}. / In its centre there is a {o}. / Motif: {o}
  ask  What does {s} show? / What does {s} depict? / What is to be seen on {s}? / What is in the centre of {s}?
    / Of what is {s} a picture? / What is the motif on {s}?
  new  What would I look at in {s}? / What did the artist choose to portray in {s}?
play author: person < author
  noun author / playwright
play theatre: theatre
  noun theatre / stage
  says {s} is on at the {o}. / The {o} puts on {s}. / {s} is performed at the {o}. / You can see {s} at the {o}.
    / {s} had its first night at the {o}. / Tickets for {s} are sold by the {o}.
  it   It is on at the {o}. / The {o} puts it on. / It is performed at the {o}. / You can see it at the {o}.
  ask  Where is {s} on? / Which theatre puts on {s}? / Where is {s} performed? / Where can I see {s}?
    / Where did {s} have its first night? / Who sells tickets for {s}?
  new  Which house has {s} in its programme? / Where does the curtain rise for {s}?
play acts: number
  noun number of acts@in / number of scenes@in
  says {s} has {o} scenes. / {s} is divided into {o} scenes. / There are {o} scenes in {s}.
    / {s} unfolds over {o} scenes. / The author gave {s} {o} scenes. / {s} comes in {o} scenes.
  it   It has {o} scenes. / It is divided into {o} scenes. / Scenes: {o} / There are {o} scenes.
  ask  How many scenes does {s} have? / Into how many scenes is {s} divided? / How many scenes are there in {s}?
    / Over how many scenes does {s} unfold? / How many scenes did the author give {s}?
    / In how many scenes does {s} come?
  new  Of how many parts does {s} consist? / How often does the set change in {s}?
game studio: company < maker
  noun studio / developer / publisher
game players: number
  noun number of players@in / player count
  says {s} is for {o} players. / Up to {o} people can play {s}. / {s} takes {o} players.
    / You need {o} people for {s}. / {s} brings {o} people together. / {o} can join in {s}.
  it   It is for {o} players. / Up to {o} people can play. / Players: {o} / It takes {o} players.
  ask  How many can play {s}? / For how many players is {s}? / How many players does {s} take?
    / How many people do I need for {s}? / How many can join in {s}? / How many people does {s} bring together?
  new  How big must a group be for {s}? / How many friends should I invite for {s}?
game price: amount < price
statue sculptor: person
  noun sculptor / artist
  says {s} was made by {o}. / {o} made {s}. / {s} was carved by {o}. / {o} cast {s}. / {s} is the work of {o}.
    / {o} created {s}. / {s} came from the workshop of {o}.
  it   It was made by {o}. / {o} made it. / It was carved by {o}. / Sculptor: {o}
  ask  Who made {s}? / By whom was {s} made? / Who carved {s}? / Whose creation is {s}? / Who cast {s}?
    / From whose workshop is {s}?
  new  Whose chisel shaped {s}? / Which artist do we have to thank for {s}?
  call the person who made {s}
statue material: material < material
statue height: length < height
statue honours: person
  noun honoree / person honoured@by
  says {s} honours {o}. / {s} was put up in memory of {o}. / {s} shows {o}. / {s} commemorates {o}.
    / {s} is dedicated to {o}. / {o} is remembered by {s}.
  it   It honours {o}. / It shows {o}. / It commemorates {o}. / It is dedicated to {o}.
  ask  Whom does {s} honour? / In memory of whom was {s} put up? / Whom does {s} show? / Whom does {s} commemorate?
    / To whom is {s} dedicated? / Who is remembered by {s}?
  new  Who is being celebrated with {s}? / Of whom should {s} remind us?
exhibition museum: museum
  noun museum / host museum
  says {s} is on show at the {o}. / The {o} shows {s}. / {s} has come to the {o}. / You can visit {s} at the {o}.
    / {s} opens at the {o}. / The {o} has taken over {s}.
  it   It is on show at the {o}. / The {o} shows it. / You can visit it at the {o}. / It has come to the {o}.
  ask  Where is {s} on show? / Which museum shows {s}? / Where can I visit {s}? / To which museum has {s} come?
    / Where does {s} open? / Which museum has taken over {s}?
  new  Which house presents {s}? / Under whose roof is {s}?
exhibition curator: person
  noun curator
  says {s} was put together by {o}. / {o} curated {s}. / {o} chose the pieces for {s}. / {s} is {o}'s idea.
    / {s} was curated by {o}. / {o} is in charge of {s}.
  it   It was put together by {o}. / {o} curated it. / {o} chose the pieces. / Curator: {o}
  ask  Who curated {s}? / Who put together {s}? / By whom was {s} curated? / Who chose the pieces for {s}?
    / Who is in charge of {s}? / Whose idea is {s}?
  new  Who selected what is in {s}? / Who guided the making of {s}?
exhibition end: date < ends
exhibition pieces: number
  noun number of pieces@in / number of exhibits@in
  says {s} shows {o} pieces. / {o} objects are on show in {s}. / There are {o} pieces in {s}.
    / {s} brings together {o} works. / {s} counts {o} exhibits. / {s} fills the halls with {o} pieces.
  it   It shows {o} pieces. / {o} objects are on show. / Pieces: {o} / It brings together {o} works.
  ask  How many pieces does {s} show? / How many objects are on show in {s}? / How many pieces are there in {s}?
    / How many works does {s} bring together? / How many exhibits does {s} count?
    / With how many pieces does {s} fill the halls?
  new  How much is there to look at in {s}? / What number of items is on display in {s}?
podcast host: person
  noun host / presenter
  says {s} is hosted by {o}. / {o} hosts {s}. / {o} presents {s}. / {o} talks to guests on {s}.
    / {s} is presented by {o}. / Every episode of {s} is moderated by {o}.
  it   It is hosted by {o}. / {o} presents it. / {o} hosts it. / Host: {o}
  ask  Who hosts {s}? / By whom is {s} hosted? / Who presents {s}? / Who talks to guests on {s}?
    / By whom is {s} presented? / Who moderates {s}?
  new  Whom do listeners of {s} hear? / Who does the talking on {s}?
  call the person who hosts {s}
podcast day: weekday
  noun release day / day
  says New episodes of {s} come out on {o}. / {s} appears every {o}. / On {o} there is a new {s}.
    / {s} is released on {o}. / Listen to {s} each {o}. / {s} goes online on {o}.
  it   It appears every {o}. / New episodes come out on {o}. / It goes online on {o}. / Day: {o}
  ask  On which day does {s} appear? / When do new episodes of {s} come out?
    / On what day of the week is {s} released? / When does {s} go online? / Which day is there a new {s}?
    / When can I listen to a new {s}?
  new  Which weekday do fans of {s} wait for? / When in the week is {s} renewed?
podcast episodes: number
  noun number of episodes@of / episode count
  says {s} has {o} episodes. / There are {o} episodes of {s}. / {o} parts of {s} have come out.
    / {s} is already at {o} episodes. / So far {s} counts {o} parts. / {s} stopped after {o} episodes.
  it   It has {o} episodes. / There are {o} episodes. / Episodes: {o} / So far it counts {o} parts.
  ask  How many episodes does {s} have? / How many episodes of {s} are there? / How many parts of {s} have come out?
    / At how many episodes is {s}? / How many parts does {s} count? / After how many episodes did {s} stop?
  new  How much of {s} is there to hear? / How far has {s} come, in instalments?
language speakers: number
  noun number of speakers@of / speakers
  says {o} people speak {s}. / {s} is spoken by {o} people. / {s} has {o} speakers. / {o} grew up with {s}.
    / There are {o} native speakers of {s}. / {s} counts {o} speakers.
  it   {o} people speak it. / It is spoken by {o} people. / Speakers: {o} / It has {o} speakers.
  ask  How many people speak {s}? / By how many is {s} spoken? / How many speakers does {s} have?
    / How many grew up with {s}? / How many native speakers of {s} are there? / How many speakers does {s} count?
  new  How widespread is {s}, in people? / How many can hold a conversation in {s}?
language letters: number
  noun number of letters@in / letters
  says {s} has {o} letters. / The alphabet of {s} has {o} letters. / {s} is written with {o} signs.
    / There are {o} letters in {s}. / To write {s} you learn {o} signs. / Children learn {o} letters for {s}.
  it   Its alphabet has {o} letters. / It is written with {o} signs. / Letters: {o} / There are {o} letters.
  ask  How many letters does {s} have? / With how many signs is {s} written? / How many letters are there in {s}?
    / How many signs do I learn to write {s}? / How many letters do children learn for {s}?
    / How many letters has the alphabet of {s}?
  new  How long is the alphabet of {s}? / How many characters would a keyboard for {s} need?
language region: country
  noun homeland / country
  says {s} is spoken in {o}. / You hear {s} in {o}. / {s} comes from {o}. / {s} is at home in {o}.
    / {o} made {s} its language. / The people of {o} talk {s}.
  it   It is spoken in {o}. / You hear it in {o}. / It is at home in {o}. / {o} made it its language.
  ask  Where is {s} spoken? / Where do you hear {s}? / Where does {s} come from? / In which country is {s} at home?
    / Which country made {s} its language? / The people of which country talk {s}?
  new  Where would {s} be of use to me? / In what land do signs appear in {s}?
  call the country where {s} is spoken
"""

WORKS = read(_TEXT, SENSES)
