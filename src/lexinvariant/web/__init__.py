"""The page that shows a model deciphering, and the JSON interface behind it (docs/api.md)."""
