"""One module an experiment: its Options, and run(options, recorder), which measures and writes rows (results/)."""
