"""Contracts, invoices, laws, court cases, accounts, tickets, parcels, bookings, orders and the like."""

from reader_tuning.language.reading import read
from reader_tuning.language.senses import SENSES

_TEXT = """
contract partner: company
  noun contractor / other party / counterparty
  says {s} was concluded with {o}. / {s} is with {o}. / {o} signed {s}. / {s} binds {o}. / {o} is a party to {s}.
    / We made {s} with {o}.
  it   It was concluded with {o}. / It is with {o}. / {o} signed it. / It binds {o}. / Party: {o}
  ask  With whom was {s} concluded? / Which company signed {s}? / Who is a party to {s}? / Whom does {s} bind?
    / With which company is {s}? / With whom did we make {s}?
  new  Who stands on the other side of {s}? / Which firm has obligations under {s}?
  call the company that signed {s}
contract value: amount
  noun value / contract sum / volume
  says {s} is worth {o}. / {s} comes to {o}. / {s} provides for {o}. / Under {s}, {o} will be paid.
    / {s} has a volume of {o}. / {s} was closed at {o}.
  it   It is worth {o}. / It comes to {o}. / Value: {o} / It has a volume of {o}.
  ask  How much is {s} worth? / To what does {s} come? / What will be paid under {s}? / What volume does {s} have?
    / For how much does {s} provide? / At what was {s} closed?
  new  How big is the deal behind {s}? / What money is at stake in {s}?
contract end: date < ends
  noun end date / expiry date
contract start: date < begins
contract notice: duration
  noun notice period / period of notice
  says {s} can be cancelled at {o} of notice. / To end {s}, give {o}. / {s} provides for {o} of notice.
    / Either side may leave {s} after {o}. / {s} needs {o} to be terminated.
    / {s} asks for {o} before it can be ended.
  it   It can be cancelled at {o} of notice. / Either side may leave after {o}. / Notice: {o}
    / It needs {o} to be terminated.
  ask  At what notice can {s} be cancelled? / How much notice must I give to end {s}?
    / After how long may either side leave {s}? / How long does {s} need to be terminated?
    / What notice does {s} provide for? / How long before must I ask to end {s}?
  new  How quickly can one get out of {s}? / How long am I still tied by {s} after quitting?
contract signer: person
  noun signatory / signer
  says {s} bears the signature of {o}. / {o} put pen to {s}. / {s} was approved by {o}.
    / For our side, {o} signed {s}. / {o} agreed to {s}. / The name under {s} is {o}.
  it   It bears the signature of {o}. / It was approved by {o}. / The name under it is {o}. / {o} agreed to it.
  ask  Whose signature does {s} bear? / Who put pen to {s}? / Who approved {s}? / Who signed {s} for our side?
    / Whose name is under {s}? / Who agreed to {s}?
  new  Who gave the final yes to {s}? / In whose handwriting is {s} confirmed?
contract rent: amount
  noun monthly payment / monthly rate
  says {s} costs {o} a month. / Every month {o} is due under {s}. / {s} takes {o} monthly.
    / {s} calls for {o} each month. / We pay {o} a month for {s}. / The bank transfers {o} monthly for {s}.
  it   It costs {o} a month. / Every month {o} is due. / Monthly: {o} / It takes {o} monthly.
  ask  How much is due each month under {s}? / What does {s} cost a month? / How much does {s} take monthly?
    / What do we pay a month for {s}? / For how much does {s} call each month?
    / How much is transferred monthly for {s}?
  new  By how much does {s} lighten our account every month? / What instalments does {s} involve?
invoice amount: amount
  noun amount / total / sum
  says {s} comes to {o}. / {s} is for {o}. / {s} amounts to {o}. / {s} totals {o}. / On {s} it says {o}.
    / With {s} they ask for {o}. / {s} charges {o}.
  it   It comes to {o}. / It is for {o}. / Total: {o} / It amounts to {o}. / It charges {o}.
  ask  How much is {s} for? / What does {s} come to? / To how much does {s} amount? / What does {s} total?
    / What sum is on {s}? / How much does {s} charge?
  new  What do we owe under {s}? / How much money do they want with {s}?
invoice due: date < due
invoice sender: company
  noun sender / supplier / biller
  says {s} was sent by {o}. / {s} is from {o}. / {o} issued {s}. / {s} came from {o}. / {o} wrote out {s}.
    / {o} wants to be paid for {s}.
  it   It was sent by {o}. / It is from {o}. / {o} issued it. / From: {o}
  ask  Who sent {s}? / From which company is {s}? / Who issued {s}? / From whom did {s} come?
    / Who wants to be paid for {s}? / Which company wrote out {s}?
  new  Who gets the money for {s}? / Whose letterhead is on {s}?
  call the company that sent {s}
invoice status: status < status
invoice goods: material
  noun item / goods
  says {s} is for a delivery of {o}. / {s} bills us for {o}. / With {s} we pay for {o}. / {s} concerns {o}.
    / The goods on {s} are {o}. / {s} was written for {o}.
  it   It is for a delivery of {o}. / It bills us for {o}. / It concerns {o}. / Item: {o}
  ask  For what delivery is {s}? / For what does {s} bill us? / What do we pay for with {s}? / What does {s} concern?
    / What goods are on {s}? / For what was {s} written?
  new  What did we get in return for {s}? / Which wares does {s} list?
law force: date < begins
  noun date of entry into force / effective date
  says {s} came into force on {o}. / {s} has been law since {o}.
  ask  When did {s} come into force? / Since when has {s} been law?
law fine: amount
  noun fine / penalty / maximum fine
  says Whoever breaks {s} pays {o}. / {s} threatens a fine of {o}. / Under {s} offenders pay {o}.
    / {s} sets a penalty of {o}. / Breaking {s} costs {o}. / {s} fines people {o}.
  it   Whoever breaks it pays {o}. / It sets a penalty of {o}. / Fine: {o} / Offenders pay {o}.
  ask  What does one pay for breaking {s}? / What fine does {s} threaten? / What penalty does {s} set?
    / How much do offenders pay under {s}? / What does breaking {s} cost? / How much does {s} fine people?
  new  What happens to my purse if I disobey {s}? / How dear is a breach of {s}?
law sponsor: person
  noun sponsor / author / initiator
  says {s} was proposed by {o}. / {o} proposed {s}. / {o} brought in {s}. / {s} goes back to a motion by {o}.
    / {o} drafted {s}. / Parliament owes {s} to {o}.
  it   It was proposed by {o}. / {o} brought it in. / {o} drafted it. / It goes back to a motion by {o}.
  ask  Who proposed {s}? / By whom was {s} proposed? / Who brought in {s}? / Who drafted {s}?
    / To whose motion does {s} go back? / To whom does parliament owe {s}?
  new  Which politician wanted {s}? / Whose bill became {s}?
  call the person who proposed {s}
law passed: year
  noun year of adoption / year
  says {s} was passed in {o}. / {s} was adopted in {o}. / Parliament voted for {s} in {o}. / {s} is from {o}.
    / {s} was made law in {o}. / In {o} they enacted {s}.
  it   It was passed in {o}. / It was adopted in {o}. / Passed: {o} / It is from {o}.
  ask  When was {s} passed? / In which year was {s} adopted? / When did parliament vote for {s}?
    / What year is {s} from? / When was {s} made law? / In what year did they enact {s}?
  new  How old is {s}, by year? / In which year did {s} get through parliament?
law votes: number
  noun number of votes in favour@of / majority
  says {o} members voted for {s}. / {s} got {o} votes. / {s} was carried by {o} votes. / {o} hands went up for {s}.
    / {s} found {o} supporters. / {o} were in favour of {s}.
  it   {o} members voted for it. / It got {o} votes. / Votes: {o} / It was carried by {o} votes.
  ask  How many members voted for {s}? / How many votes did {s} get? / By how many votes was {s} carried?
    / How many hands went up for {s}? / How many supporters did {s} find? / How many were in favour of {s}?
  new  How broad was the backing for {s}? / How many said yes to {s}?
court case judge: person
  noun judge / presiding judge
  says {o} hears {s}. / {s} is heard by {o}. / {o} presides over {s}. / {s} was put before {o}. / {o} decides {s}.
    / In {s} the ruling is up to {o}. / {s} landed on the bench of {o}.
  it   {o} hears it. / It is heard by {o}. / {o} presides. / Judge: {o} / It was put before {o}.
  ask  Who hears {s}? / By whom is {s} heard? / Who presides over {s}? / Before whom was {s} put? / Who decides {s}?
    / To whom is the ruling in {s} up?
  new  Who will speak the verdict in {s}? / On whose bench did {s} land?
  call the person who hears {s}
court case day: date
  noun hearing date / date of the hearing@in
  says {s} is heard on {o}. / {s} comes to court on {o}. / {s} opens on {o}. / The hearing in {s} is on {o}.
    / On {o} the parties meet in {s}. / {s} is down for {o}.
  it   It is heard on {o}. / It comes to court on {o}. / Hearing: {o} / It opens on {o}.
  ask  When is {s} heard? / When does {s} come to court? / When does {s} open? / On which date is the hearing in {s}?
    / For when is {s} down? / When do the parties meet in {s}?
  new  What day should witnesses in {s} keep free? / When does {s} go before the judge?
court case lawyer: person
  noun defence lawyer / defender / counsel
  says The defence in {s} is led by {o}. / {o} defends in {s}. / {o} speaks for the accused in {s}.
    / In {s} the accused hired {o}. / {o} is counsel in {s}. / The accused in {s} trusts {o}.
  it   The defence is led by {o}. / {o} speaks for the accused. / The accused hired {o}. / {o} is counsel.
  ask  Who defends in {s}? / By whom is the defence in {s} led? / Who speaks for the accused in {s}?
    / Whom did the accused in {s} hire? / Who is counsel in {s}? / Whom does the accused in {s} trust?
  new  Which lawyer pleads not guilty in {s}? / Who argues against the charge in {s}?
court case sum: amount
  noun sum in dispute / claim / damages
  says {s} is about {o}. / In {s} they fight over {o}. / {o} is claimed in {s}. / The plaintiff in {s} wants {o}.
    / {s} turns on {o}. / What is at stake in {s} is {o}.
  it   It is about {o}. / They fight over {o}. / {o} is claimed. / The plaintiff wants {o}.
  ask  What sum is {s} about? / How much do they fight over in {s}? / How much is claimed in {s}?
    / How much does the plaintiff in {s} want? / How much is at stake in {s}? / On what sum does {s} turn?
  new  How much could the loser of {s} have to pay? / What compensation is asked for in {s}?
court case room: room number
  noun courtroom / room
  says {s} is heard in {o}. / The judge in {s} sits in {o}. / Go to {o} to watch {s}. / {s} was moved to {o}.
    / They deal with {s} in {o}. / Witnesses in {s} wait outside {o}.
  it   It is heard in {o}. / The judge sits in {o}. / Courtroom: {o} / It was moved to {o}.
  ask  In which room is {s} heard? / Where does the judge in {s} sit? / Where can I watch {s}?
    / Where was {s} moved to? / Where do they deal with {s}? / Outside which room do witnesses in {s} wait?
  new  Behind which doors is {s} argued? / To which chamber do I go for {s}?
account holder: person
  noun holder / account holder / owner
  says {s} belongs to {o}. / {s} is held by {o}. / {o} holds {s}. / {s} runs in the name of {o}. / {o} opened {s}.
    / {s} is {o}'s. / The name on {s} is {o}.
  it   It belongs to {o}. / It is held by {o}. / {o} holds it. / Holder: {o} / It runs in the name of {o}.
  ask  Who holds {s}? / To whom does {s} belong? / In whose name does {s} run? / Who opened {s}? / Whose is {s}?
    / What name is on {s}?
  new  Who may draw money from {s}? / Who is the customer behind {s}?
  call the person who holds {s}
account balance: amount
  noun balance / current balance
  says {s} stands at {o}. / There is {o} on {s}. / {s} holds {o}. / {s} has {o} in it.
    / The statement of {s} shows {o}. / {o} lies on {s}.
  it   It stands at {o}. / There is {o} on it. / Balance: {o} / It holds {o}.
  ask  How much is on {s}? / At what does {s} stand? / How much does {s} hold? / What does the statement of {s} show?
    / How much is there in {s}? / How much money lies on {s}?
  new  How rich is the owner of {s}, going by the statement? / What could be withdrawn from {s}?
account opened: date
  noun opening date / date of opening@of
  says {s} was opened on {o}. / {s} has existed since {o}. / {s} was set up on {o}. / On {o} somebody opened {s}.
    / {s} dates from {o}. / The papers of {s} are dated {o}.
  it   It was opened on {o}. / It has existed since {o}. / Opened: {o} / It was set up on {o}.
  ask  When was {s} opened? / Since when has {s} existed? / On which date was {s} set up? / From what date is {s}?
    / On what day did somebody open {s}? / How are the papers of {s} dated?
  new  How long have we had {s}, since which day? / When did {s} come into existence?
account rate: percentage
  noun interest rate / rate
  says {s} bears {o}. / {s} pays {o} interest. / {s} earns {o} a year. / The bank pays {o} on {s}.
    / Money on {s} grows by {o}. / {s} yields {o}.
  it   It bears {o}. / It pays {o} interest. / Interest: {o} / It yields {o}.
  ask  What interest does {s} pay? / How much does {s} earn a year? / What does the bank pay on {s}?
    / By how much does money on {s} grow? / What does {s} yield? / What does {s} bear?
  new  How fast does my money multiply on {s}? / What return is there on {s}?
ticket assignee: person < assigned
ticket status: status < status
ticket priority: priority
  noun priority / urgency
  says {s} is rated {o}. / {s} was given {o} priority. / {s} counts as {o}. / The urgency of {s} is {o}.
    / They put {s} down as {o}. / {s} is labelled {o}.
  it   It is rated {o}. / It counts as {o}. / Priority: {o} / It is labelled {o}.
  ask  How urgent is {s}? / What priority does {s} have? / How is {s} rated? / As what does {s} count?
    / How is {s} labelled? / As what did they put {s} down?
  new  How quickly should we turn to {s}? / How pressing is {s}?
ticket reporter: person
  noun reporter / author
  says {s} was reported by {o}. / {o} reported {s}. / {o} opened {s}. / {s} was filed by {o}.
    / {s} goes back to a call from {o}. / {o} complained, and that became {s}.
  it   It was reported by {o}. / {o} opened it. / It was filed by {o}. / Reporter: {o}
  ask  Who reported {s}? / Who opened {s}? / By whom was {s} filed? / To whose call does {s} go back?
    / By whom was {s} reported? / Whose complaint became {s}?
  new  Who drew our attention to {s}? / Who raised {s}?
  call the person who reported {s}
ticket due: date < due
parcel weight: weight < weight
parcel sender: company
  noun sender / shipper
  says {s} was sent by {o}. / {o} sent {s}. / {s} comes from {o}. / {o} handed in {s}. / {s} was posted by {o}.
    / On the back of {s} it says {o}.
  it   It was sent by {o}. / {o} sent it. / From: {o} / It comes from {o}.
  ask  Who sent {s}? / By whom was {s} sent? / From whom does {s} come? / Who handed in {s}? / Who posted {s}?
    / Which company is on the back of {s}?
  new  Who is waiting to hear that {s} arrived? / From whose hands did the post get {s}?
  call the company that sent {s}
parcel to: city
  noun destination
  says {s} goes to {o}. / {s} is bound for {o}. / {s} is addressed to {o}. / {s} is on its way to {o}.
    / {s} should be delivered in {o}. / They expect {s} in {o}. / Send {s} on to {o}.
  it   It goes to {o}. / It is bound for {o}. / To: {o} / It is on its way to {o}.
  ask  Where does {s} go? / For which city is {s} bound? / Where is {s} addressed to? / To where is {s} on its way?
    / In which city should {s} be delivered? / Where do they expect {s}?
  new  In what town does the journey of {s} end? / Where will {s} be unloaded?
parcel recipient: person
  noun recipient / addressee
  says {s} is for {o}. / {s} is meant for {o}. / {o} will receive {s}. / {s} must be handed to {o}.
    / {o} is waiting for {s}. / {o} has to sign for {s}.
  it   It is for {o}. / It is meant for {o}. / {o} will receive it. / Recipient: {o}
  ask  For whom is {s}? / For whom is {s} meant? / Who will receive {s}? / To whom must {s} be handed?
    / Who is waiting for {s}? / Who has to sign for {s}?
  new  Who may open {s}? / Whose name is on the front of {s}?
  call the person for whom {s} is meant
parcel content: thing
  noun content
  says {s} contains the {o}. / In {s} there is the {o}. / The {o} was packed into {s}. / {s} holds the {o}.
    / They sent the {o} in {s}. / Open {s} and you find the {o}.
  it   It contains the {o}. / The {o} is inside. / It holds the {o}. / The {o} was packed into it.
  ask  What does {s} contain? / What is in {s}? / What was packed into {s}? / What does {s} hold?
    / What did they send in {s}? / What do I find if I open {s}?
  new  What comes to light when {s} is unwrapped? / What rattles inside {s}?
parcel carrier: company
  noun carrier / courier
  says {s} travels with {o}. / {o} delivers {s}. / {s} was given to {o}. / {s} is carried by {o}.
    / {o} is shipping {s}. / {s} is on a van of {o}.
  it   It travels with {o}. / {o} delivers it. / It is carried by {o}. / Carrier: {o}
  ask  Who delivers {s}? / With which company does {s} travel? / To whom was {s} given? / By whom is {s} carried?
    / Who is shipping {s}? / On whose van is {s}?
  new  Whom do I call if {s} is late? / Which firm has {s} in its vans?
booking guest: person
  noun guest / main guest
  says {s} was made by {o}. / {s} is in the name of {o}. / {o} made {s}. / {s} is for {o}. / {o} holds {s}.
    / Under {s} we expect {o}.
  it   It was made by {o}. / It is in the name of {o}. / Guest: {o} / It is for {o}.
  ask  Who made {s}? / In whose name is {s}? / For whom is {s}? / Who holds {s}? / By whom was {s} made?
    / Whom do we expect under {s}?
  new  Who will turn up with {s}? / Whose stay is {s}?
booking arrival: date < begins
  noun arrival / arrival date / check-in
booking nights: duration < duration
  noun length of stay@in / duration
booking room: room number
  noun room
  says {s} is for {o}. / With {s} comes {o}. / {s} gives you {o}. / They set aside {o} under {s}.
    / Guests under {s} sleep in {o}. / The key for {s} opens {o}.
  it   It is for {o}. / It comes with {o}. / Guests sleep in {o}. / The key opens {o}.
  ask  For which room is {s}? / Which room comes with {s}? / Where do guests under {s} sleep?
    / Which room was set aside under {s}? / Which room does {s} give me? / Which door does the key for {s} open?
  new  Where do I carry the bags of {s}? / Which bed was promised in {s}?
booking price: amount < price
claim amount: amount
  noun amount / sum
  says {s} asks for {o}. / {s} is over {o}. / In {s}, {o} is demanded. / {s} puts the damage at {o}.
    / {s} amounts to {o}. / The form of {s} says {o}.
  it   It asks for {o}. / It is over {o}. / Amount: {o} / It puts the damage at {o}.
  ask  How much does {s} ask for? / Over how much is {s}? / What is demanded in {s}?
    / At what does {s} put the damage? / To how much does {s} amount? / What sum is on the form of {s}?
  new  What would the insurer have to pay for {s}? / How costly is {s}?
claim handler: person < assigned
  noun claims handler / handler
claim object: thing
  noun damaged object / object
  says {s} is about the {o}. / In {s} the {o} was broken. / {s} was made because of the {o}.
    / The {o} is what {s} is for. / {s} concerns the {o}. / The damage in {s} was to the {o}.
  it   It is about the {o}. / The {o} was broken. / It concerns the {o}. / The damage was to the {o}.
  ask  What is {s} about? / What was broken in {s}? / Because of what was {s} made? / What does {s} concern?
    / To what was the damage in {s}? / What is {s} for?
  new  Which item is to be replaced under {s}? / What fell to pieces, according to {s}?
claim status: status < status
patent holder: company
  noun holder / owner
  says {s} is held by {o}. / {o} holds {s}. / {s} was granted to {o}. / {s} belongs to {o}. / {o} applied for {s}.
    / {s} protects an idea of {o}.
  it   It is held by {o}. / {o} holds it. / Holder: {o} / It was granted to {o}.
  ask  Who holds {s}? / To whom was {s} granted? / To whom does {s} belong? / Who applied for {s}?
    / By whom is {s} held? / Whose idea does {s} protect?
  new  Whom must I pay to make use of {s}? / Which firm has the rights under {s}?
  call the company that holds {s}
patent inventor: person
  noun inventor
  says {s} names {o} as its inventor. / The idea in {s} is {o}'s. / {o} came up with what {s} describes.
    / {s} goes back to work by {o}. / {o} invented what is in {s}. / Behind {s} is the mind of {o}.
  it   It names {o}. / The idea is {o}'s. / It goes back to work by {o}. / {o} invented it.
  ask  Whom does {s} name? / Whose idea is in {s}? / Who came up with what {s} describes?
    / To whose work does {s} go back? / Who invented what is in {s}? / Whose mind is behind {s}?
  new  Who had the brainwave behind {s}? / Which tinkerer thought of {s}?
  call the person who invented what is in {s}
patent end: date < ends
patent object: thing
  noun object / subject matter
  says {s} covers the {o}. / {s} protects the {o}. / {s} is about the {o}. / The {o} is protected by {s}.
    / {s} describes the {o}. / In {s} you see drawings of the {o}.
  it   It covers the {o}. / It protects the {o}. / It describes the {o}. / The {o} is protected by it.
  ask  What does {s} cover? / What does {s} protect? / What is {s} about? / What is protected by {s}?
    / What does {s} describe? / Of what are there drawings in {s}?
  new  What must nobody copy because of {s}? / Which invention is laid down in {s}?
loan amount: amount
  noun amount / principal
  says {s} is over {o}. / With {s} somebody borrowed {o}. / {s} comes to {o}. / The bank lent {o} under {s}.
    / {s} was granted for {o}. / {o} was paid out under {s}.
  it   It is over {o}. / The bank lent {o}. / Amount: {o} / It comes to {o}.
  ask  Over how much is {s}? / How much was borrowed with {s}? / How much did the bank lend under {s}?
    / To what does {s} come? / For how much was {s} granted? / How much was paid out under {s}?
  new  How deep in debt does {s} put the borrower? / What has to be paid back under {s}?
loan rate: percentage
  noun interest rate / rate
  says {s} costs {o} a year. / {s} is charged at {o}. / The borrower pays {o} on {s}. / {s} carries {o}.
    / Interest on {s} is {o}. / {s} was given at {o}.
  it   It costs {o} a year. / It is charged at {o}. / Interest: {o} / It carries {o}.
  ask  What interest is charged on {s}? / At what is {s} charged? / How much does the borrower pay on {s}?
    / What does {s} carry? / At what rate was {s} given? / What does {s} cost a year?
  new  How expensive is the money from {s}? / What does the lender earn on {s}?
loan borrower: person
  noun borrower / debtor
  says {s} was taken out by {o}. / {o} took out {s}. / {o} has to pay back {s}. / {s} went to {o}.
    / {o} owes the money from {s}. / The bank gave {s} to {o}.
  it   It was taken out by {o}. / {o} took it out. / {o} has to pay it back. / Borrower: {o}
  ask  Who took out {s}? / By whom was {s} taken out? / Who has to pay back {s}? / To whom did {s} go?
    / Who owes the money from {s}? / To whom did the bank give {s}?
  new  Who is in debt because of {s}? / Whose purse got fuller by {s}?
  call the person who took out {s}
order customer: company
  noun customer / buyer
  says {s} was placed by {o}. / {o} placed {s}. / {s} came in from {o}. / {s} is for {o}. / {o} is waiting for {s}.
    / {o} ordered under {s}.
  it   It was placed by {o}. / {o} placed it. / Customer: {o} / It came in from {o}.
  ask  Who placed {s}? / From whom did {s} come in? / For which company is {s}? / Who is waiting for {s}?
    / By whom was {s} placed? / Who ordered under {s}?
  new  Who will get the goods of {s}? / Which firm is buying with {s}?
  call the company that placed {s}
order item: thing
  noun item / article
  says {s} is for the {o}. / {s} asks for the {o}. / With {s} they bought the {o}. / The {o} was ordered under {s}.
    / {s} covers the {o}. / To fill {s}, pack the {o}.
  it   It is for the {o}. / It asks for the {o}. / Item: {o} / The {o} was ordered.
  ask  What is {s} for? / What does {s} ask for? / What did they buy with {s}? / What was ordered under {s}?
    / What does {s} cover? / What do I pack to fill {s}?
  new  Which article must leave the store because of {s}? / What does the buyer in {s} want?
order count: number
  noun quantity / number of pieces@in
  says {s} is for {o} pieces. / {s} covers {o} pieces. / They want {o} pieces under {s}. / {o} pieces belong to {s}.
    / {s} consists of {o} items. / In {s}, {o} were ordered.
  it   It is for {o} pieces. / It covers {o} pieces. / Quantity: {o} / {o} were ordered.
  ask  For how many pieces is {s}? / How many pieces does {s} cover? / How many do they want under {s}?
    / How many pieces belong to {s}? / Of how many items does {s} consist? / How many were ordered in {s}?
  new  How large is {s}, in units? / How many shall I pack for {s}?
order delivery: date < due
  noun delivery date / date of delivery@of
permit holder: person
  noun holder
  says {s} was issued to {o}. / {o} holds {s}. / {s} allows {o} to work. / {s} belongs to {o}. / {o} applied for {s}.
    / The photo on {s} shows {o}.
  it   It was issued to {o}. / {o} holds it. / Holder: {o} / The photo shows {o}.
  ask  To whom was {s} issued? / Who holds {s}? / Whom does {s} allow to work? / To whom does {s} belong?
    / Who applied for {s}? / Whom does the photo on {s} show?
  new  Who may show {s} at the gate? / For which person is {s} good?
  call the person who holds {s}
permit end: date < ends
permit fee: amount < price
  noun fee / price
permit office: agency
  noun issuing office / issuing authority
  says {s} was issued by the {o}. / The {o} issued {s}. / {s} bears the stamp of the {o}. / Get {s} from the {o}.
    / The {o} is the one to renew {s}. / {s} comes from the {o}.
  it   It was issued by the {o}. / The {o} issued it. / It bears the stamp of the {o}. / It comes from the {o}.
  ask  Who issued {s}? / By which office was {s} issued? / Whose stamp does {s} bear? / From where do I get {s}?
    / Which office is to renew {s}? / From which authority does {s} come?
  new  Whom do I ask to prolong {s}? / Which bureau is behind {s}?
"""

RECORDS = read(_TEXT, SENSES)
