"""One module a figure or table of the paper; each has run(...) and writes rows with full provenance."""
