"""Recipes, restaurants, wines and cheeses."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
recipe cook: person
  noun author / inventor / creator
  says {s} was thought up by {o}. / {o} invented {s}. / {s} is a recipe by {o}. / {o} wrote down {s}.
    / We have {s} from {o}. / {o} first cooked {s}. / {s} goes back to the kitchen of {o}.
  it   It was thought up by {o}. / {o} invented it. / We have it from {o}. / {o} first cooked it.
  ask  Who invented {s}? / By whom was {s} thought up? / Who wrote down {s}? / From whom do we have {s}?
    / Who first cooked {s}? / To whose kitchen does {s} go back?
  new  Whose recipe is {s}? / Which cook gave us {s}?
  call the person who invented {s}
recipe time: duration
  noun cooking time / baking time
  says {s} takes {o} to cook. / Cook {s} for {o}. / {s} is ready after {o}. / {s} has to simmer for {o}.
    / Leave {s} on the fire for {o}. / It takes {o} to make {s}.
  it   It takes {o} to cook. / It is ready after {o}. / Cooking time: {o} / Leave it on the fire for {o}.
  ask  How long does {s} take to cook? / For how long should I cook {s}? / When is {s} ready?
    / How long does {s} have to simmer? / How long do I leave {s} on the fire? / How long does it take to make {s}?
  new  How much patience does {s} need at the stove? / After what time can I serve {s}?
recipe heat: temperature
  noun oven temperature / temperature
  says {s} is baked at {o}. / Set the oven to {o} for {s}. / {s} needs {o}. / {s} is done at {o}. / Heat {s} to {o}.
    / At {o} {s} comes out best.
  it   It is baked at {o}. / Set the oven to {o}. / Heat: {o} / It needs {o}.
  ask  At what temperature is {s} baked? / To what do I set the oven for {s}? / How hot must it be for {s}?
    / What heat does {s} need? / At what does {s} come out best? / To what do I heat {s}?
  new  How far do I turn up the oven for {s}? / What degrees suit {s}?
recipe ingredient: food
  noun secret ingredient / main ingredient
  says The secret of {s} is {o}. / {s} gets its taste from {o}. / Do not forget the {o} in {s}.
    / Without {o}, {s} is nothing. / {s} is rounded off with {o}. / Add {o} to {s} at the end.
  it   Its secret is {o}. / It gets its taste from {o}. / Do not forget the {o}. / Add {o} at the end.
  ask  What is the secret of {s}? / From what does {s} get its taste? / What must I not forget in {s}?
    / Without what is {s} nothing? / With what is {s} rounded off? / What do I add to {s} at the end?
  new  What makes {s} so special? / What should be in the cupboard for {s}?
recipe guests: number
  noun number of servings@of / servings
  says {s} is enough for {o} people. / {s} feeds {o}. / {s} serves {o}. / With {s} you can fill {o} plates.
    / {s} makes {o} portions. / There is {s} for {o}.
  it   It is enough for {o} people. / It feeds {o}. / Serves: {o} / It makes {o} portions.
  ask  For how many people is {s} enough? / How many does {s} feed? / How many does {s} serve?
    / How many portions does {s} make? / How many plates can I fill with {s}? / For how many is there {s}?
  new  How many guests can I ask in for {s}? / How many mouths does {s} stop?
restaurant chef: person
  noun chef / head chef / cook
  says {o} cooks at {s}. / The kitchen of {s} is run by {o}. / {s} has {o} in the kitchen.
    / {o} is in charge of the kitchen at {s}. / At {s}, {o} stands at the stove. / The menu of {s} was written by {o}.
    / {s} hired {o} to cook.
  it   {o} cooks there. / Its kitchen is run by {o}. / {o} stands at the stove. / Chef: {o}
  ask  Who cooks at {s}? / By whom is the kitchen of {s} run? / Who stands at the stove at {s}?
    / Who wrote the menu of {s}? / Whom did {s} hire to cook? / Who is in charge of the kitchen at {s}?
  new  To whom do I send my compliments at {s}? / Whose food does one eat at {s}?
  call the person who cooks at {s}
restaurant dish: dish
  noun signature dish / speciality / best dish
  says {s} is famous for its {o}. / At {s} you must try the {o}. / People go to {s} for the {o}.
    / The best thing at {s} is the {o}. / {s} serves a fine {o}. / The cook of {s} is proud of the {o}.
  it   It is famous for its {o}. / You must try the {o}. / It serves a fine {o}. / People go there for the {o}.
  ask  What is {s} famous for? / What must I try at {s}? / What do people go to {s} for?
    / What is the best thing at {s}? / What does {s} serve? / What is the cook of {s} proud of?
  new  What would you order at {s}? / Which plate has made the name of {s}?
restaurant place: city < located
restaurant seats: number < seats
restaurant stars: rating
  noun rating / grade
  says {s} was rated {o}. / Critics gave {s} {o}. / {s} got {o}. / The guide gives {s} {o}. / Guests rate {s} at {o}.
    / {s} earned {o}.
  it   It was rated {o}. / Critics gave it {o}. / Rating: {o} / It got {o}.
  ask  How was {s} rated? / What did critics give {s}? / What rating did {s} get? / What does the guide give {s}?
    / How do guests rate {s}? / What grade did {s} earn?
  new  How good is {s} said to be? / What do reviewers think of {s}, in points or stars?
restaurant rest: weekday < rest
restaurant owner: person < keeper
restaurant opening: time < opening
restaurant phone: phone < phone
wine year: year
  noun vintage / year
  says {s} is from {o}. / {s} was bottled in {o}. / {s} is of the harvest of {o}.
    / The grapes of {s} were picked in {o}. / {s} dates from {o}. / On the label of {s} it says {o}.
  it   It is from {o}. / It was bottled in {o}. / Vintage: {o} / It is of the harvest of {o}.
  ask  What year is {s}? / From which year is {s}? / When was {s} bottled?
    / In which year were the grapes of {s} picked? / What year does it say on the label of {s}?
    / Of which year was the harvest for {s}?
  new  How old is {s}, by its label? / Which summer ripened {s}?
wine maker: company < maker
  noun winery / producer
wine price: amount < price
wine strength: percentage
  noun alcohol content / strength
  says {s} has {o} alcohol. / {s} contains {o}. / {s} is {o} strong. / There is {o} of alcohol in {s}.
    / The label of {s} says {o}. / {s} comes with {o} alcohol.
  it   It has {o} alcohol. / It contains {o}. / Alcohol: {o} / It is {o} strong.
  ask  How strong is {s}? / How much alcohol does {s} have? / How much does {s} contain?
    / How much alcohol is there in {s}? / What strength does the label of {s} give?
    / With how much alcohol does {s} come?
  new  How quickly would {s} go to my head, in per cent? / What share of {s} is spirit?
wine aroma: food
  noun aroma / note
  says {s} tastes of {o}. / {s} smells of {o}. / {s} reminds drinkers of {o}. / In {s} one finds {o}.
    / {s} has a hint of {o}. / Experts taste {o} in {s}.
  it   It tastes of {o}. / It smells of {o}. / Aroma: {o} / It has a hint of {o}.
  ask  What does {s} taste of? / What does {s} smell of? / Of what does {s} remind drinkers?
    / What does one find in {s}? / Of what does {s} have a hint? / What do experts taste in {s}?
  new  What comes to the nose with {s}? / Which flavour stands out in {s}?
wine bottles: number
  noun number of bottles@of / bottles
  says {o} bottles of {s} were filled. / There are {o} bottles of {s}. / {s} came to {o} bottles.
    / They made {o} bottles of {s}. / Only {o} bottles of {s} exist. / The cellar holds {o} bottles of {s}.
  it   {o} bottles were filled. / There are {o} bottles. / Bottles: {o} / Only {o} bottles exist.
  ask  How many bottles of {s} were filled? / How many bottles of {s} are there? / To how many bottles did {s} come?
    / How many bottles of {s} did they make? / How many bottles of {s} exist?
    / How many bottles of {s} does the cellar hold?
  new  How rare is {s}? / How much of {s} was produced?
cheese milk: animal
  noun milk / animal behind it@of
  says {s} comes from the milk of the {o}. / {s} has a {o} on its label. / They keep a {o} to make {s}.
    / {s} is sold with a picture of a {o}. / The {o} is the animal behind {s}. / For {s} they milk the {o}.
  it   It comes from the milk of the {o}. / It has a {o} on its label. / They milk the {o} for it.
    / The {o} is the animal behind it.
  ask  From the milk of which animal is {s}? / What animal is on the label of {s}?
    / Which animal do they keep to make {s}? / What animal is behind {s}? / Which animal do they milk for {s}?
    / With a picture of what is {s} sold?
  new  What creature gives us {s}? / Whom do we thank in the stable for {s}?
cheese age: duration
  noun ripening time / age
  says {s} ripens for {o}. / {s} is left in the cellar for {o}. / {s} is {o} old when sold. / {s} needs {o} to ripen.
    / After {o} {s} is ready. / They keep {s} for {o}.
  it   It ripens for {o}. / It needs {o} to ripen. / Age: {o} / It is left in the cellar for {o}.
  ask  How long does {s} ripen? / For how long is {s} left in the cellar? / How old is {s} when sold?
    / How long does {s} need? / After what time is {s} ready? / For how long do they keep {s}?
  new  How much time on the shelf makes {s} good? / When may {s} be cut?
cheese fat: percentage
  noun fat content / fat
  says {s} has {o} fat. / {s} contains {o} fat. / There is {o} fat in {s}. / {o} of {s} is fat.
    / {s} is made with {o} fat. / On the wrapper of {s} it says {o} fat.
  it   It has {o} fat. / It contains {o} fat. / Fat: {o} / {o} of it is fat.
  ask  How much fat does {s} have? / How fat is {s}? / How much fat is there in {s}? / How much of {s} is fat?
    / What fat does it say on the wrapper of {s}? / With how much fat is {s} made?
  new  How rich is {s}? / Is {s} fit for a diet, going by the fat?
cheese village: village
  noun home / village
  says {s} is made in {o}. / {s} comes from {o}. / The dairy of {s} is in {o}. / In {o} everybody makes {s}.
    / {o} is known for {s}. / Buy {s} in {o}.
  it   It is made in {o}. / It comes from {o}. / {o} is known for it. / Buy it in {o}.
  ask  Where is {s} made? / Where does {s} come from? / In which village is the dairy of {s}?
    / Where does everybody make {s}? / Which village is known for {s}? / Where should I buy {s}?
  new  Which place in the hills sells {s}? / In what village would I watch {s} being made?
  call the village where {s} is made
"""

FOOD = read(_TEXT, SENSES)
