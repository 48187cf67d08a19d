"""Runs plans: every arm, its summary, the search for the largest data set, a recorded run again."""
