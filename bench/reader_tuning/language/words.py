"""Ordinary English words, by what they are good for; names, idle sentences and open relations are made of them."""

ADJECTIVES = tuple(
    """
    able ample amber ancient angry apt arctic ashen autumn awake azure balanced bare bashful bent big bitter blank
    blessed blind blunt bold brave brazen breezy brief bright brisk broad broken bronze brown bushy busy calm candid
    careful careless casual central charming chilly chosen civil classic clean clear clever close cloudy clumsy
    coastal cobalt cold common constant cool copper coral corner cosy covered crafty crimson crisp crooked crowded
    curious curly curved damp dapper daring dark dawning deep dense distant divided double dry dusky dusty eager early
    earnest eastern easy elder electric emerald empty endless equal even evening exact faded faint fair faithful false
    famous fancy far fast fearless feathered fertile fierce final fine firm first flat fleet floating fluent folded
    fond forgotten formal former fourth fragrant frank free frequent fresh friendly frosted frozen full funny gallant
    gentle giant gifted gilded glad glass gleaming global glossy golden good graceful grand grassy grateful great
    green grey guarded half handsome handy happy hardy harvest hasty hazel hazy heavy helpful hidden high hollow holy
    homely honest hopeful humble hungry icy idle inner ivory jagged jolly joint joyful junior keen kind knotted large
    last late laughing lazy leafy lean learned level light lilac linen little lively local lofty lonely long lost loud
    lower loyal lucky lunar main major maple marble marine meek mellow merry middle mighty mild milky minor misty
    mixed modern modest mossy muddy narrow native neat new nimble noble noisy northern novel oaken odd old olive open
    orange outer oval painted pale paper patient pearl perfect pine plain pleasant plucky polar polite prime prompt
    proper proud pure purple quaint quick quiet ragged rainy rapid rare ready real red regal remote restless rich ripe
    rising roaming rocky rolling rosy rough round royal rugged running russet rusty sacred salty sandy scarlet second
    secret senior serene shady shallow sharp shining short shy silent silken silver simple single sixth slanted sleepy
    slender slim slow small smart smiling smooth snowy sober soft solar solid sour southern spare sparkling special
    spiral spotted spring square stable starry steady steep stern stiff still stony stormy stout straight striped
    strong sturdy subtle sudden summer sunny supple sure swift tall tame tangled tawny tender thick thin third thirsty
    thorny tidy timber timid tiny top tough tranquil trusty twelfth twin upper upright urban vacant vast velvet vivid
    wakeful walled wandering warm wary watchful waxen weary western wet whispering white whole wide wild willing windy
    winged winter wise wistful wooden woolly worn worthy yellow young zealous
    """.split()
)

