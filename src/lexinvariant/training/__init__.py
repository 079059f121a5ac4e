"""Making a model: the optimiser, the curriculum of lexicons, sharding, checkpoints and the loop."""
