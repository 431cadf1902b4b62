"""Hostile and unlucky submissions, and what each must get. `test_attacks.py` has them graded."""