# Things that can be carried, found and lost; every word takes "the".
THINGS = tuple(
    """
    lantern kettle ladder hammer anvil compass mirror needle basket bucket candle blanket button ribbon saddle whistle
    trumpet violin drum flute bell ball key book lamp coin ring cup map pen hat bag box watch knife rope letter photo
    scarf brush spoon plate clock doll shoe glove helmet jacket boot belt purse wallet suitcase backpack umbrella
    towel pillow mattress curtain carpet cushion vase bowl jug bottle jar tin tray pan pot ladle fork sieve grater
    scale oven toaster blender fridge broom mop bin sponge soap comb razor toothbrush perfume necklace bracelet brooch
    crown sword shield bow arrow spear tent stove torch thermos binoculars camera tripod telescope microscope ruler
    pencil eraser stapler scissors envelope stamp notebook diary folder poster calendar globe printer laptop tablet
    charger cable battery radio speaker headset microphone keyboard monitor remote battery-pack screwdriver wrench
    pliers saw drill chisel axe shovel rake hoe wheelbarrow hose sprinkler nail screw bolt hinge lock chain hook
    pulley crane jack pump valve gauge funnel barrel crate pallet parcel trolley cart wagon sledge bicycle scooter
    skateboard kite puzzle chessboard racket bat net trophy medal flag badge uniform apron mask costume wig statue
    painting frame easel canvas quilt loom spindle thimble bobbin thread zip buckle collar cuff sleeve pocket locket
    amulet figurine music-box snow-globe piggy-bank paperweight bookend inkwell typewriter gramophone metronome
    tuning-fork harp cello banjo accordion
    """.split()
)
PARTS = tuple(
    """
    door window roof floor wall gate fence hedge chimney cellar attic stair corridor landing balcony porch veranda
    arch column pillar beam rafter tile brick panel shutter handle knob switch socket fuse pipe tap drain gutter vent
    duct lift hatch ramp rail step threshold ceiling hearth mantel niche alcove counter shelf cupboard drawer wardrobe
    desk table bench stool chair sofa bed cot cradle wheel axle engine gear lever pedal spring piston cylinder rotor
    blade propeller rudder keel mast sail anchor deck hull cabin bow-thruster cockpit wing tail nozzle tank filter
    sensor circuit relay antenna dial screen casing lid rim spout neck cap strap seam hem lining trim crest emblem
    motif pattern stripe border corner edge base foot plinth pedestal core shell crust layer
    """.split()
)
NATURE = tuple(
    """
    river lake pond brook spring waterfall delta bay cove cape cliff beach dune reef lagoon island peninsula valley
    gorge canyon ridge hill mountain summit glacier cave cavern plain meadow field moor marsh swamp forest grove
    orchard vineyard garden oasis desert volcano crater geyser rock boulder pebble sand clay soil mud peat moss fern
    reed grass clover thistle nettle ivy bramble heather lily tulip daisy poppy violet orchid iris rose sunflower
    lotus oak elm ash birch beech maple willow poplar pine spruce cedar cypress palm olive fig apple pear plum cherry
    quince almond walnut chestnut acorn berry seed root stem leaf bud blossom thorn bark branch twig trunk tide wave
    current storm thunder lightning hail sleet snow frost dew fog mist cloud breeze gale rainbow dawn dusk noon
    sunrise sunset moon star comet meteor planet orbit eclipse horizon meridian
    """.split()
)
ANIMALS = tuple(
    """
    badger bear beaver bison boar buffalo camel cat cheetah chicken cobra cod cow coyote crab cricket crow deer dog
    dolphin donkey dragonfly duck falcon ferret finch fox frog gazelle gecko giraffe goat goose gorilla grouse gull
    hamster hare hawk hedgehog heron herring horse hound hyena jackal jaguar jay kangaroo kestrel kingfisher kiwi
    koala lark lemur leopard lion lizard llama lobster lynx magpie mallard marten mole mongoose monkey moose moth
    mouse mule newt nightingale panda panther parrot peacock pelican penguin pheasant pig pigeon pike polecat pony
    puffin quail rabbit raccoon ram rat raven robin rooster salmon seal shark sheep shrew skunk sloth snail snake
    sparrow spider squirrel starling stork swallow swan tiger toad tortoise trout turkey turtle viper vole vulture
    walrus wasp weasel whale wolf wombat woodpecker wren yak zebra
    """.split()
)
IDEAS = tuple(
    """
    figure number total share rate margin fee fine bonus refund deposit balance budget quota target limit threshold
    ceiling score rank grade level mark rating result outcome verdict ruling motion proposal petition pledge promise
    oath vow motto slogan theme topic title heading caption label tag code cipher password signal alarm warning notice
    message memo note remark reply answer question riddle clue hint secret rumour story tale legend myth poem verse
    chorus refrain melody rhythm tempo key-word chapter section clause paragraph footnote appendix index draft version
    edition copy format layout design sketch plan route path track lane exit entry stop stage phase step turn round
    shift break pause delay deadline term period season era launch opening closing finale encore rehearsal audition
    contest prize award honour grant loan debt lease rent toll tax duty tariff permit licence pass visa ticket voucher
    receipt invoice order request claim appeal complaint review audit survey test trial sample probe scan measure dose
    remedy cure diet menu course dish snack dessert sauce spice flavour scent shade tint tone texture shape size
    weight depth width height angle slope speed range distance radius scope span volume capacity load output yield
    supply stock reserve surplus shortage demand offer bid price cost value profit loss gain risk hazard fault error
    bug leak gap crack flaw patch fix repair upgrade update backup archive record log file folder-name entry-code
    field-name table-name column row cell list chart graph map-sheet legend-key symbol icon logo mascot nickname alias
    guest visitor tenant owner neighbour witness rival ally partner deputy successor predecessor delegate envoy guide
    coach tutor sponsor donor patron supplier vendor buyer client customer contact reference referee judge juror clerk
    usher porter guard keeper warden ranger scout pilot driver rider sailor cook waiter barber tailor potter weaver
    mason plumber painter printer binder actor dancer singer drummer poet author editor critic
    """.split()
)
FOODS = tuple(
    """
    bread rice pasta barley oat rye millet lentil bean pea carrot turnip onion garlic leek celery spinach cabbage kale
    pumpkin potato tomato pepper mushroom cucumber beetroot radish parsnip corn apple pear plum cherry lemon lime
    mango peach apricot fig date grape melon walnut almond hazelnut honey butter cream cheese yoghurt egg ham beef
    lamb duck trout salmon herring crab prawn mussel ginger cinnamon nutmeg saffron cumin thyme basil mint sage dill
    vanilla cocoa sesame mustard vinegar olive rosehip quince chestnut
    """.split()
)
DISHES = tuple(
    """
    soup stew pie tart cake pudding salad curry omelette casserole gratin risotto dumplings pancakes noodles broth
    chowder roast hotpot goulash crumble sandwich flan souffle terrine ragout biscuits waffles fritters porridge
    """.split()
)
MATERIALS = tuple(
    """
    copper glass wood steel paper cotton marble rubber silk wool clay gold salt sand oil wax tin zinc leather bronze
    bamboo granite carbon nylon resin ice coal chalk linen brass iron silver nickel lead aluminium titanium chrome
    slate limestone sandstone basalt concrete cement plaster plastic ceramic porcelain enamel velvet felt denim canvas
    hemp jute cork oak pine cedar walnut teak mahogany ebony ivory amber jade quartz obsidian graphite platinum cobalt
    tungsten wicker cardboard fibreglass acrylic polyester satin tar gravel straw peat
    """.split()
)
COLOURS = (
    *"""
    red blue green yellow white black grey brown pink orange purple silver gold beige navy turquoise crimson scarlet
    maroon olive teal violet indigo lilac cream ivory amber khaki magenta copper
    """.split(),
    *("dark green", "dark red", "navy blue", "sky blue", "light grey", "pale yellow", "bright orange", "deep purple"),
    *("off-white", "lime green", "royal blue", "rust brown", "mint green", "pale pink", "charcoal grey"),
)  # fmt: skip
# As consonants, so that "a {o}" is right.
ROLES = (
    *"""
    baker biologist carpenter chemist cook designer doctor driver farmer gardener geologist lawyer librarian mechanic
    nurse painter pilot planner plumber printer programmer secretary teacher translator writer buyer surveyor tailor
    miller potter sailor welder barber beekeeper blacksmith bookbinder bricklayer broker butcher cashier caretaker
    chef clerk coach conductor courier curator dancer dentist detective diver fisherman florist forester glazier
    goldsmith guide hairdresser historian jeweller joiner journalist judge locksmith magician mason midwife miner
    model musician notary paramedic pharmacist photographer physicist poet porter postman professor psychologist
    receptionist reporter roofer sculptor shepherd singer soldier statistician stonemason tiler tutor waiter
    watchmaker weaver zoologist
    """.split(),
    *("bus driver", "civil engineer", "data analyst", "fire officer", "graphic designer", "customs officer", "vet"),
    *("project manager", "software developer", "social worker", "tax adviser", "wedding planner", "tram driver"),
)  # fmt: skip
ROOMS = tuple(
    word.replace("-", " ")
    for word in """
    kitchen garden bathroom bedroom hallway office cellar attic library garage park school cinema station market
    bakery museum hotel harbour church pantry laundry workshop basement loft nursery lounge lobby canteen gym studio
    barn stable greenhouse shed courtyard terrace chapel ballroom vault boathouse bakehouse cloakroom conservatory
    boiler-room playground theatre pharmacy post-office toolshed staircase
    """.split()
)
SPORTS = tuple(
    """
    rowing chess fencing cricket hockey rugby tennis football basketball volleyball handball swimming cycling archery
    judo karate sailing climbing skating badminton squash polo curling wrestling boxing golf bowling darts
    """.split()
)
INSTRUMENTS = tuple(
    """
    violin cello viola flute oboe clarinet bassoon trumpet trombone tuba horn harp piano organ guitar lute mandolin
    banjo accordion drums timpani xylophone saxophone harmonica bagpipes recorder piccolo zither sitar ukulele
    """.split()
)
GENRES = tuple(
    """
    comedy drama thriller mystery romance fantasy satire horror western adventure documentary biography memoir jazz
    folk blues ballad waltz opera rock soul gospel polka lullaby march
    """.split()
)
STYLES = tuple(
    """
    gothic baroque modernist classical romantic brutalist rococo cubist impressionist realist abstract art-deco
    neoclassical renaissance medieval colonial minimalist expressionist folk surrealist
    """.split()
)
SUBJECTS = tuple(
    """
    algebra geometry statistics biology botany zoology chemistry physics astronomy geology geography history economics
    law logic ethics philosophy theology linguistics grammar rhetoric poetry drama music painting sculpture
    architecture robotics programming cryptography optics acoustics genetics anatomy nursing pharmacy nutrition
    ecology hydrology meteorology archaeology anthropology sociology psychology pedagogy accounting marketing
    logistics forestry
    """.split()
)
COUNTRIES = tuple(
    """
    Norway Sweden Denmark Finland Iceland Ireland Scotland France Spain Portugal Italy Greece Turkey Egypt Morocco
    Tunisia Ghana Kenya Uganda Senegal Angola Namibia Botswana India Nepal Bhutan Japan Korea Vietnam Thailand
    Malaysia Australia Canada Mexico Cuba Panama Colombia Peru Chile Brazil Uruguay Argentina Bolivia Poland Austria
    Hungary Romania Bulgaria Serbia Croatia Slovenia Latvia Estonia Lithuania Germany Belgium Malta Cyprus Jordan Oman
    """.split()
)
TONGUES = tuple(
    """
    English French German Spanish Italian Portuguese Dutch Danish Swedish Norwegian Finnish Icelandic Polish Czech
    Slovak Hungarian Romanian Greek Turkish Arabic Hebrew Persian Hindi Bengali Tamil Urdu Thai Korean Japanese
    Swahili Zulu Yoruba Amharic Welsh Irish Basque Catalan Latin Latvian Estonian Georgian Armenian Mongolian Malay
    """.split()
)
CITIES = tuple(
    """
    Oslo Paris Rome Lima Cairo Berlin Madrid Vienna Prague Dublin Lisbon Athens Delhi Tokyo Seoul Boston Denver Austin
    Geneva Zurich Bergen Turin Milan Lyon Porto Ghent Leeds Malmo Perth Quito Riga Tunis Dakar Accra Hanoi Kyoto Osaka
    Basel Bonn Cork Antwerp Bristol Calgary Dallas Essen Florence Glasgow Hamburg Istanbul Jakarta Krakow Leipzig
    Manila Nairobi Odense Palermo Quebec Rotterdam Seville Tallinn Utrecht Valencia Warsaw Zagreb Utica Tampa Salzburg
    Nice Marseille Lagos Kampala Houston Havana Graz Exeter Durban Cologne Cardiff Brno Bogota Bari Aarhus York
    """.split()
)
MONTHS = tuple("January February March April May June July August September October November December".split())
WEEKDAYS = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
FIRST_NAMES = tuple(
    """
    Anna Ben Clara David Emma Frank Grace Henry Ida James Karen Louis Mara Nina Oscar Paula Ralph Sarah Thomas Ursula
    Victor Wendy Peter Alice Bruno Cecil Diana Edgar Fiona George Helen Irene Jack Kate Leo Mary Nathan Olga Philip
    Rosa Simon Tara Walter Yvonne Daniel Sandra John Julie Fred Lily Brian Greg Amina Bilal Chen Dalia Elif Farid Hana
    Ines Jorge Kofi Lucia Mateo Noor Pavel Ravi Sofia Tomas Vera Yusuf Zoe Abel Agnes Aisha Akira Albert Aldo Alma
    Andre Anita Arjun Astrid Axel Beatrix Bianca Boris Bridget Caleb Carmen Casper Celia Conrad Cora Cyril Dagny Delia
    Desmond Dmitri Dora Duncan Edith Eero Elena Elias Elsa Emil Enzo Erik Esther Eva Ezra Felix Flora Gabriel Gemma
    Gideon Giulia Gustav Hector Hugo Ibrahim Ilse Imre Indira Ingrid Isaac Ivan Jamal Jana Jasper Joan Jonas Judith
    Kamal Karim Katya Keiko Klara Lars Laura Leila Lena Liam Linus Lorna Magnus Malik Marco Margit Mariam Martin
    Matilda Maya Mei Milan Mina Mira Mohan Nadia Naomi Nestor Niko Nora Odette Olaf Omar Orla Otto Pablo Petra Priya
    Quentin Rafael Rana Rania Rene Rhea Robin Rohan Roland Rowan Rufus Ruth Salma Samir Selma Sven Tariq Tessa Theo
    Thora Tobias Uma Viola Wanda Willem Xavier Yara Yasmin Yuki Zahra Zoltan
    """.split()
)
LAST_NAMES = tuple(
    """
    Quill Stone Baker Frost Hale Moss Lane Reed Wolf Cole Park Webb Nash Voss Blake Dean Ford Gray Hunt Kerr Lowe
    Marsh North Page Rowe Sharp Thorn Vance West York Ash Birch Crane Drake Finch Glass Hart Jarvis Knox Lark Mills
    Noble Orr Pike Quinn Rhodes Swift Tate Upton Wren Alvarez Bauer Costa Dubois Eriksen Fischer Garcia Haddad Ivanov
    Jansen Kowalski Larsen Moreau Novak Okafor Petrov Rossi Santos Tanaka Weber Abbott Adeyemi Ahmed Andersen Banerjee
    Barnes Becker Bello Berg Bianchi Brandt Brennan Byrne Carver Castro Chandra Cho Clarke Conti Dahl Danso Diaz
    Dietrich Dlamini Doyle Dvorak Ekstrom Farrow Ferrari Fleming Fontaine Fuchs Galloway Gupta Hansen Harlow Hassan
    Hayashi Hoffman Holm Horvat Ito Jensen Kaplan Kaya Keller Khan Kimura Klein Koch Lambert Laurent Leclerc Lindholm
    Mahmoud Marek Mendez Mercer Mishra Mori Murphy Nakamura Ndiaye Nguyen Nilsen Nowak Ortega Osei Palmer Patel
    Pereira Popov Qureshi Rahman Ramos Ricci Roth Sato Schmidt Sharma Silva Singh Sorensen Suzuki Szabo Thorne Toure
    Varga Virtanen Wagner Walsh Whitlock Winter Yilmaz Yamada Zhang Zimmer
    """.split()
)
TOPICS = tuple(
    """
    Travel Parking Laptop Hotel Training Meeting Badge Visitor Overtime Printing Holiday Canteen Bicycle Phone Storage
    Cleaning Shipping Safety Archive Guest Housing Sickness Gift Music Garden Tool Uniform Ladder Key Energy Heating
    Waste Coffee Delivery Password Backup Camera Drone Taxi Flight Expense Procurement Leave Mileage Software
    Recruitment Volunteer Whistleblower Recycling Fuel Catering Donation Lending Translation Mentoring Childcare
    Relocation Pension Equipment Noise Pet Smoking Fire Water Lighting Signage Newsletter Complaint Refund Loyalty
    Warranty Returns Internship Rental Quality Inspection Research Publication
    """.split()
)
NOUNS = tuple(
    dict.fromkeys(word for words in (THINGS, PARTS, NATURE, ANIMALS, IDEAS) for word in words if "-" not in word)
)
