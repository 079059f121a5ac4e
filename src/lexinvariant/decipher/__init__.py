"""What the symbols of a text stand for: keys, probes, and the solver of ciphertexts."""
