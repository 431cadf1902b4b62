"""Handed in as it was given out."""
