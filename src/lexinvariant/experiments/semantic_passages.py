"""Short passages in plain words, written for this package, so that the semantic experiment runs without any data."""

LIKE_THE_PAPERS = (
    "i was in the cafe on the corner with a cup of coffee in front of me. it was late, and it was raining"
    " in the street. 'do you like it here?' she asked me. 'yes, i do,' i said. 'i like the people here, "
    "and i like the street.' she looked out at the rain and then she looked at me. 'there are too many "
    "restaurants here now,' she said. 'when i was a girl there were two restaurants in this street. now "
    "there are ten restaurants, and i do not know the people who eat in them.' i did not know what to say"
    " to her. there was some music from the next room, and some one there began to sing. 'my father had "
    "one of the old restaurants,' she said. 'he was here day and night. then he was ill, and we had to "
    "sell it.' she looked out at the rain again. 'i am sorry,' i said. 'do not be sorry,' she said, 'it "
    "was years ago, and i like it here with you and the rain.'"
)
"""In the manner of the paper's example and with its four options: restaurants several times, the others once."""

PASSAGES = (
    "the boy had a dog and the dog was black. in the morning the boy gave the dog some bread, and he had "
    "some bread and a cup of milk. then the boy and the dog went to the river. the boy put his feet in "
    "the water, and the dog put his nose in the water. they saw three ducks on the river. the dog looked "
    "at the ducks and the ducks looked at the dog. 'no,' said the boy, and he put his hand on the dog. "
    "when they came back to the house his mother was in the kitchen. she had a green hat on her head. "
    "'are you cold?' she asked. the boy was cold, so she gave him some tea.",
    "my sister is a teacher in a small school. there are twelve girls and nine boys in the school. every "
    "morning my sister walks to the school in her red coat. she likes the coat, and the girls and the "
    "boys like it too. one day a goat came into the school. the goat was white, and it was hungry. it ate"
    " an apple, and then it ate a hat. the girls laughed and the boys laughed, but my sister did not "
    "laugh. she took the goat by the ear and led it out to the garden. then she gave the goat some water,"
    " and it went home to the farm.",
    "the king was old and he was ill. he did not eat and he did not sleep. the queen gave him soup, but "
    "he did not want the soup. the queen gave him wine, but he did not want the wine. then a farmer came "
    "to the castle with a brown horse. 'the king must ride,' said the farmer. 'he must ride to the forest"
    " and back, every day for seven days.' the king put on his boots and rode to the forest. on the first"
    " day his legs hurt. on the next day his legs hurt less. after seven days the king was well, and he "
    "asked for cheese and for honey. he gave the farmer a blue cloak.",
    "there was a market in the village, and every week my father went to the market with his donkey. the "
    "donkey carried the beans and the rice, and my father carried the eggs. one week it was very hot. my "
    "father took off his shirt and put a cloth on his head. he drank some water, and he gave some water "
    "to the donkey. at the market a woman bought six eggs. she looked at the donkey. 'he has sad eyes,' "
    "she said. 'he has a long way to go,' said my father. the woman had a yellow dress and a kind face. "
    "she gave the donkey some sugar, and the donkey was not sad any more.",
    "my uncle is a doctor in the city. at night he comes home to his house and takes off his shoes. he "
    "sits with his cat, and he drinks his beer. the cat is grey and old, and it sleeps on his knees. one "
    "night there was a noise at the door. it was a man with a bad arm. the man had walked for two hours "
    "in the snow, and he had no coat. my uncle looked at the arm, and gave the man some soup and some "
    "bread. the cat looked at the man and went to sleep on his knees. 'the cat likes you,' said my uncle,"
    " 'and the arm will be well in five days.'",
    "in the garden of the old church there lived a fox. the fox was red and it was clever. every evening "
    "it came to the kitchen door and waited. my aunt was afraid of the fox, but my brother was not. he "
    "gave the fox meat, and he gave it milk. one evening the fox did not come. my brother put on his cap "
    "and went to look for it. he looked in the church, and he looked in the garden. he found the fox, and"
    " it had hurt its leg. he held the fox in his arms. its hair was wet and its mouth was dry. after "
    "four weeks it could run again, and it ran into the forest.",
    "grandmother makes the best cake in the town. she takes eight eggs and some butter and some sugar. "
    "she does not let us help, because our hands are not clean. 'look at your fingers,' she says, 'they "
    "are black.' so we wash our hands and then she lets us help. my brother cuts an apple and i get the "
    "milk. when the cake is ready it is brown and hot. we sit in the kitchen and we eat the cake and "
    "drink our juice. the dog sits by the table, and a mouse sits in the wall. the dog gets some cake, "
    "and i think the mouse gets some too. grandmother laughs and ties up her white hair.",
    "the prince lost his hat in the river. it was a green hat, and he loved it. 'i will give a hundred "
    "coins for my hat,' said the prince. a frog came out of the river with the hat on its head. 'here is "
    "your hat,' said the frog. 'i do not want coins. i want to live in the castle, and i want to sit by "
    "you and eat cheese.' the prince did not like the frog. its feet were wet, and its tongue was long. "
    "but he took the frog to the castle and gave it cheese and wine. the princess liked the frog. 'it is "
    "more fun than ten princes,' she said, and she gave it a small blue coat.",
    "my wife and i have a farm. we have four cows and twenty sheep and one horse. the horse is old and "
    "white and its teeth are bad, so we give it soft bread. in the winter the snow is deep. i put on two "
    "shirts and my boots, and i go out to the cows with my hands in my coat. my wife makes coffee, and "
    "when i come back my nose is red. we sit by the fire in the kitchen, and we eat potatoes and drink "
    "coffee. our son lives in the city now. he eats in a shop and he walks in the street in thin shoes. "
    "'are you not cold?' my wife asks him. 'no,' he says, but his ears are red.",
    "a monkey lived by the school. it was a small brown monkey with a long tail. the teacher did not like"
    " the monkey, because it took her lemonade and put on her hat. one day a girl came late to school. "
    "she had a banana in her hand. the monkey saw the banana and ran to the girl. it pulled her hair and "
    "took the banana. the girl cried. then the monkey looked at her face, and it gave back half of the "
    "banana. the teacher saw it and gave the monkey a glass of lemonade. from that day the three of them "
    "ate in the garden, and the monkey wore a yellow dress.",
)
