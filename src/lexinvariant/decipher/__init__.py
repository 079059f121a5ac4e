"""What the symbols of a text stand for: keys, probes, and the best reading of a ciphertext."""
