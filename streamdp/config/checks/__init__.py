"""Checks between sections: what each alone cannot see."""
