"""Tokens to log-probabilities: pure functions of parameters, tokens and a drawn lexicon."""
