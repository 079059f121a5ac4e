"""Rows to figures and one HTML page. Never imports jax, so plots redraw on any machine."""
