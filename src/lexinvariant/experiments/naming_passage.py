"""The text whose tokens are followed by default: simple words that come again and again, written for this."""

PASSAGE = """\
An old woman lived in a small house by the river. She had a dog and a cat. The dog was big and black, and \
the cat was small and white. Every morning the woman went to the river to get water. The dog went with her, \
but the cat stayed in the house, because the cat did not like the water.

One day in winter it was very cold. The woman went to the river, and the water was ice. She said to the dog, \
"There is no water today. We will go home and eat bread." They went home. The cat sat by the fire. The woman \
gave bread to the dog and milk to the cat, and she ate bread and drank the last of the milk.

In the evening a man came to the house. He was tired and cold. "Can I sit by the fire?" he said. "Yes," said \
the woman, "come in and sit by the fire. I have bread, but I have no milk and no water." The man sat by the \
fire with the dog and the cat, and he ate the bread. Then he said, "You gave me bread and a fire. In the \
morning I will go to the river and get water for you."

In the morning the man took a big stone and went to the river with the dog. He broke the ice with the stone, \
and there was water under the ice. He came back to the house with the water. The woman was happy, the dog \
was happy, and the cat slept by the fire. The man lived with the woman in the small house by the river, and \
every morning they went to get water, and every evening they ate bread and drank milk by the fire.
"""
